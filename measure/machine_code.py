"""Reads a cubin's machine code as far as a chapter needs it: how wide its shared-memory loads are, how many
loads from global memory it sends in a row, which registers its multiply-adds read.

NVIDIA does not document the encoding. From Volta on an instruction is 16 bytes; its low 12 bits are
the opcode, and bits 73-75 of a load give its width. What is read here agrees with `nvdisasm` 13.5 on
the ladder's kernels for sm_75 to sm_90 (see Z. Jia et al., arXiv:1804.06826, for Volta's encoding).
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from statistics import median

from kernels.build import Build
from kernels.shipped import machine_code

BYTES = 16
LDS = 0x984
FFMA = 0x223
ZERO = 255  # RZ, which is no register
NEVER = 15  # @!PT, a predicate that never holds
LDG = (0x381, 0x981)
STS = (0x388, 0x988)
LDGSTS = 0xFAE
WIDTH = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}


def shared_loads(build: Build, entry: str | None = None) -> Counter:
    """{bytes per lane: shared-memory load instructions} of one kernel, `ldmatrix` left out."""
    return Counter(WIDTH[high >> 9 & 7] for low, high in words(build, entry) if low & 0xFFF == LDS)


@dataclass(frozen=True)
class SharedLoad:
    """A load from shared memory: its address registers (a plain one, a uniform one), offset and size in bytes."""

    registers: tuple[int, int]
    offset: int
    size: int


def shared_accesses(build: Build, entry: str | None = None) -> list[SharedLoad]:
    """The loads from shared memory in order, without `ldmatrix` and those whose predicate never holds.

    An offset has 24 bits, the highest of which is its sign.
    """
    return [
        SharedLoad(
            (low >> 24 & 255, low >> 32 & 255),
            ((low >> 40) ^ 1 << 23) - (1 << 23),
            WIDTH[high >> 9 & 7],
        )
        for low, high in words(build, entry)
        if low & 0xFFF == LDS and low >> 12 & 15 != NEVER
    ]


def shared_stores(build: Build, entry: str | None = None) -> Counter:
    """{bytes per lane: stores to shared memory} of one kernel, without those whose predicate never holds."""
    return Counter(
        WIDTH[high >> 9 & 7]
        for low, high in words(build, entry)
        if low & 0xFFF in STS and low >> 12 & 15 != NEVER
    )


def loads_in_a_row(build: Build, entry: str | None = None) -> list[int]:
    """How many loads from global memory stand between two stores to shared memory, for each such run, in order."""
    runs, length = [], 0
    for low, _ in words(build, entry):
        opcode = low & 0xFFF
        if opcode in LDG:
            length += 1
        elif opcode in STS and length:
            runs, length = [*runs, length], 0
    return [*runs, length] if length else runs


def fills_of_shared(build: Build, entry: str | None = None) -> dict[str, int]:
    """How many instructions fill shared memory from global: {"LDGSTS": asynchronous copies, "LDG": loads, "STS": stores}."""
    kinds = {LDGSTS: "LDGSTS", **dict.fromkeys(LDG, "LDG"), **dict.fromkeys(STS, "STS")}
    found = Counter(kinds.get(low & 0xFFF) for low, _ in words(build, entry))
    return {name: found[name] for name in ("LDGSTS", "LDG", "STS")}


def instructions(build: Build, entry: str | None = None) -> int:
    """Machine instructions of one kernel, the padding at its end among them."""
    return len(_section(machine_code(build), f".text.{entry or build.entry}")) // BYTES


def same_code(first: Build, second: Build) -> bool:
    """Whether the entry points of two builds have the same instructions."""
    return words(first, None) == words(second, None)


def words(build: Build, entry: str | None) -> list[tuple[int, int]]:
    """The low and the high half of every instruction."""
    code = _section(machine_code(build), f".text.{entry or build.entry}")
    return list(struct.iter_unpack("<QQ", code[: len(code) // BYTES * BYTES]))


def _section(elf: bytes, name: str) -> bytes:
    """The bytes of a section of a 64-bit ELF file. ValueError when there is none of that name."""
    table, size, count, names = _header(elf)
    sections = [struct.unpack_from("<II4Q", elf, table + size * n) for n in range(count)]
    strings = sections[names][4]
    for section in sections:
        start = strings + section[0]
        if elf[start : elf.index(b"\0", start)].decode() == name:
            return elf[section[4] : section[4] + section[5]]
    raise ValueError(f"the cubin has no section {name}")


def _header(elf: bytes) -> tuple[int, int, int, int]:
    """Offset, entry size and number of the section headers, and which of them holds the names."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    return (table, *struct.unpack_from("<HHH", elf, 58))


@dataclass(frozen=True)
class MultiplyAdd:
    """An FFMA of three registers. `kept`: which of them it keeps for the operand of the same place in the next instruction."""

    sources: tuple[int, int, int]
    kept: tuple[bool, bool, bool]


def multiply_adds(build: Build, entry: str | None = None) -> list[list[MultiplyAdd]]:
    """Runs of FFMAs with nothing in between, in order. Sources and reuse flags as Z. Jia et al. read them."""
    runs: list[list[MultiplyAdd]] = [[]]
    for low, high in words(build, entry):
        if low & 0xFFF == FFMA:
            sources = (low >> 24 & 255, low >> 32 & 255, high & 255)
            kept = tuple(bool(high >> bit & 1) for bit in (58, 59, 60))
            runs[-1].append(MultiplyAdd(sources, kept))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def register_reads(build: Build, entry: str | None = None) -> float:
    """Registers that an FFMA reads from the register file, on average: 3 less those that the one before it has kept."""
    read = _registers_read(build, entry)
    return sum(map(len, read)) / len(read)


def _registers_read(build: Build, entry: str | None) -> list[list[int]]:
    """For each FFMA the registers that it reads from the register file. ValueError when there is no FFMA."""
    found = []
    for run in multiply_adds(build, entry):
        kept = (None, None, None)
        for now in run:
            found.append(
                [r for r, same in zip(now.sources, kept, strict=True) if r not in (same, ZERO)]
            )
            kept = tuple(r if k else None for r, k in zip(now.sources, now.kept, strict=True))
    if not found:
        raise ValueError("the kernel has no multiply-adds of three registers")
    return found


def lead(build: Build, entry: str | None = None) -> float:
    """How many FFMAs stand between a load from shared memory and the first FFMA that reads it: the median of all loads.

    The order is that of the text, which is the order of issue in straight code. What is read only after the loop has jumped
    back is left out.
    """
    waiting: dict[int, int] = {}  # register: how many FFMAs had passed when it was loaded
    load_of: dict[int, int] = {}  # register: which load
    first: dict[int, int] = {}  # load: FFMAs before its first reader
    passed = 0
    for number, (low, high) in enumerate(words(build, entry)):
        opcode, target = low & 0xFFF, low >> 16 & 255
        if opcode == LDS:
            for register in range(target, target + WIDTH[high >> 9 & 7] // 4):
                waiting[register], load_of[register] = passed, number
        elif opcode == FFMA:
            for register in (low >> 24 & 255, low >> 32 & 255, high & 255):
                if register in waiting:
                    first.setdefault(load_of[register], passed - waiting.pop(register))
            passed += 1
    if not first:
        raise ValueError("no multiply-add reads what a load from shared memory brought")
    return median(first.values())
