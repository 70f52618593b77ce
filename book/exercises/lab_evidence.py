"""What the lab's report asks, answered by running something: fragments, copies, order of events, times."""

import json
from bisect import bisect
from collections import defaultdict
from datetime import date
from itertools import groupby
from pathlib import Path

import numpy as np

import kernels
from emulator.numbers import fragments as of_wmma
from kernels.build import DEFAULT_ARCH
from kernels.gpus import live
from kernels.occupancy import occupancy
from kernels.table import table

from .causes import find_entry
from .counts import count
from .includes import device_code
from .lab import FILES, KERNELS, SOLUTION, LabReport, LabRun, read, run

LADDER = ("lab_part_a.cu", "lab_part_b.cu")
RECORDED = FILES / "recorded.json"


def fragments() -> dict[str, np.ndarray]:
    """For each fragment the (row, column) of what a lane holds: (32, elements per lane, 2) int."""
    held = {
        "matrix_a": of_wmma.wmma_a(16, 16, 16, "f16"),
        "matrix_b": of_wmma.wmma_b(16, 16, 16, "f16"),
        "accumulator": of_wmma.wmma_c(16, 16, 16, "f32"),
    }
    return {name: np.stack((one.rows.T, one.cols.T), -1) for name, one in held.items()}


def half_a_warp() -> str:
    load = "wmma::load_matrix_sync(a, As, WMMA_K);"
    return SOLUTION.replace(load, f"if (threadIdx.x % 32 < 16) {load}")


def executed(done: LabRun, *opcodes: str) -> dict[str, int]:
    """How often a warp executed instructions that begin with each of these, in one launch on the emulator."""
    return {op: sum(row.warps for row in done.trace.rows(op)) for op in opcodes}


def two_byte_copies() -> str:
    wide = "const cuda::aligned_size_t<16> bytes(16);  // 8 halves: one cp.async"
    text = SOLUTION.replace(wide, "const size_t bytes = sizeof(half);")
    return text.replace("8 * threadIdx.x", "threadIdx.x").replace("8 * blockDim.x", "blockDim.x")


def without_the_wait() -> str:
    return SOLUTION.replace("        pipe.consumer_wait();\n", "")


def recorded() -> dict:
    """The lab's output on a GPU: {"gpu", "recorded", "output", "ms": {kernel: ms}}."""
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def measured(*sources: str) -> dict:
    """The same of these kernels, on this machine's GPU. A kernel that gives wrong results has no time."""
    report = run(*sources, machine="gpu")
    return {
        "gpu": kernels.gpu().name,
        "recorded": date.today().isoformat(),
        "output": str(report),
        "ms": {r.kernel.name: r.ms for r in report.runs if r.passed},
    }


def record(path: Path = RECORDED) -> dict:
    """Run the lab on this machine's GPU and keep its output for machines without one."""
    kept = measured(*LADDER)
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return kept


def at_full_size(*sources: str) -> None:
    """Print the lab's output at 1024 cubed, and speedups: run here on a GPU, else as recorded of the ladder's own kernels."""
    gpu = live() if sources == LADDER else kernels.gpu()
    if gpu is None and sources != LADDER:
        print("No GPU here: run this cell on one, in Colab for example.")
        return
    found = recorded() if gpu is None else measured(*sources)
    print(f"On an {found['gpu']}, {found['recorded']}:\n\n{found['output']}\n")
    names = [kernel.name for kernel in KERNELS if kernel.name in found["ms"]]
    for place, fast in enumerate(names):
        for slow in names[:place]:
            print(f"{fast} over {slow}: {found['ms'][slow] / found['ms'][fast]:.2f}x")


STEPS = {  # PTX that begins like this, the special before the general: what a turn of part B does there
    "cp.async.wait": "wait for the copies",
    "cp.async.commit": "commit",
    "cp.async.c": "copy into",
    "bar": "barrier",
    "st.shared": "store into",
    "wmma.load": "load from",
    "wmma.mma": "multiply",
}
TILES = 0, 1_024, 2_048, 4_096  # first bytes: two tiles of A, then two of B


def show_turns(*sources: str, tiles: int = 3) -> None:
    """Print what warp 0 of part B does before its loop and in the loop's first turns, with the buffers it uses.

    From the trace, in the order of the PTX. A buffer is "?" where the tiles do not lie as in the lab's skeleton.
    """
    done = run(*sources, size=64, machine="emulator").run("gemm_wmma_async")
    if done.trace is None or not done.trace.rows("wmma.mma"):
        print("gemm_wmma_async multiplies nothing yet.")
        return
    warps = done.trace.blocks * done.kernel.threads[0] // 32
    known = {at for row in done.trace.rows("wmma.load") for at in _starts(done, row)} >= {*TILES}
    lines = defaultdict(list)
    for row in done.trace.instructions:
        step = next((words for begins, words in STEPS.items() if row.opcode.startswith(begins)), "")
        buffers = [(bisect(TILES, at) - 1) % 2 if known else "?" for at in _starts(done, row)]
        times = len(buffers) or row.warps // warps
        for turn in range(min(times, tiles) if step else 0):
            title = f"tile {turn}" if times > 1 else "before the loop"
            lines[title].append(f"{step} buffer {buffers[turn]}" if buffers else step)
    for title, steps in lines.items():
        print(f"{title}: {', '.join(one for one, _ in groupby(steps))}")


def _starts(done: LabRun, row) -> list[int]:
    """The lowest shared address of each execution of this row by warp 0."""
    found = [a for a in done.trace.accesses(row, 0) if a.space == "shared"]
    return [int(a.addresses[a.active].min()) for a in found]


def show_occupancy(*sources: str, arch: int = DEFAULT_ARCH) -> None:
    """Print registers and shared memory of the lab's two kernels in these sources, and the blocks that are resident at once."""
    for text, name in map(read, sources):
        built = kernels.build(device_code(text), name=name, arch=arch)
        for kernel in KERNELS[1:]:
            if (entry := find_entry(built, kernel.name)) is None:
                continue
            report = built.reports[entry]
            threads, shared = kernel.threads[0], kernel.shared_bytes + report.shared_bytes
            resident = occupancy(arch, threads, report.registers, shared)
            print(
                f"{kernel.name:16} {report.registers:3} registers per thread, {shared:5,} bytes of shared memory per "
                f"block: {resident.blocks} blocks, {resident.warps} of {resident.max_warps} warps on a "
                f"multiprocessor of sm_{arch}; limited by {resident.limited_by}"
            )


WHY = {
    "warp instructions": "warps",
    "bytes read from global memory": "bytes read from global memory",
    "shared-memory wavefronts": "shared_wavefronts",
    "warps at a barrier": "barriers",
    "bytes copied by cp.async": "bytes copied by cp.async",
}


def show_why(report: LabReport) -> None:
    """Print what the three kernels did for the same product, counted on the emulator: the reasons behind the times."""
    rows = [
        (
            what,
            *(f"{count(r.trace, counted):,}" if r.trace is not None else "" for r in report.runs),
        )
        for what, counted in WHY.items()
    ]
    print(table(("", *(kernel.name for kernel in KERNELS)), rows))


if __name__ == "__main__":
    print(record()["output"])
