"""Nsight Compute's metrics and stall reasons as this book uses them: what each counts, and what the rungs' were."""

from __future__ import annotations

import figures
from book.cells import columns, limits
from kernels.rungs import find
from measure.limits import METRICS, OTHERS, STALLS
from measure.main_loops import WORDS, opcode

LEAST = 0.05  # clocks: a shorter stall has no row
# What the tables of chapters call it: (what it counts, what 100% would be); `limits.BUSY` has their keys.
BUSY = {
    "issue slots": (
        "clocks in which a scheduler started an instruction",
        "every scheduler starts one in every clock",
    ),
    "FMA pipe": (
        "clocks in which the pipe for multiply-adds (`float32`, and of integers) was occupied",
        "128 multiply-adds of `float32` per clock and SM on an H100 or H200, or 64 of integers",
    ),
    "tensor pipe": (
        "clocks in which the tensor cores were occupied",
        "tensor cores that never pause; how much work that is depends on the instruction",
    ),
    "shared memory": (
        "wavefronts on the data path of shared memory and L1, without those that copies (`cp.async`, TMA) write",
        "one wavefront per clock and SM",
    ),
    "L2": (
        "the busiest of several units of L2: requests, tags, data banks, ports",
        "one of these units does as much as it can",
    ),
}
OTHER = {
    "L2 hit rate": ("L2 hit rate, %", "sectors that L2 had, as a share of those it was asked for"),
    "bytes from L2": ("bytes from L2", "bytes that all SMs received from L2"),
    "bytes of DRAM": ("bytes of DRAM", "bytes that device memory read or wrote"),
    "warps resident": ("warps resident, %", "warps on an SM, as a share of the most it can hold"),
    "conflict counter": ("bank conflicts", "extra wavefronts as the profiler attributes them"),
    "instructions": ("instructions", "instructions that warps executed"),
    "cycles": ("cycles", "clocks of the SMs from beginning to end"),
    "milliseconds": ("milliseconds", "time from beginning to end, under the profiler"),
}


def busy() -> None:
    """Shows the columns of the tables of busy parts: what each counts, and what 100% would be."""
    rows = [[name, what, full] for name, (what, full) in BUSY.items()]
    heads = {
        "column": "what this book's tables call it",
        "counts": "what is counted",
        "100% would be": "what would have to happen for a share of 100%",
    }
    columns.show(heads, rows)


def other() -> None:
    """Shows the metrics that are no shares of a peak."""
    rows = [[name, what] for name, (_, what) in OTHER.items()]
    columns.show({"column": "what this book calls it", "counts": "what is counted"}, rows)


def names() -> None:
    """Shows what Nsight Compute calls the columns of `busy` and `other`."""
    keys = limits.BUSY | {name: key for name, (key, _) in OTHER.items()}
    rows = [[name, f"`{METRICS[key]}`"] for name, key in keys.items()]
    heads = {"column": "what this book calls it", "Nsight Compute": "the name of the metric"}
    columns.show(heads, rows)


def reasons() -> None:
    """Shows the stall reasons: what a warp waits for, and what that says."""
    rows = [[one.name, one.waits, one.advice] for one in STALLS.values()]
    heads = {
        "stall": "Nsight Compute's name of it",
        "the warp waits for": "what has to happen before it can issue",
        "what to make of it": "when it is normal, or what makes it shorter",
    }
    columns.show(heads, rows)


def busiest(rung: str) -> str:
    """The part of the machine with the highest share: one of `BUSY`."""
    row = limits.row(rung)
    return max(BUSY, key=lambda name: row[limits.BUSY[name]])


def clocks_per_issue(rung: str) -> float:
    """Clocks from one instruction of a warp to its next: the sum of all stalls and of issuing."""
    return sum(value for value in limits.row(rung)["stalls"].values() if value)


def stalls(*rungs: str) -> None:
    """Shows the stalls of rungs, in clocks between two instructions of a warp, and what they must add up to."""
    found = [limits.row(rung) for rung in rungs]
    rows = []
    for reason, one in STALLS.items():
        each = [row["stalls"].get(reason) or 0 for row in found]
        if max(each) >= LEAST:
            rows.append([one.name, *(f"{value:.1f}" for value in each)])
    others = [sum(row["stalls"][reason] or 0 for reason in OTHERS) for row in found]
    rows.append(["others", *(f"{value:.1f}" for value in others)])
    warps = [16 * row["warps resident, %"] / 100 for row in found]
    rates = [row["issue slots used, %"] / 100 for row in found]
    rows += [
        ["sum", *(f"{clocks_per_issue(rung):.1f}" for rung in rungs)],
        ["warps", *(f"{held:.1f}" for held in warps)],
        ["warps / rate", *(f"{held / rate:.1f}" for held, rate in zip(warps, rates, strict=True))],
    ]
    heads = {"stall": "clocks that a warp spends so, from one of its instructions to the next"}
    heads |= {rung: find(rung).idea for rung in rungs}
    columns.show(heads, rows, caption=columns.sentence(limits.label(rungs)))


def places(*rungs: str, least: float = 0.05) -> None:
    """Shows at which instructions warps wait, where that is at least this share of all samples of a rung."""
    rows = []
    for rung in rungs:
        for at in limits.row(rung)["places"]:
            if at["share"] >= least and at["reason"] in limits.WAITS:
                means = WORDS.get(opcode(at["instruction"]), "")
                where = [f"`{at['instruction']}`", means, f"{100 * at['share']:.0f}%"]
                rows.append([rung, STALLS[at["reason"]].name, *where])
    heads = {
        "": "",
        "stall": "Nsight Compute's name of the reason",
        "at": "the instruction that could not be issued; of a branch, what sets its condition",
        "that is": "what it does",
        "samples": "share of all samples of the kernel's warps",
    }
    columns.show(heads, rows, caption=columns.sentence(limits.label(rungs)))


def traffic(*rungs: str) -> None:
    """Shows what came from L2 and from device memory."""
    rows = []
    for rung in rungs:
        row = limits.row(rung)
        seconds = row["milliseconds"] / 1e3
        rows.append([
            rung,
            f"{row['bytes from L2'] / 1e9:.2f}",
            f"{row['bytes of DRAM'] / 1e9:.2f}",
            f"{row['L2 hit rate, %']:.0f}%",
            f"{row['bytes from L2'] / seconds / 1e12:.2f}",
            f"{row['bytes of DRAM'] / seconds / 1e12:.2f}",
        ])  # fmt: skip
    heads = {
        "": "",
        "GB from L2": "bytes that all SMs received from L2",
        "GB of DRAM": "bytes that device memory read or wrote",
        "L2 hit rate": OTHER["L2 hit rate"][1],
        "L2, TB/s": "bytes from L2 per second",
        "DRAM, TB/s": "bytes of device memory per second",
    }
    columns.show(heads, rows, caption=columns.sentence(limits.label(rungs)))


def clock_table(*rungs: str) -> None:
    """Shows cycles, time and the clock that follows, beside the busiest part."""
    rows = []
    for rung in rungs:
        row = limits.row(rung)
        name = busiest(rung)
        share = f"{row[limits.BUSY[name]]:.0f}%"
        cycles, ms = f"{row['cycles'] / 1e6:.3f}", f"{row['milliseconds']:.3f}"
        rows.append([rung, cycles, ms, f"{limits.clock_ghz(rung):.2f}", name, share])
    heads = {
        "": "",
        "million cycles": "clocks of the SMs from beginning to end",
        "ms": "milliseconds under the profiler",
        "GHz": "",
        "busiest part": "the part of the machine with the highest share; what copies write to shared memory is not counted",
        "share": "how busy it was",
    }
    columns.show(heads, rows, caption=columns.sentence(limits.label(rungs)))


def queue():
    """A model of why nothing reaches 100%: the average wait at one server where work arrives at random, as bars.

    The queue M/D/1: a wait of rho / (2 (1 - rho)) service times when the server is busy for a share rho of the time.
    """
    shares = (10, 30, 50, 70, 80, 90, 95)
    waits = {f"{share}% busy": share / 100 / (2 * (1 - share / 100)) for share in shares}
    return figures.bars(
        waits,
        unit="service times",
        title="The busier a part is, the longer each request waits for it",
        caption="A model, not a measurement: requests that arrive at random times at a part that serves one at a time.",
        highlight=[name for name in waits if name.startswith("80")],
    )
