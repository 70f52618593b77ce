"""How the recorded times were taken, as tables: the stages of a measurement, what is not in it, how it scatters, its files."""

import json
import re
import statistics
from collections.abc import Mapping
from itertools import pairwise

from book.cells import columns
from kernels.rungs import RUNGS
from measure.record import KEY
from measure.results import FOLDER, recorded

SIZE = 4096
DASH = "-"


def show_not_in_time() -> None:
    """Shows for each rung at 4096 whose launcher copies matrices: ms without and with these copies."""
    rows = []
    for row in recorded().select(size=SIZE):
        padded, turned = row.get("ms_with_padding"), row.get("ms_with_transpose")
        if padded or turned:
            cells = (f"{ms:.3f}" if ms else DASH for ms in (padded, turned))
            rows.append([row["rung"], _types(row), f"{row['ms_median']:.3f}", *cells])
    columns.show(
        {
            "": "",
            "types": "",
            "ms": "the median time of a launch, as the bars of the chapters show it",
            "with padding": "the same, and copying the matrices into larger ones of whole tiles, and C back",
            "with transpose": "the same, and a kernel before it that transposes what the rung wants transposed",
        },
        rows,
        "What the launcher does before some kernels is not in their times",
        columns.sentence(recorded().label),
    )


def _types(row: Mapping) -> str:
    return f"{row['inputs']} to {row['output']}"


def show_scatter() -> None:
    """Shows how far samples are from the median, by how long a launch takes; and, where `results/again` has
    the same rows of another day, how far these medians are from the first, and the shares of cuBLAS.
    """
    recording = recorded()
    rows = [row for row in recording.rows if row["rung"] != "cpu"]
    path = FOLDER / "again" / f"{recording.name}.json"
    second = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"rows": []}
    again = {_key(row): row for row in second["rows"]}
    lines = []
    for low, high in pairwise((0, 0.03, 0.1, 0.3, 1, 100)):
        here = [row for row in rows if low <= row["ms_median"] < high]
        if not here:
            continue
        pairs = [(row, again[_key(row)]) for row in here if _key(row) in again]
        apart = [_apart(*pair, "ms_median") for pair in pairs]
        shares = [_apart(*pair, "ratio_to_cublas") for pair in pairs if pair[0]["ratio_to_cublas"]]
        cells = [
            _share([1 - row["ms_min"] / row["ms_median"] for row in here]),
            _share([row["ms_max"] / row["ms_median"] - 1 for row in here]),
            *([_share(apart), _share(apart, max), _share(shares)] if again else []),
        ]
        lines.append([f"{low:g} to {high:g} ms", len(here), *cells])
    heads = {
        "a launch takes": "the median time of a launch",
        "rows": "recorded rungs, sizes and types of this duration",
        "fastest": "how far the fastest sample is below the median: the median of these rows",
        "slowest": "how far the slowest sample is above the median: the median of these rows",
    }
    day = ""
    if again:
        day = f", and again on {second['recorded'][:10]}"
        heads |= {
            "another day": "how far the median of the second recording is from that of the first: the median of these rows",
            "at most": "the same: the largest of these rows",
            "of cuBLAS": "how far the share of cuBLAS's speed is from that of the first recording: the median of these rows",
        }
    columns.show(
        heads,
        lines,
        "The samples of short launches scatter more",
        columns.sentence(recording.label + day),
    )


def _key(row: Mapping) -> tuple:
    return tuple(row[key] for key in KEY)


def _share(values: list[float], of=statistics.median) -> str:
    return f"{of(values):.1%}" if values else DASH


def _apart(first: Mapping, second: Mapping, column: str) -> float:
    return abs(second[column] / first[column] - 1)


KEYS = {
    "rung": "the kernel",
    "m": "M; n and k likewise",
    "inputs": "number format of A and B",
    "accumulator": "number format of the sums",
    "output": "number format of C",
    "ms_median": "milliseconds of one launch: the median of the samples",
    "ms_min": "the fastest sample",
    "ms_max": "the slowest sample",
    "tflops": "2 M N K operations over the median, whatever the kernel really did",
    "config": "the macros with which the rung was compiled",
    "config_source": "where they come from",
    "relative_error": "the largest error against float64, over the same element of |A| @ |B|",
    "of_bound": "the largest error as a part of what rounding explains",
    "clock_ghz": "the SMs' clock during a burst",
    "sustained_tflops": "in the last half of a run of 2 s without a pause",
    "sustained_ghz": "the clock in the last half of that run",
    "sustained_watts": "the highest power in it",
    "ms_with_padding": "with the copies into and out of whole tiles",
    "ms_with_transpose": "with the transposed copy",
    "cublas_ms": "cuBLAS in the same run, in the same layout",
    "ratio_to_cublas": "the speed over that of cuBLAS",
    "cublas_best_ms": "cuBLAS in its fastest layout, where that is another",
    "cublas_best_layout": "which that is",
}


def show_row(rung: str) -> None:
    """Shows what is stored of one rung at 4096, key by key."""
    row = recorded().select(rung, SIZE)[0]
    rows = [[f"`{key}`", _value(row[key]), KEYS[key]] for key in KEYS if key in row]
    columns.show(
        {"key": "its name in the file", "value": "what stands there", "meaning": "in words"},
        rows,
        f"One row of results/{recorded().name}.json",
        columns.sentence(recorded().label_of([row])),
    )


def _value(value) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={number}" for name, number in value.items()) or "none"
    return DASH if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def show_settings() -> None:
    """Shows how many of the rungs ran at 4096 with macros that a search found."""
    rows = recorded().select(size=SIZE)
    lines = [
        [row["rung"], _types(row), _value(row["config"]), row.get("config_source") or "not stored"]
        for row in rows
        if row["config"] and row["rung"] in RUNGS
    ]
    columns.show(
        {
            "": "",
            "types": "",
            "configuration": "the macros with which the rung was compiled",
            "from": "where they come from",
        },
        lines,
        "The configuration of every rung at 4096 x 4096 x 4096",
        columns.sentence(recorded().label),
    )


WHAT = {
    "": "times of the rungs",
    "announced": "what an mbarrier does when too few or too many bytes are announced",
    "machine": "what the machine itself can do",
    "tune": "what the searches tried",
    "limits": "what Nsight Compute says limits a kernel",
    "compare": "what Nsight Compute counted, beside the emulator",
    "sanitizer": "what compute-sanitizer reported",
    "shared-clocks": "clocks of accesses to shared memory",
    "small-tiles": "small tiles with and without a swizzle",
    "first-call": "the first call to cuBLAS",
    "torch": "what PyTorch reaches",
    "cublaslt": "the best of cuBLASLt's algorithms beside the fastest rungs",
    "emulator-speed": "how fast the emulator is",
    "elsewhere": "what the emulator makes of others' kernels",
    "lab": "the kernels of the lab",
    "page": "what running a page costs a browser",
    "published": "kernels that others published",
    "as-printed": "others' kernels, compiled from the text of their page",
    "peers": "others' kernels for Hopper beside the fastest rung and cuBLAS",
    "triton": "the same kernels written in Triton",
    "ablation": "warp_tiled with and without each of its ideas",
    "compilers": "the same rungs compiled by two compilers",
    "cute": "the same kernel written in CuTe's Python",
    "tilus": "a kernel written in Tilus",
    "mistakes": "seeded mistakes, and who finds them",
    "linear": "a fused layer beside PyTorch's",
    "variants": "settings that a page argues about",
    "hopper-trials": "what was tried while Hopper's rungs were written",
}


def holds(name: str) -> str:
    """What a file of `results/` holds, in words. KeyError for a kind that `WHAT` lacks; what has none is a GPU's recording."""
    kinds = [kind for kind in WHAT if kind and name.startswith(kind)]
    return WHAT[max(kinds, key=len, default="" if name.startswith("nvidia-") else name)]


def show_files() -> None:
    """Shows every file of `results/` with its GPU, date, commit and versions."""
    rows = []
    for path in sorted(FOLDER.glob("*.json")):
        if path.stem == "settings":
            continue
        stored = json.loads(path.read_text(encoding="utf-8"))
        machine = stored.get("machine", stored)
        machine = machine if isinstance(machine, Mapping) else {"gpu": machine}
        date = re.search(r"\d+-\d\d-\d\d", stored.get("recorded", stored.get("label", "")))
        commit = stored.get("commit", DASH)  # a + behind it: with local changes
        versions = [f"{k} {machine[k]}" for k in ("driver", "nvrtc", "cublas") if machine.get(k)]
        rows.append(
            [
                f"`{path.name}`",
                holds(path.stem),
                machine.get("gpu", "none: a CPU"),
                date[0].replace("-", "\u2011") if date else DASH,  # hyphens that do not break
                commit[:8] + "+" * commit.endswith("+"),
                ", ".join(versions) or DASH,
            ]
        )
    columns.show(
        {
            "file": "in the folder results/",
            "holds": "what was measured",
            "GPU": "on which",
            "recorded": "when",
            "commit": "of this repository; a + says that files had been changed since",
            "versions": "of the driver, the compiler and cuBLAS",
        },
        rows,
        "Where each number comes from",
    )
