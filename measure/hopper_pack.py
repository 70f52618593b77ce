"""Packs Hopper's trials for `hopper_lab`, which runs them where no copy of this repository is.

    python -m measure.hopper_pack FOLDER JOBS.json

JOBS.json is a list of {"rung": name, "macros": {...}, "check": [[M, N, K], ...], "time": [...],
"sustain": [...], "once": [...]}; with "programmatic": true a launch may begin before the one before it has ended.
"source" and "entry" name another file of `kernels/` and another kernel than the rung's own, "name" what the rows are
called, "flags" more of nvcc, "promotion" the bytes that L2 fetches for a tensor map's copies.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import emulator.machine.tensor_map
import kernels.tensor_map
from kernels.rung import FOLDER
from kernels.rungs import find

from . import hopper_lab
from .hopper_lab import label

BYTES = {"float8_e4m3fn": 1, "int8": 1, "float16": 2, "bfloat16": 2, "tf32": 4, "float32": 4}

# One block spins on one multiprocessor and returns clocks and nanoseconds.
CLOCK_PROBE = """
extern "C" __global__ void clock_probe(long long* out) {
    long long ns0, ns1;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns0) :: "memory");
    long long c0 = clock64(), c1;
    do { c1 = clock64(); } while (c1 - c0 < 150000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns1) :: "memory");
    out[0] = c1 - c0;
    out[1] = ns1 - ns0;
}
"""


def pack(folder: Path, jobs_file: Path) -> None:
    """Compile every job to a cubin in `folder`, with all that a launch needs beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.cubin"):
        old.unlink()
    wanted = json.loads(jobs_file.read_text())
    for job in wanted:
        check_rows(job, find(job["rung"]))
    jobs = []
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda numbered: compile_one(folder, *numbered), enumerate(wanted))
        for index, (ready, log) in enumerate(done):
            print(f"{index:03d} {label(wanted[index])}", *report(ready is not None, log))
            jobs += [ready] if ready else []
    (folder / "jobs.json").write_text(json.dumps(jobs))
    (folder / "probe.cu").write_text(CLOCK_PROBE)
    subprocess.run(
        ["nvcc", "-cubin", "-arch=sm_90", str(folder / "probe.cu"), "-o", str(folder / "probe.cub")], check=True
    )  # fmt: skip
    for module, name in (
        (hopper_lab, "hopper_lab.py"),
        (kernels.tensor_map, "encoded_maps.py"),
        (emulator.machine.tensor_map, "tensor_map.py"),
    ):
        shutil.copy(module.__file__, folder / name)


def compile_one(folder: Path, index: int, job: dict) -> tuple[dict | None, str]:
    """What the bench must know of a compiled job, None where it does not compile; what nvcc printed."""
    rung = find(job["rung"])
    values = rung.resolve(job.get("macros"))
    rung.check_needs(values)
    cubin = folder / f"{index:03d}.cubin"
    flags = [f"-D{key}={value}" for key, value in values.items()]
    source = FOLDER / job.get("source", rung.file)
    done = subprocess.run(
        ["nvcc", "-cubin", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-lineinfo",
         "-Xptxas", "-v", *flags, *job.get("flags", ()), f"-I{FOLDER}", str(source), "-o", str(cubin)],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        return None, done.stdout + done.stderr
    _, block, shared = rung.geometry(values, 1, 1, 1)
    types = rung.types(values)
    ready = {
        **job, "given": job.get("macros", {}), "macros": values, "cubin": cubin.name,
        "entry": job.get("entry", rung.entry), "block": block, "shared": shared,
        "inputs": types.inputs, "output": types.output, "b_major": rung.b_major,
        "boxes": rung.boxes(**values) if rung.boxes else None,
        "grids": {"x".join(map(str, size)): rung.geometry(values, *size)[0] for size in sizes(job)},
    }  # fmt: skip
    return ready, done.stdout + done.stderr


def report(compiled: bool, log: str) -> list[str]:
    """What ptxas said that matters: registers, spills and warnings, or the first errors."""
    lines = log.splitlines()
    if not compiled:
        return ["DOES NOT COMPILE:", *("\n  " + line[:300] for line in lines[:8])]
    used = [line.split(":")[-1].strip() for line in lines if "Used" in line]
    spills = [line for line in lines if "spill" in line and " 0 bytes spill stores" not in line]
    odd = [line[:200] for line in lines if "C75" in line or "warning" in line]
    return [*used, *spills, *odd]


def sizes(job: dict) -> list:
    """All (M, N, K) that a job runs at."""
    return [size for kind in ("check", "time", "sustain", "once") for size in job.get(kind, ())]


def check_rows(job: dict, rung) -> None:
    """Refuse sizes whose rows TMA cannot copy."""
    if not rung.boxes:
        return
    item = BYTES[rung.types(rung.resolve(job.get("macros"))).inputs]
    rows = (("A", "K"),) if rung.b_major == "K" else (("A", "K"), ("B", "N"))
    for size in sizes(job):
        extents = dict(zip("MNK", size, strict=True))
        for matrix, name in rows:
            if extents[name] * item % 16:
                raise ValueError(
                    f"{label(job)}, {'x'.join(map(str, size))}: a row of {matrix} is {extents[name]} elements of {item} "
                    f"bytes; TMA copies rows of whole 16 bytes, so {name} must be a multiple of {16 // item}"
                )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("python -m measure.hopper_pack FOLDER JOBS.json")
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
