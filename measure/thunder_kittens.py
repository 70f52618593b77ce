"""ThunderKittens' levels for B200 (kernels/gemm/educational_b200, from 05 on by tcgen05), with the arguments of its host code.

A matrix (`gl`) is a struct: its pointer, its extents, and a tensor map of five dimensions whose rows are as wide as the swizzle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import emulator
from emulator import TensorMap

from .nvcc_ptx import bf16, ptx_of, wide

_FOLDER = Path("kernels/gemm/educational_b200")
_SIZE = 512  # M, N and K
_SHARED = 226 * 1024


@dataclass(frozen=True)
class Level:
    """threads of a block; tiles (rows, columns) of A, B and D; blocks."""

    number: str
    threads: int
    tiles: tuple[tuple[int, int], ...]
    blocks: tuple[int, int]


_LEVELS = (
    Level("05", 32, ((64, 32), (32, 64), (64, 64)), (8, 8)),
    Level("06", 128, ((128, 64), (64, 128), (128, 128)), (16, 1)),
    Level("07", 128, ((128, 64), (64, 128), (128, 128)), (16, 1)),
    Level("08", 128, ((128, 64), (64, 256), (128, 64)), (8, 1)),
    Level("09", 384, ((128, 64), (64, 128), (128, 32)), (4, 1)),
)


def _matrix(array: np.ndarray, tile: tuple[int, int]) -> tuple:
    """The struct of a matrix in bf16's bits, of which tiles are copied."""
    rows, columns = array.shape
    span = next(n for n in (64, 32, 16) if tile[1] % n == 0)  # elements that a swizzle reaches
    panels = array.reshape(1, 1, rows, columns // span, span).transpose(0, 1, 3, 2, 4)
    box = (1, 1, tile[1] // span, tile[0], span)
    made = TensorMap(panels, box, "bfloat16", swizzle=2 * span)
    return array, bytes(8), np.uint64(rows), np.uint64(columns), bytes(96), made


def _run(level: Level, text: str):
    rng, n = np.random.default_rng(0), _SIZE
    a, b = (bf16(rng.normal(size=(n, n))) for _ in range(2))
    d = np.zeros((n, n), np.uint16)
    args = [_matrix(x, tile) for x, tile in zip((a, b, d), level.tiles, strict=True)]
    entry = next(name for name in re.findall(r"\.entry (\w+)", text) if "matmul" in name)
    trace = emulator.Module(text).launch(
        entry, level.blocks, level.threads, [*args, n], shared_bytes=_SHARED
    )
    return wide(d), wide(a) @ wide(b), trace


def cases(path: Path, at: Path) -> Iterator[tuple[str, Callable]]:
    """(name, run) of each level. ValueError for a path without them."""
    if not (path / _FOLDER / "level_09.cu").exists():
        raise ValueError(f"{path} has no {_FOLDER}: give a checkout of HazyResearch/ThunderKittens")
    words = ["-std=c++20", "--expt-extended-lambda", "-DKITTENS_BLACKWELL", "-DKITTENS_SM100"]
    words += [f"-I{path / folder}" for folder in ("include", "prototype", "kernels/gemm")]
    for level in _LEVELS:
        name = f"level_{level.number}"

        def run(level=level, name=name):
            source = path / _FOLDER / f"{name}.cu"
            return _run(level, ptx_of(source, at / f"{name}.ptx", *words))

        yield name, run
