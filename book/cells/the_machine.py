"""What `python -m measure machine` recorded of the GPU that the pages show, as tables and a picture."""

from collections.abc import Sequence
from dataclasses import asdict, replace

import figures
from book.cells import columns
from kernels.occupancy import LIMITS, REGISTERS
from measure import machine
from measure.provenance import load

KIB = 1024
# Each SM has this much memory for L1 and shared memory together, by architecture (NVIDIA's tuning guides).
TOGETHER = {75: 96 * KIB, 80: 192 * KIB, 86: 128 * KIB, 89: 128 * KIB, 90: 256 * KIB}
WORDS = {
    "FFMA": "a multiply-add, on the result of the one before",
    "mma.sync": "`mma.sync`, on the sums of the one before",
    "shared memory": "a load from shared memory",
    "L1": "a load that L1 answers",
    "barrier, 8 warps": "a barrier of a block of 8 warps",
    "L2, nearest": "a load that L2 answers: the nearest 1% of places",
    "L2, median": "the same: the place in the middle",
    "L2, farthest": "the same: the farthest 1% of places",
    "device memory": "a load from device memory, at a random place of 1 GiB",
}
HEADS = {
    "clocks": "clocks from one instruction to the next one that needs its result",
    "bytes per clock and SM": "bytes that one SM reads per clock, while all SMs ask; for the copy, bytes read plus bytes written",
    "GB/s": "10^9 bytes per second, all SMs together",
    "operations per clock and SM": "floating-point or integer operations; a multiply-add counts as two",
    "W": "the highest power that nvidia-smi reported in the second half of the 2 s",
}


def _rows() -> dict:
    """The recorded rows, with bytes per clock and SM as they follow from those per second of the whole GPU and the clock."""
    found = machine.recorded()
    rows, sms = dict(found.rows), load("machine")["machine"]["sms"]
    for (kind, name), row in found.rows.items():
        if kind == "bandwidth":
            value = row.value / sms / row.clock_ghz
            rows["bytes per clock", name] = replace(
                row, kind="bytes per clock", value=value, unit="bytes per clock and SM"
            )
    return rows


def _caption() -> str:
    return columns.sentence(machine.recorded().label)


def picture():
    """The machine drawn with latencies and bandwidths, but not the rates that a page asks for."""
    rows = _rows()
    about = load("machine")["machine"]
    sizes = {
        "gpu": about["gpu"],
        "sms": about["sms"],
        "l2_bytes": about["l2_bytes"],
        "register_bytes": 4 * REGISTERS,
        "shared_bytes": TOGETHER.get(about["arch"], LIMITS[about["arch"]].shared),
    }
    return figures.machine(
        [asdict(row) for (kind, _), row in rows.items() if kind != "per clock"],
        sizes,
        recorded=machine.recorded().recorded[:10],
    )


def _show(heads: Sequence[str], lines: list[list], title: str) -> None:
    columns.show(
        {"": "", **{name: HEADS.get(name, "") for name in heads}}, lines, title, _caption()
    )


def show_latencies(*names: str, title: str = "") -> None:
    """Shows the clocks of these chains, in words."""
    rows = _rows()
    found = [rows["latency", name] for name in names if ("latency", name) in rows]
    lines = [[WORDS.get(row.name, row.words), f"{row.value:.0f}"] for row in found]
    _show(["clocks"], lines, title)


def show_bandwidths(title: str = "") -> None:
    """Shows bytes per clock and SM, and of the whole GPU, of every storage."""
    rows = _rows()
    lines = []
    for (kind, name), row in rows.items():
        if kind == "bytes per clock":
            whole = rows["bandwidth", name]
            lines.append(
                [name, f"{row.value:.1f}", f"{whole.value:,.0f}", f"{whole.clock_ghz:.2f}"]
            )
    _show(["bytes per clock and SM", "GB/s", "GHz"], lines, title)


def show_units(*names: str, title: str = "") -> None:
    """Shows the operations per clock of these kinds of arithmetic, or of every one that was measured."""
    rows = _rows()
    lines = [
        [row.words, f"{row.value:,.0f}"]
        for (kind, name), row in rows.items()
        if kind == "per clock" and (not names or name in names)
    ]
    _show(["operations per clock and SM"], lines, title)


def show_power(*loops: str, title: str = "") -> None:
    """Shows TFLOP/s and the clock of these loops for 2 ms, 100 ms and 2 s, and the power of the last."""
    rows = _rows()
    lines = []
    for loop in loops:
        each = [rows["arithmetic", f"{loop}, {long}"] for long in ("2 ms", "100 ms", "2 s")]
        cells = [text for row in each for text in (f"{row.value:,.0f}", f"{row.clock_ghz:.2f}")]
        watts = f"{each[-1].watts:.0f}" if each[-1].watts else "-"
        lines.append([each[0].words, *cells, watts])
    heads = {}
    for long in ("2 ms", "100 ms", "2 s"):
        heads[f"{long}: TFLOP/s"] = f"10^12 operations per second in a loop that runs for {long}"
        heads[f"{long}: GHz"] = (
            f"the SMs' clock in that loop, read inside of it; {long} after a rest"
        )
    columns.show({"": "", **heads, "W": HEADS["W"]}, lines, title, _caption())
