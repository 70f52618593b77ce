"""Place the fences."""

from book.exercises.exercise import Exercise
from book.exercises.hopper.launches import by_wgmma, tile_products

EXERCISE = Exercise.read(
    __file__,
    cases=tile_products(
        ((64, 64, 64), (100, 72, 64), (64, 64, 40)), (64, 64), 128, alpha=2.0, beta=1.0
    ),
    at="M=64, N=64, K=64",
    **by_wgmma(16, 16_384),
    suspects={"The old C is not added": lambda case: case.expected - case.product.old},
    twin=lambda run: run().trace.rows("fence.mbarrier_init")[0].threads,
)
