"""Other settings for the same kernel: the change under which its answer becomes right, or stays wrong, narrows the cause down."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

import kernels

from .diagnose import wrong
from .exercise import Case
from .explain import own_line, quote
from .trials import TrialFailed, Trials

_COPY = re.compile(r"^([^\n/]*\bcp\.async\.c[ag]\b[^;\n]*;)", re.MULTILINE)
_HALVES = re.compile(r"^(add|sub|mul|fma|max|min)\.(\w+\.)*(f16|f16x2|bf16|bf16x2)$")


def with_instant_copies(built: kernels.Build) -> kernels.Build | None:
    """The same kernel with each asynchronous copy done before the next instruction; None where it has none."""
    ptx, found = _COPY.subn(r"\1\n\tcp.async.wait_all;", built.ptx)
    return replace(built, ptx=ptx) if found else None


_WIDE = re.compile(r"(?m)^\s*(@!?%p\d+ )?(ld|st)\.global((?:\.nc)?)\.v([24])\.(\w+)\s+([^;]*);")


_COPY_OF = re.compile(
    r"\bcp\.async\.c[ag]\.shared\.global\s+\[([^\]]+)\],\s*\[([^\]]+)\],\s*(8|16)\b[^;]*;"
)


def _copy_by_copy(match: re.Match) -> str:
    """A copy of 8 or 16 bytes as copies of 4."""
    target, source, size = match.groups()

    def at(place: str, more: int) -> str:
        base, _, offset = place.partition("+")
        return f"[{base.strip()}+{int(offset or 0) + more}]"

    return "\n".join(
        f"cp.async.ca.shared.global {at(target, i)}, {at(source, i)}, 4;"
        for i in range(0, int(size), 4)
    )


def with_narrow_accesses(built: kernels.Build, copies: bool = False) -> kernels.Build:
    """The same kernel with each wide access of global memory made of single ones, which may lie anywhere.

    copies: those by cp.async too.
    """

    def narrow(match: re.Match) -> str:
        guard, does, cached, count, kind, operands = match.groups()
        values = re.search(r"\{([^}]*)\}", operands)
        address = re.search(r"\[([^\]]+)\]", operands)
        if values is None or address is None:
            return match[0]
        size, lines = int(re.sub(r"\D", "", kind)) // 8, []
        base, _, offset = address[1].partition("+")
        for i, value in enumerate(values[1].split(",")):
            place = f"[{base}+{int(offset or 0) + i * size}]"
            both = (value.strip(), place) if does == "ld" else (place, value.strip())
            lines.append(f"\t{guard or ''}{does}.global{cached}.{kind} {both[0]}, {both[1]};")
        if does == "ld" and base.strip() in values[1]:
            return match[0]
        return "\n".join(lines) if int(count) == len(lines) else match[0]

    ptx = _WIDE.sub(narrow, built.ptx)
    return replace(built, ptx=_COPY_OF.sub(_copy_by_copy, ptx) if copies else ptx)


def if_copies_were_instant(built: kernels.Build, entry: str, case: Case, told) -> str | None:
    """Whether a hazard of a copy is one of waiting, or of tiles and buffers as well.

    told(built) says what the output of another build of this kernel is made of.
    """
    instant = with_instant_copies(built)
    if instant is None:
        return None
    try:
        output = Trials(instant, entry, case).run({})
    except TrialFailed:
        return None
    if not wrong(case, output.astype(case.args[case.output].dtype)).any():
        return (
            "The result would be right if each copy were done at once: tiles and buffers are the right ones, so a wait, a "
            "commit or a barrier is missing, or stands at the wrong place."
        )
    more = told(instant)
    text = (
        "The result would be wrong even if each copy were done at once: a tile goes to another buffer than the one that is "
        "read, or a buffer is filled again before it has been read."
    )
    return f"{text} {more}" if more else text


def one_block_after_another(built: kernels.Build, entry: str, case: Case) -> bool:
    """Whether the output is right if the blocks run one by one, the last one first."""
    if np.prod(case.grid) > 64:
        return True
    trials, held = Trials(built, entry, case), case.args[case.output].copy()
    x, y, z = (*case.grid, 1, 1)[:3]
    blocks = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    try:
        for block in reversed(blocks):
            held = trials.raw({case.output: held}, [block])
    except TrialFailed:
        return True
    return not wrong(case, held).any()


def digits_lost(
    case: Case, got: np.ndarray, trace, source: str, kernel: str
) -> tuple[str | None, bool]:
    """Where all elements are nearly right: which lines compute in half, or that digits are lost; and whether a line is known."""
    if not case.tolerance or not np.isfinite(got.astype(float)).all():
        return None, False
    off = np.abs(got - case.expected) / np.maximum(case.scale, 1e-30)
    if off.max() > 2.0**-7:
        return None, False
    lines, whole = _in_half(trace, source, kernel), _to_int(trace, source, kernel)
    text = (
        f"All elements are nearly right: the error is at most {off.max():.1e} of what is summed up, so no term is missing, and "
        "digits are lost on the way."
    )
    if lines:
        return (
            f"{text} This computes in half, which has 11 significant bits: {'; '.join(lines[:2])}",
            True,
        )
    if whole:
        return f"{text} This makes a whole number of a float: {'; '.join(whole[:2])}", True
    return text, False


def _to_int(trace, source: str, kernel: str) -> list[str]:
    rows = [
        row for row in trace.instructions if re.match(r"cvt\.r[nzmp]i\.[su]\d+\.f32", row.opcode)
    ]
    lines = dict.fromkeys(own_line(row.frames, f"{kernel}.cu") for row in rows)
    return [quote(line, source, ".cu") for line in lines if line]


def makes_whole_numbers(trace, source: str, kernel: str) -> bool:
    """Whether any line of the kernel makes a whole number of a float, or adds whole numbers in memory."""
    adds = any(
        row.opcode.startswith(("atom", "red")) and ".f32" not in row.opcode
        for row in trace.instructions
    )
    return adds or bool(_to_int(trace, source, kernel))


def whole_numbers(trace, source: str, kernel: str) -> list[str]:
    """A sentence on the lines that make whole numbers of floats, where there are any."""
    lines = _to_int(trace, source, kernel)
    return [f"This drops what stands behind the point: {'; '.join(lines[:2])}"] if lines else []


def computes_in_half(trace, source: str, kernel: str) -> bool:
    """Whether any line of the kernel computes in half, or rounds to it."""
    return bool(_in_half(trace, source, kernel))


def _in_half(trace, source: str, kernel: str) -> list[str]:
    found = []
    for row in trace.instructions:
        narrow = _HALVES.match(row.opcode) or row.opcode.startswith(
            ("cvt.rn.f16.f32", "cvt.rn.bf16.f32")
        )
        inside = any(f".{kind}" in row.text for kind in ("f16", "bf16")) and row.opcode.split(".")[0] in (
            "add", "sub", "mul", "fma",
        )  # fmt: skip
        line = own_line(row.frames, f"{kernel}.cu") if narrow or inside else None
        if line and (text := quote(line, source, ".cu")) not in found:
            found.append(text)
    return found


def narrowed(exercise_settings, built: kernels.Build, entry: str, case: Case) -> str | None:
    """By the settings of an exercise, in order: the sentence of the first whose launches come out as it says.

    exercise_settings: rows of (sentence, right, wrong): changes of the case under which the answer is right, and under which it
    is wrong.
    """
    known: dict = {}

    def is_right(change) -> bool:
        if change not in known:
            other = change(case)
            try:
                output = Trials(built, entry, other).raw({})
                known[change] = not wrong(other, output).any()
            except TrialFailed:
                known[change] = False
        return known[change]

    for sentence, right, not_right in exercise_settings:
        if all(map(is_right, right)) and not any(map(is_right, not_right)):
            return sentence
    return None
