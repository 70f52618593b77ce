"""What the lab's report asks, answered by running something: fragments, copies, order of events, times."""

import json
from datetime import date
from pathlib import Path

import numpy as np

import kernels
from emulator import errors
from kernels.build import DEFAULT_ARCH
from kernels.gpus import live
from kernels.launch import launch
from kernels.occupancy import occupancy

from .causes import find_entry
from .counts import count
from .includes import device_code
from .lab import (
    FILES,
    KERNELS,
    LAB_SIZE,
    SOLUTION,
    LabReport,
    LabRun,
    read,
    run,
)

LADDER = ("lab_part_a.cu", "lab_part_b.cu")
RECORDED = FILES / "recorded.json"

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
    """For each fragment the (row, column) of what a lane holds: (32, elements per lane, 2) int."""
    positions = np.arange(256)
    held = [np.full((32, places), np.nan, np.float32) for places in PLACES.values()]
    built = kernels.build(FRAGMENTS, arch=DEFAULT_ARCH)
    args = (positions.astype(np.float16), positions.astype(np.float32), *held)
    launch(built, None, (1,), (32,), args, machine="emulator")
    where = [np.stack(np.divmod(h.astype(int), 16), -1) for h in held]
    return dict(zip(PLACES, where, strict=True))


def half_a_warp() -> str:
    built = kernels.build(HALF_A_WARP, name="half_a_warp.cu", arch=DEFAULT_ARCH)
    args = (np.zeros(256, np.float16), np.zeros(16, np.float16))
    try:
        launch(built, None, (1,), (32,), args, machine="emulator")
    except errors.EmulatorError as error:
        return str(error).splitlines()[0]
    return "nothing was noticed"


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


def record(path: Path = RECORDED) -> LabReport:
    """Run the lab on this machine's GPU and keep its output for machines without one."""
    report = run(*LADDER, machine="gpu")
    stored = {
        "gpu": kernels.gpu().name,
        "recorded": date.today().isoformat(),
        "output": str(report),
        "ms": {r.kernel.name: r.ms for r in report.runs},
    }
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return report


def at_full_size(*sources: str) -> None:
    """Print the lab's output at 1024 cubed: run here on a GPU, else what was recorded of the ladder's own kernels."""
    gpu = live() if sources == LADDER else kernels.gpu()
    kept = recorded()
    if gpu is not None:
        print(f"On {gpu.name}, {date.today()}:\n\n{run(*sources, machine='gpu')}")
    elif sources != LADDER:
        print("No GPU here.")
    else:
        print(f"Recorded on an {kept['gpu']}, {kept['recorded']}:\n\n{kept['output']}")


def show_speedups(*sources: str) -> None:
    """Print times and speedups of these kernels, run here on a GPU; of the ladder's own, when none are given, else recorded."""
    gpu, kept = live() if not sources else kernels.gpu(), recorded()
    if gpu is not None:
        report = run(*(sources or LADDER), machine="gpu")
        if not report.passed:
            print("Not timed: a kernel that gives wrong results has no speedup.\n")
            print(report)
            return
        ms, source = {r.kernel.name: r.ms for r in report.runs}, f"this {gpu.name}"
    elif sources:
        print("No GPU here: run this cell on one, in Colab for example.")
        return
    else:
        ms, source = kept["ms"], f"an {kept['gpu']}, {kept['recorded']}"
    print(f"{LAB_SIZE} cubed, on {source}:")
    for kernel in KERNELS:
        print(f"  {kernel.name:16} {ms[kernel.name]:.3f} ms")
    names = [kernel.name for kernel in KERNELS]
    for slow, fast in ((0, 1), (0, 2), (1, 2)):
        print(f"  {names[fast]} over {names[slow]}: {ms[names[slow]] / ms[names[fast]]:.2f}x")


STEPS = {  # PTX that begins like this: what a turn of part B does there
    "cp.async.wait": "wait for the copies",
    "bar": "barrier",
    "cp.async.c": "copy into",
    "cp.async.commit": "commit",
    "st.shared": "store into",
    "wmma.load": "load from",
    "wmma.mma": "multiply",
}


TILES = (
    (0, 0),
    (1_024, 1),
    (2_048, 0),
    (4_096, 1),
)  # first byte and buffer: two tiles of A, then two of B


def turns(done: LabRun, tiles: int = 3) -> list[str]:
    """What warp 0 of the first block does before its loop and in the loop's first turns, with the buffers it uses.

    From the trace, in the order of the PTX. Which buffer an address lies in follows from where fragments are
    loaded; "?" where the tiles do not lie as in the lab's skeleton. Empty when the kernel multiplies nothing on tensor cores.
    """
    rows = [(step, row) for row in done.trace.instructions if (step := _step(row.opcode))]
    if not any(step == "wmma.mma" for step, _ in rows):
        return []
    starts = {a for step, row in rows if step == "wmma.load" for a in _addresses(done, row)}
    places = TILES if starts >= {start for start, _ in TILES} else ()
    warps = done.trace.blocks * done.kernel.threads[0] // 32
    loop = [(step, row) for step, row in rows if _times(done, row, warps) > 1]
    before = [(step, row) for step, row in rows if _times(done, row, warps) == 1]
    found = [_words(before, done, places, 0, "before the loop")]
    found += [_words(loop, done, places, turn, f"tile {turn}") for turn in range(tiles)]
    return [line for line in found if line]


def _times(done: LabRun, row, warps: int) -> int:
    """How often warp 0 of the first block executed this row; of rows without addresses, a warp on average."""
    return len(_addresses(done, row)) or row.warps // warps


def _step(opcode: str) -> str | None:
    return max((step for step in STEPS if opcode.startswith(step)), key=len, default=None)


def _addresses(done: LabRun, row) -> list[int]:
    """The lowest shared address of each execution of this row by warp 0."""
    return [
        int(a.addresses[a.active].min()) for a in done.trace.accesses(row, 0) if a.space == "shared"
    ]


def _words(rows, done, places, turn, title) -> str:
    said: list[str] = []
    for step, row in rows:
        words = STEPS[step]
        if words.endswith(("into", "from")):
            here = _addresses(done, row)
            if turn >= len(here):
                continue
            buffer = next((n for start, n in reversed(places) if start <= here[turn]), "?")
            words += f" buffer {buffer}"
        if not said or said[-1] != words:
            said.append(words)
    return f"{title}: {', '.join(said)}" if said else ""


def show_turns(*sources: str) -> None:
    """Print what part B of these kernels does for three tiles; of the ladder's own when they cannot be run yet."""
    done = _part_b(sources)
    lines = turns(done) if done.trace is not None else []
    if not lines:
        print("Your gemm_wmma_async multiplies nothing yet. The ladder's own does this:")
        lines = turns(_part_b(LADDER))
    print("\n".join(lines))


def _part_b(sources) -> LabRun:
    return run(*sources, size=64, machine="emulator").run("gemm_wmma_async")


def _finished(kernel: str, sources: tuple[str, ...], arch: int):
    """The build and entry of this kernel in the first of the sources that multiplies in it; None where none does."""
    for source in sources:
        text, name = read(source)
        built = kernels.build(device_code(text), name=name, arch=arch)
        if (entry := find_entry(built, kernel)) and "mma.sync" in _body(built.ptx, entry):
            return built, entry
    return None


def _body(ptx: str, entry: str) -> str:
    return ptx.split(f".entry {entry}(", 1)[1].split(".entry ", 1)[0]


def show_occupancy(*sources: str, arch: int = DEFAULT_ARCH) -> None:
    """Print, for each of the student's kernels, or for the ladder's where one is unfinished, registers, shared memory, and
    the blocks that are resident at once.
    """
    for kernel in KERNELS[1:]:
        own = _finished(kernel.name, sources, arch)
        built, entry = own or _finished(kernel.name, LADDER, arch)
        report = built.reports[entry]
        threads, shared = kernel.threads[0], kernel.shared_bytes + report.shared_bytes
        resident = occupancy(arch, threads, report.registers, shared)
        print(
            f"{kernel.name:16} {report.registers:3} registers per thread, {shared:5,} bytes of shared memory per "
            f"block: {resident.blocks} blocks, {resident.warps} of {resident.max_warps} warps on a "
            f"multiprocessor of sm_{arch}; limited by {resident.limited_by}"
            + ("" if own else ". (The ladder's: yours does not multiply yet)")
        )


WHY = {
    "warp instructions": "warps",
    "bytes read from global memory": "bytes read from global memory",
    "shared-memory wavefronts": "shared_wavefronts",
    "warps at a barrier": "barriers",
    "bytes copied by cp.async": "bytes copied by cp.async",
}


def show_why(*sources: str) -> None:
    """Print what the three kernels do for the same product, counted on the emulator: the reasons behind the times."""
    report = run(*sources, size=128, machine="emulator")
    for what, counted in WHY.items():
        values = [
            f"{count(r.trace, counted):>12,}" if r.trace is not None else f"{'stopped':>12}"
            for r in report.runs
        ]
        print(f"{what:30}", *values)
    print(f"{'':30}", *(f"{k.name.removeprefix('gemm_'):>12}" for k in KERNELS))


if __name__ == "__main__":
    print(record())
