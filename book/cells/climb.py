"""The whole ladder: which rung is compared with which, what each step bought, and what a clock and a watt allow."""

from __future__ import annotations

from collections.abc import Mapping

import figures
import kernels
import measure
from book.cells import columns, intensity, limits
from measure import machine
from measure.provenance import load

# Each rung and the one that it is compared with: the same number formats, and the rung that its chapter changes.
BEFORE = {
    "naive": "uncoalesced",
    "tiled": "naive",
    "coarsened_1d": "tiled",
    "coarsened_2d": "coarsened_1d",
    "vectorized": "coarsened_2d",
    "warp_tiled": "vectorized",
    "async_copy": "warp_tiled",
    "async_pipeline": "async_copy",
    "warp_specialized": "async_pipeline",
    "wmma_shared": "wmma",
    "wmma_async": "wmma_shared",
    "mma_atoms": "wmma",
    "mma_sync": "mma_atoms",
    "mma_tiled": "mma_sync",
    "mma_padded": "mma_tiled",
    "mma_swizzled": "mma_padded",
    "mma_multistage": "mma_swizzled",
    "tma_mma": "mma_multistage",
    "wgmma": "tma_mma",
    "wgmma_pipelined": "wgmma",
    "wgmma_persistent": "wgmma_pipelined",
    "wgmma_cluster": "wgmma_persistent",
    "wgmma_split": "wgmma_persistent",
}
# The rungs that were the fastest so far when they came, whatever their number format.
PATH = (
    *("uncoalesced", "naive", "tiled", "coarsened_1d", "coarsened_2d", "vectorized", "warp_tiled"),
    *("wmma", "wmma_shared", "wmma_async", "mma_swizzled", "mma_multistage"),
    *("tma_mma", "wgmma_pipelined", "wgmma_persistent", "wgmma_fp8"),
)
TYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "e4m3"}
CURVES = ("float32", "tf32", "float16")  # inputs that the data sheets give a limit for


def rows(size: int = 4096) -> dict[str, Mapping]:
    """{rung: its first recorded row at this size}, in reading order, without the library's own."""
    recording, found = measure.recorded(), {}
    for name in kernels.RUNGS:
        for row in recording.select(name, size=size)[:1]:
            if name != "cublas":
                found[name] = row
    return found


def gains(size: int = 4096) -> dict[str, float]:
    """{rung: its speed over that of `BEFORE`}, where both were recorded."""
    found = rows(size)
    return {
        name: found[before]["ms_median"] / found[name]["ms_median"]
        for name, before in BEFORE.items()
        if name in found and before in found
    }


def _share(ours: float, theirs: float | None) -> str:
    return f"{theirs / ours:.0%}" if theirs else ""


def table(size: int = 4096) -> None:
    """Shows every rung with its speed, twice compared with cuBLAS, and with the rung that it changed."""
    step, lines = gains(size), []
    for name, row in rows(size).items():
        types = f"{TYPES.get(row['inputs'], row['inputs'])} to {TYPES.get(row['output'], row['output'])}"
        times = f"{step[name]:.2f} x {BEFORE[name]}" if name in step else ""
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
    columns.show(
        {
            "rung": "in reading order",
            "types": "number formats of the inputs and of the output",
            "TFLOP/s": "",
            "of cuBLAS": "",
            "of its best": "share of the speed that cuBLAS reaches with the layouts of A and B that suit cuBLAS best",
            "over": "speed over that of the rung that it changes",
        },
        lines,
        caption=f"{size} x {size} x {size}, {measure.recorded().label}.",
    )


def bars(size: int = 4096):
    """The gains as bars."""
    found, recording = gains(size), measure.recorded()
    most = max(found, key=found.get)
    return figures.bars(
        {f"{name} over {BEFORE[name]}": gain for name, gain in found.items()},
        unit="times",
        title=f"The largest step is {most}: {found[most]:.1f} times the speed of {BEFORE[most]}",
        caption=f"{size} x {size} x {size}. Below 1, the rung is slower than the one that it changes.",
        highlight=[f"{most} over {BEFORE[most]}"],
        machine=recording.gpu,
        recorded=recording.recorded[:10],
    )


def waterfall(size: int = 4096):
    """What each record added, in TFLOP/s. Rungs that were not recorded, or slower than the record, are left out."""
    recording, found, best = measure.recorded(), rows(size), {}
    for name in PATH:
        if name in found and found[name]["tflops"] > max(best.values(), default=0):
            best[name] = found[name]["tflops"]
    return figures.waterfall(
        best,
        caption=f"{size} x {size} x {size}. Only rungs that were faster than all before them.",
        machine=recording.gpu,
        recorded=recording.recorded[:10],
    )


def ladders(sizes=(1024, 2048, 4096, 8192)):
    """The recorded ladder at several sizes, to flip through."""
    recording, pages = measure.recorded(), {}
    for size in sizes:
        found = list(rows(size).values())
        kinds = {row["inputs"] for row in found} & set(CURVES)
        best = max(found, key=lambda row: row["tflops"])
        pages[size] = figures.ladder(
            found,
            limits={kind: recording.peak.tflops(kind) for kind in kinds},
            machine=recording.gpu,
            recorded=recording.recorded[:10],
            title=f"At {size}, {best['rung']} reaches {best['tflops']:.0f} TFLOP/s",
        )
    return figures.Choice(pages, "size", "The ladder at four sizes", start=min(2, len(pages) - 1))


def full(*names: str) -> None:
    """`limits.show` of those rungs that Nsight Compute has watched."""
    watched = {row["rung"] for row in limits.stored()["rows"]}
    limits.show(*(name for name in names if name in watched))


def moved(*names: str) -> None:
    """Shows operations per byte at the three places of `intensity`."""
    lines = [
        [name, *(f"{intensity.moved(name, place):.1f}" for place in intensity.PLACES)]
        for name in names
    ]
    columns.show(
        {
            "operations per byte": "of a product of 4096 x 4096 x 4096",
            "asked": "of the bytes that the multiprocessors ask for: loads and stores, counted on the emulator",
            "from L2": "of the bytes that L2 gave them, counted by Nsight Compute",
            "from memory": "of the bytes that came from device memory, counted by Nsight Compute",
        },
        lines,
    )


LOOPS = {
    "ffma": "FFMA, fp32",
    "mma tf32": "mma.sync, tf32",
    "mma f16": "mma.sync, fp16",
    "mma bf16": "mma.sync, bf16",
    "wgmma tf32": "wgmma, tf32",
    "wgmma f16": "wgmma, fp16",
    "wgmma bf16": "wgmma, bf16",
    "wgmma e4m3": "wgmma, e4m3",
    "wgmma s8": "wgmma, int8",
}


def power() -> None:
    """Shows what loops of nothing but arithmetic reach, for 2 ms and for 2 s, and the energy of an operation."""
    known = machine.recorded()
    if known is None:
        print("No loops of arithmetic have been recorded yet.")
        return
    lines = []
    for name, words in LOOPS.items():
        burst = known.rows.get(("arithmetic", f"{name}, 2 ms"))
        long = known.rows.get(("arithmetic", f"{name}, 2 s"))
        clock = known.rows.get(("per clock", name))
        if not (burst and long and clock):
            continue
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


def long_runs(*names: str, size: int = 4096) -> None:
    """Shows bursts beside runs of two seconds, where they were recorded."""
    lines = []
    for name, row in rows(size).items():
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
        caption=f"{size} x {size} x {size}, {measure.recorded().label}.",
    )


def beside():
    """What else was timed in one run with a rung: cuBLAS, PyTorch, and whatever the file holds."""
    stored = load("torch")
    return _fastest(stored["tflops"], stored["size"], stored["label"])


def triton(*sizes: int):
    """The same of two kernels that Triton compiled, at several sizes to flip through."""
    stored = load("triton")
    pages = {
        size: _fastest(
            {row["kernel"]: row["tflops"] for row in stored["rows"] if row["size"] == size},
            size,
            stored["label"],
        )
        for size in sizes
    }
    return figures.Choice(pages, "size", "Kernels that Triton compiled, in one run with ours")


def _fastest(tflops: Mapping[str, float], size: int, label: str):
    best = max(tflops, key=tflops.get)
    return figures.bars(
        {name: round(value, 1) for name, value in tflops.items()},
        unit="TFLOP/s",
        title=f"At {size}, {best} is the fastest of these",
        caption=f"{size} x {size} x {size}, float16 in and out; {label}.",
        highlight=[best],
    )
