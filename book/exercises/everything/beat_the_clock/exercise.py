"""Beat a rung's time."""

from book.exercises.exercise import Exercise, Goal
from book.exercises.launches import products

EXERCISE = Exercise.read(
    __file__,
    cases=products(
        ((64, 64, 64), (128, 192, 64), (64, 128, 192)),
        (64, 64),
        (256,),
        drawn=((1, 2), (1, 3), (1, 4)),
        step=64,
    ),
    at="M=64, N=64, K=64",
    goals=(Goal("shared_wavefronts", 4_000), Goal("bytes read from global memory", 65_536)),
    faster_than=("coarsened_1d", 2048),
    twin=lambda run: run.count("bytes read from shared memory") // (256 * 64),
)
