"""Counts behind *Shapes that are not square*: what a shape needs at least, and what sharing a tile moves."""

from __future__ import annotations

from math import ceil

import kernels
from book.cells import columns, whole_machine
from kernels.check import random_inputs
from kernels.gemm import gemm

GPU = "NVIDIA H200"
SMS, GHZ = 132, 1.6  # of an H200 whose tensor cores are busy
SHAPES = (
    (16, 8192, 8192),
    (64, 8192, 8192),
    (128, 8192, 8192),
    (256, 256, 65536),
    (4096, 4096, 128),
    (1024, 1024, 1024),
    (4096, 4096, 4096),
)


def name(shape: tuple[int, int, int]) -> str:
    return "\u00a0x\u00a0".join(map(str, shape))


def operations(M: int, N: int, K: int) -> int:
    return 2 * M * N * K


def least_bytes(M: int, N: int, K: int, size: int = 2) -> int:
    """A, B and C, each moved once."""
    return size * (M * K + K * N + M * N)


def arithmetic_us(M: int, N: int, K: int) -> float:
    """Microseconds of all tensor cores."""
    return operations(M, N, K) / (whole_machine.OPERATIONS * SMS * GHZ * 1e3)


def memory_us(M: int, N: int, K: int) -> float:
    """Microseconds of the memory at the data sheet's rate."""
    return least_bytes(M, N, K) / (kernels.peak(GPU).bandwidth * 1e3)


def floors(*shapes: tuple[int, int, int]) -> None:
    """Shows what each shape needs at least."""
    rows = []
    for M, N, K in shapes or SHAPES:
        times = arithmetic_us(M, N, K), memory_us(M, N, K)
        rows.append(
            [
                name((M, N, K)),
                ceil(M / 128) * ceil(N / 256),
                ceil(K / 64),
                f"{least_bytes(M, N, K) / 1e6:.0f}",
                *(f"{time:.1f}" for time in times),
                "memory" if times[1] > times[0] else "arithmetic",
            ]
        )
    columns.show(
        {
            "M x N x K": "sizes of the product",
            "tiles": "of 128 x 256",
            "k-steps": "of 64, in each tile",
            "MB": "10^6 bytes of A, B and C in 16 bits, each moved once",
            "arithmetic, µs": f"all {SMS} multiprocessors at {whole_machine.OPERATIONS:,} operations per clock and {GHZ} GHz",
            "memory, µs": "those bytes at the bandwidth of the data sheet",
            "limit": "which of the two takes longer",
        },
        rows,
        caption=f"Computed for an {GPU}, not measured.",
    )


def run(M: int, N: int, K: int, **macros: int):
    """`wgmma_split` on the emulator: a result with its trace."""
    A, B, _ = random_inputs(kernels.find("wgmma_split").types(macros), M, N, K)
    return gemm("wgmma_split", A, B, macros=macros, machine="emulator")


def moved(trace) -> dict[str, int]:
    """Bytes of a launch by where they went: read by TMA, sums of other blocks, and C."""
    kinds = {
        "A and B, by TMA": ("cp.async.bulk.tensor",),
        "sums sent through the cluster": ("st.async",),
        "sums put into the workspace": ("st.global.v2.f32",),
        "sums read from the workspace": ("ld.global.cg.v4.f32",),
    }
    return {
        words: sum(row.bytes for start in starts for row in trace.rows(start))
        for words, starts in kinds.items()
    }
