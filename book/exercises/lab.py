"""The ECE 60827 lab (Purdue University), whole: run a student's `lab3.cu` as it is, on a GPU or without one.

The lab computes C = A @ B, half in and float out, at 1024 cubed, by three kernels: `gemm_tiled_smem`, which is given and
serves as golden result, `gemm_wmma_smem` (part A) and `gemm_wmma_async` (part B), which the student writes. On a GPU the
three are timed at that size. On the emulator the same kernels run with the same launch configuration at a smaller size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import kernels
from emulator import errors
from kernels.build import DEFAULT_ARCH
from kernels.launch import prepare_on_gpu
from kernels.machine import choose

from .cases import ceil_div, poisoned, unwritten
from .diagnose import findings
from .exercise import FOLDER, Case, Product
from .includes import INCLUDE, for_kernels
from .judge import STOPPED, explain_error, explain_hazards, try_launch

LAB_SIZE, EMULATOR_SIZE = 1024, 128
TOLERANCE = 1e-2
SAMPLES = 20  # timed launches, of which the median counts
FRAGMENT = 16
HALF_BYTES = 2

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


@dataclass(frozen=True)
class LabKernel:
    """One of the lab's three kernels: its launch configuration, and how the lab's output names it."""

    name: str
    title: str
    verified_as: str
    threads: tuple[int, ...]
    tile: tuple[int, int]
    shared_bytes: int

    def grid(self, M: int, N: int) -> tuple[int, int]:
        """One block per tile of C, x along N."""
        return ceil_div(N, self.tile[1]), ceil_div(M, self.tile[0])


def _shared(rows: int, buffers: int) -> int:
    """Bytes for `buffers` tiles of A (rows x 16) and of B (16 x 64)."""
    return buffers * (rows * FRAGMENT + FRAGMENT * 4 * FRAGMENT) * HALF_BYTES


KERNELS = (
    LabKernel("gemm_tiled_smem", "Shared-mem GEMM {}:  {}", "", (16, 16), (16, 16), 0),
    LabKernel(
        "gemm_wmma_smem",
        "WMMA+smem GEMM {}:    {}",
        "WMMA+smem",
        (128,),
        (16, 64),
        _shared(16, 1),
    ),
    LabKernel(
        "gemm_wmma_async",
        "WMMA+async GEMM {}:   {}",
        "WMMA+async",
        (128,),
        (32, 64),
        _shared(32, 2),
    ),
)


@dataclass(frozen=True)
class LabRun:
    """What one kernel did. `ms` is None on the emulator, `trace` None on a GPU; `stopped` says why there is no C."""

    kernel: LabKernel
    C: np.ndarray | None = field(default=None, repr=False)
    ms: float | None = None
    trace: object = field(default=None, repr=False)
    errors: int = 0
    max_relative_error: float = 0.0
    stopped: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabReport:
    """The whole lab. Printing it gives the lab's own output, then what the emulator has to say."""

    size: int
    runs: tuple[LabRun, ...]
    advice: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Zero errors in both of the student's kernels, and nothing undefined on the way."""
        return not self.advice and all(not r.errors and not r.stopped for r in self.runs)

    def run(self, name: str) -> LabRun:
        """The run of one kernel."""
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
                f"Verification ({r.kernel.verified_as} vs shared-mem golden):",
            ]
            lines += [f"  {text}" for text in r.stopped] or [
                f"  Errors   : {r.errors} / {n * n}",
                f"  Max rel err: {r.max_relative_error:.6f}",
            ]
        if self.advice:
            lines += ["", *self.advice]
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
        text, name = _read(source)
        built.append((kernels.build(device_code(text), name=name, arch=arch), text))

    A, B = lab_inputs(size)
    runs, advice = [], []
    for kernel in KERNELS:
        found = [(b, entry, text) for b, text in built if (entry := find_entry(b, kernel.name))]
        if not found:
            runs.append(
                LabRun(
                    kernel,
                    stopped=(f"there is no kernel {kernel.name}(A, B, C, M, K, N)",),
                )
            )
            continue
        done = _launch(kernel, *found[-1], A, B, machine)
        if done.C is not None and runs:
            done, said = _verify(done, runs[0].C, A, B)
            if done.trace is not None and done.trace.hazards:
                b, _, text = found[-1]
                headline, *lines = explain_hazards(done.trace, text, b.name)
                said = [f"{kernel.name}: {headline}", *(f"  {line}" for line in lines)]
            advice += said
        runs.append(done)
    return LabReport(size, tuple(runs), tuple(advice))


def _read(source: str | Path) -> tuple[str, str]:
    """Text and name. CUDA text has more than one line; a path has one."""
    if isinstance(source, str) and "\n" in source:
        return source, "lab3.cu"
    path = Path(source)
    if not path.exists():
        path = FOLDER / "cuda" / path
    return path.read_text(), path.name


def lab_inputs(size: int) -> tuple[np.ndarray, np.ndarray]:
    """A and B as the lab fills them: hundredths from 0.00 to 0.99, as halves. Shapes (size, size)."""
    rng = np.random.default_rng(42)
    return tuple((rng.integers(0, 100, (size, size)) / 100).astype(np.float16) for _ in range(2))


def find_entry(built: kernels.Build, name: str) -> str | None:
    """The entry point of this name, plain or as C++ mangles it. (A, B, C, M, K, N): two const half*, float*, three int."""
    mangled = f"_Z{len(name)}{name}PK6__halfS1_Pfiii"
    return next((entry for entry in (mangled, name) if entry in built.entries), None)


_COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
_DEVICE_WORDS = re.compile(
    r"__global__|__device__|__constant__|\b(?:constexpr|struct|class|union|enum|namespace|using|typedef|template)\b"
)


def device_code(text: str) -> str:
    """The same file with host functions and host includes blanked out: line numbers stay what they were.

    The compiler for kernels takes no host code, so `main` and its helpers must go; the kernels are left as they are.
    """
    text = INCLUDE.sub(lambda m: m[0] if for_kernels(m[1]) else "", text)
    plain = _COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    plain = re.sub(
        r"^[ \t]*#(?:\\\n|[^\n])*",
        lambda m: re.sub(r"[^\n]", " ", m[0]),
        plain,
        flags=re.MULTILINE,
    )
    pieces, start, depth = [], 0, 0
    for at, mark in enumerate(plain):
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
        if (mark == "}" and depth == 0) or (mark == ";" and depth == 0):
            pieces.append((start, at + 1))
            start = at + 1
    kept = []
    for begin, end in pieces:
        code = plain[begin:end]
        head = code.split("{")[0]
        is_function = "{" in code and "(" in head
        if is_function and not _DEVICE_WORDS.search(head):
            kept.append(
                re.sub(r"[^\n]", " ", text[begin:end])
                if "#" not in text[begin:end]
                else _directives(text[begin:end])
            )
        else:
            kept.append(text[begin:end])
    kept.append(text[start:])
    return "".join(kept)


def _directives(piece: str) -> str:
    """Only the preprocessor lines of a piece."""
    lines, going = [], False
    for line in piece.split("\n"):
        keep = going or line.lstrip().startswith("#")
        going = keep and line.endswith("\\")
        lines.append(line if keep else "")
    return "\n".join(lines)


def _launch(kernel: LabKernel, built, entry, text, A, B, machine) -> LabRun:
    M, K = A.shape
    N = B.shape[1]
    sizes = (np.int32(M), np.int32(K), np.int32(N))
    geometry = (kernel.grid(M, N), kernel.threads)
    if machine == "emulator":
        C = poisoned((M, N))
        try:
            trace = try_launch(built, entry, *geometry, (A, B, C, *sizes), kernel.shared_bytes)
        except STOPPED as error:
            return LabRun(kernel, stopped=explain_error(error, text, built.name))
        except errors.Unsupported as error:
            return LabRun(kernel, stopped=(str(error),))
        return LabRun(kernel, C, trace=trace)
    import cupy

    a, b, c = cupy.asarray(A), cupy.asarray(B), cupy.asarray(poisoned((M, N)))
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    go = prepare_on_gpu(built, entry, *geometry, (a, b, c, *sizes), kernel.shared_bytes)
    go()  # the first launch loads the kernel, and is not timed
    times = []
    for _ in range(SAMPLES):
        start.record()
        go()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop))
    return LabRun(kernel, c.get(), ms=float(np.median(times)))


def _narrow_stride(case: Case) -> np.ndarray:
    """The product if fragments of B are loaded from its 16 x 64 tile with a leading dimension of 16."""
    B = case.product.B
    rows, cols = np.indices(B.shape)
    place = cols % 64 // 16 * 16 + rows % 16 * 16 + cols % 16
    return case.product.A @ B[rows // 16 * 16 + place // 64, cols // 64 * 64 + place % 64]


SUSPECTS = {
    "B's fragments are loaded with a leading dimension of 16, where the tile of B is 64 wide": _narrow_stride,
}


def _verify(done: LabRun, golden: np.ndarray, A, B) -> tuple[LabRun, list[str]]:
    """Count errors as the lab does, and look for the cause of any."""
    missing = unwritten(done.C)
    C = np.where(missing, np.float32(0), done.C)  # the lab clears C before each launch
    error = np.abs(C - golden) / np.where(golden != 0, np.abs(golden), 1)
    bad = ~(error <= TOLERANCE)
    worst = float(np.nanmax(error)) if not np.isnan(error).all() else float("nan")
    done = replace(done, errors=int(bad.sum()), max_relative_error=worst)
    if not bad.any():
        return done, []
    wide = Product(A.astype(float), B.astype(float), np.zeros(golden.shape))
    case = Case("", (), 2, wide.C, (), (), TOLERANCE / 20, np.abs(wide.C), wide)
    return done, [f"{done.kernel.name}: {said}" for said in findings(case, done.C, SUSPECTS)]
