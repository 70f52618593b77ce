"""The five kernels of CUTLASS's tutorial for Blackwell (examples/cute/tutorial/blackwell), with the arguments that its host
code gives them.

A tensor of CuTe is a struct of its extents, its stride and its pointer; a copy by TMA a struct that begins with the
tensor map; a product one that begins with the instruction descriptor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import emulator
from emulator import TensorMap

from .nvcc_ptx import ptx_of

_FOLDER = Path("examples/cute/tutorial/blackwell")


@dataclass(frozen=True)
class Case:
    """A kernel: its file, the tile of C of a product, boxes of A and B (none without TMA) and of C and D, cluster."""

    file: str
    tile: tuple[int, int]
    boxes: tuple[tuple[int, int], ...] = ()
    out_box: tuple[int, int] | None = None
    cluster: tuple[int, int, int] = (1, 1, 1)
    shared: int = 60_000


_MULTICAST = {"boxes": ((32, 64), (64, 64)), "cluster": (4, 4, 1)}
_CASES = (
    Case("01_mma_sm100", (128, 256)),
    Case("02_mma_tma_sm100", (128, 256), ((128, 64), (256, 64))),
    Case("03_mma_tma_multicast_sm100", (128, 256), **_MULTICAST),
    Case("04_mma_tma_2sm_sm100", (256, 256), **_MULTICAST),
    Case("05_mma_tma_epi_sm100", (256, 256), **_MULTICAST, out_box=(128, 32), shared=120_000),
)


def _run(case: Case, text: str):
    """(found, wanted, trace) of small integers, which add up exactly."""
    rng, one = np.random.default_rng(0), case.cluster == (1, 1, 1)
    m, n, k = (256, 512, 256) if one else (512, 1024, 256)
    a, b = (rng.integers(-2, 3, (rows, k)).astype(np.float16) for rows in (m, n))
    c, d = rng.normal(size=(m, n)).astype(np.float32), np.zeros((m, n), np.float32)

    def tensor(array, pointer: bool):
        rows, columns = (np.int32(x) for x in array.shape)
        return (rows, columns, columns, array) if pointer else (rows, columns, np.int32(0))

    args = [tensor(x, not case.boxes) for x in (a, b)]
    args += [tensor(x, case.out_box is None) for x in (c, d)]
    rows, columns = case.tile
    instruction = np.uint32(1 << 4 | columns >> 3 << 17 | rows >> 4 << 24)  # f16, summed in fp32
    args += [bytes(1)] * (2 if case.out_box else 1)  # shapes that the types know
    args += [(instruction, np.int32(1)), bytes(1)]
    maps = list(zip((a, b), case.boxes, strict=False))
    maps += [(x, case.out_box) for x in (c, d) if case.out_box]
    args += [(TensorMap(array, box, swizzle=128),) for array, box in maps]
    blocks = m // rows * (2 if rows == 256 else 1), n // columns
    entry = next(name for name in re.findall(r"\.entry (\w+)", text) if "gemm_device" in name)
    trace = emulator.Module(text).launch(
        entry, blocks, 128, [*args, np.float32(1), np.float32(0)],
        shared_bytes=case.shared, cluster=case.cluster,
    )  # fmt: skip
    return d, a.astype(np.float32) @ b.astype(np.float32).T, trace


def cases(path: Path, at: Path) -> Iterator[tuple[str, Callable]]:
    """(name, run) of each kernel. ValueError for a path without the tutorial."""
    folder = path / _FOLDER
    if not (folder / f"{_CASES[0].file}.cu").exists():
        raise ValueError(f"{path} has no {_FOLDER}: give a checkout of NVIDIA/cutlass")
    includes = ("include", "tools/util/include", "examples/common", str(_FOLDER))
    for case in _CASES:

        def run(case=case):
            words = [f"-I{path / one}" for one in includes]
            source = folder / f"{case.file}.cu"
            return _run(case, ptx_of(source, at / f"{case.file}.ptx", "-std=c++17", *words))

        yield case.file, run
