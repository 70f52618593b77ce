"""The static twin of each exercise: a question with a number for its answer, that a page without a kernel can judge.

The questions stand in `book/answers/exercises.toml`; `counted(name)` finds each answer anew, mostly by running the
exercise's own kernel, so that page and kernel cannot disagree.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

import figures
from kernels.occupancy import occupancy

from .answers import RESIDENT, a_element, measured_wavefronts
from .attempt import attempt, compile_cell
from .catalogue import find
from .counts import count
from .exercise import ANSWER, Case
from .inflight import ahead

SEED = 1  # sizes of the fixed cases do not depend on it


@cache
def _launched(name: str, version: str = ANSWER, case: int = 0):
    """(case, output, trace) of an exercise's solution, or of what is given, at one of its cases."""
    exercise = find(name)
    wanted: Case = exercise.cases(np.random.default_rng(SEED))[case]
    source = exercise.solution if version == ANSWER else exercise.skeleton
    done = attempt(compile_cell(name, source, exercise.arch), name, wanted)
    return wanted, done.output, done.trace


def _trace(name: str, version: str = ANSWER, case: int = 0):
    return _launched(name, version, case)[2]


def _warps(trace) -> int:
    return trace.blocks * math.prod(trace.block) // 32


def _sectors_per_request(name: str, argument: int, version: str) -> int:
    trace = _trace(name, version)
    rows = [
        r
        for r in trace.instructions
        if any(a.buffer == f"argument {argument}" for a in trace.accesses(r))
    ]
    return sum(r.global_sectors for r in rows) // sum(r.global_requests for r in rows)


def _barriers_per_warp(name: str, case: int = 0) -> int:
    trace = _trace(name, case=case)
    return count(trace, "barriers") // _warps(trace)


def _pointed_at(name: str, opcode: str, lane: int, row_bytes: int) -> int:
    """The row that this lane gives ldmatrix the address of, in its first execution."""
    trace = _trace(name)
    access = trace.accesses(trace.rows(opcode)[-1])[0]
    start = min(int(a.addresses[0]) for a in trace.accesses(trace.rows(opcode)[-1]))
    return (int(access.addresses[lane]) - start) // row_bytes


def _zeros_filled() -> int:
    trace = _trace("fill_with_zeros", case=2)
    case = _launched("fill_with_zeros", case=2)[0]
    rows, columns = case.args[0].shape
    places = trace.blocks * 256 * -(-columns // 16)
    loaded = sum(r.threads for r in trace.rows("ld.global"))
    assert loaded == rows * columns
    return places - loaded


def _swizzled(index: int, B: int = 2, M: int = 3, S: int = 3) -> int:
    return index ^ (((index >> (M + S)) & ((1 << B) - 1)) << M)


def _stops_growing() -> int:
    """The first n at which a half no longer tells n + 1 from n."""
    return next(n for n in range(1, 5000) if np.float16(n) + np.float16(1) == np.float16(n))


def _place(row: int, chunk: int) -> int:
    """Where tile_swizzle's solution puts a chunk, in its shared tile: from the addresses of its copies."""
    trace = _trace("tile_swizzle")
    for one in trace.instructions:
        accesses = trace.accesses(one)
        copies = [a for a in accesses if one.opcode.startswith("cp.async.c")]
        to = [a for a in copies if a.space == "shared"]
        for shared, source in zip(to, [a for a in copies if a.space == "global"], strict=True):
            for there, here in zip(shared.addresses, source.addresses, strict=True):
                if int(here) == row * 64 + chunk * 16:  # K = 32: rows of 64 bytes
                    return int(there) % 64 // 16
    raise ValueError(f"no copy of row {row}, chunk {chunk}")


_COUNTED = {
    "first_guard": lambda: -(-1000 // 128) * 128 - 1000,
    "coalesce": lambda: _sectors_per_request("coalesce", 0, "given"),
    "place_barriers": lambda: _barriers_per_warp("place_barriers", case=1),
    "fill_with_zeros": _zeros_filled,
    "count_wavefronts": lambda: measured_wavefronts()["s[2 * lane]"],
    "coarsen": lambda: count(_trace("coarsen"), "bytes read from global memory"),
    "count_blocks": lambda: (
        occupancy(80, *(n * u for n, u in zip(RESIDENT["256 threads, 96 registers, 16 KiB"], (1, 1, 1024), strict=True))).blocks
    ),
    "vectorize": lambda: count(_trace("vectorize"), "global_requests") // 4,
    "mend_pipeline": lambda: _barriers_per_warp("mend_pipeline") // 4,
    "two_stages": lambda: ahead(_trace("two_stages", case=3)),
    "pipeline_stages": lambda: (
        max(int(row.text.rstrip(";").split()[-1]) for row in _trace("pipeline_stages").rows("cp.async.wait_group"))
    ),
    "wmma_tile": lambda: count(_trace("wmma_tile", case=1), "matrix multiplications of a warp"),
    "lane_map": lambda: a_element(13, 2)[0],
    "load_fragments": lambda: 13 // 4,
    "transpose_operand": lambda: _pointed_at("transpose_operand", "ldmatrix", 21, 32),
    "compose_layout": lambda: 24 * (4 * (6 % 4) + 2) + 6 // 4,
    "choose_padding": lambda: 3 * (64 + 8) * 2 // 4 % 32,
    "swizzle_rows": lambda: 1 ^ 6 // 2 % 4,
    "swizzle_parameters": lambda: _swizzled(200),
    "transpose_tile": lambda: (5 * 33 + 7) % 32,
    "guard_epilogue": lambda: min(4, 35 - 32),
    "fuse_gelu": lambda: len({16 * (lane % 8) // 32 for lane in range(32)}),
    "rasterise": lambda: int(_launched("rasterise", case=1)[1][5, 1]),
    "beat_the_clock": lambda: 4 * (4 + 4),
    "shuffle_sum": lambda: 32 // 2 // 2,
    "block_reduce": lambda: _barriers_per_warp("block_reduce") - 1,
    "split_k": lambda: count(_trace("split_k"), "atomic operations of a warp"),
    "find_race": lambda: (1000 - 1 - 100) // 128,
    "keep_precision": _stops_growing,
    "split_tf32": lambda: (
        count(_trace("split_tf32"), "matrix multiplications of a warp")
        // count(_trace("split_tf32", "given"), "matrix multiplications of a warp")
    ),
    "encode_map": lambda: _own("encode_map", "describe")(np.zeros((64, 64), np.float32), 64, 128).box[1],
    "mend_parity": lambda: 7 // 2 % 2 ^ 1,
    "write_descriptor": lambda: figures.descriptor_bits(0, 16, 8 * 128, 128) >> 32 & 0x3FFF,
    "place_fences": lambda: _trace("place_fences").rows("fence.mbarrier_init")[0].threads,
    "balance_roles": lambda: _own("balance_roles", "share")(168, 2, 40)[1],
    "split_steps": lambda: len(range(0, -(-300 // 64), 2)),
    "tile_copy": lambda: sum(r.threads for r in _trace("tile_copy").rows("cp.async.cg")) // 32,
    "tile_swizzle": lambda: _place(5, 3),
    "tile_fragments": lambda: 2 * 1 + 20 // 16,
    "tile_multiply": lambda: count(_trace("tile_multiply"), "matrix multiplications of a warp"),
    "tile_pipeline": lambda: compile_cell("tile_pipeline", find("tile_pipeline").solution).reports["tile_pipeline"].shared_bytes,
}  # fmt: skip


def _own(name: str, function: str):
    """A function of an exercise's solution that is Python."""
    names: dict = {}
    exec(find(name).solution, names)
    return names[function]


def counted(name: str) -> int:
    """The answer to the twin of this exercise. KeyError for an exercise without one."""
    return _COUNTED[name]()
