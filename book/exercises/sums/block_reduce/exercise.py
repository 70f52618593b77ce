"""Sum a block."""

import numpy as np

from book.exercises.exercise import Exercise, Goal, Need
from book.exercises.sums.launches import of_pieces, piece_suspects, pieces


def in_turns(pairs):
    """A suspect: for half = 128, 64 ... 1 threads add s[of] to s[to], with (to, of) = pairs(t, half) of the threads t < half."""
    held = np.eye(256)
    for half in (128 >> turn for turn in range(8)):
        to, of = pairs(np.arange(half), half)
        held[to] += held[of]
    return of_pieces(256, lambda t: held[0])


SUSPECTS = piece_suspects(256) | {
    "Thread t adds s[2 * t + 1] to s[2 * t], and other sums stay where they are: it has to add s[t + half] to s[t]": (
        in_turns(lambda t, half: (2 * t, 2 * t + 1))
    ),
    "Only every second thread adds, and each thread below half has to": in_turns(
        lambda t, half: (t[::2], t[::2] + half)
    ),
    "The distances are 127, 63 and so on, and have to be 128, 64 and so on": in_turns(
        lambda t, half: (t[: half - 1], t[: half - 1] + half - 1)
    ),
    "Only the first block adds, and the others store their first value": lambda case: np.r_[
        case.expected[:1], case.args[0][256::256]
    ],
}

EXERCISE = Exercise.read(
    __file__,
    cases=pieces(256, 256),
    at="n=512",
    needs=(
        Need(
            "bytes read from shared memory",
            1_000,
            "the values of other threads are read from shared memory",
        ),
    ),
    goals=(Goal("shared_wavefronts", 100), Goal("atomic operations of a warp", 0)),
    suspects=SUSPECTS,
    twin=lambda run: run.per_warp("barriers") - 1,
)
