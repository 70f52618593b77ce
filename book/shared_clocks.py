"""What a wavefront costs in clocks, and whether loads and asynchronous copies take turns on one path.

`cuda/shared_clocks.cu` lets 32 warps of one multiprocessor load and copy as fast as they can.
`python -m book.shared_clocks` measures it on a GPU and writes `results/shared-clocks-<gpu>.json`.
"""

import datetime
import json
import sys
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

import kernels
from kernels.record import commit, describe
from kernels.results import FOLDER

SOURCE = Path(__file__).with_name("cuda") / "shared_clocks.cu"
WARPS, TURNS = 32, 512
FROM_BYTES = 1 << 20
# What ldmatrix does: bytes from row to row. What cp.async does: chunks in a row, bytes from row to row.
LOADS = {
    "no loads": {"LOADS": 0},
    **{f"pitch {n}": {"LOADS": 1, "PITCH": n} for n in (80, 96, 64, 128)},
}
COPIES = {
    "no copies": {"COPIES": 0},
    "lines of 128": {"COPIES": 1, "CHUNKS": 8, "COPY_PITCH": 128},
    "rows of 64": {"COPIES": 1, "CHUNKS": 4, "COPY_PITCH": 64},
    "64, padded": {"COPIES": 1, "CHUNKS": 4, "COPY_PITCH": 80},
}


def wavefronts(load: str, copy: str) -> tuple[float, float]:
    """What one warp's turn takes by the emulator's rules: wavefronts of its loads and of its copies."""
    _, trace = _run(load, copy, 1, "emulator")
    counts = [
        sum(row.shared_wavefronts for row in rows)
        / max(1, sum(row.warps for row in rows))
        for rows in (trace.rows("ldmatrix"), trace.rows("cp.async.cg"))
    ]
    return counts[0], counts[1]


def record() -> Path:
    """Measures here and stores clocks for each warp's turn. UnsupportedGPU without a GPU."""
    if kernels.gpu() is None:
        raise kernels.UnsupportedGPU("clocks are measured on a GPU")
    rows = []
    for load, copy in product(LOADS, COPIES):
        if load == "no loads" and copy == "no copies":
            continue
        best = min(_run(load, copy, TURNS, "gpu")[0] for _ in range(5))
        rows.append({"load": load, "copy": copy, "clocks": best / TURNS / WARPS})
    stored = {
        "machine": describe(),
        "recorded": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "method": f"clock64 around {TURNS} turns of {WARPS} warps on one multiprocessor, after 32 uncounted ones; "
        "a copy of each turn from another line of L2; clocks for each warp's turn, least of 5 launches",
        "turns": rows,
    }
    path = FOLDER / f"shared-clocks-{kernels.gpu().slug}.json"
    path.write_text(json.dumps(stored, indent=1) + "\n")
    return path


@cache
def stored() -> dict | None:
    """The recorded file, None when there is none."""
    for path in sorted(FOLDER.glob("shared-clocks-*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        if "turns" in found:
            return found
    return None


def label() -> str:
    """The GPU and date to print beside recorded clocks."""
    if stored() is None:
        return "clocks: not recorded on any GPU yet"
    return f"recorded on {stored()['machine']['gpu']}, {stored()['recorded'][:10]}"


def clocks(load: str, copy: str) -> float | None:
    """Clocks that the multiprocessor took for each warp's turn; None when not recorded."""
    rows = stored()["turns"] if stored() else []
    found = [
        row["clocks"] for row in rows if (row["load"], row["copy"]) == (load, copy)
    ]
    return found[0] if found else None


def show_loads() -> None:
    """Prints, for each pitch, the wavefronts of an ldmatrix beside the clocks that it takes."""
    print(f"one ldmatrix of four matrices, {label()}")
    print(f"{'':12}{'wavefronts':>12}{'clocks':>9}")
    for load in LOADS:
        if load != "no loads":
            count, _ = wavefronts(load, "no copies")
            print(f"{load:12}{count:12g}{_text(clocks(load, 'no copies')):>9}")


def show_together(*loads: str) -> None:
    """Prints clocks of loads alone, of copies alone and of both in one turn, beside their wavefronts."""
    print(f"one ldmatrix and one cp.async in turn, {label()}")
    print(
        f"{'ldmatrix':12}{'cp.async':14}{'wavefronts':>12}{'alone':>8}{'alone':>8}{'together':>10}"
    )
    for load, copy in product(loads, [name for name in COPIES if name != "no copies"]):
        first, second = wavefronts(load, copy)
        cells = (
            clocks(load, "no copies"),
            clocks("no loads", copy),
            clocks(load, copy),
        )
        a, b, both = map(_text, cells)
        print(
            f"{load:12}{copy:14}{f'{first:g} + {second:g}':>12}{a:>8}{b:>8}{both:>10}"
        )


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _run(load: str, copy: str, turns: int, machine: str):
    """`(clocks, trace)` of one launch; the trace is None from a GPU."""
    arch = kernels.gpu().arch if machine == "gpu" else 80
    built = kernels.build(SOURCE, {**LOADS[load], **COPIES[copy]}, arch=arch)
    passed, seen = np.zeros(1, np.int64), np.zeros(32 * WARPS, np.uint32)
    arguments = [np.zeros(FROM_BYTES, np.uint8), passed, seen, np.int32(turns)]
    trace = kernels.launch(
        built, "shared_clocks", 1, 32 * WARPS, arguments, machine=machine
    )
    return int(passed[0]), trace


if __name__ == "__main__":
    print(record())
    show_loads()
    show_together("pitch 80", "pitch 64")
    sys.exit(0)
