"""Runs `cuda/small_tiles.cu`, a kernel of the shape of the CUDA GEMMS post's, with and without its swizzle.

`python -m book.small_tiles` times it on a GPU, lets Nsight Compute count, and writes
`results/small-tiles-<gpu>.json`.
"""

import datetime
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np

import figures
import kernels
from book import limits
from kernels import machine_code
from kernels.compare import WAVEFRONTS, parse_ncu
from kernels.launch import prepare_on_gpu
from kernels.limits import METRICS, STALL_METRIC, STALLS
from kernels.record import commit, describe
from kernels.results import FOLDER
from kernels.rungs import Types
from kernels.timing import matrices, measure

SOURCE = Path(__file__).with_name("cuda") / "small_tiles.cu"
ENTRY = "gemm_small_tiles"
TILE, THREADS = 32, 128
POST = 8  # tiles of C in each direction that a block of the post's kernel computes, one after another
SIZE, SMALL = 4096, 512  # where it is timed, and where the post counts conflicts
KINDS = {"as it was": False, "swizzled": True}
# What `show` prints of them, and how wide.
BUSY = ("warps resident, %", "shared-memory pipe, %", "issue slots used, %")
WIDTHS = (10, 8, 7, 15, 13)
# What an average warp waits for at each issue, by Nsight Compute's names.
WAITS = {f"waits: {reason}": STALL_METRIC.format(reason) for reason in STALLS}
# What a warp waits for, by the memory behind it: the data, and the queue to it.
DOORS = {
    "global memory": ("long_scoreboard", "lg_throttle"),
    "shared memory": ("short_scoreboard", "mio_throttle"),
}
MMAS = SIZE**3 // (16 * 8 * 16)
# Nsight Compute, per instruction: an ldmatrix of four matrices takes four wavefronts at least.
COUNTED = {
    "ldmatrix wavefronts": f"{WAVEFRONTS}_op_ldsm.sum",
    "store wavefronts": f"{WAVEFRONTS}_op_st.sum",
    "bank conflicts, all": METRICS["bank conflicts"],
}


def run(A, B, swizzled: bool, tiles: int = 1):
    """`(C, trace)` of `A @ B` on the emulator, a block computing `tiles` x `tiles` tiles of C.

    A (M, K), B (K, N) float16; ValueError unless 32 divides K, and 32 * tiles divides M and N.
    """
    (M, K), N = A.shape, B.shape[1]
    if M % (TILE * tiles) or N % (TILE * tiles) or K % TILE:
        raise ValueError(
            f"M, N, K = {M}, {N}, {K}: must be multiples of {TILE * tiles}, {TILE * tiles}, {TILE}"
        )
    C = np.full((M, N), np.nan, np.float32)
    arguments = [A, B, C, np.int32(N), np.int32(K)]
    grid = (N // TILE // tiles, M // TILE // tiles, 1)
    trace = kernels.launch(
        _built(swizzled, tiles, 80), ENTRY, grid, THREADS, arguments, machine="emulator"
    )
    return C, trace


def _built(swizzled: bool, tiles: int, arch: int):
    return kernels.build(SOURCE, {"SWIZZLED": int(swizzled), "TILES": tiles}, arch=arch)


# ---- on a GPU


def record() -> Path:
    """Measures here and stores. UnsupportedGPU without a GPU or `ncu`."""
    if kernels.gpu() is None:
        raise kernels.UnsupportedGPU("times are measured on a GPU")
    rows = []
    for tiles in (POST, 1):
        sets = matrices(Types("float16"), ((SIZE, SIZE),) * 3)
        timed = measure(
            {name: _launches(swizzled, tiles, sets) for name, swizzled in KINDS.items()}
        )
        del sets
        for name, swizzled in KINDS.items():
            samples = timed[name].samples
            row = {
                "kernel": name,
                "tiles": tiles,
                "size": SIZE,
                "blocks": (SIZE // TILE // tiles) ** 2,
                "ms_median": round(timed[name].median, 5),
                "ms_min": round(min(samples), 5),
                "ms_max": round(max(samples), 5),
            }
            counts = _ncu(swizzled, tiles, SMALL, COUNTED)
            row["at_512"] = {label: int(value) for label, value in counts.items()}
            row["at_4096"] = _ncu(swizzled, tiles, SIZE, METRICS | WAITS)
            rows.append(row)
    stored_now = {
        "machine": describe(),
        "recorded": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "method": "times as in the ladder's file, both kernels sampled in turn; counts: ncu --clock-control none, "
        "second launch",
        "kernels": rows,
    }
    path = FOLDER / f"small-tiles-{kernels.gpu().slug}.json"
    path.write_text(json.dumps(stored_now, indent=1) + "\n")
    return path


def _launches(swizzled: bool, tiles: int, sets):
    built = _built(swizzled, tiles, kernels.gpu().arch)
    (M, K), N = sets[0][0].shape, sets[0][1].shape[1]
    grid = (N // TILE // tiles, M // TILE // tiles, 1)
    sizes = (np.int32(N), np.int32(K))
    return [
        prepare_on_gpu(built, ENTRY, grid, THREADS, [*arrays, *sizes])
        for arrays in sets
    ]


def _ncu(
    swizzled: bool, tiles: int, size: int, metrics: dict[str, str]
) -> dict[str, float]:
    """Nsight Compute's values of one launch, by label; what it does not know is left out."""
    command = [
        "ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
        "--kernel-name", f"regex:^{ENTRY}$", "--launch-skip", "1", "--launch-count", "1",
        "--metrics", ",".join(metrics.values()),
        sys.executable, "-m", "book.small_tiles", json.dumps([swizzled, tiles, size]),
    ]  # fmt: skip
    root = str(FOLDER.parent)
    paths = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths},
    )
    values = parse_ncu(done.stdout)
    if not values:
        words = (done.stdout + done.stderr).strip().splitlines()
        raise kernels.UnsupportedGPU("ncu counted nothing: " + " / ".join(words[-4:]))
    return {
        label: values[metric] for label, metric in metrics.items() if metric in values
    }


def run_twice(swizzled: bool, tiles: int, size: int) -> None:
    """The launches that `ncu` watches, the first one not counted."""
    import cupy

    sets = matrices(Types("float16"), ((size, size),) * 3, sets=1)
    for launch in _launches(swizzled, tiles, sets) * 2:
        launch()
    cupy.cuda.get_current_stream().synchronize()


# ---- what was recorded


@cache
def stored() -> dict | None:
    """The recorded file, None when there is none."""
    files = sorted(FOLDER.glob("small-tiles-*.json"))
    return json.loads(files[0].read_text(encoding="utf-8")) if files else None


def show() -> None:
    """Prints times and what Nsight Compute counted, of both kernels, for both sizes of a block's work."""
    if stored() is None:
        print("not recorded on any GPU yet")
        return
    print(f"recorded on {stored()['machine']['gpu']}, {stored()['recorded'][:10]}")
    head = ("conflicts", "ms", "warps", "shared memory", "issue slots")
    print(
        f"{'tiles a block':25}"
        + "".join(f"{w:>{n}}" for w, n in zip(head, WIDTHS, strict=True))
    )
    for found in stored()["kernels"]:
        busy = [f"{found['at_4096'][name]:.0f}%" for name in BUSY]
        cells = (f"{conflicts(found):,}", f"{found['ms_median']:.2f}", *busy)
        print(
            f"{_name(found):25}"
            + "".join(f"{c:>{n}}" for c, n in zip(cells, WIDTHS, strict=True))
        )


def show_share() -> None:
    """Prints the clocks that the conflicts could take at most, and their part of the clocks that passed."""
    if stored() is None:
        print("not recorded on any GPU yet")
        return
    sms = stored()["machine"]["sms"]
    for found in stored()["kernels"]:
        if found["kernel"] == "as it was":
            passing = conflicts(found) * (SIZE // SMALL) ** 3 / sms / 1e6
            took = found["at_4096"]["cycles"] / 1e6
            print(
                f"{_name(found)}: at most {passing:.1f} of {took:.1f} million clocks, {passing / took:.0%}"
            )


def show_clocks() -> None:
    """Prints, for each mma, the clocks that a warp spends, by what it waits for, and the instructions that it executes."""
    if stored() is None:
        print("not recorded on any GPU yet")
        return
    print(
        f"for each mma, recorded on {stored()['machine']['gpu']}, {stored()['recorded'][:10]}"
    )
    head = (*DOORS, "else", "clocks", "instructions")
    print(f"{'':25}" + "".join(f"{word:>{len(word) + 3}}" for word in head))
    for found in stored()["kernels"]:
        each = found["at_4096"]["instructions"] / MMAS
        spent = {r: each * found["at_4096"].get(f"waits: {r}", 0) for r in STALLS}
        doors = [sum(spent[reason] for reason in reasons) for reasons in DOORS.values()]
        every = sum(spent.values())
        cells = [f"{n:.0f}" for n in (*doors, every - sum(doors), every)] + [
            f"{each:.1f}"
        ]
        print(
            f"{_name(found):25}"
            + "".join(f"{c:>{len(w) + 3}}" for w, c in zip(head, cells, strict=True))
        )


def loads_in_a_row(swizzled: bool, tiles: int = POST, arch: int = 90) -> int:
    """Loads of A and B that a warp sends at most before it stores one of them, in the machine code."""
    return max(machine_code.loads_in_a_row(_built(swizzled, tiles, arch), ENTRY))


def _name(found: dict) -> str:
    return f"{found['tiles']} x {found['tiles']} tiles, {found['kernel']}"


def row(kernel: str, tiles: int = POST) -> dict | None:
    """What was recorded of one kernel, `tiles` x `tiles` tiles a block; None when nothing was."""
    rows = stored()["kernels"] if stored() else []
    return next((r for r in rows if (r["kernel"], r["tiles"]) == (kernel, tiles)), None)


def waits():
    """What a warp of each kernel waits for, to flip through; None, after saying so, when not recorded."""
    if stored() is None:
        print("not recorded on any GPU yet")
        return None
    pages = {}
    for found in stored()["kernels"]:
        counted = found["at_4096"]
        stalls = {reason: counted.get(f"waits: {reason}") for reason in STALLS}
        pages[_name(found)] = limits.wait_bars(_name(found), stalls, stored())
    title = "With conflicts and without: what does a warp wait for?"
    return figures.Choice(pages, name="kernel", title=title, slider=False)


def conflicts(row: dict) -> int:
    """Wavefronts of ldmatrix beyond four each, at 512 x 512 x 512: two for each 16 x 16 x 16 product."""
    least = 4 * 2 * (SMALL // 16) ** 3
    return row["at_512"]["ldmatrix wavefronts"] - least


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_twice(*json.loads(sys.argv[1]))
    else:
        print(record())
        show()
