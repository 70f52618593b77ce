"""What each step of the ladder bought: a rung's speed over that of the rung before it, as recorded."""

from textwrap import wrap

import figures
import kernels
import measure
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
    """Prints the rungs with their idea and speed, as recorded."""
    print(measure.recorded().label)
    print(f"{'':17}{'TFLOP/s':>7} {'cuBLAS':>6}  idea")
    for row in rows(size):
        if row["rung"] == "cublas":
            continue
        share = f"{row['ratio_to_cublas']:6.1%}" if row["ratio_to_cublas"] else " " * 6
        first, *rest = wrap(kernels.find(row["rung"]).idea, 56)
        print(f"{row['rung']:17}{row['tflops']:7.1f} {share}  {first}")
        for words in rest:
            print(f"{'':35}{words}")
    for row in measure.recorded().select("cublas", size=size):
        types = f"{row['inputs']} in, {row['output']} out"
        print(f"{'cublas':17}{row['tflops']:7.1f} {'':6}  {types}")


def other_gpus(*names: str) -> None:
    """Prints what data sheets promise of some GPUs (`kernels.machine.PEAKS`), and two ratios that follow from it."""
    peaks = {peak.name: peak for peak in PEAKS}
    print(
        f"{'TFLOP/s':24}{'FP32':>7}{'FP16':>7}{'ratio':>7}{'GB/s':>8}{'FP16 operations a byte':>24}"
    )
    for name in names:
        peak = peaks[name]
        ridge = peak.fp16 * 1e3 / peak.bandwidth
        print(
            f"{name:24}{peak.fp32:7.1f}{peak.fp16:7.0f}{peak.fp16 / peak.fp32:7.1f}"
            f"{peak.bandwidth:8,.0f}{ridge:24.0f}"
        )
