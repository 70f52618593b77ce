"""Ask for columns, and give them back."""

from book.exercises.blackwell.launches import ARCH, tile_products
from book.exercises.exercise import Exercise, Need

EXERCISE = Exercise.read(
    __file__,
    cases=tile_products(((128, 64, 64), (100, 72, 136)), (128, 64), 128),
    at="M=128, N=64, K=64",
    needs=(Need("products started by tcgen05.mma", 4, "tcgen05 multiplies"),),
    arch=ARCH,
    twin=lambda run: run().trace.rows("tcgen05.alloc")[0].warps,
)
