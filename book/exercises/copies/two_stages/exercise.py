"""Two stages: fetch one tile ahead."""

from book.exercises.copies.launches import THROUGH_BUFFERS
from book.exercises.copies_in_flight import ahead, fetches_ahead
from book.exercises.exercise import Exercise, Goal

EXERCISE = Exercise.read(
    __file__,
    **THROUGH_BUFFERS,
    goals=(Goal("bytes read from global memory", 131_072),),
    inspect=fetches_ahead(1),
    twin=lambda run: ahead(run(case=3).trace),
)
