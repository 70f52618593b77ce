"""Place the two barriers."""

from book.exercises.exercise import Exercise, Goal, Need
from book.exercises.launches import products

EXERCISE = Exercise.read(
    __file__,
    cases=products(((16, 16, 32), (32, 48, 40), (17, 5, 23), (20, 36, 81)), (16, 16), (16, 16)),
    at="M=32, N=48, K=40",
    needs=(
        Need(
            "bytes read from shared memory",
            245_760,
            "the products are formed from the tiles in shared memory",
        ),
    ),
    goals=(Goal("bytes read from global memory", 31_000),),
    twin=lambda run: run.per_warp("barriers", case=1),
)
