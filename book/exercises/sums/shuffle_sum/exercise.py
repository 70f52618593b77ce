"""Sum a warp with shuffles."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np

from book.exercises.attempt import attempt
from book.exercises.exercise import Case, Exercise, Goal, Need
from book.exercises.sums.launches import piece_suspects, pieces

_SHUFFLE = re.compile(r"shfl\.sync\.(\w+)\.b32\s+[^,]+,\s*[^,]+,\s*([^,]+),\s*([^,]+),")


_CONSTANT = re.compile(r"mov\.\w+\s+(%\w+),\s*(-?\d+);?$")


_MODES = {
    "idx": "__shfl_sync takes the number of a lane, not a distance: every lane gets the value of that one lane",
    "up": "__shfl_up_sync brings values from lower lanes to higher ones, so the sum arrives at lane 31",
}


def distances(case: Case, trace) -> str | None:
    """A sentence where the shuffles of a sum over 32 lanes are not those over 16, 8, 4, 2 and 1."""
    constants = _constants(trace)
    found: list[int] = []
    for row in trace.rows("shfl.sync"):
        read = _SHUFFLE.search(row.text)
        if read is None:
            return None
        if read[1] in _MODES:
            return f"{_MODES[read[1]]}."
        distance, last = (constants.get(read[i].strip()) for i in (2, 3))
        if last is not None and last >> 8:
            lanes = 32 - (last >> 8)
            return (
                f"With a width of {lanes} each {lanes} lanes are by themselves, and no value comes from beyond them: leave "
                "the width out."
            )
        if distance is None:
            return None
        found += [distance] * round(row.warps / (trace.blocks * -(-np.prod(case.block) // 32)))
    if sorted(found) == [1, 2, 4, 8, 16] or not found:
        return None
    shown = ", ".join(map(str, found[:8])) + (
        f" and so on, {len(found)} in all" if len(found) > 8 else ""
    )
    return f"The shuffles go over distances of {shown}. They have to go over 16, 8, 4, 2 and 1, each once."


def _constants(trace) -> dict[str, int]:
    """The registers that hold one constant, and constants themselves."""
    texts = [row.text.strip() for row in trace.instructions]
    moved = [read for text in texts if (read := _CONSTANT.search(text))]
    times = Counter(read[1] for read in moved)
    known = {read[1]: int(read[2]) for read in moved if times[read[1]] == 1}
    return known | {str(n): n for n in range(1 << 13)}


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
    needs=(Need("warp shuffles", 16, "n=512", "values go from lane to lane by shuffles"),),
    goals=(Goal("shared_wavefronts", 0, "n=512"), Goal("warp shuffles", 80, "n=512")),
    suspects=piece_suspects(32),
    watch=distances,
    inspect=shuffles_are_used,
    twin=lambda run: 2 ** (run.per_warp("warp shuffles") - 2),
)
