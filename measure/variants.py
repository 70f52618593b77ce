"""Settings that a page argues about, beside the one that is recorded: each pair in one run, in turn.

`python -m measure variants`, on a GPU, stores `results/variants-<gpu>.json`. With PyTorch there, the products of 8-bit
numbers stand beside cuBLASLt's, which gemmEx, and so the ladder's own rows, cannot give.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernels.build import build
from kernels.gemm import Plan, plan
from kernels.gpus import needed
from kernels.rung import Types
from kernels.settings import configuration
from kernels.source import changed, source

from . import clock
from .provenance import store
from .row import extents
from .timing import METHOD, Launch, matrices, measure, rung_launches

BF16, HALF = {"BF16_INPUT": 1, "BF16_OUTPUT": 1}, {"HALF_OUTPUT": 1}

CP_ASYNC = "cp_async<4 * COPY>(shared_address(tile + k * (COLS + PAD)), source);"
THROUGH_REGISTERS = "*(float4*)(tile + k * (COLS + PAD)) = *(const float4*)source;"
ADDED = (("(chunk ^ row / 2 % 4)", "((chunk + row / 2) % 4)"),)
NUDGE = "nudge_to_tf32(__uint_as_float(r[j]))"
NEVER = "if (alpha == 12345.0f) "  # of what a control leaves out, and the compiler must not know of
NO_PRODUCTS = (("wgmma_k16<In, 0, 1>(acc,", f"{NEVER}wgmma_k16<In, 0, 1>(acc,"),)
NO_SUMS = (
    ("share.pass_on(acc,", f"{NEVER}share.pass_on(acc,"),
    ("share.finish(row_of,", f"{NEVER}share.finish(row_of,"),
)
NO_SETMAXNREG = (
    ("registers_shrink_to<PRODUCER_REGISTERS>();", ";"),
    ("registers_grow_to<CONSUMER_REGISTERS>();", ";"),
)


def named(change: Mapping[str, int]) -> str:
    """What a row calls a setting."""
    return " ".join(f"{k}={v}" for k, v in change.items()) or "as it is"


@dataclass(frozen=True)
class Comparison:
    """A rung at some sizes (of a square, or M, N, K), and the values of its macros that are compared. rewritten: {name:
    texts of its source and what stands in their place}, compared with the first of the changes, which `first` names;
    wrong: these leave something out, to see what it costs.
    """

    rung: str
    sizes: tuple[int | tuple[int, int, int], ...]
    changes: tuple[Mapping[str, int], ...] = ({},)
    formats: Mapping[str, int] = field(default_factory=dict)
    rewritten: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    first: str = ""
    wrong: bool = False


COMPARED = (
    Comparison("async_copy", (4096,), ({"PAD": 4}, {"PAD": 0})),
    *(
        Comparison("wgmma_persistent", (4096, 8192), ({"HELD": 0}, {"HELD": 4}), formats)
        for formats in ({}, HALF, BF16)
    ),
    Comparison("wgmma_persistent", (8192,), tuple({"GROUP": n} for n in (1, 4, 8, 16, 32)), BF16),
    Comparison("wgmma_cluster", (4096, 8192), ({"CLUSTER_M": 1}, {"CLUSTER_M": 2}), BF16),
    Comparison("wgmma_fp8", (4096, 8192), ({"CLUSTER": 1}, {"CLUSTER": 2})),
    # What pages say: each pair differs in nothing else.
    Comparison("mma_tiled", (4096,), ({"BM": 192, "WM": 96}, {"BM": 128, "WM": 64})),
    Comparison("mma_swizzled", (4096,), rewritten={"addition": ADDED}),
    Comparison(
        "mma_tf32",
        (4096,),
        rewritten={"+ 0x1000": ((NUDGE, "r[j] + 0x1000u"),), "cut": ((NUDGE, "r[j]"),)},
    ),
    Comparison("mma_multistage", (4096, 8192), ({"GROUP": 16}, {"GROUP": 1})),
    Comparison("mma_multistage", (4096,), ({"BLOCKS": 132}, {"BLOCKS": 264})),
    # Rows of A that begin 4 bytes further on each time: are they lines of L1, or its banks?
    *(Comparison(rung, (4096, (4096, 4096, 4097))) for rung in ("uncoalesced", "naive")),
    Comparison(
        "async_copy",
        (4096, 8192),
        ({"PAD": 0},),
        rewritten={"through registers": ((CP_ASYNC, THROUGH_REGISTERS),)},
        first="by cp.async",
    ),
    Comparison(
        "mma_padded",
        (4096,),
        rewritten={f"pitch of {n} bytes": (("PITCH = 80;", f"PITCH = {n};"),) for n in (64, 96)},
    ),
    *(
        Comparison(
            rung,
            (4096, 8192),
            (setting,),
            HALF,
            {f"{named(setting)}, no setmaxnreg": NO_SETMAXNREG},
            f"{named(setting)}, setmaxnreg",
        )
        for rung, setting in (
            ("wgmma_pipelined", {"STAGES": 4}),
            ("wgmma_persistent", {"HELD": 0}),
            ("wgmma_persistent", {"HELD": 4}),
        )
    ),
    Comparison("mma_multistage", (4096,), ({"STAGES": 4}, {"STAGES": 3}, {"STAGES": 2})),
    Comparison("wgmma_pipelined", (4096,), tuple({"STAGES": n} for n in (4, 3, 2))),
    Comparison(
        "wgmma_pipelined",
        (4096,),
        tuple(
            {"BM": m, "BN": n, "STAGES": 3}
            for m, n in ((128, 256), (64, 256), (128, 192), (128, 128))
        ),
        BF16,
    ),
    Comparison(
        "wgmma_persistent",
        (4096, 8192),
        ({"BM": 64, "PINGPONG": 0}, {"BM": 64, "PINGPONG": 1}),
        BF16,
    ),
    # Few tiles: more warps for each of them
    Comparison(
        "warp_tiled",
        (1024,),
        tuple({"BK": 8 * n, "MIN_BLOCKS": 8 // n, "SLICES": n} for n in (1, 2, 4)),
    ),
    # Few rows, and a deep product: what products and sums add to the copies. (Those that leave them out are wrong.)
    Comparison(
        "wgmma_split",
        tuple((m, 8192, 8192) for m in (16, 64, 128)),
        formats=BF16,
        rewritten={"no products": NO_PRODUCTS},
        wrong=True,
    ),
    Comparison(
        "wgmma_split",
        ((256, 256, 65536),),
        ({"CLUSTER_N": 2}, {"CLUSTER_N": 1, "A_BOX": 128, "BLOCKS": 128}),
        BF16,
        {"no sums": NO_SUMS, "neither sums nor products": NO_SUMS + NO_PRODUCTS},
        wrong=True,
    ),
)


@dataclass(frozen=True)
class Step:
    """One of a chain of kernels. Most differ from the one before in one idea, `wgmma` in its tile and its stages too."""

    words: str
    rung: str
    macros: Mapping[str, int]


_LARGE = {**HALF, "BM": 128, "BN": 256, "STAGES": 4}
_STAYS = {**_LARGE, "BUFFERS": 2, "HELD": 0}
HOPPER = (
    Step("cp.async and mma.sync", "mma_multistage", {**HALF, "BM": 128, "BN": 256, "BK": 64, "STAGES": 3, "GROUP": 8}),
    Step("tiles by TMA", "tma_mma", {**HALF, "BM": 128, "BN": 256, "STAGES": 3, "BUFFERS": 2, "GROUP": 8}),
    Step("wgmma, one stage", "wgmma", {**HALF, "BM": 128, "BN": 128}),
    Step("a producer, two stages", "wgmma_pipelined", {**HALF, "BM": 128, "BN": 128, "STAGES": 2}),
    Step("four stages", "wgmma_pipelined", {**HALF, "BM": 128, "BN": 128, "STAGES": 4}),
    Step("256 columns", "wgmma_pipelined", _LARGE),
    Step("blocks stay, C by TMA", "wgmma_persistent", {**_STAYS, "GROUP": 1}),
    Step("tiles in an order for L2", "wgmma_persistent", {**_STAYS, "GROUP": 8}),
    Step("the last panels held", "wgmma_persistent", {**_STAYS, "GROUP": 8, "HELD": 4}),
    Step("two blocks share B", "wgmma_cluster", {**_STAYS, "GROUP": 4, "HELD": 4, "CLUSTER_M": 2, "CLUSTER_N": 1}),
)  # fmt: skip
HOPPER_SIZES = (4096, 8192)
LIBRARY = {True: "cuBLASLt, fast accumulation", False: "cuBLASLt, precise"}


def record() -> Path:
    """Measure and store, after every comparison. UnsupportedGPU without a GPU."""
    name, path = f"variants-{needed('timing').slug}", None
    rows: list[dict] = []
    for n in HOPPER_SIZES:
        rows += _chain(n)
        path = store(name, METHOD, rows=rows)
    for comparison in COMPARED:
        for size in comparison.sizes:
            rows += _rows(comparison, extents(size))
            path = store(name, METHOD, rows=rows)
    return path


def chain_plans(n: int) -> dict[str, Plan]:
    """The steps of the chain at this size, by their words."""
    return {
        step.words: plan(step.rung, n, n, n, dict(step.macros), 90, defaults=True)
        for step in HOPPER
    }


def _chain(n: int) -> list[dict]:
    plans = chain_plans(n)
    first = next(iter(plans.values()))
    return [
        {**row, "rung": step.rung, "chain": number}
        for number, (step, row) in enumerate(
            zip(HOPPER, _timed("", first, plans, n, n, n), strict=True)
        )
    ]


def _plans(comparison: Comparison, size: tuple[int, int, int]) -> dict[str, Plan]:
    """The compared settings, each over the macros that are recorded at this size, and what is rewritten."""
    chosen = configuration(comparison.rung, size, macros=comparison.formats).macros
    first = comparison.first or named(comparison.changes[0])
    plans = {
        named(change) if number else first: plan(comparison.rung, *size, {**chosen, **change})
        for number, change in enumerate(comparison.changes)
    }
    for name, changes in comparison.rewritten.items():
        plans[name] = rewritten(comparison.rung, name, changes, plans[first], size)
    return plans


def _rows(comparison: Comparison, size: tuple[int, int, int]) -> list[dict]:
    plans = _plans(comparison, size)
    rows = _timed(comparison.rung, next(iter(plans.values())), plans, *size)
    return [
        {**row, "config": {} if row["name"] in comparison.rewritten else row["config"]}
        for row in rows
    ]


def _timed(rung: str, first: Plan, plans: Mapping[str, Plan], m: int, n: int, k: int) -> list[dict]:
    """A row for every plan, all timed in turn on the same matrices; the library for 8-bit numbers."""
    sets = matrices(first.types, first.shapes())
    competitors = {name: rung_launches(how, sets) for name, how in plans.items()}
    if first.types.inputs == "float8_e4m3fn" and importlib.util.find_spec("torch"):
        competitors |= {name: _library(sets, first.types, fast) for fast, name in LIBRARY.items()}
    timings = measure(competitors)
    fastest = min(timing.median for timing in timings.values())
    return [
        {
            "rung": rung,
            "m": m,
            "n": n,
            "k": k,
            "inputs": first.types.inputs,
            "output": first.types.output,
            "name": name,
            "config": dict(plans[name].macros) if name in plans else {},
            "ms": round(timing.median, 6),
            "fastest_ms": round(min(timing.samples), 6),
            "slowest_ms": round(max(timing.samples), 6),
            "tflops": round(timing.tflops(m, n, k), 4),
            "of_fastest": round(fastest / timing.median, 4),
            "clock_ghz": clock.seen(competitors[name], timing.median),
        }
        for name, timing in timings.items()
    ]


def rewritten(
    rung: str, name: str, changes: tuple[tuple[str, str], ...], as_it_is: Plan, size
) -> Plan:
    """The plan of a rung whose source has these changes, at the macros of `as_it_is`."""
    text, macros = changed(source(rung), rung, changes), as_it_is.macros
    built = build(text, macros, arch=as_it_is.build.arch, name=f"{rung}, {name}")
    return plan(rung, *extents(size), macros, as_it_is.build.arch, built=built)


def _library(sets: list[tuple], types: Types, fast: bool) -> list[Launch]:
    """cuBLASLt's product of these matrices through `torch._scaled_mm`: A K-major, B K-major."""
    import torch

    one = torch.ones((), device="cuda")
    output = getattr(torch, types.output)

    def launch(A, B, C) -> Launch:
        a, b = (torch.from_dlpack(x).view(torch.float8_e4m3fn) for x in (A, B))
        c = torch.from_dlpack(C).view(output)
        return lambda: torch._scaled_mm(
            a, b.t(), scale_a=one, scale_b=one, out_dtype=output, use_fast_accum=fast, out=c
        )

    return [launch(*one_set) for one_set in sets]
