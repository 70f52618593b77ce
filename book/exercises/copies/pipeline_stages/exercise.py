"""Write a pipeline of N stages."""

from book.exercises.copies.launches import THROUGH_BUFFERS
from book.exercises.copies_in_flight import fetches_ahead
from book.exercises.exercise import Exercise, Goal

EXERCISE = Exercise.read(
    __file__,
    **THROUGH_BUFFERS,
    goals=(Goal("barriers", 66), Goal("bytes read from global memory", 131_072)),
    inspect=fetches_ahead(2),
    twin=lambda run: max(
        int(row.text.rstrip(";").split()[-1]) for row in run().trace.rows("cp.async.wait_group")
    ),
)
