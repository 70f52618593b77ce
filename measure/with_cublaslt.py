"""The best that cuBLASLt offers beside the book's fastest rung and `cublasGemmEx`: `python -m measure cublaslt`.

`cublasGemmEx` takes the algorithm that the library expects to be fastest. Here every algorithm of
`cublasLtMatmulAlgoGetHeuristic`'s list is timed, in all four layouts of A and B, and the fastest runs by turns with
the others, in a stream and as a CUDA graph. On a GPU it stores `results/cublaslt-<gpu>.json`. The numbers of the
enumerations are those of cublasLt.h, 13.1.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from kernels.accuracy import accuracy
from kernels.cublas import COMPUTE_TYPE, CUDA_TYPE, KEEP, TRANSPOSE
from kernels.errors import UnsupportedGPU
from kernels.gemm import plan
from kernels.gpus import needed
from kernels.rung import Types
from kernels.rungs import find
from kernels.settings import types_of

from .progress import aside, progress
from .provenance import FOLDER, describe, store
from .row import CUBLAS_TYPES, release
from .timing import METHOD, Launch, Timing, cublas_launches, matrices, measure, rung_launches

HALVES = tuple(types for types in CUBLAS_TYPES if types.inputs in ("float16", "bfloat16"))
SQUARES = tuple((n, n, n) for n in (1024, 2048, 4096, 8192))
OTHERS = (
    (16, 8192, 8192),
    (64, 8192, 8192),
    (128, 8192, 8192),
    (4096, 4096, 128),
    (256, 256, 65536),
)
# Which rungs may be the fastest of a type: each is looked at, the fastest is timed.
RUNGS = {
    "float16": ("wgmma_pipelined", "wgmma_persistent", "wgmma_cluster", "wgmma_split"),
    "bfloat16": ("wgmma_pipelined", "wgmma_persistent", "wgmma_cluster", "wgmma_split"),
    "tf32": ("mma_tf32", "wgmma_fp8"),
    "float32": ("warp_tiled",),
}
ASKED = 64  # algorithms per layout, at most: the list ends before
WORKSPACE = 64 << 20  # bytes that an algorithm may use: twice what NVIDIA recommends for Hopper
LOOK_MS = 2.0  # of launches per algorithm
FINALISTS = 4  # of all layouts, timed by turns before the best is chosen
GRAPH_MS = 0.4  # of launches in one graph
TRANSA, TRANSB = 3, 4  # cublasLtMatmulDescAttributes_t
WORKSPACE_BYTES = 1  # cublasLtMatmulPreferenceAttributes_t
SCALE_TYPE = 0  # CUDA_R_32F


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


@dataclass(frozen=True)
class Algorithm:
    """One entry of the library's list: the layout it is for (what is contiguous in A and in B), its place there, counted
    from 0, and the entry itself.
    """

    layout: tuple[str, str]
    place: int
    entry: Heuristic


@cache
def _library() -> ctypes.CDLL:
    """The cuBLASLt that this process's cuBLAS has loaded already, so that both are of one version."""
    from cupy.cuda import device

    device.get_cublas_handle()
    loaded = {
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        if "libcublasLt.so" in line
    }
    if len(loaded) != 1:
        raise UnsupportedGPU(f"one libcublasLt.so beside cuBLAS is needed; found {sorted(loaded)}")
    return ctypes.CDLL(loaded.pop())


def _call(name: str, *arguments) -> None:
    if status := getattr(_library(), name)(*arguments):
        raise RuntimeError(f"{name} failed: cublasStatus_t {status}")


@cache
def _handle() -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    _call("cublasLtCreate", ctypes.byref(handle))
    return handle


class Problem:
    """C = A B of row-major matrices of one layout, as cuBLASLt wants it: C^T = B^T A^T, column-major."""

    def __init__(self, types: Types, size: tuple[int, int, int], layout: tuple[str, str]):
        (M, N, K), (a, b) = size, layout
        self.description = ctypes.c_void_p()
        _call(
            "cublasLtMatmulDescCreate",
            ctypes.byref(self.description),
            COMPUTE_TYPE[types.inputs],
            SCALE_TYPE,
        )
        for attribute, kept in ((TRANSA, b == "N"), (TRANSB, a == "K")):
            value = ctypes.c_int(KEEP if kept else TRANSPOSE)
            _set("cublasLtMatmulDescSetAttribute", self.description, attribute, value)
        read, written = CUDA_TYPE[types.inputs], CUDA_TYPE[types.output]
        self.first = _layout(read, *((N, K) if b == "N" else (K, N)))
        self.second = _layout(read, *((K, M) if a == "K" else (M, K)))
        self.result = _layout(written, N, M)

    def algorithms(self) -> list[Heuristic]:
        """The library's list, what it expects to be fastest first."""
        preference = ctypes.c_void_p()
        _call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
        limit = ctypes.c_size_t(WORKSPACE)
        _set("cublasLtMatmulPreferenceSetAttribute", preference, WORKSPACE_BYTES, limit)
        found, count = (Heuristic * ASKED)(), ctypes.c_int()
        _call("cublasLtMatmulAlgoGetHeuristic", _handle(), self.description, self.first, self.second, self.result, self.result,
              preference, ASKED, found, ctypes.byref(count))  # fmt: skip
        _call("cublasLtMatmulPreferenceDestroy", preference)
        return [entry for entry in found[: count.value] if entry.state == 0]

    def launch(self, entry: Heuristic, A, B, C, workspace) -> Launch:
        """A function that runs the product on CuPy's current stream and returns at once."""
        import cupy

        one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        given = (
            _handle(), self.description, ctypes.byref(one), _address(B), self.first, _address(A), self.second,
            ctypes.byref(zero), _address(C), self.result, _address(C), self.result, ctypes.byref(entry),
            _address(workspace), ctypes.c_size_t(WORKSPACE),
        )  # fmt: skip

        def run(keep=(self, one, zero, entry, A, B, C, workspace)) -> None:
            _call("cublasLtMatmul", *given, ctypes.c_void_p(cupy.cuda.get_current_stream().ptr))

        return run


def _set(name: str, of: ctypes.c_void_p, attribute: int, value) -> None:
    _call(name, of, attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))


def _layout(kind: int, rows: int, columns: int) -> ctypes.c_void_p:
    """A column-major matrix without gaps."""
    made = ctypes.c_void_p()
    extents = ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)
    _call("cublasLtMatrixLayoutCreate", ctypes.byref(made), kind, *extents)
    return made


def _address(array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.data.ptr)


def turned(A, B, C, layout: tuple[str, str]) -> tuple:
    """The same memory as matrices of that layout: random numbers are random in either."""
    (M, K), N = A.shape, B.shape[1]
    return (
        A.reshape((M, K) if layout[0] == "K" else (K, M)),
        B.reshape((K, N) if layout[1] == "N" else (N, K)),
        C,
    )


def best(
    types: Types, size: tuple[int, int, int], sets: Sequence[tuple], workspace
) -> tuple[Algorithm, int]:
    """The fastest algorithm of all layouts, and how many were tried: each is looked at, the first ones of that run by turns."""
    looks = []
    for layout in product("KM", "NK"):
        problem = Problem(types, size, layout)
        for place, entry in enumerate(problem.algorithms()):
            launches = [problem.launch(entry, *turned(*one, layout), workspace) for one in sets]
            looks.append((look(launches), Algorithm(layout, place, entry), launches))
    looks.sort(key=lambda look: look[0])
    first = {str(number): launches for number, (_, _, launches) in enumerate(looks[:FINALISTS])}
    timings = measure(first, 7)
    chosen = min(timings, key=lambda name: timings[name].median)
    return looks[int(chosen)][1], len(looks)


def look(launches: Sequence[Launch]) -> float:
    """ms of one launch, the least of three short groups."""
    import cupy

    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    launches[0]()
    taken, count = [], 1
    for _ in range(4):
        start.record()
        for number in range(count):
            launches[number % len(launches)]()
        end.record()
        end.synchronize()
        each = cupy.cuda.get_elapsed_time(start, end) / count
        taken.append(each)
        count = max(1, min(50, math.ceil(LOOK_MS / 3 / each)))
    return min(taken[1:])


def _graph(launches: Sequence[Launch], ms: float) -> tuple[list[Launch], int]:
    """The launches as one CUDA graph, one after another, and how many products it holds."""
    import cupy

    count = max(1, math.ceil(GRAPH_MS / ms))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        for number in range(count):
            launches[number % len(launches)]()
        graph = stream.end_capture()
    return [lambda: graph.launch(cupy.cuda.get_current_stream())], count


def fastest_rung(
    types: Types, size: tuple[int, int, int], sets: Sequence[tuple]
) -> tuple[str, list[Launch], dict]:
    """The fastest rung of these types at this size, each at its own setting for it."""
    found = {}
    for name in RUNGS[types.inputs]:
        rung = find(name)
        for macros, made in types_of(rung):
            how = plan(rung, *size, macros) if made == types else None
            if how is None or how.padded != how.size:
                continue
            given = [turned(*one, (rung.a_major, rung.b_major)) for one in sets]
            found[name] = (rung_launches(how, given), dict(how.macros))
    if not found:
        raise ValueError(f"no rung has {types}")
    looks = measure({name: launches for name, (launches, _) in found.items()}, 5)
    name = min(looks, key=lambda each: looks[each].median)
    return name, *found[name]


def time_one(types: Types, size: tuple[int, int, int]) -> list[dict]:
    """Two rows: in a stream our fastest rung, gemmEx in row-major layout, cuBLASLt's best; in a graph all but gemmEx."""
    import cupy

    M, N, K = size
    sets = matrices(types, ((M, K), (K, N), (M, N)))
    workspace = cupy.empty(WORKSPACE, cupy.uint8)
    chosen, tried = best(types, size, sets, workspace)
    problem = Problem(types, size, chosen.layout)
    name, ours, macros = fastest_rung(types, size, sets)
    competitors = {
        "ours": ours,
        "gemmEx": cublas_launches(sets, types),
        "cublasLt": [
            problem.launch(chosen.entry, *turned(*one, chosen.layout), workspace) for one in sets
        ],
    }
    rung = find(name)
    layouts = {
        "ours": (rung.a_major, rung.b_major),
        "gemmEx": ("K", "N"),
        "cublasLt": chosen.layout,
    }
    wrong = {
        who: of_bound(launches, sets[0], layouts[who], types, f"{who} {name} {types} {size}")
        for who, launches in competitors.items()
    }
    about = {"m": M, "n": N, "k": K, "inputs": types.inputs, "output": types.output, "rung": name, "config": macros,
             "layout": "A {}-major, B {}-major".format(*chosen.layout), "place": chosen.place, "tried": tried,
             "workspace_bytes": chosen.entry.workspace, "of_bound": wrong}  # fmt: skip
    timings = measure(competitors)
    times = {who: microseconds(timing) for who, timing in timings.items()}
    rows = [about | {"mode": "stream"} | times]
    graphs, counts = {}, {}
    for who, launches in competitors.items():
        if who == "gemmEx":  # CuPy does not capture calls of cuBLAS
            continue
        graphs[who], counts[who] = _graph(launches, timings[who].median)
    times = {who: microseconds(timing, counts[who]) for who, timing in measure(graphs).items()}
    rows.append(about | {"mode": "graph"} | times)
    return rows


def microseconds(timing: Timing, count: int = 1) -> dict[str, float]:
    """Of one product: the median, the least and the most of the samples. count: products that one launch held."""
    found = {"us": timing.median, "us_min": min(timing.samples), "us_max": max(timing.samples)}
    return {name: round(1e3 * ms / count, 3) for name, ms in found.items()}


def of_bound(
    launches: Sequence[Launch], one: tuple, layout: Sequence[str], types: Types, name: str
) -> float:
    """Largest error over the bound of `kernels.accuracy`, after a second launch: what a first one leaves must not matter.
    layout: what is contiguous in A, in B and, where it is not N, in C. RuntimeError where the result is wrong.
    """
    import cupy
    import numpy as np

    A, B, C = one
    for _ in range(2):
        C.fill(np.iinfo(C.dtype).max if C.dtype.kind == "u" else np.nan)
        launches[0]()
    cupy.cuda.get_current_stream().synchronize()
    a, b, _ = turned(A, B, C, layout[:2])
    a, b = a.T if layout[0] == "M" else a, b.T if layout[1] == "K" else b
    c = C.reshape(C.shape[::-1]).T if "M" in layout[2:] else C
    seen = accuracy(c, a, b, None, 1.0, 0.0, types)
    release()
    if not seen.of_bound <= 1:
        raise RuntimeError(f"{name}: {seen}")
    return round(seen.of_bound, 3)


def record() -> Path:
    """Time all and store after each row. UnsupportedGPU without a GPU."""
    here = needed("this")
    first = [(n, n, n) for n in (4096, 8192, 1024, 2048)]
    work = [(types, size) for size in (*first, *OTHERS) for types in HALVES]
    work += [(Types(inputs), size) for size in SQUARES for inputs in ("tf32", "float32")]
    rows, path = [], FOLDER / f"cublaslt-{here.slug}.json"
    for number, (types, size) in enumerate(work):
        progress(number, len(work), f"{types} {size}")
        try:
            rows += time_one(types, size)
        except (RuntimeError, ValueError) as error:
            aside(f"{types} {size}: skipped, {error}")
            continue
        finally:
            release()
        store(path, METHOD, describe(), rows=rows)
        print(_line(rows[-2:]), flush=True)
    return path


def _line(rows: Sequence[dict]) -> str:
    """A problem's two rows in one line: us in a stream | in a graph."""
    row = rows[0]
    times = "  ".join(
        f"{who} " + "|".join(f"{r[who]['us']:.1f}" for r in rows if who in r)
        for who in ("ours", "gemmEx", "cublasLt")
    )
    problem = f"{row['m']} x {row['n']} x {row['k']} {row['inputs']} to {row['output']}"
    return f"{problem}: {times}  {row['rung']}  {row['layout']}  {row['place']} of {row['tried']}"
