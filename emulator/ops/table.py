"""The table of everything this machine can execute, by families."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.ops import (
    atomics,
    barriers,
    bits,
    bulk,
    calls,
    cluster,
    control,
    copies,
    floating,
    integer,
    launch_control,
    matrices,
    mbarrier,
    memory,
    moves,
    printing,
    registers,
    scaled_mma,
    select,
    tcgen05,
    tcgen05_mma,
    tensor,
    tensor_maps,
    video,
    warp,
    wgmma,
    wmma,
)
from emulator.text.rows import Table, merged


@dataclass(frozen=True)
class Family:
    """Opcodes that the README lists together. note: what of them there is, where their names do not say it."""

    title: str
    opcodes: Table
    note: str = ""


FAMILIES = (
    Family(
        "integer",
        integer.OPCODES,
        "16 to 64 bits, lo, hi and wide; sat, relu, pairs of 16; carries",
    ),
    Family("bits", bits.OPCODES, "16 to 64 bits; and, or, xor, not of predicates"),
    Family(
        "floating point, conversion",
        floating.OPCODES,
        "f16, bf16 and pairs of them, f32 and pairs, f64; all roundings, ftz, sat, relu; cvt among all "
        "integers and f16, bf16, tf32, f32, f64; e4m3x2, e5m2x2; cvt.pack",
    ),
    Family(
        "video",
        video.OPCODES,
        "parts of 8 and 16 bits of each operand; sat, a second operation, merging; two and four at a time",
    ),
    Family("comparison, selection", select.OPCODES, "both destinations; with and, or, xor"),
    Family(
        "movement",
        merged(moves.OPCODES, memory.OPCODES),
        "packing and unpacking; all spaces, v2, v4, v8, cache hints",
    ),
    Family(
        "atomics",
        atomics.OPCODES,
        "add, min, max, and, or, xor, exch, cas, inc, dec; all types, vectors, global and shared",
    ),
    Family("warp", warp.OPCODES, "bar.warp"),
    Family(
        "block",
        merged(barriers.OPCODES, memory.FENCES, cluster.FENCES, tensor_maps.FENCES),
        "sync, arrive, red; numbered, and for a number of threads",
    ),
    Family(
        "tensor cores",
        merged(matrices.OPCODES, tensor.OPCODES, scaled_mma.OPCODES, wmma.OPCODES),
        "8x8 matrices of 16 bits; f16, bf16, tf32, f64, e4m3, e5m2, s8, u8, s4, u4, b1; mma.sp; block-scaled mma of sm_120a",
    ),
    Family(
        "warpgroup",
        merged(wgmma.OPCODES, registers.OPCODES),
        "every n; f16, bf16, tf32, e4m3, e5m2, s8, u8; A in registers or shared memory, all swizzles, "
        "transposed, scaled",
    ),
    Family(
        "tensor memory",
        merged(tcgen05.OPCODES, tcgen05_mma.OPCODES),
        "of sm_100: alloc, dealloc, relinquish_alloc_permit; ld, st, wait, fence, commit (multicast too); cp, shift; dense mma "
        "of every kind, block-scaled ones too, A in shared or tensor memory, one block or a pair",
    ),
    Family(
        "asynchronous copies",
        merged(copies.OPCODES, bulk.OPCODES, tensor_maps.OPCODES, mbarrier.OPCODES),
        "cp.async; bulk copies and reductions, tiles of tensor maps (1 to 5 dimensions), multicast; maps changed by the kernel; "
        "mbarriers with transactions",
    ),
    Family(
        "clusters",
        merged(cluster.OPCODES, launch_control.OPCODES),
        "ld, st, atom and red too; barrier.cluster, st.async, red.async; clusters taken over (sm_100)",
    ),
    Family(
        "control",
        control.OPCODES,
        "calls of functions and of addresses, recursive ones too; device-side assert",
    ),
    Family("output", printing.OPCODES, "what printf calls"),
)

OPCODES: Table = merged(*(family.opcodes for family in FAMILIES), calls.OPCODES)


def coverage() -> str:
    """The README's table of instructions; `python -m emulator opcodes` prints it."""
    lines = ["| family | instructions | with |", "|---|---|---|"]
    for family in FAMILIES:
        lines.append(f"| {family.title} | {' '.join(family.opcodes)} | {family.note} |")
    return "\n".join(lines)
