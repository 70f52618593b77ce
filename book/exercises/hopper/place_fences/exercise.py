"""Place the fences."""

from book.exercises.exercise import Exercise, Goal, Need
from book.exercises.hopper.launches import ARCH, tile_products

EXERCISE = Exercise.read(
    __file__,
    cases=tile_products(
        ((64, 64, 64), (100, 72, 64), (64, 64, 40)), (64, 64), 128, alpha=2.0, beta=1.0
    ),
    needs=(
        Need(
            "wgmma (four warps issue each, so each counts four)",
            16,
            "M=64, N=64, K=64",
            "wgmma multiplies",
        ),
        Need("bytes copied by TMA", 16_384, "M=64, N=64, K=64", "the tiles arrive by TMA"),
    ),
    goals=(Goal("wgmma (four warps issue each, so each counts four)", 16, "M=64, N=64, K=64"),),
    suspects={"The old C is not added": lambda case: case.expected - case.product.old},
    arch=ARCH,
    twin=lambda run: run().trace.rows("fence.mbarrier_init")[0].threads,
)
