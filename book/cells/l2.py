"""How busy L2 was with a rung, and with what: bytes, requests, look-ups of tags. Recorded, and counted beside it.

L2 takes requests, looks up a tag for every 128-byte line that a request touches, and then moves sectors of 32 bytes. Nsight
Compute's "L2, %" is the highest of such shares, so that bytes alone do not explain it.
"""

import numpy as np

from book.cells import columns, limits
from kernels.gemm import gemm
from kernels.rungs import find

ITSELF = ("L2 requests", "L2 tag look-ups", "L2 sectors")


def per_clock(rung: str, metric: str) -> float | None:
    """How many of these per clock of the SMs, the whole GPU together; None where it was not recorded."""
    row = limits.row(rung)
    return row[metric] / row["cycles"] if row.get(metric) else None


def terabytes(rung: str) -> float:
    """TB/s that the SMs read from L2."""
    row = limits.row(rung)
    return row["bytes from L2"] / row["milliseconds"] / 1e9


def per_copy(rung: str) -> tuple[float, float]:
    """(sectors, wavefronts) of an average `cp.async` of a warp, on the emulator, as the rung was watched."""
    config = dict(limits.row(rung)["config"])
    resolved = find(rung).resolve(config)
    rng = np.random.default_rng(0)
    k = max(64, resolved.get("BK", 0))
    A = rng.uniform(-1, 1, (resolved["BM"], k)).astype(np.float16)
    B = rng.uniform(-1, 1, (k, resolved["BN"])).astype(np.float16)
    trace = gemm(rung, A, B, macros=config, machine="emulator").trace
    found = trace.rows("cp.async.cg")
    asked = sum(
        row.global_requests for row in found
    )  # copies beyond the last step of K ask for nothing
    issued = sum(row.warps for row in found)
    return (
        sum(row.global_sectors for row in found) / asked,
        sum(row.shared_wavefronts for row in found) / issued,
    )


def show(*rungs: str) -> None:
    """Shows how busy L2 was beside the bytes that it delivered, and how finely the copies were cut."""
    recorded = all(per_clock(rung, name) for rung in rungs for name in ITSELF)
    rows = []
    for rung in rungs:
        sectors, packets = per_copy(rung)
        busy, speed = limits.row(rung)["L2, %"], terabytes(rung)
        row = [rung, f"{busy:.0f}%", f"{speed:.2f}", f"{busy / speed:.1f}%"]
        row += [f"{sectors:.1f}", f"{packets:.1f}"]
        if recorded:
            row += [f"{per_clock(rung, name):.1f}" for name in ITSELF]
        rows.append(row)
    heads = {
        "": "",
        "L2": "",
        "TB/s": "bytes that the SMs read from L2, per second",
        "L2 per TB/s": 'the column "L2" divided by the column "TB/s": how busy each terabyte per second keeps L2',
        "sectors per copy": "32-byte sectors that one `cp.async` of a warp reads (512 bytes are 16 sectors), on the emulator",
        "wavefronts per copy": "wavefronts of one `cp.async` of a warp, on the emulator: how finely its data are cut",
    }
    if recorded:
        heads |= {
            "requests per clock": "requests that all slices of L2 took, per clock of the SMs",
            "tags per clock": "look-ups of tags in all slices, per clock of the SMs",
            "sectors per clock": "sectors that all slices moved, reads and writes, per clock of the SMs",
        }
    columns.show(heads, rows, caption=columns.sentence(limits.stored()["label"]))
