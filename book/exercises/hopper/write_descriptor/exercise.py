"""Write a descriptor."""

from collections.abc import Callable

import numpy as np

import figures
from book.exercises.exercise import Exercise
from book.exercises.hopper.launches import by_wgmma, tile_products
from kernels.shapes import ceil_div

B_TILE = 64 * 128  # where B's tile begins, in bytes behind A's


def _tile(matrix, row: int, column: int) -> np.ndarray:
    """64 x 64 from here, zeros beyond the matrix."""
    found = np.zeros((64, 64))
    part = matrix[row : row + 64, column : column + 64]
    found[: part.shape[0], : part.shape[1]] = part
    return found


def described(a=None, b=None) -> Callable:
    """A suspect: the product if descriptors name other places of the tiles.

    a: k -> (start, stride) in bytes, relative to A's tile; b: k -> (start, leading, stride), to B's. The swizzle is an exclusive
    or of address bits, on the way in and on the way out, so it plays no part in which element is found.
    """
    a = a or (lambda k: (2 * k, 1024))
    b = b or (lambda k: (128 * k, 8192, 1024))

    def guess(case):
        A, B = case.product.A, case.product.B
        M, N = case.expected.shape
        C = np.zeros((ceil_div(M, 64) * 64, ceil_div(N, 128) * 128))
        for row in range(0, M, 64):
            for col in range(0, N, 128):
                tiles = _tile(A, row, 0), _tile(B, 0, col), _tile(B, 0, col + 64)
                memory = np.concatenate([one.reshape(-1) for one in tiles])
                for k in range(0, 64, 16):
                    C[row : row + 64, col : col + 128] += _read_a(memory, *a(k)) @ _read_b(
                        memory, *b(k)
                    )
        return C[:M, :N]

    return guess


def _read_a(memory, start: int, stride: int) -> np.ndarray:
    row, k = np.indices((64, 16))
    return memory[(start + row // 8 * stride + row % 8 * 128) // 2 + k]


def _read_b(memory, start: int, leading: int, stride: int) -> np.ndarray:
    k, n = np.indices((16, 128))
    return memory[
        (B_TILE + start + n // 64 * leading + k // 8 * stride + k % 8 * 128) // 2 + n % 64
    ]


_OF_EIGHT_ROWS = "It has to lead from eight rows to the next eight"
DESCRIPTOR_SUSPECTS = {
    "Every product of A begins at element 0: A's start does not move along k": described(a=lambda k: (0, 1024)),
    "Every product of B begins at row 0: B's start does not move along k": described(b=lambda k: (0, 8192, 1024)),
    "A's start moves by k bytes, and an element has two": described(a=lambda k: (k, 1024)),
    "A's start moves by 128 x k bytes. The next elements of k lie 2 bytes further each, in the same row": (
        described(a=lambda k: (128 * k, 1024))
    ),
    "B's start moves along its row. Its rows are k, so it has to move by k rows of 128 bytes": (
        described(b=lambda k: (2 * k, 8192, 1024))
    ),
    "B's start moves by k rows of 64 bytes, and a row has 128": described(b=lambda k: (64 * k, 8192, 1024)),
    "B's leading offset is 0 bytes, so both panels are read from the first one": described(b=lambda k: (128 * k, 0, 1024)),
    "B's leading offset is 4,096 bytes: that is not where its second panel begins": (
        described(b=lambda k: (128 * k, 4096, 1024))
    ),
    "B's leading offset and stride offset are the wrong way round": described(b=lambda k: (128 * k, 1024, 8192)),
    f"A's stride offset is 128 bytes, from one row to the next. {_OF_EIGHT_ROWS}": described(a=lambda k: (2 * k, 128)),
    "The stride offsets are 0, so rows 0 to 7 are read again and again": (
        described(lambda k: (2 * k, 0), lambda k: (128 * k, 8192, 0))
    ),
    **{
        f"A's stride offset is {n:,} bytes. {_OF_EIGHT_ROWS}": described(a=lambda k, n=n: (2 * k, n))
        for n in (512, 2048)
    },
    "B's descriptor names the tile of A": described(b=lambda k: (128 * k - B_TILE, 8192, 1024)),
    "The starts are missing in the descriptors: every operand begins where shared memory does": (
        described(lambda k: (0, 1024), lambda k: (-B_TILE, 8192, 1024))
    ),
}  # fmt: skip

EXERCISE = Exercise.read(
    __file__,
    cases=tile_products(((64, 128, 64), (100, 200, 64), (64, 128, 40)), (64, 128), 128),
    at="M=64, N=128, K=64",
    **by_wgmma(16, 24_576),
    suspects=DESCRIPTOR_SUSPECTS,
    outside="Compare what the descriptor holds with what you meant: swizzle 0 means that bits 62 and 63 are not set, and "
    "32 that they hold another code. The last start of B is `b_tile + 48 * 128`, and its last row of k must not lie beyond "
    "the tile. A number that is 16 times too large was not divided by 16.",
    twin=lambda run: figures.descriptor_bits(0, 16, 8 * 128, 128) >> 32 & 0x3FFF,
)
