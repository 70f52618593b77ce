"""Step 5: a pipeline along K."""

from book.exercises.capstone.launches import transposed_products
from book.exercises.copies_in_flight import fetches_ahead
from book.exercises.exercise import Exercise, Goal, Need

EXERCISE = Exercise.read(
    __file__,
    cases=transposed_products(((16, 16, 32), (32, 48, 96), (48, 16, 64)), False),
    at="M=32, N=48, K=96",
    needs=(
        Need("bytes copied by cp.async", 36_864, "the tiles arrive by cp.async"),
        Need("matrix multiplications of a warp", 72, "mma multiplies"),
        Need("ldmatrix instructions", 72, "ldmatrix loads the registers"),
    ),
    goals=(Goal("shared_wavefronts", 900),),
    inspect=fetches_ahead(1),
    twin=lambda run: run.report().shared_bytes,
)
