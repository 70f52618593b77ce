"""Which PTX instructions the ladder uses: opcodes of a rung's PTX, sorted into the families of the PTX ISA.

Section numbers are those of the PTX ISA 9.0 and 9.1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from emulator.text.parser import parse
from emulator.text.program import Label
from kernels.build import build
from kernels.rung import Rung
from kernels.rungs import RUNGS, find

ARCH = 80


@dataclass(frozen=True)
class Family:
    """Instructions that do one kind of thing. `pattern` matches the beginning of their opcodes."""

    name: str
    section: str
    pattern: str


# The first family that matches has the opcode, so special ones stand before general ones.
FAMILIES = (
    Family("matrix, mma", "9.7.14.5.14", r"mma\."),
    Family("matrix, ldmatrix", "9.7.14.5.15", r"ldmatrix"),
    Family("matrix, wmma", "9.7.14.4", r"wmma\."),
    Family("mbarrier", "9.7.13.15", r"mbarrier|cp\.async\.mbarrier"),
    Family("copies, asynchronous", "9.7.9.25.3", r"cp\.async"),
    Family("barriers", "9.7.13.1", r"bar\.|barrier\."),
    Family("atomics, fences", "9.7.13.5", r"atom|fence|red\.|membar"),
    Family("warp", "9.7.9.6", r"shfl|vote|match|activemask|redux|elect"),
    Family("loads, parameters", "9.7.9.8", r"ld\.param"),
    Family("loads, global", "9.7.9.8", r"ld\.(?!shared)"),
    Family("loads, shared", "9.7.9.8", r"ld\.shared"),
    Family("stores, shared", "9.7.9.11", r"st\.shared"),
    Family("stores, global", "9.7.9.11", r"st\."),
    Family("addresses", "9.7.9.20", r"cvta"),
    Family("conversions", "9.7.9.21", r"cvt\."),
    Family("moves", "9.7.9.3", r"mov\."),
    Family("comparison, selection", "9.7.6", r"setp|selp|set\.|slct"),
    Family("floating point", "9.7.3", r"(?:add|sub|mul|fma|mad|neg|abs|min|max|div)\.(?:\w+\.)*f(?:16|32|64)"),
    Family("bits", "9.7.8", r"(?:and|or|xor|not|shl|shr|shf|lop3|bfi|bfe|bfind|brev|popc|clz|prmt)\b"),
    Family("integers", "9.7.1", r"(?:add|sub|mul|mad|div|rem|neg|abs|min|max)\."),
    Family("control", "9.7.12", r"bra|ret|exit|call|brx"),
    Family("sleep", "9.7.19.2", r"nanosleep"),
)  # fmt: skip

# Opcodes that have another section than the rest of their family.
ELSEWHERE = {
    r"ld\.global.*\.nc": "9.7.9.9",
    r"prmt": "9.7.9.7",
    r"(?:bfi|bfe|bfind|brev|popc|clz)\b": "9.7.1",
    r"bar\.warp": "9.7.13.2",
    r"fence|membar": "9.7.13.4",
    r"red\.": "9.7.13.6",
    r"vote": "9.7.13.9",
    r"match": "9.7.13.10",
    r"activemask": "9.7.13.11",
    r"redux": "9.7.13.12",
    r"elect": "9.7.13.14",
}


def section(opcode: str) -> str:
    """Where the PTX ISA describes an opcode."""
    there = (number for pattern, number in ELSEWHERE.items() if re.match(pattern, opcode))
    return next(there, family(opcode).section)


def family(opcode: str) -> Family:
    """The family of an opcode with its modifiers, e.g. "ld.global.v4.f32". KeyError for an unknown one."""
    for candidate in FAMILIES:
        if re.match(candidate.pattern, opcode):
            return candidate
    raise KeyError(f"no family for {opcode}")


def opcodes(
    rung: str | Rung, macros: Mapping[str, int] | None = None, arch: int = ARCH
) -> Counter[str]:
    """How often each opcode stands in the PTX of this rung: in the text, not in a run."""
    functions = parse(build(find(rung), macros, arch).ptx).functions.values()
    return Counter(
        ".".join(item.parts) for f in functions for item in f.body if not isinstance(item, Label)
    )


def used(rungs: Iterable[str] | None = None, arch: int = ARCH) -> dict[str, dict[str, int]]:
    """`{opcode: {rung: count}}`, rungs by number, over every number format that a rung has
    (counts of several formats are added).
    """
    found: dict[str, dict[str, int]] = {}
    for name in rungs or RUNGS:
        rung = find(name)
        if rung.path is None or rung.min_arch > arch:
            continue
        counts: Counter[str] = Counter()
        for setting in rung.configurations():
            counts += opcodes(rung, setting, arch)
        for opcode, count in counts.items():
            found.setdefault(opcode, {})[rung.name] = count
    return dict(sorted(found.items()))
