"""The ECE 60827 lab (Purdue University), whole: run a student's `lab3.cu` as it is, on a GPU or without one.

The lab computes C = A @ B, half in and float out, at 1024 cubed, by three kernels: `gemm_tiled_smem`, which is given and
serves as golden result, `gemm_wmma_smem` (part A) and `gemm_wmma_async` (part B), which the student writes. On a GPU the
three are timed at that size. On the emulator the same kernels run with the same launch configuration at a smaller size.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import kernels
from kernels.build import DEFAULT_ARCH
from kernels.gpus import choose
from kernels.launch import prepare_on_gpu
from measure.clock import elapsed

from .attempt import Attempt, attempt
from .causes import Kernel, find_entry
from .copies_in_flight import ahead
from .counts import count
from .diagnose import findings
from .exercise import ANSWER, FOLDER, GIVEN, Case, Exercise, Product, cuda
from .finding import Finding
from .includes import device_code
from .launches import ceil_div, poisoned, unwritten
from .mistake import mistake
from .verdict import RIGHT, WRONG, folded
from .words import words

FILES = FOLDER / "lab3"
SKELETON, SOLUTION = (cuda(FILES / "lab3.cu", which) for which in (GIVEN, ANSWER))
LAB_SIZE, EMULATOR_SIZE = 1024, 128
TOLERANCE = 1e-2
SAMPLES = 20  # timed launches, of which the median counts
FRAGMENT = 16
HALF_BYTES = 2
OTHER_SIZES = 96, 80, 192  # M, K, N: all different, and whole tiles of both kernels
FRAGMENT_BYTES = FRAGMENT * FRAGMENT * HALF_BYTES  # of one operand
COPIED = "bytes copied by cp.async"
NARROW = (
    "no asynchronous copy: 2 bytes each. cp.async moves 4, 8 or 16 bytes, so these copies are ordinary loads and stores, "
    "and the threads wait for them. Copy 8 halves with cuda::aligned_size_t<16>(16)."
)

# The given kernel: a 16 x 16 tile, one thread an output. Written afresh; the lab's own has the same shape.
GOLDEN = """\
#include <cuda_fp16.h>
extern "C" __global__ void gemm_tiled_smem(const half* A, const half* B, float* C, int M, int K, int N) {
    __shared__ half As[16][16], Bs[16][16];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int tile = 0; tile < K; tile += 16) {
        As[ty][tx] = row < M && tile + tx < K ? A[row * K + tile + tx] : __float2half(0.0f);
        Bs[ty][tx] = tile + ty < K && col < N ? B[(tile + ty) * N + col] : __float2half(0.0f);
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += __half2float(As[ty][k]) * __half2float(Bs[k][tx]);
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
"""


# Copies that are asynchronous at any size: two neighbouring halves become one of 4 bytes, issued by the thread of the first. A
# copy of 2 bytes has no asynchronous instruction, and a missing wait or commit would go unnoticed.
ALWAYS_ASYNC = """\
#line 1 "always_async.h"
#include <cuda/pipeline>
namespace cuda {
__device__ __forceinline__ void start_copy(unsigned to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
template <class To, class From, class Size>
__device__ __forceinline__ void always_async(To* to, From* from, Size size, pipeline<thread_scope_thread>& pipe) {
    const unsigned bytes = unsigned(size_t(size));
    const unsigned place = unsigned(__cvta_generic_to_shared(to)), source = unsigned(reinterpret_cast<size_t>(from));
    if ((bytes | place | source) % 4 == 0) {
        for (unsigned i = 0; i < bytes; i += 4) start_copy(place + i, reinterpret_cast<const char*>(from) + i);
    } else if (bytes == 2 && (place ^ source) % 4 == 0) {
        if (place % 4 == 0) start_copy(place, from);
    } else {
        memcpy_async(to, from, size, pipe);
    }
}
template <class... Others> __device__ __forceinline__ void always_async(Others&&... others) {
    memcpy_async(static_cast<Others&&>(others)...);
}
}
#define memcpy_async always_async
#line 1 "{name}"
"""


@dataclass(frozen=True)
class LabKernel:
    """One of the lab's three kernels: its launch configuration, and how the lab's output names it."""

    name: str
    title: str
    threads: tuple[int, ...]
    tile: tuple[int, int]
    shared_bytes: int
    copies: bool = False  # asynchronously

    def grid(self, M: int, N: int) -> tuple[int, int]:
        return ceil_div(N, self.tile[1]), ceil_div(M, self.tile[0])


# Shared memory: halves of one tile of A (16 x 16) and of B (16 x 64), or of two of A (32 x 16) and of B.
KERNELS = (
    LabKernel("gemm_tiled_smem", "Shared-mem GEMM {}:  {}", (16, 16), (16, 16), 0),
    LabKernel("gemm_wmma_smem", "WMMA+smem GEMM {}:    {}", (128,), (16, 64), 2_560),
    LabKernel("gemm_wmma_async", "WMMA+async GEMM {}:   {}", (128,), (32, 64), 6_144, copies=True),
)


@dataclass(frozen=True)
class LabRun:
    """What one kernel did. `ms` is None on the emulator, `trace` None on a GPU; `stopped` says why there is no C.

    `advice` is what is wrong, `warnings` what is allowed and probably not meant.
    """

    kernel: LabKernel
    C: np.ndarray | None = field(default=None, repr=False)
    ms: float | None = None
    trace: object = field(default=None, repr=False)
    errors: int = 0
    max_relative_error: float = 0.0
    stopped: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not (self.errors or self.stopped or self.advice)


@dataclass(frozen=True)
class LabReport:
    """The whole lab. Printing it gives the lab's own output, then what the emulator has to say."""

    size: int
    runs: tuple[LabRun, ...]
    pictures: tuple = ()

    @property
    def passed(self) -> bool:
        return all(run.passed for run in self.runs)

    @property
    def advice(self) -> tuple[str, ...]:
        """All advice, each line after the name of its kernel."""
        return tuple(f"{run.kernel.name}: {line}" for run in self.runs for line in run.advice)

    def run(self, name: str) -> LabRun:
        return next(r for r in self.runs if r.kernel.name == name)

    def __str__(self) -> str:
        n = self.size
        shape = f"({n}x{n})*({n}x{n})"
        lines = []
        for r in self.runs:
            time = f"{r.ms:.3f} ms" if r.ms is not None else "not timed: on the emulator"
            lines.append(r.kernel.title.format(shape, "stopped" if r.stopped else time))
        for r in self.runs[1:]:
            lines += [
                "",
                f"Verification ({r.kernel.title.split()[0]} vs shared-mem golden):",
            ]
            if not r.stopped:
                lines += [
                    f"  Errors   : {r.errors} / {n * n}",
                    f"  Max rel err: {r.max_relative_error:.6f}",
                ]
            first, *others = r.stopped or r.advice or ("right",)
            lines += folded(f"{RIGHT if r.passed else WRONG} {r.kernel.name}: {first}")
            for text in (*others, *(f"Warning: {text}" for text in r.warnings)):
                lines += folded(text)
        return "\n".join(lines)


def run(*sources: str | Path, size: int | None = None, machine: str = "auto") -> LabReport:
    """Run the lab with this `lab3.cu` (paths, or text). BuildError shows what does not compile.

    `machine` is "gpu", "emulator" or "auto". `size` is M = N = K: 1024 on a GPU, 128 on the emulator unless given, and
    a multiple of 64, as the lab's 1024 is. The two kernels may come from one source or from two.
    """
    machine = choose(machine)
    size = size or (LAB_SIZE if machine == "gpu" else EMULATOR_SIZE)
    if size % 64:
        raise ValueError(f"size {size}: the lab's tiles need a multiple of 64")
    arch = None if machine == "gpu" else DEFAULT_ARCH
    built = [(kernels.build(GOLDEN, name="gemm_tiled_smem.cu", arch=arch), GOLDEN)]
    for source in sources:
        text, name = read(source)
        built.append((kernels.build(device_code(text), name=name, arch=arch), text))

    A, B = lab_inputs(size)
    runs = []
    for kernel in KERNELS:
        sources = [(b, text) for b, text in built if find_entry(b, kernel.name)]
        if not sources:
            absent = f"there is no kernel {kernel.name}(A, B, C, M, K, N)"
            runs.append(LabRun(kernel, stopped=(absent,)))
            continue
        built_last, text = sources[-1]
        one = Kernel(_exercise(kernel), text, built_last)
        done = _launch(kernel, one, A, B, machine)
        if done.C is not None and runs:
            done, found = _verify(done, runs[0].C, A, B)
            said, warnings = list(map(words, found)), ()
            if done.trace is not None:
                case = _case(A, B, kernel)
                right = Attempt(case, case.expected, done.trace)
                said = _explained(one, right) or said
                said += _technique(kernel, done.trace, size) if said else []
                if not said:
                    said, warnings = _beyond_the_output(kernel, one, done.trace, size)
            done = replace(done, advice=tuple(said), warnings=tuple(warnings))
        runs.append(done)
    return LabReport(size, tuple(runs))


def _exercise(kernel: LabKernel) -> Exercise:
    """What the exercises' finders ask: the parameters, the solution and the suspects."""
    given = f"void {kernel.name}(const half* A, const half* B, float* C, int M, int K, int N) {{"
    return Exercise(
        kernel.name, "", 0, "", ("", ""), "", given=given, answer=SOLUTION, suspects=SUSPECTS
    )


def _explained(one: Kernel, done: Attempt) -> list[str]:
    """What made this launch stop, and what the lab's comparison cannot see: barriers that some threads skip, races."""
    trace = done.trace
    if done.error is None and not trace.hazards and not trace.uneven and done.right:
        return []
    headline = f"wrong at {done.case.label}"  # which the lab counts in its own words
    return [words(said) for said in mistake(one, [done], ()) if said != headline]


def _beyond_the_output(
    kernel: LabKernel, one: Kernel, trace, size: int
) -> tuple[list[str], list[str]]:
    """Advice and warnings for a kernel whose output is right at the lab's sizes: all equal, whatever it did to get there."""
    M, K, N = OTHER_SIZES
    A, B = (np.random.default_rng().standard_normal(s).astype(np.float16) for s in ((M, K), (K, N)))
    other = attempt(one.built, one.entry, _case(A, B, kernel))
    if said := _explained(one, other):
        return [f"right where M, K and N are equal, but not at {other.case.label}", *said], []
    said = _technique(kernel, trace, size)
    if said or not kernel.copies:
        return said, []
    warnings = []
    if not count(trace, COPIED):
        if "memcpy_async" not in one.source:
            none = "no asynchronous copy is in this kernel."
            return [f"Part B copies tiles with cuda::memcpy_async: {none}"], []
        text = ALWAYS_ASYNC.replace("{name}", one.built.name) + device_code(one.source)
        try:
            strict = kernels.build(text, name=one.built.name, arch=DEFAULT_ARCH)
        except kernels.BuildError:
            pass  # it copies in a way of its own
        else:
            warnings, held = [NARROW], replace(one, built=strict)
            done = attempt(strict, held.entry, _case(*lab_inputs(64), kernel))
            trace = done.trace
            said = _explained(held, done) if trace is not None else []
    if not said and trace is not None and not ahead(trace):
        said = [
            "Part B fetches a tile while another is multiplied: here no copy is on its way when the fragments are loaded."
        ]
    return said, warnings


def _technique(kernel: LabKernel, trace, size: int) -> list[str]:
    """What the lab asks for beside the right numbers, and this launch has not done."""
    said = []
    least, found = (size // FRAGMENT) ** 3, count(trace, "matrix multiplications of a warp")
    if found < least:
        said.append(
            f"The lab asks for tensor cores: {found} matrix multiplications of a warp (wmma::mma_sync), where {least} are needed."
        )
    if count(trace, "bytes read from shared memory") < least * FRAGMENT_BYTES:
        said.append(
            "The lab asks for tiles in shared memory: the fragments are not loaded from there."
        )
    return said


def read(source: str | Path) -> tuple[str, str]:
    """Text and name. CUDA text has more than one line; a path has one."""
    if isinstance(source, str) and "\n" in source:
        return source, "lab3.cu"
    path = Path(source)
    if not path.exists():
        path = FILES / path
    return path.read_text(encoding="utf-8"), path.name


def lab_inputs(size: int) -> tuple[np.ndarray, np.ndarray]:
    """A and B as the lab fills them: hundredths from 0.00 to 0.99, as halves. Shapes (size, size)."""
    rng = np.random.default_rng(42)
    return tuple((rng.integers(0, 100, (size, size)) / 100).astype(np.float16) for _ in range(2))


def _launch(kernel: LabKernel, one: Kernel, A, B, machine) -> LabRun:
    if machine == "emulator":
        done = attempt(one.built, one.entry, _case(A, B, kernel))
        if done.error is not None:
            return LabRun(kernel, stopped=tuple(_explained(one, done)))
        return LabRun(kernel, done.output, trace=done.trace)
    (M, K), N = A.shape, B.shape[1]
    sizes = (np.int32(M), np.int32(K), np.int32(N))
    geometry = kernel.grid(M, N), kernel.threads
    import cupy

    a, b, c = cupy.asarray(A), cupy.asarray(B), cupy.asarray(poisoned((M, N)))
    go = prepare_on_gpu(one.built, one.entry, *geometry, (a, b, c, *sizes), kernel.shared_bytes)
    go()  # the first launch loads the kernel, and is not timed
    times = [elapsed(go) for _ in range(SAMPLES)]
    return LabRun(kernel, c.get(), ms=float(np.median(times)))


def _narrow_stride(case: Case) -> np.ndarray:
    B = case.product.B
    rows, cols = np.indices(B.shape)
    place = cols % 64 // 16 * 16 + rows % 16 * 16 + cols % 16
    return case.product.A @ B[rows // 16 * 16 + place // 64, cols // 64 * 64 + place % 64]


SUSPECTS = {
    "B's fragments are loaded with a leading dimension of 16, where the tile of B is 64 wide": _narrow_stride,
}


def _verify(done: LabRun, golden: np.ndarray, A, B) -> tuple[LabRun, list[Finding]]:
    """Count errors as the lab does, and look for the cause of any."""
    missing = unwritten(done.C)
    C = np.where(missing, np.float32(0), done.C)  # the lab clears C before each launch
    error = np.abs(C - golden) / np.where(golden != 0, np.abs(golden), 1)
    bad = ~(error <= TOLERANCE)
    worst = float(np.nanmax(error)) if not np.isnan(error).all() else float("nan")
    done = replace(done, errors=int(bad.sum()), max_relative_error=worst)
    if not bad.any():
        return done, []
    return done, findings(_case(A, B, done.kernel), done.C, SUSPECTS)


def _case(A, B, kernel: LabKernel) -> Case:
    """The lab's product as a case of this kernel, with a tolerance within the lab's."""
    (M, K), N = A.shape, B.shape[1]
    wide = Product(A.astype(float), B.astype(float), np.zeros((M, N)))
    return Case(
        label=f"M={M}, K={K}, N={N}",
        args=(A, B, poisoned((M, N)), np.int32(M), np.int32(K), np.int32(N)),
        output=2,
        expected=wide.C,
        grid=kernel.grid(M, N),
        block=kernel.threads,
        tolerance=TOLERANCE / 20,
        scale=np.abs(wide.A) @ np.abs(wide.B),
        product=wide,
        shared_bytes=kernel.shared_bytes,
    )
