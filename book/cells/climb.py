"""The whole ladder: which rung is compared with which, what each step bought, and what a clock and a watt allow."""

from __future__ import annotations

from collections.abc import Mapping

import figures
import kernels
from book.cells import columns
from book.cells.steps import rows
from measure import machine
from measure.model.prediction import predict
from measure.model.store import counted
from measure.provenance import label, load
from measure.results import recorded

TYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "e4m3"}


def gains(size: int = 4096) -> dict[str, float]:
    """{rung: its speed over that of the rung that it changes (`Rung.before`)}, where both were recorded."""
    found = rows(size)
    return {
        name: found[before]["ms_median"] / found[name]["ms_median"]
        for name in found
        if (before := kernels.find(name).before) in found
    }


def _share(ours: float, theirs: float | None) -> str:
    return f"{theirs / ours:.0%}" if theirs else ""


def table() -> None:
    """Shows every rung with its speed, twice compared with cuBLAS, and with the rung that it changed."""
    found, step, lines, days, dates = rows(), gains(), [], [], recorded().dates
    for name, row in found.items():
        before = found.get(kernels.find(name).before, row)
        if dates([before]) != dates([row]) and row.get("cublas_ms") and before.get("cublas_ms"):
            days.append(abs(row["cublas_ms"] / before["cublas_ms"] - 1))
        types = f"{TYPES.get(row['inputs'], row['inputs'])} to {TYPES.get(row['output'], row['output'])}"
        times = f"{step[name]:.2f} x {kernels.find(name).before}" if name in step else ""
        best = row.get("cublas_best_ms") or row.get("cublas_ms")
        lines.append(
            [
                f"`{name}`",
                types,
                f"{row['tflops']:.1f}",
                _share(row["ms_median"], row.get("cublas_ms")),
                _share(row["ms_median"], best),
                times,
            ]
        )
    apart = ""
    if days:
        apart = f" {len(days)} steps compare rows of two days, between which cuBLAS differs by up to {max(days):.1%}."
    columns.show(
        {
            "rung": "in the order of their files, 01 to 27",
            "types": "number formats of the inputs and of the output",
            "TFLOP/s": "",
            "of cuBLAS": "",
            "of its best": "share of the speed that cuBLAS reaches with the layouts of A and B that suit cuBLAS best",
            "over": "speed over that of the rung that it changes",
        },
        lines,
        caption=f"4096 x 4096 x 4096, {recorded().label}.{apart}",
    )


def bars(size: int = 4096):
    """The gains as bars."""
    found, recording = gains(size), recorded()
    most = max(found, key=found.get)
    before = kernels.find(most).before
    return figures.bars(
        {f"{name} over {kernels.find(name).before}": gain for name, gain in found.items()},
        unit="times",
        title=f"The largest step is {most}: {found[most]:.1f} times the speed of {before}",
        caption=f"{size} x {size} x {size}. Below 1, the rung is slower than the one that it changes.",
        highlight=[f"{most} over {before}"],
        machine=recording.gpu,
        recorded=recording.dates(recording.select(size=size)),
    )


LOOPS = {
    "ffma": "FFMA, fp32",
    "mma tf32": "mma.sync, tf32",
    "mma f16": "mma.sync, fp16",
    "mma bf16": "mma.sync, bf16",
    "mma s8": "mma.sync, int8",
    "wgmma tf32": "wgmma, tf32",
    "wgmma f16": "wgmma, fp16",
    "wgmma bf16": "wgmma, bf16",
    "wgmma e4m3": "wgmma, e4m3",
    "wgmma s8": "wgmma, int8",
}


def power() -> None:
    """Shows what loops of nothing but arithmetic reach, for 2 ms and for 2 s, and the energy of an operation."""
    known = machine.recorded()
    lines = []
    for name, words in LOOPS.items():
        burst, long = (known.rows["arithmetic", f"{name}, {time}"] for time in ("2 ms", "2 s"))
        clock = known.rows["per clock", name]
        energy = f"{long.watts / long.value:.2f}" if long.watts else ""
        watts = f"{long.watts:.0f}" if long.watts else ""
        lines.append(
            [
                words,
                f"{clock.value:,.0f}",
                f"{burst.value:.0f}",
                f"{burst.clock_ghz:.2f}",
                f"{long.value:.0f}",
                f"{long.clock_ghz:.2f}",
                watts,
                energy,
            ]
        )
    columns.show(
        {
            "loop": "instruction and inputs; nothing is loaded or stored",
            "per clock": "operations per clock and multiprocessor, measured",
            "2 ms": "TFLOP/s in a burst of 2 ms",
            "GHz": "clock during the burst",
            "2 s": "TFLOP/s over 2 s without a pause",
            "GHz ": "clock in the last half of the 2 s",
            "W": "power of the card during the 2 s",
            "pJ": "10^-12 joules per operation: W divided by TFLOP/s, everything else of the card included",
        },
        lines,
        caption=f"Random operands, {known.gpu}, {known.recorded[:10]}.",
    )


def long_runs(*names: str) -> None:
    """Shows bursts beside runs of two seconds, where they were recorded."""
    lines = []
    for name, row in rows().items():
        if name in names and row.get("sustained_tflops"):
            share = row["sustained_tflops"] / row["tflops"]
            ghz = f"{row['clock_ghz']:.2f}" if row.get("clock_ghz") else ""
            lines.append(
                [
                    name,
                    f"{row['tflops']:.0f}",
                    ghz,
                    f"{row['sustained_tflops']:.0f}",
                    f"{share:.0%}",
                ]
            )
    if not lines:
        print("No long runs of these rungs have been recorded yet.")
        return
    columns.show(
        {
            "": "",
            "burst": "TFLOP/s in bursts of about 20 ms after a rest, as the times of the ladder",
            "GHz": "clock during the burst",
            "2 s": "TFLOP/s over 2 s without a pause",
            "kept": "the long run's speed as a share of the burst's",
        },
        lines,
        caption=f"4096 x 4096 x 4096, {recorded().label}.",
    )


def chain() -> None:
    """Shows Hopper's dense rungs in single steps, each timed in turn with the others: what each step brought."""
    stored, sizes = load("variants"), (4096, 8192)
    steps = [row for row in stored["rows"] if "chain" in row]
    at = {n: sorted((r for r in steps if r["m"] == n), key=lambda r: r["chain"]) for n in sizes}
    lines = []
    for each in zip(*at.values(), strict=True):
        cells = [each[0]["name"], each[0]["rung"]]
        for n, row in zip(sizes, each, strict=True):
            before = next((one for one in at[n] if one["chain"] == row["chain"] - 1), None)
            cells += [f"{row['tflops']:.0f}", before and _step(before, row)]
            cells += [f"{row['clock_ghz']:.2f}", f"{_predicted(row) / row['ms'] - 1:+.0%}"]
        lines.append(cells)
    heads = {}
    for n, blank in zip(sizes, ("", " "), strict=True):
        heads |= {
            f"{n}": f"TFLOP/s at {n} x {n} x {n}, float16 in and out",
            f"over{blank}": "times the speed of the line above; in brackets where the samples of the two overlap",
            f"GHz{blank}": "clock while it ran",
            f"predicted{blank}": "the model's time at this clock against the measured one",
        }
    columns.show(
        {
            "step": "what this line has and the one above it has not",
            "rung": "whose source, at macros of this step",
            **heads,
        },
        lines,
        title="What each step brought",
        caption=f"All lines were timed in turn; in brackets: the samples of two lines overlap. {columns.sentence(label(stored))}",
    )


def _predicted(row: Mapping) -> float:
    counts = counted(row["rung"], row["config"])
    return predict(counts, (row["m"], row["n"], row["k"]), recorded().name, row["clock_ghz"]).ms


def _step(before: Mapping, row: Mapping) -> str:
    ratio = f"{before['ms'] / row['ms']:.2f}"
    apart = row["slowest_ms"] < before["fastest_ms"] or before["slowest_ms"] < row["fastest_ms"]
    return ratio if apart else f"({ratio})"


def library(*sizes: tuple[int, int, int], types: tuple[str, ...] = ()) -> None:
    """Shows the fastest rung beside cuBLASLt's best algorithm and layout at these sizes, in a stream and in a graph.

    types: of C, all where none is given.
    """
    stored = load("cublaslt")
    found: dict = {}
    days = set()
    for row in stored["rows"]:
        size = row["m"], row["n"], row["k"]
        if size in sizes and row["output"] in (types or (row["output"],)):
            days.add(row.get("recorded", stored["recorded"])[:10])
            key = sizes.index(size), size, row["inputs"], row["output"], row["rung"]
            found.setdefault(key, {})[row["mode"]] = row
    lines = []
    for (_, size, inputs, output, rung), modes in sorted(found.items()):
        stream, graph = modes["stream"], modes["graph"]
        against = [_longer(each["ours"], each["cublasLt"]) for each in (stream, graph)]
        gemm_ex = _longer(stream["ours"], stream["gemmEx"])
        lines.append([
            "\u00a0x\u00a0".join(map(str, size)), f"{inputs} to {output}", rung, f"{stream['ours']['us']:.4g}",
            gemm_ex, against[0], f"{graph['ours']['us']:.4g}", against[1],
        ])  # fmt: skip
    columns.show(
        {
            "M x N x K": "sizes of the product",
            "types": "of A and B, and of C; sums in float32",
            "rung": "the fastest of the ladder, at its setting for this size",
            "µs": "of one product in a stream, the median",
            "gemmEx over it": "time of cublasGemmEx over ours, in the same run",
            "cuBLASLt's best over it": "time of the fastest of its algorithms, in any layout, over ours",
            "µs in a graph": "the same as a CUDA graph of many products",
            "its best over that": "cuBLASLt's fastest in a graph over ours",
        },
        lines,
        caption="Above 1 our rung is the faster; in brackets: the samples overlap. All of a line were timed in turn. "
        f"Recorded on {stored['machine']['gpu']}, {' and '.join(sorted(days))}.",
    )


def peers() -> None:
    """Shows others' kernels for Hopper beside the fastest rung and cuBLAS, timed by turns in one run."""
    stored = load("peers")
    sizes = sorted({row["size"] for row in stored["rows"]})
    by_name: dict[str, dict] = {}
    for row in stored["rows"]:
        by_name.setdefault(row["kernel"], {})[row["size"]] = row
    ours = next(name for name in by_name if name in kernels.RUNGS)
    lines = []
    for name, at in sorted(by_name.items(), key=lambda item: item[1][sizes[0]]["us"]):
        cells = [f"`{name}`" if name == ours else name]
        for size in sizes:
            cells.append(f"{at[size]['us']:.1f}")
            cells.append("" if name == ours else _longer(by_name[ours][size], at[size]))
        layouts = dict.fromkeys(_letters(at[size]["layout"]) for size in sizes)
        cells.append("; ".join(layouts))
        lines.append([*cells, "search" if name == ours else str(at[sizes[0]]["tried"])])
    heads = {}
    for number, size in enumerate(sizes):
        heads |= {
            f"µs at {size}": "of one product, the median",
            f"over ours{' ' * number}": "its time over that of our rung; in brackets where the samples of the two overlap",
        }
    columns.show(
        {
            "kernel": "whose; the ladder's by its name",
            **heads,
            "A,\u00a0B,\u00a0C": "along which of M, N and K the elements of each matrix stand side by side; two where the "
            "sizes' fastest differ",
            "settings": "how many were tried here, of cuBLASLt its algorithms in all layouts; ours is that of a search",
        },
        lines,
        caption=f"bfloat16 in and out, sums in float32. {columns.sentence(label(stored))}",
    )


def _letters(layout: str) -> str:
    """K, N, N of "A K-major, B N-major, C N-major"."""
    return ",\u00a0".join(word.split("-")[0][-1] for word in layout.split(", "))


def _longer(ours: Mapping, theirs: Mapping) -> str:
    ratio = f"{theirs['us'] / ours['us']:.3f}"
    apart = ours["us_max"] < theirs["us_min"] or theirs["us_max"] < ours["us_min"]
    return ratio if apart else f"({ratio})"
