"""What each step of the ladder bought: a rung's speed over that of the rung before it, as recorded."""

import figures
import kernels
import measure
from book.cells import columns
from kernels.machine import PEAKS
from measure.results import Recording

OFF_THE_PATH = ("cpu", "mma_atoms", "cublas")


def rows(size: int, recording: Recording | None = None) -> list[dict]:
    """The recorded rows of one size in reading order, one for each rung: its first."""
    recording = recording or measure.recorded()
    found = {}
    for name in kernels.RUNGS:
        for row in recording.select(name, size=size)[:1]:
            found[name] = dict(row)
    return list(found.values())


def gains(size: int = 4096) -> dict[str, float]:
    """{rung: how many times the speed of the one before}, over rungs that read the same number format."""
    found, before = {}, {}
    for row in rows(size):
        if row["rung"] in OFF_THE_PATH:
            continue
        last = before.get(row["inputs"])
        if last:
            found[row["rung"]] = last["ms_median"] / row["ms_median"]
        before[row["inputs"]] = row
    return found


def bars(size: int = 4096):
    """The gains as bars."""
    found = gains(size)
    most = max(found, key=found.get)
    recording = measure.recorded()
    return figures.bars(
        found,
        unit="times",
        title=f"The largest step is {most}: {found[most]:.1f} times the rung before",
        caption=f"Each rung against the one before it that reads the same number format; {size} x {size} x {size}. "
        "Below 1, the rung is slower.",
        highlight=[most],
        machine=recording.gpu,
        recorded=recording.recorded[:10],
    )


def ladders(sizes=(1024, 2048, 4096, 8192)):
    """The recorded ladder at several sizes, to flip through."""
    recording, pages = measure.recorded(), {}
    for size in sizes:
        found = [row for row in rows(size) if row["rung"] != "cublas"]
        limits = {kind: recording.peak.tflops(kind) for kind in {r["inputs"] for r in found}}
        best = max(found, key=lambda row: row["tflops"])
        pages[size] = figures.ladder(
            found,
            limits=limits,
            machine=recording.gpu,
            recorded=recording.recorded[:10],
            title=f"At {size}, {best['rung']} reaches {best['tflops']:.0f} TFLOP/s, "
            f"{best['ratio_to_cublas']:.0%} of cuBLAS",
        )
    return figures.Choice(pages, "size", "The ladder at four sizes", start=min(2, len(pages) - 1))


def table(size: int = 4096) -> None:
    """Shows the rungs with their idea and speed, as recorded."""
    lines = []
    for row in rows(size):
        if row["rung"] == "cublas":
            continue
        share = f"{row['ratio_to_cublas']:.1%}" if row["ratio_to_cublas"] else ""
        lines.append([row["rung"], f"{row['tflops']:.1f}", share, kernels.find(row["rung"]).idea])
    for row in measure.recorded().select("cublas", size=size):
        types = f"{row['inputs']} in, {row['output']} out"
        lines.append(["cublas", f"{row['tflops']:.1f}", "", types])
    columns.show(
        dict.fromkeys(("", "TFLOP/s", "of cuBLAS", "idea"), ""),
        lines,
        caption=f"{size} x {size} x {size}, {measure.recorded().label}.",
    )


def other_gpus(*names: str) -> None:
    """Shows what data sheets promise of some GPUs (`kernels.machine.PEAKS`), and two ratios that follow from it."""
    peaks = {peak.name: peak for peak in PEAKS}
    lines = []
    for name in names:
        peak = peaks[name]
        lines.append(
            [
                name,
                f"{peak.fp32:.1f}",
                f"{peak.fp16:.0f}",
                f"{peak.fp16 / peak.fp32:.1f}",
                f"{peak.bandwidth:,.0f}",
                f"{peak.fp16 * 1e3 / peak.bandwidth:.0f}",
            ]
        )
    columns.show(
        {
            "": "",
            "FP32": "TFLOP/s of the CUDA cores with float32",
            "FP16": "TFLOP/s of the tensor cores with dense float16 matrices",
            "ratio": "FP16 over FP32",
            "GB/s": "bandwidth of device memory",
            "FP16 operations per byte": "operations that the tensor cores do while memory brings one byte",
        },
        lines,
        caption="From the data sheets.",
    )


def strip(*here: str, size: int = 4096):
    """The ladder in miniature, with a chapter's rungs marked."""
    found = [row for row in rows(size) if row["rung"] != "cublas"]
    missing = set(here) - {row["rung"] for row in found}
    for name in missing & set(
        kernels.RUNGS
    ):  # not measured yet on this GPU: as high as the one before
        before = [row for row in found if _place(row["rung"]) < _place(name)]
        found.append({**(before or found)[-1], "rung": name, "inputs": kernels.find(name).inputs})
    found.sort(key=lambda row: _place(row["rung"]))
    return figures.ladder_strip(
        {row["rung"]: row["tflops"] for row in found},
        here,
        {row["rung"]: row["inputs"] for row in found},
    )


def _place(rung: str) -> int:
    return list(kernels.RUNGS).index(rung)
