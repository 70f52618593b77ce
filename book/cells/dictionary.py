"""The tables of the dictionary: the words of CuTe, MoYe and Tilus beside what our kernels write."""

from __future__ import annotations

import figures
from book.cells import columns


def words():
    """The verbs of CuTe and MoYe."""
    return columns.written(
        "One meaning, three spellings",
        {
            "CuTe": "the C++ name; Python has `make_tiled_copy_tv`, `make_fragment_A`, `retile`, "
            "`make_composed_layout` and `cp_async_wait_group` instead, and other names for atoms",
            "MoYe": "the Julia name",
            "means": "what it is, as a layout",
            "in our kernels": "where the same thing stands in CUDA",
        },
    )


def moye():
    """MoYe's double-buffered kernel, line by line."""
    return columns.written(
        "Two tiles in turn, and two sets of fragments",
        {
            "MoYe": "what stands in its kernel, in order",
            "what happens": "in plain words",
            "mma_tf32": "the same in our rung",
        },
    )


def tilus():
    """The words of Tilus."""
    return columns.written(
        "What a block does, without threads",
        {
            "Tilus": "the word",
            "means": "what the compiler makes of it",
            "in our kernels": "what we write ourselves",
        },
    )


def blackwell():
    """The words of Blackwell's tensor cores, in PTX, CuTe, Tilus and our headers."""
    return columns.written(
        "Blackwell's tensor cores in four languages",
        {
            "PTX": "the instruction, or the number that it takes",
            "CuTe": "C++, in CUTLASS's `include/cute` and `include/cutlass`",
            "Tilus": "methods of `self.tcgen05`, or of `self.clc`, where its documentation has one",
            "in our kernels": "functions of `blackwell.cuh` and `launch_control.cuh`",
        },
    )


def matmul_v3():
    """Tilus's third tutorial kernel, line by line."""
    return columns.written(
        "A whole kernel in fifteen lines, and one tile at a time",
        {
            "matmul_v3": "what stands in the kernel, in order",
            "what happens": "in plain words",
            "in our rungs": "the same in CUDA",
        },
    )


def candidates(rows):
    """Thread layouts, with the sectors of a request."""
    return figures.table(
        {
            "threads": "the thread layout",
            "tile": "rows and columns that the copy covers at a time",
            "sectors": "32-byte sectors of one warp's request",
            "needed": "sectors that its 512 bytes would fill",
        },
        rows,
        title="A row per thread moves twice the sectors",
    )


def swizzles(rows):
    """Swizzles of a row of 128 bytes, with the wavefronts of both sides."""
    return figures.table(
        {
            "bits": "b of Swizzle(b, 3, 3)",
            "ldmatrix.x4": "wavefronts to read four 8 x 8 matrices; 4 is the least",
            "copy": "wavefronts to store 16 bytes per lane; 4 is the least",
        },
        rows,
        title="Three bits of the row keep eight rows apart",
    )
