"""What the lab's report asks, answered by running something: fragments, copies, order of events, times."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np

import kernels
from emulator import errors
from kernels.build import DEFAULT_ARCH
from kernels.launch import launch
from kernels.machine import live

from .exercise import FOLDER, Exercise
from .lab import KERNELS, LAB_SIZE, LabReport, LabRun, run

RECORDED = FOLDER / "lab3_recorded.json"

FRAGMENTS = """\
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
// position (256,): 0, 1, 2 ... as a row-major 16 x 16 matrix. held: for each lane, the positions that it holds.
extern "C" __global__ void fragments(const half* position, const float* position32, float* a, float* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::load_matrix_sync(fa, position, 16);
    wmma::load_matrix_sync(fb, position, 16);
    wmma::load_matrix_sync(fc, position32, 16, wmma::mem_row_major);
    for (int i = 0; i < fa.num_elements; ++i) a[threadIdx.x * fa.num_elements + i] = __half2float(fa.x[i]);
    for (int i = 0; i < fb.num_elements; ++i) b[threadIdx.x * fb.num_elements + i] = __half2float(fb.x[i]);
    for (int i = 0; i < fc.num_elements; ++i) c[threadIdx.x * fc.num_elements + i] = fc.x[i];
}
"""
HALF_A_WARP = """\
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void half_a_warp(const half* A, half* out) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    if (threadIdx.x < 16) {
        wmma::load_matrix_sync(a, A, 16);
        out[threadIdx.x] = a.x[0];
    }
}
"""
# Elements a lane on sm_80: A and B take 16 places in PTX's WMMA fragments, the accumulator 8.
PLACES = {"matrix_a": 16, "matrix_b": 16, "accumulator": 8}


def fragments() -> dict[str, np.ndarray]:
    """For each fragment the (row, column) of what a lane holds: (32, elements a lane, 2) int."""
    positions = np.arange(256)
    held = [np.full((32, places), np.nan, np.float32) for places in PLACES.values()]
    built = kernels.build(FRAGMENTS, arch=DEFAULT_ARCH)
    args = (positions.astype(np.float16), positions.astype(np.float32), *held)
    launch(built, None, (1,), (32,), args, machine="emulator")
    where = [np.stack(np.divmod(h.astype(int), 16), -1) for h in held]
    return dict(zip(PLACES, where, strict=True))


def half_a_warp() -> str:
    """What the emulator says of a load that 16 of 32 lanes execute."""
    built = kernels.build(HALF_A_WARP, name="half_a_warp.cu", arch=DEFAULT_ARCH)
    args = (np.zeros(256, np.float16), np.zeros(16, np.float16))
    try:
        launch(built, None, (1,), (32,), args, machine="emulator")
    except errors.EmulatorError as error:
        return str(error).splitlines()[0]
    return "nothing was noticed"


def executed(done: LabRun, *opcodes: str) -> dict[str, int]:
    """How often a warp executed instructions that begin with each of these, in one launch on the emulator."""
    if done.trace is None:
        done = next(r for r in run(*LADDER, machine="emulator").runs if r.kernel == done.kernel)
    return {op: sum(row.warps for row in done.trace.rows(op)) for op in opcodes}


LADDER = ("lab_part_a.cu", "lab_part_b.cu")
EVENTS = {
    "cp.async.wait": "consumer_wait: this thread's copies of the tile have landed",
    "bar": "__syncthreads",
    "cp.async.c": "copy 16 bytes of the next tile",
    "cp.async.commit": "producer_commit: the next tile is one group",
    "wmma.load": "load a fragment of this tile",
    "wmma.mma": "multiply",
}


def _event(opcode: str) -> str | None:
    """The longest name among EVENTS that this opcode begins with."""
    return max((event for event in EVENTS if opcode.startswith(event)), key=len, default=None)


def timeline(done: LabRun) -> list[str]:
    """The events of one turn of part B's loop, in the order in which a warp executes them."""
    if done.trace is None:
        done = next(r for r in run(*LADDER, machine="emulator").runs if r.kernel == done.kernel)
    rows = [(_event(row.opcode), row) for row in done.trace.instructions]
    tiles = max(row.warps for event, row in rows if event == "wmma.mma")
    steps = []
    for event, row in rows:
        if event and row.warps >= tiles * 3 // 4 and (not steps or steps[-1] != EVENTS[event]):
            steps.append(EVENTS[event])
    return steps


def _solution() -> str:
    return Exercise("lab3", "", "", 0, "", ("", ""), "", cases=tuple).solution


def two_byte_copies() -> str:
    """The solution's part B with copies of one half each."""
    wide = "const cuda::aligned_size_t<16> bytes(16);  // 8 halves: one cp.async"
    text = _solution().replace(wide, "const size_t bytes = sizeof(half);")
    return text.replace("8 * threadIdx.x", "threadIdx.x").replace("8 * blockDim.x", "blockDim.x")


def without_the_wait() -> str:
    """The solution's part B without its consumer_wait."""
    return _solution().replace("        pipe.consumer_wait();\n", "")


def recorded() -> dict | None:
    """The lab's output on a GPU: {"gpu", "recorded", "output", "ms": {kernel: ms}}; None before it was recorded."""
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else None


def record(path: Path = RECORDED) -> LabReport:
    """Run the lab on this machine's GPU and keep its output for machines without one."""
    report = run(*LADDER, machine="gpu")
    stored = {
        "gpu": kernels.gpu().name,
        "recorded": date.today().isoformat(),
        "output": str(report),
        "ms": {r.kernel.name: r.ms for r in report.runs},
    }
    path.write_text(json.dumps(stored, indent=1) + "\n")
    return report


def at_full_size(*sources: str) -> None:
    """Print the lab's output at 1024 cubed: run here on a GPU, else what was recorded of the ladder's own kernels."""
    gpu = live() if sources == LADDER else kernels.gpu()
    kept = recorded()
    if gpu is not None:
        print(f"On {gpu.name}, {date.today()}:\n\n{run(*sources, machine='gpu')}")
    elif sources != LADDER or kept is None:
        print("No GPU here.")
    else:
        print(f"Recorded on an {kept['gpu']}, {kept['recorded']}:\n\n{kept['output']}")


def show_speedups() -> None:
    """Print the table of times and speedups of the ladder's own kernels: run here on a GPU, else recorded."""
    gpu, kept = live(), recorded()
    if gpu is not None:
        report = run(*LADDER, machine="gpu")
        ms, source = {r.kernel.name: r.ms for r in report.runs}, f"this {gpu.name}"
    elif kept is not None:
        ms, source = kept["ms"], f"an {kept['gpu']}, {kept['recorded']}"
    else:
        print("No GPU here, and nothing recorded.")
        return
    print(f"{LAB_SIZE} cubed, on {source}:")
    for kernel in KERNELS:
        print(f"  {kernel.name:16} {ms[kernel.name]:.3f} ms")
    names = [kernel.name for kernel in KERNELS]
    for slow, fast in ((0, 1), (0, 2), (1, 2)):
        print(f"  {names[fast]} over {names[slow]}: {ms[names[slow]] / ms[names[fast]]:.2f}x")


if __name__ == "__main__":
    print(record())
