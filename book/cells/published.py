"""Minimal kernels of ours with a published kernel's accesses (`measure.published`): what they cost, and how long they took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from book.cells import columns, memory
from measure import published
from measure.provenance import label, recording
from measure.published import Case

AS_PRINTED = {  # `measure.as_printed` names kernels as their sources do
    "the post's kernel 2": "gemm_fp32_cuda_tiled",
    "the post's kernel 5": "gemm_fp32_cuda_tiled_2D_async",
    "the post's kernel 6": "gemm_fp32_cuda_tiled_2D_async_warp_spl",
    "the post's kernel 8": "gemm_mma_sync_fp16",
    "the post's kernel 8b": "gemm_mma_sync_fp16_2d_tiled",
}


def source(case: str, part: str | None = None) -> str:
    """The case's source, or one of its marked parts, without the marks."""
    from kernels.source import listing, parts, unmarked

    text = published.NAMED[case].source.read_text(encoding="utf-8")
    return unmarked(text) if part is None else listing(parts(text)[part])


def run(case: str | Case, K: int, M: int | None = None, N: int | None = None):
    """`(right, trace)` of a case on the emulator with random inputs, for one block's tile unless M and N are given."""
    case = published.NAMED[case] if isinstance(case, str) else case
    M, N = M or case.tile[0], N or case.tile[1]
    rng = np.random.default_rng(27)
    A, B = ((rng.random(s) - 0.5).astype(case.types.input_dtype) for s in ((M, K), (K, N)))
    C, trace = published.run(case, A, B)
    exact = A.astype(np.float64) @ B.astype(np.float64)
    return bool(np.abs(C - exact).max() < 0.01), trace


def per_step(case: str | Case, step: int, **macros: int) -> dict[str, memory.Traffic]:
    """What one more step of `step` along k costs a block: the difference of runs with one and with two steps, so that
    starting and storing are not in it.
    """
    case = published.changed(case, **macros) if macros else case
    few, many = (memory.traffic(run(case, step * n)[1]) for n in (1, 2))
    return {
        name: memory.Traffic(
            *(a - b for a, b in zip(_values(row), _values(few[name]), strict=True))
        )
        for name, row in many.items()
    }


def _values(row) -> Sequence[int]:
    return [getattr(row, name) for name in row.__dataclass_fields__]


def meetings(case: str, step: int, **macros: int) -> dict[str, int]:
    """Per step of `step` along k, all warps of a block together: how often warps wait for the whole block, how often they
    arrive at an mbarrier, and how many instructions a part of a warp executes alone.
    """
    small = published.changed(case, **macros)
    few, many = (run(small, step * n)[1] for n in (5, 6))  # beyond what a pipeline of four holds

    def more(*opcodes: str) -> int:
        sums = [sum(row.warps for name in opcodes for row in t.rows(name)) for t in (few, many)]
        return sums[1] - sums[0]

    few_alone, many_alone = (
        sum(row.warps for row in t.instructions if row.threads < 32 * row.warps)
        for t in (few, many)
    )
    return {
        "barriers": more("bar"),
        "arrivals": more("mbarrier.arrive", "cp.async.mbarrier.arrive"),
        "divided": many_alone - few_alone,
    }


def show_times(*names: str, title: str = ""):
    """The recorded times of these cases; "the post's kernel 5" is that kernel as the post prints it."""
    found = {row["kernel"]: row for row in published.rows(*names)}
    page = recording("as-printed")
    printed = {row["kernel"]: row for row in page["rows"]}
    rows = []
    for name in names:
        row = found.get(name) or printed[AS_PRINTED[name]]
        time = row.get("timed", row)
        spread = f"{time['ms_min']:.2f} to {time['ms_max']:.2f}"
        rows.append([name, f"{time['ms_median']:.2f}", spread, str(row["registers"])])
    heads = {
        "kernel": "which of our kernels, by what is changed; or the post's own, compiled from its text",
        "ms": "",
        "samples": "milliseconds of the fastest and of the slowest sample",
        "registers": "",
    }
    where = _where()
    if not AS_PRINTED.keys().isdisjoint(names):
        where += f" The post's own: {page['recorded'][:10]}."
    return columns.explained(heads, rows, title, where)


def show_managed(*names: str, title: str = ""):
    """The recorded times under both clocks."""
    found = {row["kernel"]: row for row in published.stored()["managed"]}
    rows = []
    for name in names:
        device, managed = (found[name][key] for key in ("device_ms", "managed_ms"))
        rows.append([name, f"{device:.2f}", f"{managed:.2f}", f"{managed - device:.2f}"])
    heads = {
        "kernel": "which kernel of ours",
        "on the device, ms": "device events around a launch whose matrices lie in the GPU's memory",
        "managed, ms": "the host's clock around a launch on managed memory, after the host has written C",
        "difference, ms": "the second less the first",
    }
    return columns.explained(heads, rows, title, _where())


def _where() -> str:
    size = f"{published.SIZE} x {published.SIZE} x {published.SIZE}"
    return columns.sentence(f"{size}, {label(published.stored())}")


def copies(counted: Mapping[str, memory.Traffic]) -> memory.Traffic:
    """What filled shared memory in a step: cp.async where there is one, else the loads from A and B."""
    for name, row in counted.items():
        if name.startswith("cp.async"):
            return row
    raise KeyError(f"nothing was copied by cp.async: {', '.join(counted)}")


def show_copies(counted: Mapping[str, memory.Traffic], title: str = ""):
    """The copies of one step, a row for each of the kernels."""
    rows = [
        [
            name,
            f"{row.instructions:,}",
            f"{row.sectors:,}",
            f"{row.wavefronts:,}",
            f"{row.sectors / row.instructions:g}",
            f"{row.wavefronts / row.instructions:g}",
        ]
        for name, row in counted.items()
    ]
    heads = {
        "kernel": "which of our kernels, by what is changed",
        "requests": "",
        "sectors": "",
        "wavefronts": "",
        "sectors per request": "",
        "wavefronts per request": "",
    }
    words = "Copies of one tile of A and one of B, 32 x 32 floats each, counted by the emulator."
    return columns.explained(heads, rows, title, words)


def show_order(runs: Sequence[tuple[str, int]], title: str = ""):
    """Machine code as a list of what it does with the products, with repetitions counted."""
    heads = {
        "in this order": "product: HGMMA; fence: WARPGROUP.ARRIVE; wait N: WARPGROUP.DEPBAR, until at most N groups are "
        "unfinished; convert: F2FP, two sums to two halves",
        "how many": "how many of them follow each other",
    }
    return columns.explained(heads, [[name, str(count)] for name, count in runs], title)


def show_wrong(title: str = ""):
    """The recorded times and wrong outputs of the unfenced products."""
    names = [case.name for case in published.CASES if case.story == "fence"]
    found = {row["kernel"]: row for row in published.rows(*names)}
    rows = []
    for name in names:
        row = found[name]
        wrong = [f"{wrong / row['outputs']:.2%}" for wrong in row["wrong"]]
        rows.append([name, f"{row['ms_median']:.3f}", *wrong])
    heads = {"kernel": "how the sums begin, and what follows the last wait", "ms": ""}
    heads |= {
        f"wrong, launch {n}": "outputs further from the right result than rounding explains"
        for n in (1, 2, 3)
    }
    return columns.explained(heads, rows, title, _where())
