"""The same swizzle in three numbers."""

from numbers import Integral

import numpy as np

from book.exercises.exercise import Exercise
from emulator.counts.wavefronts import shared_wavefronts


def _moved(index, B: int, M: int, S: int):
    return index ^ (((index >> (M + S)) & ((1 << B) - 1)) << M)


def swizzle_parameters(answer: tuple[int, int, int], _) -> list[str]:
    """Does Swizzle<B, M, S>, on half indices, serve 64-byte rows: chunks whole, rows kept, no conflicts?"""
    whole = isinstance(answer, tuple | list) and all(isinstance(x, Integral) for x in answer)
    if not whole or len(answer) != 3:
        return [f"The answer is three integers, (B, M, S), not {answer!r}"]
    B, M, S = answer
    if max(answer) > 30:
        return [f"An index of this tile has 10 bits: Swizzle<{B}, {M}, {S}> reaches far beyond it."]
    if B < 1 or M < 0 or S < B:
        return ["Swizzle<B, M, S> needs B >= 1 and S >= B, or its bits would meet themselves."]
    offsets = np.arange(32 * 32)
    moved = _moved(offsets, B, M, S)
    mistakes = []
    if M < 3:
        mistakes.append(
            f"M = {M} tears 16-byte chunks apart: a chunk is 8 halves, so its 3 lowest bits must stay."
        )
    if ((moved // 32) != (offsets // 32)).any():
        mistakes.append(
            f"Bits {M} to {M + B - 1} of the index change, and bit 5 and up are the row: elements leave their row."
        )
    if mistakes:
        return mistakes
    worst = 0
    for chunk in range(4):
        lanes = 2 * moved.reshape(32, 32)[:, 8 * chunk].astype(np.int64)[None]
        worst = max(worst, int(shared_wavefronts(lanes, np.ones_like(lanes, bool), 16)[0]))
    if worst > 4:
        bits = f"bits {M + S} to {M + S + B - 1}"
        mistakes.append(
            f"Reading a chunk of 32 rows takes {worst} wavefronts; the goal is 4. "
            f"The XOR takes {bits} of the index: which bits tell apart the rows that meet in a bank?"
        )
    return mistakes


EXERCISE = Exercise.read(
    __file__,
    judge=swizzle_parameters,
    variable="(B, M, S)",
    twin=lambda run: int(_moved(np.int64(200), 2, 3, 3)),
)
