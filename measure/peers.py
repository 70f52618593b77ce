"""Others' kernels for Hopper beside the fastest rung and cuBLASLt's best, in one run: fast.cu, CUTLASS, DeepGEMM, Triton.

    python -m measure peers FOLDER --compile SOURCES     # anywhere with nvcc: SOURCES has fast.cu, cutlass, DeepGEMM
    python -m measure peers FOLDER                       # on a GPU with PyTorch and Triton

Their sources are not part of this repository: SOURCES holds checkouts of pranjalssh/fast.cu, NVIDIA/cutlass and
deepseek-ai/DeepGEMM, of which `measure/cuda/peers` makes shared libraries in FOLDER, each behind three C functions.
`results/peers-<gpu>.json` keeps the times. bfloat16 in and out, float32 sums; each in the layout it is written for.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kernels.alone import compiler
from kernels.errors import UnsupportedGPU
from kernels.gpus import gpu
from kernels.rung import Types
from kernels.rungs import find
from kernels.table import table

from .progress import progress
from .provenance import commit, describe, store
from .row import release
from .timing import METHOD, SAMPLES, Launch, cublas_launches, matrices, measure
from .with_cublaslt import (
    WORKSPACE,
    Problem,
    best,
    fastest_rung,
    look,
    microseconds,
    of_bound,
    turned,
)
from .with_triton import KERNELS, available

TYPES = Types("bfloat16", output="bfloat16")
SIZES = (4096, 8192)
FINALISTS, FEW = 8, 9  # of a competitor's settings: how many are timed, and by how many samples
FOLDER_OF_WRAPPERS = Path(__file__).parent / "cuda" / "peers"
TARGET = ["-gencode", "arch=compute_90a,code=sm_90a"]
WORDS = ["-O3", "-DNDEBUG", "-w", "-shared", "-Xcompiler", "-fPIC", "--expt-relaxed-constexpr"]
MADE_OF = "sources.json"  # beside the libraries: of which commits they were made


@dataclass(frozen=True)
class Peer:
    """A build of somebody's kernel: whose checkout, the wrapper, nvcc's words with the checkout's folders to include, what
    is contiguous in A, B and C, and the setting that the build has.
    """

    name: str
    checkout: str
    wrapper: str
    words: tuple[str, ...]
    include: tuple[str, ...]
    layout: tuple[str, str, str] = ("K", "N", "N")
    setting: str = ""


def _cutlass(
    pingpong: bool, tile: tuple[int, int], cluster: tuple[int, int], b: str, stream_k: bool = False
) -> Peer:
    sizes = ("TILE_M", "TILE_N", "CLUSTER_M", "CLUSTER_N")
    words = [f"-D{name}={value}" for name, value in zip(sizes, (*tile, *cluster), strict=True)]
    words += [f"-DPINGPONG={pingpong:d}", f"-DB_BY_K={b == 'K':d}", f"-DSTREAM_K={stream_k:d}"]
    return Peer(
        "CUTLASS ping-pong" if pingpong else "CUTLASS",
        "cutlass",
        "cutlass.cu",
        ("-std=c++17", *words),
        ("cutlass/include", "cutlass/tools/util/include"),
        ("K", b, "N"),
        f"{tile[0]} x {tile[1]} x 64, {cluster[0]} x {cluster[1]}{', stream-K' if stream_k else ''}",
    )


# Two warpgroups on halves of a tile, or each on a tile of its own, with every pair of blocks that may share a copy.
_CUTLASS = tuple(
    _cutlass(pingpong, tile, cluster, b)
    for pingpong, tiles in (
        (False, ((128, 256), (256, 128), (128, 128))),
        (True, ((64, 256), (128, 128), (64, 128))),
    )
    for tile in tiles
    for cluster in ((2, 1), (1, 2), (1, 1))
    for b in "NK"
) + tuple(
    _cutlass(False, tile, cluster, b, stream_k=True)
    for tile, cluster in (((128, 256), (2, 1)), ((256, 128), (1, 2)))
    for b in "NK"
)

PEERS = (
    Peer("fast.cu", "fast.cu", "fast_cu.cu", ("-std=c++17", "--use_fast_math"), ("fast.cu",), ("K", "K", "M")),
    *_CUTLASS,
    Peer("DeepGEMM", "DeepGEMM", "deep_gemm.cu", ("-std=c++20",),
         ("DeepGEMM/deep_gemm/include", "cutlass/include"), ("K", "K", "N")),
)  # fmt: skip


def library(folder: Path, peer: Peer) -> Path:
    """Named by what it was built of: another list of builds does not find it."""
    made_of = " ".join([peer.name, *peer.words])
    return folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', made_of)}.so"


def build(folder: Path, sources: Path) -> None:
    """Compile every peer of the checkouts in `sources` into `folder`. RuntimeError says what nvcc said, or what is missing."""
    nvcc = compiler()
    if not nvcc:
        raise RuntimeError("no nvcc: it comes with CUDA, or with the package nvidia-cuda-nvcc")
    folder.mkdir(parents=True, exist_ok=True)
    for peer in PEERS:
        if not (sources / peer.checkout).is_dir():
            raise RuntimeError(f"no checkout of {peer.name}: {sources / peer.checkout}")

    def make(peer: Peer) -> None:
        includes = [f"-I{sources / place}" for place in peer.include]
        done = subprocess.run(
            [*nvcc, *WORDS, *TARGET, *peer.words, *includes, str(FOLDER_OF_WRAPPERS / peer.wrapper),
             "-o", str(library(folder, peer))], capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{peer.name}, {peer.setting}: {done.stderr.strip()[:2000]}")

    with ThreadPoolExecutor(os.cpu_count()) as together:
        list(together.map(make, PEERS))
    made = {peer.name: commit(sources / peer.checkout) for peer in PEERS}
    version = subprocess.run([*nvcc, "--version"], capture_output=True, text=True, check=True)
    found = {"commits": made, "nvcc": version.stdout.strip().splitlines()[-1].strip()}
    (folder / MADE_OF).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def compiled(folder: Path, peer: Peer, sets: Sequence[tuple]) -> Iterator[tuple[str, list[Launch]]]:
    """A peer's settings, and its launches on each set of matrices (m x k, k x n, m x n). ValueError where it refuses."""
    import cupy

    # Where the wrappers find the driver's functions.
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    loaded = ctypes.CDLL(str(library(folder, peer)))
    loaded.peer_setting.restype, loaded.peer_plan.restype = ctypes.c_char_p, ctypes.c_void_p
    number = 0
    while words := loaded.peer_setting(number):
        launches = []
        for A, B, C in sets:
            pointers = (ctypes.c_void_p(one.data.ptr) for one in (A, B, C))
            extents = (*C.shape, A.shape[1])
            plan = loaded.peer_plan(number, *pointers, *extents)
            if plan is None:
                raise ValueError(f"{peer.name} does not take {extents}")
            launches.append(_launch(peer, loaded.peer_run, plan, cupy.cuda.get_current_stream))
        yield ", ".join(filter(None, (peer.setting, words.decode()))), launches
        number += 1


def _launch(peer: Peer, run: Callable, plan: int, stream: Callable) -> Launch:
    def launch() -> None:
        if status := run(ctypes.c_void_p(plan), ctypes.c_void_p(stream().ptr)):
            raise RuntimeError(f"{peer.name}: error {status} of its launch")

    return launch


def triton(sets: Sequence[tuple]) -> Iterator[tuple[str, str, list[Launch]]]:
    """Triton's kernels at every setting of `with_triton`: kernel, setting, launches."""
    for name, (launches_of, settings) in KERNELS.items():
        for setting in settings:
            words = ", ".join(f"{key} {value}" for key, value in setting.items())
            yield name, words, launches_of(sets, setting)


@dataclass(frozen=True)
class Choice:
    """The setting of a competitor that is timed, what is contiguous in A, B and C, its launches, and of how many it is."""

    setting: str
    layout: tuple[str, str, str]
    launches: list[Launch]
    tried: int


def found(folder: Path, sets: Sequence[tuple]) -> dict[str, Choice]:
    """Of each competitor the fastest setting: of the FINALISTS that a quick look finds fastest, as the recording times them."""
    looks: dict[str, list] = {}
    for peer in PEERS:
        try:
            for words, launches in compiled(folder, peer, sets):
                tried = (look(launches), words, peer.layout, launches)
                looks.setdefault(peer.name, []).append(tried)
        except ValueError as refusal:
            print(refusal)
    for name, words, launches in triton(sets):
        try:
            looks.setdefault(name, []).append((look(launches), words, ("K", "N", "N"), launches))
        except Exception as refusal:  # out of shared memory, say: its types differ by version
            print(f"{name}, {words}: {type(refusal).__name__}")
    chosen = {}
    for name, tried in looks.items():
        finalists = sorted(tried, key=lambda one: one[0])[:FINALISTS]
        timings = measure({str(at): one[3] for at, one in enumerate(finalists)}, FEW)
        fastest = min(range(len(finalists)), key=lambda at: timings[str(at)].median)
        chosen[name] = Choice(*finalists[fastest][1:], len(tried))
    return chosen


def time_one(folder: Path, size: int) -> list[dict]:
    """A row for each competitor on squares of this size, after a check of its result. RuntimeError where one is wrong."""
    import cupy

    shape = (size,) * 3
    sets = matrices(TYPES, ((size, size),) * 3)
    workspace = cupy.empty(WORKSPACE, cupy.uint8)
    entry, tried = best(TYPES, shape, sets, workspace)
    problem = Problem(TYPES, shape, entry.layout)
    rung, ours, macros = fastest_rung(TYPES, shape, sets)
    chosen = found(folder, sets)
    chosen[rung] = Choice(
        ", ".join(f"{k} {v}" for k, v in macros.items()),
        (find(rung).a_major, find(rung).b_major, "N"),
        ours,
        1,
    )
    chosen["cuBLASLt"] = Choice(
        f"algorithm {entry.place}",
        (*entry.layout, "N"),
        [problem.launch(entry.entry, *turned(*one, entry.layout), workspace) for one in sets],
        tried,
    )
    chosen["cublasGemmEx"] = Choice("", ("K", "N", "N"), cublas_launches(sets, TYPES), 1)
    wrong = {
        name: of_bound(choice.launches, sets[0], choice.layout, TYPES, name)
        for name, choice in chosen.items()
    }
    timings = measure({name: choice.launches for name, choice in chosen.items()}, SAMPLES)
    rows = [
        {
            "kernel": name,
            "size": size,
            "setting": chosen[name].setting,
            "tried": chosen[name].tried,
            "layout": "A {}-major, B {}-major, C {}-major".format(*chosen[name].layout),
            "of_bound": wrong[name],
            **microseconds(timing),
            "tflops": round(timing.tflops(*shape), 1),
        }
        for name, timing in timings.items()
    ]
    return sorted(rows, key=lambda row: row["us"])


def record(folder: Path) -> Path:
    """Time all and store after each size. UnsupportedGPU where the GPU, PyTorch or Triton is missing."""
    if gpu() is None or gpu().arch != 90 or not available():
        raise UnsupportedGPU("this needs a Hopper GPU, and a PyTorch and a Triton that can use it")
    import triton as triton_package

    made = json.loads((folder / MADE_OF).read_text(encoding="utf-8"))
    made["triton"] = triton_package.__version__
    rows: list[dict] = []
    for number, size in enumerate(SIZES):
        progress(number, len(SIZES), f"peers at {size}")
        rows += time_one(folder, size)
        path = store(
            f"peers-{gpu().slug}", METHOD, describe(), sources=made, types=str(TYPES), rows=rows
        )
        release()
    progress(len(SIZES), len(SIZES))
    keys = ("kernel", "size", "us", "us_min", "us_max", "tflops", "layout", "setting")
    heads = ["kernel", "size", "us", "least", "most", "TFLOP/s", "layout", "setting"]
    print(table(heads, [[str(row[key]) for key in keys] for row in rows]))
    return path


def run(options) -> int:
    """`python -m measure peers`: compiles where checkouts are named, else records."""
    if options.compile:
        build(options.folder, options.compile)
    else:
        print(record(options.folder))
    return 0
