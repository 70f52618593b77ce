"""The order in which blocks take the tiles of C, as the kernel's own function gives it."""

import numpy as np

import kernels
from kernels.source import source

PROBE = """
#define BM 1
#define BN 1
#define GROUP {group}
{raster}
extern "C" __global__ void order_of_tiles(int* order, int tile_rows, int tile_cols) {{
    int row, col;
    tile_position(threadIdx.x, tile_rows, tile_cols, row, col);
    order[row * tile_cols + col] = threadIdx.x;
}}
"""


def order(group: int, rows: int, columns: int) -> np.ndarray:
    """(rows, columns) int32: which number each tile has when `GROUP` is `group`. At most 1024 tiles.

    The part `raster` of `mma_multistage`, compiled with tiles of one element and run on the emulator.
    """
    text = PROBE.format(group=group, raster=source("mma_multistage", "raster"))
    built = kernels.build(text, arch=80, name=f"order_of_tiles_{group}")
    numbers = np.full((rows, columns), -1, np.int32)
    kernels.launch(
        built,
        "order_of_tiles",
        (1, 1, 1),
        (rows * columns, 1, 1),
        [numbers, np.int32(rows), np.int32(columns)],
        machine="emulator",
    )
    return numbers
