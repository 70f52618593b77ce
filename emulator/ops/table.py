"""The table of everything this machine can execute, by families."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.ops import (
    atomics,
    barriers,
    bits,
    control,
    copies,
    floating,
    integer,
    mbarrier,
    memory,
    moves,
    printing,
    select,
    tensor,
    warp,
)
from emulator.text.rows import Table, merged


@dataclass(frozen=True)
class Family:
    """Opcodes that the README lists together. note: what of them there is, where their names do not say it."""

    title: str
    opcodes: Table
    note: str = ""


FAMILIES = (
    Family("integer", integer.OPCODES, "16 to 64 bits, pairs of 16; saturation, carries"),
    Family("bits", bits.OPCODES),
    Family(
        "floating point",
        floating.OPCODES,
        "f16, bf16 and pairs of them, f32 and pairs, f64; all roundings, ftz, sat, relu",
    ),
    Family("comparison, selection", select.OPCODES, "both destinations; and, or, xor"),
    Family("movement", merged(moves.OPCODES, memory.OPCODES), "all spaces, v2 v4 v8, cache hints"),
    Family("atomics", atomics.OPCODES, "all operations and types, vectors, global and shared"),
    Family("warp", warp.OPCODES, "bar.warp; clusters of one block"),
    Family("block", merged(barriers.OPCODES, memory.FENCES), "numbers and counts of threads"),
    Family("tensor cores", tensor.OPCODES),
    Family("asynchronous copies", merged(copies.OPCODES, mbarrier.OPCODES), "cp.async"),
    Family("control", control.OPCODES, "functions are inlined; device-side assert"),
    Family("output", printing.OPCODES, "what printf calls"),
)

OPCODES: Table = merged(*(family.opcodes for family in FAMILIES))


def coverage() -> str:
    """The README's table of instructions."""
    lines = ["| family | instructions | with |", "|---|---|---|"]
    for family in FAMILIES:
        lines.append(f"| {family.title} | {' '.join(family.opcodes)} | {family.note} |")
    return "\n".join(lines)
