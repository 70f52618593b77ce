"""Runs Nsight Compute on one launch of this repository's, and reads what it counted."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence

from kernels.errors import UnsupportedGPU

from .provenance import FOLDER

METHOD = "ncu --clock-control none"
LAST_WORDS = 4  # lines of its output that tell why it counted nothing


def available() -> bool:
    return shutil.which("ncu") is not None


def count(
    entry: str, metrics: Iterable[str], program: Sequence[str], launch: int = 0
) -> dict[str, float]:
    """{metric: value} of one launch of the kernel `entry` in `python -m <program>`.

    launch: which of its launches, the first being 0. A metric that this GPU lacks is left out.
    UnsupportedGPU with ncu's last words when it counted nothing (it needs permission to read
    performance counters).
    """
    options = ("--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(metrics))
    done = watch(entry, program, launch, *options)
    values = parse(done.stdout)
    if not values:
        words = (done.stdout + done.stderr).strip().splitlines()
        raise UnsupportedGPU("ncu counted nothing: " + " / ".join(words[-LAST_WORDS:]))
    return values


def watch(
    entry: str, program: Sequence[str], launch: int, *options: str
) -> subprocess.CompletedProcess:
    """Runs ncu with these options on this launch of the kernel `entry` in `python -m <program>`."""
    return run(
        "--clock-control", "none", "--kernel-name", f"regex:^{entry}$", "--launch-skip", str(launch),
        "--launch-count", "1", *options, sys.executable, "-m", *program,
    )  # fmt: skip


def run(*arguments: str) -> subprocess.CompletedProcess:
    """Runs ncu with these arguments, its output kept as text. UnsupportedGPU where there is none."""
    try:
        return subprocess.run(
            ["ncu", *arguments],
            capture_output=True,
            text=True,
            cwd=FOLDER.parent,
            env=environment(),
        )
    except FileNotFoundError as error:
        raise UnsupportedGPU("counting needs Nsight Compute: ncu is not on the PATH") from error


def run_twice(launch: Callable[[], None]) -> None:
    """What is counted by `launch=1`: the first of two launches is not."""
    import cupy

    launch()
    launch()
    cupy.cuda.get_current_stream().synchronize()


def parse(output: str) -> dict[str, float]:
    """Metric values of the first kernel in `ncu --csv --page raw` output; what is not a number is
    left out.
    """
    lines = [line for line in output.splitlines() if line.startswith('"')]
    rows = list(csv.reader(io.StringIO("\n".join(lines))))
    if len(rows) < 3:
        return {}
    header, _units, first = rows[:3]
    values = {}
    for name, text in zip(header, first, strict=False):
        try:
            values[name] = float(text.replace(",", ""))
        except ValueError:
            continue
    return {name: value for name, value in values.items() if "__" in name}


def environment() -> dict[str, str]:
    """This process's environment, with this repository on Python's path."""
    root = str(FOLDER.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
