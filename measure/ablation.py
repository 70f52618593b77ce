"""What each idea of `warp_tiled` is worth: the rung with ideas taken out, at one block tile and one thread tile.

`warp_tiled` brings five ideas at once. Each can be taken out of its source by itself, because each is written in a place of its
own; with all five taken out the kernel does what `vectorized` does. `python -m measure ablation` times all variants on a GPU
and writes `results/ablation-<gpu>.json`; without one it prints what is recorded. The counts need no GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import kernels
from kernels.build import DEFAULT_ARCH, Build
from kernels.gemm import gemm, plan
from kernels.gpus import needed
from kernels.rungs import find
from kernels.source import MARK, listing, parts

from . import machine_code
from .provenance import recording, store
from .timing import matrices, measure, rung_launches

RUNG = "warp_tiled"
SIZE = 4096
# The same in every variant, so that only ideas differ. Without the first idea a warp is 2 x 16 threads, as in `vectorized`.
TILES = {"BM": 128, "BN": 128, "BK": 8, "TM": 16, "TN": 8, "MIN_BLOCKS": 2}
SQUARE, FLAT = {"WM": 64, "WN": 64}, {"WM": 32, "WN": 128}


@dataclass(frozen=True)
class Idea:
    """One of the five: its name in a table, what it is in a sentence, and the (old, new) texts that take it out."""

    name: str
    words: str
    out: tuple[tuple[str, str], ...] = ()


SQUARE_WARP, ZIGZAG, NEXT_TILE, NEXT_FRAGMENTS, REUSE = (
    Idea("square warp tile", "a warp computes 64 x 64 outputs instead of 32 x 128"),
    Idea(
        "zigzag of lanes",
        "lanes next to each other share rows, lanes two apart share columns",
        (
            ("lane / 2 % LANES_M", "lane / LANES_N"),
            ("lane / (2 * LANES_M) * 2 + lane % 2", "lane % LANES_N"),
        ),
    ),
    Idea("next tile", "the next tile is fetched while this one is multiplied, into a second buffer"),
    Idea("next fragments", "operands of the next k are loaded while this k is multiplied"),
    Idea(
        "there and back",
        "products go along a row and back along the next, so that each shares an operand with the one before it",
        (("const int j = i % 2 ? TN - 1 - step : step;", "const int j = step;"),),
    ),
)  # fmt: skip
IDEAS = (SQUARE_WARP, ZIGZAG, NEXT_TILE, NEXT_FRAGMENTS, REUSE)

# The two prefetches share the main loop, so each pair of them has a loop of its own.
# Keys: is the next tile fetched ahead, are the next fragments loaded ahead.
LOOPS = {
    (False, False): """\
    for (int k0 = 0; k0 < K; k0 += BK) {
        fetch();
        stage();
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            load_fragments(0, k);
            multiply(0);
        }
        __syncthreads();
    }
""",
    (False, True): """\
    for (int k0 = 0; k0 < K; k0 += BK) {
        fetch();
        stage();
        __syncthreads();
        load_fragments(0, 0);
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            if (k + 1 < DEPTH) load_fragments((k + 1) % 2, k + 1);
            multiply(k % 2);
        }
        __syncthreads();
    }
""",
    (True, False): """\
    fetch();
    stage();
    __syncthreads();
    write_a += BUFFER;
    write_b += BUFFER;
    for (int k0 = 0; k0 < K; k0 += BK) {
        if (k0 + BK < K) fetch();
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            if (k == DEPTH - 2) stage();
            load_fragments(0, k);
            multiply(0);
        }
        swap_buffers();
    }
""",
}
_LOOP = ("    fetch();\n    stage();\n", "\n    // [slices]")
ONE_BUFFER = ("float tiles[2 * BUFFER]", "float tiles[BUFFER]")


def variants() -> Iterator[tuple[str, frozenset[Idea]]]:
    """(name, ideas that are in) of all that is timed: none, each alone, all but each, all."""
    yield "none", frozenset()
    for idea in IDEAS:
        yield f"only {idea.name}", frozenset({idea})
    for idea in IDEAS:
        yield f"without {idea.name}", frozenset(IDEAS) - {idea}
    yield "all", frozenset(IDEAS)


def macros(ideas: Iterable[Idea]) -> dict[str, int]:
    return {**TILES, **(SQUARE if SQUARE_WARP in set(ideas) else FLAT)}


def variant(ideas: Iterable[Idea], part: str | None = None) -> str:
    """The rung's source with only these ideas in, whole or one of its marked parts (`kernels.source`).

    ValueError when the rung no longer contains what would be taken out.
    """
    ideas = frozenset(ideas)
    text = find(RUNG).path.read_text(encoding="utf-8")
    for idea in IDEAS:
        if idea not in ideas:
            for old, new in idea.out:
                text = _replaced(text, old, new)
    ahead = NEXT_TILE in ideas, NEXT_FRAGMENTS in ideas
    if ahead in LOOPS:
        begin, end = (text.find(mark) for mark in _LOOP)
        if not 0 <= begin < end:
            raise ValueError(f"{RUNG} has no main loop between {_LOOP[0]!r} and {_LOOP[1]!r}")
        loop = f"    // [loop]\n{LOOPS[ahead]}    // [/loop]\n"
        text = text[:begin] + loop + text[end:]
    if NEXT_TILE not in ideas:
        text = _replaced(text, *ONE_BUFFER)
    if part is not None:
        return listing(parts(text)[part])
    return "".join(line for line in text.splitlines(True) if not MARK.match(line))


def _replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise ValueError(f"{RUNG} contains {old!r} {text.count(old)} times, not once")
    return text.replace(old, new)


def build(ideas: Iterable[Idea], arch: int = DEFAULT_ARCH) -> Build:
    ideas = frozenset(ideas)
    return kernels.build(variant(ideas), macros(ideas), arch=arch, name="ablation")


@dataclass(frozen=True)
class Counts:
    """What a variant costs: loads, wavefronts of shared memory per multiply-add of a warp; barriers per tile; registers per
    thread; register_reads, operands that a multiply-add reads from the register file.
    """

    loads: float
    barriers: float
    registers: int
    register_reads: float


@cache
def counts(ideas: frozenset[Idea], arch: int = 90) -> Counts:
    """Wavefronts and barriers from the emulator, of what 16 more steps of k add; the rest from the machine code for `arch`."""
    built = build(ideas)
    rng = np.random.default_rng(0)
    A, B = rng.random((TILES["BM"], 32), np.float32), rng.random((32, TILES["BN"]), np.float32)
    found = []
    for K in (32, 16):
        how = {"macros": macros(ideas), "built": built, "machine": "emulator"}
        trace = gemm(RUNG, A[:, :K], B[:K], **how).trace
        waves = sum(row.shared_wavefronts for row in trace.rows("ld.shared"))
        executed = [sum(row.warps for row in trace.rows(part)) for part in ("bar", "fma")]
        found.append(np.array([waves, *executed]))
    loads, barriers, work = found[0] - found[1]
    warps, tiles = TILES["BM"] * TILES["BN"] // (TILES["TM"] * TILES["TN"]) // 32, 16 // TILES["BK"]
    code = build(ideas, arch)
    return Counts(
        loads=float(loads / work),
        barriers=float(barriers / warps / tiles),
        registers=code.report.registers,
        register_reads=machine_code.register_reads(code),
    )


# ---- on a GPU


def record() -> Path:
    """Times and profiles every variant here and stores it. UnsupportedGPU without a GPU."""
    here, rows = needed("timing"), []
    how = plan(RUNG, SIZE, SIZE, SIZE, macros(IDEAS))
    sets = matrices(how.types, how.shapes())
    built = {name: build(ideas, here.arch) for name, ideas in variants()}
    competitors = {}
    for name, ideas in variants():
        one = plan(RUNG, SIZE, SIZE, SIZE, macros(ideas), built=built[name])
        competitors[name] = rung_launches(one, sets)
    for name, timing in measure(competitors).items():
        ideas = dict(variants())[name]
        row = {
            "variant": name,
            "ideas": [idea.name for idea in IDEAS if idea in ideas],
            "macros": macros(ideas),
            "registers": built[name].report.registers,
            **timing.row(5),
            "tflops": round(timing.tflops(SIZE, SIZE, SIZE), 4),
        }
        rows.append(row)
    return store(
        f"ablation-{here.slug}",
        "times as in the ladder's file, all variants sampled in turn",
        rung=RUNG,
        size=SIZE,
        rows=rows,
    )


def stored() -> Mapping | None:
    return recording("ablation")
