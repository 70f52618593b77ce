"""Step 1: bring a tile into shared memory."""

from book.exercises.capstone.launches import tiles
from book.exercises.exercise import Exercise, Goal, Need

EXERCISE = Exercise.read(
    __file__,
    cases=tiles((16, 32), lambda x: x),
    at="K=32",
    needs=(Need("bytes copied by cp.async", 1_024, "the tile arrives by cp.async"),),
    goals=(Goal("global_requests", 4),),
    twin=lambda run: sum(row.threads for row in run().trace.rows("cp.async.cg")) // 32,
)
