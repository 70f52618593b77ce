"""The one small change that makes a wrong kernel right, found by trying many.

Where no output, address or hazard names the cause, the reader's own lines are changed in one place at a time: another
name, number or operator, two names the other way round, a statement left out, or a few words as a right answer has them.
All variants are compiled together, and each is launched at the size that went wrong. What comes out right there is tried at
the other sizes too. So what is said has been tried, and it names a line.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, repeat

import numpy as np

import emulator
from emulator import errors
from kernels.build import local_headers
from kernels.headers import include_folders
from kernels.nvrtc import compiler

from .diagnose import wrong
from .exercise import Case
from .explain import STOPPED
from .patience import time_limit
from .variants import Change, changes, own_lines

SECONDS = 15  # of the processor, for all that is tried
MORE_SECONDS = 4  # after a whole line has been found to be wrong, for what in it is
AT_ONCE = 10, 20, 48  # variants in the first compiles, and in each that follows
MOST = 2400  # variants
ONE_LAUNCH = 2  # seconds of the processor
MOST_INSTRUCTIONS = 1 << 20  # of the warps of a launch
REFUSED = re.compile(r"^v(\d+)\(\d+\): (?:catastrophic )?error", re.MULTILINE)

_PRELUDE = re.compile(r"^[ \t]*#.*(?:\\\n.*)*$", re.MULTILINE)


def smallest_change(
    source: str,
    given: str,
    answer: str,
    entry: str,
    cases: Sequence[Case],
    arch: str | int,
    output=None,
    suspected: Sequence[int] = (),
    seconds: float = SECONDS,
    right: Callable | None = None,
) -> str | None:
    """One sentence on the change that makes this kernel right at all these cases, the first of which it gets wrong.

    given, answer: what the reader was given, and a right answer. output: what the kernel gave at the first case, where it
    gave any. suspected: lines to begin with. right(case, output, trace): whether a launch is right.
    """
    if not own_lines(source, given):
        return None  # nothing has been written yet
    try:
        nvrtc = compiler()
    except ImportError:
        return None
    ends = time.process_time() + seconds
    first, seen = None, set()
    block = _one_block(cases[0], output)
    variants = islice(changes(source, given, answer, suspected), MOST)
    sizes = chain(AT_ONCE, repeat(AT_ONCE[-1]))
    while some := list(islice(variants, next(sizes))):
        for change, module, name, text in _compiled(nvrtc, source, some, entry, arch):
            if text in seen:
                continue
            seen.add(text)
            if time.process_time() > ends:
                return first
            if _right(module, name, cases[0], None, block) and all(
                _right(module, name, case, right or is_right, None) for case in cases
            ):
                said = f"{change.words} it would be right."
                if not change.of_a_line:
                    return said
                if first is None:  # what is changed in the line may yet be found
                    first, ends = said, min(ends, time.process_time() + MORE_SECONDS)
        if time.process_time() > ends:
            break
    return first


def is_right(case: Case, output, trace) -> bool:
    return not wrong(case, output).any() and not trace.hazards and not trace.uneven


def _right(module, name: str, case: Case, right, block: tuple | None) -> bool:
    """Whether this launch is right. block: (blocks, mask) of one block, whose part of the output alone is looked at."""
    blocks, part = block or (None, slice(None))
    args = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in case.args)
    try:
        with time_limit(ONE_LAUNCH):
            trace = module.launch(
                name, case.grid, case.block, args, case.shared_bytes, record=1, progress=False,
                count=not block, sanitize=not block, max_warp_instructions=MOST_INSTRUCTIONS, blocks=blocks,
            )  # fmt: skip
    except (*STOPPED, errors.Unsupported, ValueError, TypeError):
        return False
    output = args[case.output]
    return not wrong(case, output)[part].any() if block else right(case, output, trace)


def _one_block(case: Case, output) -> tuple:
    """The first block whose part of the output is wrong, and that part; all blocks where it is not plain which is whose."""
    everything = None, slice(None)
    if (
        output is None
        or case.product is None
        or len(case.grid) != 2
        or output.shape != case.expected.shape
    ):
        return everything
    (M, N), (across, down) = output.shape, case.grid
    if M % down or N % across or across * down == 1:
        return everything
    bad = np.argwhere(wrong(case, output))
    if not len(bad):
        return everything
    row, col = bad[0]
    high, wide = M // down, N // across
    row, col = int(row) // high, int(col) // wide
    part = slice(row * high, (row + 1) * high), slice(col * wide, (col + 1) * wide)
    return [(col, row, 0)], part


def _compiled(nvrtc, source: str, changes: Sequence[Change], entry: str, arch) -> Iterator[tuple]:
    """(change, module, name of its entry, its PTX) of each change that compiles; what changes no instruction is left out."""
    left = {0: Change(source, ""), **dict(enumerate(changes, 1))}
    for _ in range(4):
        text = "\n".join(
            [*dict.fromkeys(line for c in left.values() for line in _PRELUDE.findall(c.source))]
            + [_in_namespace(c.source, entry, number) for number, c in left.items()]
        )
        folders = include_folders((nvrtc.major, nvrtc.minor))
        flags = [
            f"-arch=compute_{arch}",
            "-std=c++17",
            "-w",
            *(f"-I{folder}" for folder in folders),
        ]
        try:
            done = nvrtc.compile(text, "variants.cu", local_headers(text), flags)
        except Exception:  # a binding that knows no virtual architecture
            return
        if done.ok:
            break
        refused = {int(number) for number in REFUSED.findall(done.log)}
        if not refused or 0 in refused:
            return
        left = {number: c for number, c in left.items() if number not in refused}
    else:
        return
    bodies = _bodies(done.ptx)
    names = {
        int(match[1]): name for name in bodies if (match := re.search(rf"{entry}_v(\d+)_", name))
    }
    if 0 not in names:
        return
    module = emulator.Module(done.ptx)
    for number, change in left.items():
        if number and number in names and bodies[names[number]] != bodies[names[0]]:
            yield change, module, names[number], bodies[names[number]]


def _in_namespace(source: str, entry: str, number: int) -> str:
    plain = _PRELUDE.sub(lambda match: "\n" * match[0].count("\n"), source)
    plain = re.sub(rf"\b{re.escape(entry)}\b", f"{entry}_v{number}_", plain)
    return f'namespace v{number} {{\n#line 1 "v{number}"\n{plain}\n}}'


def _bodies(ptx: str) -> dict[str, str]:
    """The instructions of each entry, with nothing in them that differs from entry to entry by its place."""
    found = {}
    for part in ptx.split(".entry ")[1:]:
        name = re.match(r"[\w$]+", part)[0]
        part = re.sub(r"\$L__BB\d+_", "$L_", part.split("\n}")[0])
        part = re.sub(
            r"_ZN?\w*?v\d+_?\w*|\w+_v\d+_\w*", lambda m: re.sub(r"\d*v\d+_?", "", m[0]), part
        )
        found[name] = re.sub(r"__cuda_local_var_\d+\w*|\$\d+|__local_depot\d+", "", part)
    return found
