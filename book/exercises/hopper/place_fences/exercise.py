"""Place the fences."""

from book.exercises.exercise import Exercise, Goal, Need
from book.exercises.hopper.launches import ARCH, tile_products

EXERCISE = Exercise.read(
    __file__,
    cases=tile_products(
        ((64, 64, 64), (100, 72, 64), (64, 64, 40)), (64, 64), 128, alpha=2.0, beta=1.0
    ),
    at="M=64, N=64, K=64",
    needs=(
        Need("wgmma (four warps issue each, so each counts four)", 16, "wgmma multiplies"),
        Need("bytes copied by TMA", 16_384, "the tiles arrive by TMA"),
    ),
    goals=(Goal("wgmma (four warps issue each, so each counts four)", 16),),
    suspects={"The old C is not added": lambda case: case.expected - case.product.old},
    arch=ARCH,
    twin=lambda run: run().trace.rows("fence.mbarrier_init")[0].threads,
)
