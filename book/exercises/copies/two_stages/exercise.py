"""Two stages: fetch one tile ahead."""

from book.exercises.copies.launches import sums_of_rows
from book.exercises.copies_in_flight import ahead, fetches_ahead
from book.exercises.exercise import Exercise, Goal, Need
from book.exercises.launches import ROW_SUSPECTS

EXERCISE = Exercise.read(
    __file__,
    cases=sums_of_rows,
    at="M=64, K=512",
    needs=(
        Need("bytes copied by cp.async", 131_072, "each tile arrives by cp.async"),
        Need("bytes read from shared memory", 131_072, "the sums are formed from the buffers"),
    ),
    goals=(Goal("bytes read from global memory", 131_072),),
    inspect=fetches_ahead(1),
    suspects=ROW_SUSPECTS,
    twin=lambda run: ahead(run(case=3).trace),
)
