"""What NVIDIA's compute-sanitizer finds on a GPU in the rungs as they stand, beside what the emulator finds without one.
(`measure.mistakes` does the same with rungs made wrong.)
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from kernels.check import random_inputs
from kernels.errors import UnsupportedGPU
from kernels.gemm import gemm
from kernels.gpus import gpu
from kernels.rungs import RUNGS, find
from kernels.settings import configuration
from kernels.table import table

from .ncu import environment
from .provenance import FOLDER, label, load, store

TOOLS = ("memcheck", "racecheck", "initcheck")
SIZE = (129, 127, 70)
TIMED_AT = 4096  # at whose configuration a rung is run


@dataclass(frozen=True)
class Finding:
    """One kernel: errors that compute-sanitizer's `tool` counted (None: not run), its first words, and
    what the emulator said ("" when nothing).
    """

    kernel: str
    tool: str
    gpu_errors: int | None
    gpu_says: str
    emulator_says: str


def sanitize(rungs: Iterable[str] | None = None) -> list[Finding]:
    """Every rung under every tool. UnsupportedGPU without a GPU or compute-sanitizer."""
    if gpu() is None or shutil.which("compute-sanitizer") is None:
        raise UnsupportedGPU("needs an NVIDIA GPU and compute-sanitizer")
    there = (n for n, r in RUNGS.items() if r.path and r.runs_on(gpu().arch))
    names = list(rungs or there)
    said_here = {name: emulated(name) for name in names}
    findings = []
    for tool in TOOLS:
        said = _run(tool, names)
        for name in names:
            errors, words = said.get(name, (None, "did not run"))
            findings.append(Finding(name, tool, errors, words, said_here[name]))
    return findings


def emulated(rung: str) -> str:
    """What the emulator says of a rung: its error or first hazard, "" for nothing."""
    import emulator

    try:
        trace = _launch(rung, "emulator").trace
    except (emulator.ExecutionError, emulator.PtxError, TypeError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return f"{len(trace.hazards)} hazards; {trace.hazards[0]}" if trace.hazards else ""


def _launch(name: str, machine: str):
    rung = find(name)
    arch = gpu().arch if machine == "gpu" else max(80, rung.min_arch)
    macros = dict(configuration(rung, TIMED_AT, arch).macros)
    A, B, _ = random_inputs(rung.types(macros), *SIZE)
    return gemm(rung, A, B, macros=macros, machine=machine, arch=arch)


def launch_each(kernels: list[str]) -> None:
    """The launches that compute-sanitizer watches, each announced."""
    import cupy

    for kernel in kernels:
        print(f"=== {kernel}", flush=True)
        _launch(kernel, "gpu")
        cupy.cuda.runtime.deviceSynchronize()
    print("=== end", flush=True)


def _run(tool: str, kernels: list[str]) -> dict[str, tuple[int, str]]:
    # initcheck must watch every kernel: the matrices are initialised by others than ours.
    only_ours = [] if tool == "initcheck" else ["--kernel-regex", "kns=gemm_"]
    command = [
        "compute-sanitizer", "--tool", tool, *only_ours, "--print-limit", PRINT_LIMIT,
        sys.executable, "-m", "measure.sanitize", json.dumps(kernels),
    ]  # fmt: skip
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=FOLDER.parent, env=environment(),
    )  # fmt: skip
    return parse(done.stdout)


PRINT_LIMIT = "100000"  # reports: more than any mistake here gives, since they are counted
REPORT = re.compile(
    r"^=+ +((?:Error: |Warning: )?(?:Invalid|Misaligned|Uninitialized|Race|Potential|Error|Warning).*)"
)


def parse(output: str) -> dict[str, tuple[int, str]]:
    """`{kernel: (reports, first report)}` from what compute-sanitizer and `launch_each` print."""
    found: dict[str, tuple[int, str]] = {}
    current = None
    for line in output.splitlines():
        if line.startswith("=== "):
            current = line[4:].strip()
            found[current] = (0, "")
        elif current and (match := REPORT.match(line)):
            count, first = found[current]
            found[current] = (count + 1, first or match[1].strip())
    found.pop("end", None)
    return found


def format_findings(findings: Iterable[Finding]) -> str:
    """A table: one line a kernel and tool."""
    rows = [
        [f.kernel, f.tool, "not run" if f.gpu_errors is None else f.gpu_errors,
         f" {f.gpu_says[:70]}", f" {f.emulator_says[:90]}"]
        for f in findings
    ]  # fmt: skip
    return table(["kernel", "tool", "GPU reports", " first", " emulator"], rows, left=2)


def record_findings(rungs: Iterable[str] | None = None) -> Path:
    return store(
        f"sanitizer-{gpu().slug}",
        f"compute-sanitizer, M x N x K = {'x'.join(map(str, SIZE))}; "
        "emulator: sanitizer on, PTX for sm_80",
        rows=[asdict(finding) for finding in sanitize(rungs)],
    )


def recorded_findings() -> tuple[str, list[Finding]]:
    """`(label, findings)` from `results/sanitizer-*.json`. FileNotFoundError where there is none."""
    stored = load("sanitizer")
    return label(stored), [Finding(**row) for row in stored["rows"]]


if __name__ == "__main__":
    launch_each(json.loads(sys.argv[1]))
