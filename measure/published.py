"""Minimal kernels of ours with the access patterns of published ones, and what changes when one thing in them is changed.

`cuda/published/` holds the sources; each says which published kernel it stands for. None of them is a copy.
`python -m measure published` times all of them on a GPU, checks what they compute, repeats some under the clock that the
CUDA GEMMS post uses (managed memory, filled by the host), and writes `results/published-<gpu>.json`. Counts need no GPU:
`run` gives the emulator's trace of any case.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

import kernels
from emulator import TensorMap
from kernels.build import Build
from kernels.gemm import plan
from kernels.gpus import needed
from kernels.launch import prepare_on_gpu
from kernels.rung import Types
from kernels.settings import configuration

from .provenance import recording, store
from .timing import matrices, measure, rung_launches

FOLDER = Path(__file__).with_name("cuda") / "published"
SMALL_TILES = Path(__file__).with_name("cuda") / "small_tiles.cu"
SIZE = 4096
SAMPLES, PAUSE_S = 9, 0.05
MANAGED_SAMPLES = 5
COUNTED_ON = 80  # they copy by cp.async, which older GPUs do not have


@dataclass(frozen=True)
class Case:
    """One kernel with its macros. tile: (rows, columns) of C per block. shared: dynamic shared memory in bytes."""

    story: str
    name: str
    source: Path
    entry: str
    macros: Mapping[str, int]
    tile: tuple[int, int]
    threads: int
    types: Types
    shared: int = 0
    a_suffix: bool = False  # needs sm_90a
    managed: bool = False  # timed under the post's clock as well

    def build(self, arch: int | str = COUNTED_ON) -> Build:
        """This case compiled; for sm_90a where it needs wgmma."""
        return kernels.build(self.source, self.macros, arch="90a" if self.a_suffix else arch)

    def arguments(self, A, B, C) -> list:
        """What the kernel takes: pointers, N and K; or, where it copies by TMA, tensor maps, C and M."""
        if self.a_suffix:
            boxes = ((self.tile[0], 64), (64, 64))
            maps = [
                TensorMap(array, box, "float16", swizzle=128, promotion=256)
                for array, box in zip((A, B), boxes, strict=True)
            ]
            return [*maps, C, np.int32(A.shape[0])]
        return [A, B, C, np.int32(B.shape[1]), np.int32(A.shape[1])]

    def grid(self, M: int, N: int) -> tuple[int, int, int]:
        """Blocks for C of M x N. ValueError where the tile does not divide it."""
        rows, cols = self.tile
        if M % rows or N % cols:
            raise ValueError(f"{self.name}: {M} x {N} is not whole tiles of {rows} x {cols}")
        return N // cols, M // rows, 1


FLOAT, HALF, HALF_OUT = Types("float32"), Types("float16"), Types("float16", output="float16")


def _pipelined(
    story: str, name: str, managed: bool = False, shared: int = 0, **macros: int
) -> Case:
    tiles = macros.get("TILES", 4)
    threads = 288 if macros.get("ROLES") and macros.get("EVEN") else 256
    tile = (32 * tiles, 32 * tiles)
    source, entry = FOLDER / "pipelined.cu", "gemm_pipelined"
    return Case(story, name, source, entry, macros, tile, threads, FLOAT, shared, managed=managed)


def _coarse(
    name: str, rows: int, cols: int, managed: bool = False, shared: int = 0, **macros: int
) -> Case:
    given = {"ROWS": rows, "COLS": cols, **macros}
    source, tile = FOLDER / "coarse.cu", (32 * rows, 32 * cols)
    return Case(
        "coarse", name, source, "gemm_coarse", given, tile, 1024, FLOAT, shared, managed=managed
    )


def _halves(name: str, bytes_: int, managed: bool = False, **macros: int) -> Case:
    given = {"BYTES": bytes_, **macros}
    shared = 0 if macros.get("STATIC") else macros.get("STAGES", 4) * 2 * 64 * 64 * 2
    source, entry = FOLDER / "half_copies.cu", "gemm_half_copies"
    return Case("halves", name, source, entry, given, (64, 64), 512, HALF, shared, managed=managed)


def _sums(name: str, keep: int) -> Case:
    source, entry = FOLDER / "sums_in_memory.cu", "gemm_sums_in_memory"
    return Case("sums", name, source, entry, {"KEEP": keep}, (64, 64), 512, HALF, managed=True)


def _small(name: str, swizzled: int) -> Case:
    given = {"SWIZZLED": swizzled, "TILES": 8}
    entry, tile = "gemm_small_tiles", (256, 256)
    return Case("sums", name, SMALL_TILES, entry, given, tile, 128, HALF, managed=True)


AFTER = ("nothing after the wait", "wgmma.fence after the wait", "conversions behind a branch")


def _unfenced(zeros: int, after: int) -> Case:
    given = {"AFTER": after, "ZEROS": zeros, "SIZE": SIZE, "DEPTH": SIZE}
    shared = 4 * 128 * (128 + 128)
    return Case(
        "fence", f"{'zeros' if zeros else 'no zeros'}, {AFTER[after]}", FOLDER / "unfenced.cu",
        "gemm_unfenced", given, (128, 128), 160, HALF_OUT, shared, a_suffix=True,
    )  # fmt: skip


CASES = (
    _pipelined("argument", "all copy, 4 bytes", True, ALIGN=4),
    _pipelined("argument", "all copy, 16 bytes", ALIGN=16),
    _pipelined("argument", "all copy, 4 bytes, shared state", ALIGN=4, SHARED_STATE=1),
    _pipelined("argument", "all copy, 16 bytes, shared state", ALIGN=16, SHARED_STATE=1),
    # As many blocks as with 4 bytes: shared memory that nobody uses keeps others from the SM.
    _pipelined("argument", "all copy, 16 bytes, two blocks per SM", shared=60 * 1024, ALIGN=16),
    _pipelined("roles", "a warp copies, rows of 4 bytes", True, ROLES=1, WALK=1, ALIGN=4),
    _pipelined("roles", "a warp copies, rows of 16 bytes", ROLES=1, WALK=1, ALIGN=16),
    _pipelined("roles", "a warp copies, chunks of 4 bytes", ROLES=1, WALK=0, ALIGN=4),
    _pipelined("roles", "a warp copies, chunks of 16 bytes", ROLES=1, WALK=0, ALIGN=16),
    _pipelined("roles", "rows of 4 bytes, even rows", ROLES=1, WALK=1, ALIGN=4, EVEN=1),
    _pipelined("roles", "chunks of 16 bytes, even rows", ROLES=1, WALK=0, ALIGN=16, EVEN=1),
    _pipelined("roles", "rows of 4 bytes, sums in registers", ROLES=1, WALK=1, ALIGN=4, TURNS=1),
    _pipelined(
        "roles", "chunks of 16 bytes, sums in registers", ROLES=1, WALK=0, ALIGN=16, TURNS=1
    ),
    _pipelined(
        "roles",
        "chunks of 16 bytes, even rows, sums in registers",
        ROLES=1,
        WALK=0,
        ALIGN=16,
        EVEN=1,
        TURNS=1,
    ),
    _halves("2 bytes at a time", 2, True),
    _halves("4 bytes at a time", 4),
    _halves("8 bytes at a time", 8),
    _halves("16 bytes at a time", 16),
    _coarse("1 x 4 tiles", 1, 4, True),
    _coarse("1 x 4 tiles, one block per SM", 1, 4, shared=120 * 1024),
    _coarse("4 x 4 tiles", 4, 4, True),
    _coarse("4 x 4 tiles, __restrict__", 4, 4, PROMISE=1),
    _coarse("4 x 4 tiles, B kept", 4, 4, KEEP_B=1),
    _sums("sums in C, added every 16 of k", 0),
    _sums("sums in registers", 1),
    _small("tiles of 32 x 32", 0),
    _small("tiles of 32 x 32, swizzled", 1),
    *(_unfenced(zeros, after) for zeros in (1, 0) for after in (0, 1, 2)),
)
NAMED = {case.name: case for case in CASES}
RUNGS_OF_THE_POST = (
    "naive",
    "vectorized",
    "wmma",
)  # its kernels 1, 4 and 7, timed under its clock too


def run(case: str | Case, A: np.ndarray, B: np.ndarray, built: Build | None = None):
    """`(C, trace)` of a case on the emulator. built: another build of it, such as one of a changed source."""
    case = NAMED[case] if isinstance(case, str) else case
    M, N = A.shape[0], B.shape[1]
    C = np.zeros((M, N), case.types.output_dtype)
    arguments = case.arguments(A, B, C)
    trace = kernels.launch(
        built or case.build(),
        case.entry,
        case.grid(M, N),
        case.threads,
        arguments,
        case.shared,
        "emulator",
    )
    return C, trace


def changed(case: str, **macros: int) -> Case:
    """The case with these macros instead, such as a smaller TILES for the emulator."""
    old = NAMED[case]
    given = {**old.macros, **macros}
    if old.entry == "gemm_pipelined":
        return _pipelined(old.story, old.name, **given)
    return replace(old, macros=given)


def compile_all(arch: int | str = 90) -> int:
    """Compiles all that `record` runs into the cache of builds. Needs no GPU."""
    for case in CASES:
        case.build(arch)
    kernels.build(FOLDER / "touch.cu", arch=arch)
    for name in RUNGS_OF_THE_POST:
        plan(name, SIZE, SIZE, SIZE, **_configuration(name, arch))
    return len(CASES) + 1 + len(RUNGS_OF_THE_POST)


def _configuration(name: str, arch: int | str) -> dict:
    macros = dict(configuration(name, (SIZE,) * 3, arch).macros)
    return {"macros": macros, "built": kernels.build(name, macros, arch=arch)}


# ---- on a GPU


def record() -> Path:
    """Measures here and stores. UnsupportedGPU without a GPU."""
    here, rows = needed("timing"), []
    for story in dict.fromkeys(case.story for case in CASES):
        cases = [case for case in CASES if case.story == story]
        rows += _timed([c for c in cases if not c.a_suffix or here.arch == 90])
    return store(
        f"published-{here.slug}",
        f"times as in the ladder's file, {SAMPLES} samples and a pause of {PAUSE_S} s; wrong: outputs that differ from "
        "float64's product by more than 1e-5 of the sum of absolute products, plus 2^-24 of the product (2^-11 where the "
        f"output is float16), plus 1e-6; managed_ms: median of {MANAGED_SAMPLES} launches with all matrices in managed memory "
        "and C just filled by the host, on the host's clock around launch and synchronisation",
        size=SIZE,
        rows=rows,
        managed=_managed(),
    )


def _timed(cases: list[Case]) -> list[dict]:
    """A row for each of these cases, which share their types and are sampled in turn."""
    arch, rows = kernels.gpu().arch, []
    for types in dict.fromkeys(case.types for case in cases):
        alike = [case for case in cases if case.types == types]
        sets = matrices(types, ((SIZE, SIZE),) * 3)
        built = {case.name: case.build(arch) for case in alike}
        prepared = {case.name: launches(case, built[case.name], sets) for case in alike}
        timed = measure(prepared, samples=SAMPLES, pause_s=PAUSE_S)
        for case in alike:
            timing, report = timed[case.name], built[case.name].report
            rows.append(
                {
                    "story": case.story,
                    "kernel": case.name,
                    "macros": dict(case.macros),
                    "registers": report.registers,
                    "spills": built[case.name].spills,
                    **timing.row(5),
                    "tflops": round(timing.tflops(SIZE, SIZE, SIZE), 4),
                    **_checked(case, built[case.name]),
                }
            )
        del sets, prepared
    return rows


def launches(case: Case, built: Build, sets, size: int = SIZE) -> list:
    """Launches of a case on this machine's GPU, one for each of these sets of square matrices."""
    grid = case.grid(size, size)
    return [
        prepare_on_gpu(built, case.entry, grid, case.threads, case.arguments(*arrays), case.shared)
        for arrays in sets
    ]


def _checked(case: Case, built: Build, times: int = 3) -> dict:
    """How many of C's elements are wrong, over a few launches, and the largest error over the sum of absolute products."""
    import cupy

    A, B, C = matrices(case.types, ((SIZE, SIZE),) * 3, sets=1, seed=1)[0]
    wide = A.astype(cupy.float64), B.astype(cupy.float64)
    exact = wide[0] @ wide[1]
    scale = abs(wide[0]) @ abs(wide[1])
    rounding = 2.0**-11 if case.types.output == "float16" else 2.0**-24
    wrong, worst, zeros = [], 0.0, []
    for _ in range(times):
        C[...] = 0
        launches(case, built, [(A, B, C)])[0]()
        error = abs(C.astype(cupy.float64) - exact)
        bad = ~(error <= 1e-5 * scale + rounding * abs(exact) + 1e-6)
        wrong.append(int(bad.sum()))
        zeros.append(int((C == 0).sum()))
        worst = max(worst, float(cupy.nan_to_num(error / scale, nan=cupy.inf).max()))
    return {"outputs": SIZE * SIZE, "wrong": wrong, "zeros": zeros, "largest_error": worst}


def _managed() -> list[dict]:
    """Kernels under both clocks: events around a launch on device memory, and the host's around one on managed memory
    after the host has filled C. The first row only reads and writes C.
    """
    import cupy

    arch, rows = kernels.gpu().arch, []
    touch = kernels.build(FOLDER / "touch.cu", arch=arch)
    blocks = SIZE * SIZE // 256

    def touching(_A, _B, C):
        return prepare_on_gpu(touch, "touch", blocks, 256, [C, np.int64(C.size)])

    work = {"touch C only": (FLOAT, touching)}
    for name in RUNGS_OF_THE_POST:
        how = plan(name, SIZE, SIZE, SIZE, **_configuration(name, arch))
        work[name] = how.types, lambda A, B, C, how=how: rung_launches(how, [(A, B, C)])[0]
    for case in CASES:
        if case.managed:
            built = case.build(arch)
            work[case.name] = (
                case.types,
                lambda A, B, C, c=case, b=built: launches(c, b, [(A, B, C)])[0],
            )
    for name, (types, prepare) in work.items():
        arrays = matrices(types, ((SIZE, SIZE),) * 3, sets=1)[0]
        alone = measure({name: [prepare(*arrays)]}, samples=5, pause_s=0.02)[name].median
        shared = []
        for array in arrays:
            memory = cupy.cuda.malloc_managed(array.nbytes)
            shared.append(cupy.ndarray(array.shape, array.dtype, memory))
            shared[-1][...] = array
        launch, times = prepare(*shared), []
        for _ in range(MANAGED_SAMPLES + 1):
            cupy.cuda.get_current_stream().synchronize()
            ctypes.memset(
                shared[2].data.ptr, 0, shared[2].nbytes
            )  # its pages lie in the host's memory
            start = time.perf_counter()
            launch()
            cupy.cuda.get_current_stream().synchronize()
            times.append(1e3 * (time.perf_counter() - start))
        row = {"kernel": name, "device_ms": round(alone, 4)}
        row["managed_ms"] = round(statistics.median(times[1:]), 4)  # the first moves A and B too
        row["managed_first_ms"] = round(times[0], 4)
        rows.append(row)
        del arrays, shared, launch
    return rows


# ---- what needs none


@cache
def stored() -> Mapping | None:
    return recording("published")


def rows(*names: str) -> Iterator[Mapping]:
    """The recorded rows of these cases, in this order; nothing where nothing was recorded."""
    found = {row["kernel"]: row for row in (stored() or {"rows": ()})["rows"]}
    return (found[name] for name in names if name in found)
