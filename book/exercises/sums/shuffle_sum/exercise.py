"""Sum a warp with shuffles."""

import re
from dataclasses import replace

import numpy as np

from book.exercises.attempt import attempt
from book.exercises.exercise import Exercise, Goal, Need
from book.exercises.sums.launches import by_shuffles, of_pieces, piece_suspects, pieces

SUSPECTS = piece_suspects(32) | {
    **{
        f"The distances get smaller by {n}, and have to be halved: 16, 8, 4, 2 and 1": of_pieces(
            32, lambda t, n=n: by_shuffles(32, range(16, 0, -n))[0]
        )
        for n in (1, 2, 3, 4, 8)
    },
    **{
        f"With a width of {n} each {n} lanes are by themselves, and no value comes from beyond them: leave the width out": (
            of_pieces(32, lambda t, n=n: 32 // n * (t < n))
        )
        for n in (16, 8, 4, 2)
    },
}
_TAKEN = re.compile(r"\bshfl\.sync\.\w+\.b32\s+(%\w+)(?:\|(%\w+))?,\s*([^,]+),[^;]*;")


def shuffles_are_used(built, trace) -> list[str]:
    """Does the sum hang on the shuffles? Without them, each lane keeping its own value, it must come out wrong."""

    def own(match: re.Match) -> str:
        done = f"setp.eq.u32 {match[2]}, 0, 0; " if match[2] else ""
        return f"{done}mov.b32 {match[1]}, {match[3]};"

    case = pieces(32, 128)(np.random.default_rng(0))[0]
    without = replace(built, ptx=_TAKEN.sub(own, built.ptx))
    if not attempt(without, "shuffle_sum", case).right:
        return []
    return ["The sum is the same without the shuffles: their values are not used for it."]


EXERCISE = Exercise.read(
    __file__,
    cases=pieces(32, 128),
    at="n=512",
    needs=(Need("warp shuffles", 16, "values go from lane to lane by shuffles"),),
    goals=(Goal("shared_wavefronts", 0), Goal("warp shuffles", 80)),
    suspects=SUSPECTS,
    inspect=shuffles_are_used,
    twin=lambda run: 2 ** (run.per_warp("warp shuffles") - 2),
)
