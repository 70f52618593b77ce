"""Blackwell kernels of others, compiled as they are and run on the emulator: `python -m measure elsewhere`.

Their code is not in this repository: options name checkouts (`--help` says whose), compiled by nvcc. A line per kernel
says what came of it: right, wrong or refused (and what was
missing), and which hazards the sanitizer reports. A published kernel is known to be right on a B200: one that is wrong or
refused shows a fault of the emulator. `--store` writes the list to `results/elsewhere.json`.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np

import emulator
from emulator import TensorMap

from . import cute_tutorial, deep_gemm_kernels, thunder_kittens
from .b200_sums import compare as b200_sums_of
from .nvcc_ptx import bf16, nvcc_version, ptx_of, wide
from .provenance import FOLDER, commit, store

STORED = FOLDER / "elsewhere.json"
SUMS = "a B200"  # in the place of a project: what a B200 itself gave

# What stands for headers of the host part, which is compiled but never run.
STUBS = {
    "cudaTypedefs.h": "#include <cuda.h>\n",
    "torch/library.h": "#pragma once\n#define TORCH_CHECK(...)\n#define TORCH_LIBRARY(...) inline void library_(Library m)\n"
    "struct Library { template <class... T> void def(T...); };\n",
    "ATen/ATen.h": "namespace at { struct Tensor { int size(int) const; void* data_ptr() const; int options() const; };\n"
    "Tensor empty(std::initializer_list<int>, int); }\n",
}
TOLERANCE = 0.01  # of the largest element: outputs of 8 bits of mantissa


@dataclass(frozen=True)
class Outcome:
    """What came of a kernel. said: right, wrong, or refused; error: of the largest element; hazards: their kinds."""

    project: str
    kernel: str
    said: str
    error: float | None = None
    hazards: tuple[str, ...] = ()
    missing: str = ""


def _outcome(project: str, kernel: str, run: Callable[[], tuple]) -> Outcome:
    """Runs one: run() gives (found, wanted, trace)."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # what the kernel prints
            found, wanted, trace = run()
    except (emulator.EmulatorError, ValueError, TypeError, RuntimeError) as problem:
        return Outcome(project, kernel, "refused", missing=str(problem).splitlines()[0])
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    kinds = tuple(sorted({hazard.kind for hazard in trace.hazards}))
    return Outcome(project, kernel, "right" if error <= TOLERANCE else "wrong", error, kinds)


# --- learn-cuda -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A kernel of learn-cuda's 02e: file, a part of its entry's name, block tile of C, launch, boxes of A and B.

    boxes of three extents are of a matrix in columns of `width` elements. A of None is passed as it is.
    """

    name: str
    file: str
    part: str
    tile: tuple[int, int]
    threads: int
    shared: int
    a_box: tuple[int, ...] | None
    b_box: tuple[int, ...] | None
    swizzle: int = 128
    blocks: int = 0  # of a persistent kernel
    profiled: bool = False  # takes the two arguments of its profiler
    turned: bool = False  # takes A and B with k as their rows
    spare: int = (
        0  # rows behind A that it reads for nothing, which a GPU's allocator happens to have
    )


def _learn_cuda_cases() -> tuple[Case, ...]:
    one, pair = (128, 256), (128, 256)
    ring = (227 * 1024 - 36) // (32768 + 16)
    whole = ring * (32768 + 16) + 36
    return (
        Case("v0", "matmul_v0.cu", "v0", (128, 128), 128, 98304, None, None),
        Case("v1a", "matmul_v1.cu", "Lb0E", one, 128, 196608, (128, 8), (256, 8), 0),
        Case("v1b", "matmul_v1.cu", "Lb1E", one, 128, 196608, (32, 128, 8), (32, 256, 8), 0),
        Case("v2a", "matmul_v2.cu", "Lb0E", one, 128, 196608, (128, 64), (256, 64)),
        Case("v2b", "matmul_v2.cu", "Lb1E", one, 128, 196608, (4, 128, 64), (4, 256, 64)),
        Case("v3", "matmul_v3.cu", "v3", one, 128, 196608, (2, 128, 64), (2, 256, 64)),
        Case("v4", "matmul_v4.cu", "v4", (128, 128), 128, 229376, (1, 128, 64), (1, 128, 64)),
        Case("v4_trans", "_matmul_v4_trans.cu", "v4", (128, 128), 128, 196608, (2, 128, 64), (2, 128, 64), turned=True),
        Case("tmem", "_matmul_tmem.cu", "tmem", (64, 128), 128, 16404, None, (1, 128, 64), spare=16),
        Case("v5", "matmul_v5.cu", "Lb0E", pair, 128, 229376, (1, 128, 64), (1, 128, 64), profiled=True),
        Case("v6", "matmul_v6.cu", "Lb0E", pair, 192, 229376, (1, 128, 64), (1, 128, 64), blocks=148, profiled=True),
        Case("v7a", "matmul_v7.cu", "Lb0ELb0E", pair, 192, whole, (1, 128, 64), (1, 128, 64), blocks=148, profiled=True),
        Case("v7c", "matmul_v7.cu", "Lb1ELb0E", pair, 192, whole, (1, 128, 64), (1, 128, 64), blocks=128, profiled=True),
    )  # fmt: skip


def _compile(folder: Path, file: str, at: Path) -> str:
    """PTX of one of the sources. RuntimeError says what the compiler said."""
    for name, text in STUBS.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(text, encoding="utf-8")
    words = ["-std=c++17", f"-I{at}"]
    for name in ("cuda_bf16.h", "tuple", "algorithm"):
        words += ["-include", name]
    return ptx_of(folder / file, at / f"{file}.ptx", *words)


def _boxed(matrix: np.ndarray, box: tuple[int, ...] | None, swizzle: int):
    if box is None:
        return matrix
    if len(box) == 3:
        rows, columns = matrix.shape
        matrix = matrix.reshape(rows, columns // box[2], box[2]).transpose(1, 0, 2)
    return TensorMap(matrix, box, format="bfloat16", swizzle=swizzle)


def learn_cuda(path: str | Path) -> Iterator[Outcome]:
    """The versions of 02e_matmul_sm100, C (M, N) = A (M, K) @ B (N, K)^T in bf16. ValueError for a path without them."""
    folder = Path(path)
    folder = folder if (folder / "matmul_v1.cu").exists() else folder / "02e_matmul_sm100"
    if not (folder / "matmul_v1.cu").exists():
        raise ValueError(
            f"{path} has no 02e_matmul_sm100: give a checkout of gau-nernst/learn-cuda"
        )
    texts: dict[str, str] = {}
    rng = np.random.default_rng(0)
    m, n, k = size = 512, 512, 512
    a, b = (bf16(rng.normal(size=(rows, k))) for rows in (m, n))
    wanted = wide(a) @ wide(b).T
    with tempfile.TemporaryDirectory() as at:
        for case in _learn_cuda_cases():

            def run(case=case):
                if case.file not in texts:
                    texts[case.file] = _compile(folder, case.file, Path(at))
                entries = re.findall(r"\.entry (\w+)", texts[case.file])
                entry = next(name for name in entries if case.part in name)
                c = np.zeros((m, n), np.uint16)
                left, right = (np.ascontiguousarray(x.T) if case.turned else x for x in (a, b))
                left = np.pad(left, ((0, case.spare), (0, 0)))
                args = [
                    _boxed(left, case.a_box, case.swizzle),
                    _boxed(right, case.b_box, case.swizzle),
                    c,
                ]
                args += [np.int32(x) for x in size]
                args += [None, np.int32(0)] if case.profiled else []
                grid = case.blocks or m // case.tile[0] * (n // case.tile[1])
                trace = emulator.Module(texts[case.file]).launch(
                    entry, grid, case.threads, args, shared_bytes=case.shared
                )
                return wide(c), wanted, trace

            yield _outcome("learn-cuda", case.name, run)


def _below(project: str, cases: Callable, *checkouts: str | Path) -> Iterator[Outcome]:
    """The kernels of a module's `cases`, compiled in a folder of their own. ValueError for a path without them."""
    with tempfile.TemporaryDirectory() as at:
        for name, run in cases(*map(Path, checkouts), Path(at)):
            yield _outcome(project, name, run)


def _by_triton() -> Iterator[Outcome]:
    """What Triton makes of products and of attention for cuda:100. ImportError without Triton."""
    from .triton_blackwell import cases

    for name, run in cases():
        yield _outcome("Triton", name, run)


def b200_sums(path: str | Path) -> Iterator[Outcome]:
    """Sums that a B200 gave, beside the emulator's. ValueError for a path without them."""
    for name, alike, count in b200_sums_of(path):
        said = "right" if alike == count else "wrong"
        yield Outcome(SUMS, name, said, missing=f"{alike} of {count} sums alike, bit for bit")


_CHECKOUTS = {
    "cutlass": partial(_below, "CUTLASS", cute_tutorial.cases),
    "deep_gemm": partial(_below, "DeepGEMM", deep_gemm_kernels.cases),
    "thunder_kittens": partial(_below, "ThunderKittens", thunder_kittens.cases),
    "learn_cuda": learn_cuda,
    "b200_sums": b200_sums,
}


def asked(triton: bool, **paths: str | None) -> Iterable[Outcome]:
    """What comes of the kernels in these checkouts (`_CHECKOUTS`), and of Triton's. ValueError where nothing is asked for."""
    given = {name: paths[name] for name in _CHECKOUTS if paths.get(name)}
    if not (given or triton):
        options = ", ".join(f"--{name.replace('_', '-')} PATH" for name in _CHECKOUTS)
        raise ValueError(f"give {options}, --triton, or several of them")
    if "deep_gemm" in given and "cutlass" not in given:
        raise ValueError("--deep-gemm PATH needs CUTLASS's headers: give --cutlass PATH too")
    headers = {"deep_gemm": (given.get("cutlass"),)}
    runs = [_CHECKOUTS[name](path, *headers.get(name, ())) for name, path in given.items()]
    return itertools.chain(*runs, _by_triton() if triton else ())


def show(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Prints a line per kernel as it comes, and returns them all."""
    shown = []
    print(f"{'project':14} {'kernel':32} {'outcome':8} {'error':>8}  hazards, or what was missing")
    for one in outcomes:
        error = "" if one.error is None else f"{one.error:.1e}"
        words = one.missing or ", ".join(one.hazards) or "none"
        print(f"{one.project:14} {one.kernel:32} {one.said:8} {error:>8}  {words}", flush=True)
        shown.append(one)
    return shown


def record(outcomes: Iterable[Outcome], triton: bool, **paths: str | None) -> Path:
    """Writes `results/elsewhere.json`: what came of each kernel, from which commits and by which compilers."""
    return store(
        STORED,
        "python -m measure elsewhere: kernels of others, as they are, on the emulator; right: within "
        f"{TOLERANCE} of the largest element of the product",
        {},
        sources={name: commit(path) for name, path in paths.items() if path},
        compilers={"nvcc": nvcc_version()} | ({"triton": metadata.version("triton")} if triton else {}),
        kernels=[asdict(one) for one in outcomes],
    )  # fmt: skip


def stored() -> dict:
    """What `record` wrote. FileNotFoundError where nothing was recorded."""
    return json.loads(STORED.read_text(encoding="utf-8"))
