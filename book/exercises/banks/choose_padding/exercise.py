"""A padding that keeps alignment."""

from book.exercises.banks.launches import chunks
from book.exercises.exercise import Exercise, Goal, Need

EXERCISE = Exercise.read(
    __file__,
    cases=chunks(64),
    at="one 32 x 64 tile",
    needs=(
        Need("bytes read from shared memory", 4_096, "the tile is read back from shared memory"),
    ),
    goals=(Goal("shared_wavefronts", 64),),
    twin=lambda run: run.lane("st.shared", 24) // 4 % 32,
)
