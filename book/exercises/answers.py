"""Judges the answers that are not kernels: counts, lane maps, swizzle parameters. Each returns the mistakes it found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral

import numpy as np

from emulator.counts.wavefronts import shared_wavefronts

LANES, HALVES = 32, 8

# What a lane reads, and the words of its line in cuda/count_wavefronts.cu.
ACCESSES = {
    "s[lane]": "v[lane];",
    "s[2 * lane]": "v[2 * lane];",
    "s[lane / 2]": "v[lane / 2];",
    "s[32 * lane]": "v[32 * lane];",
    "s[33 * lane]": "v[33 * lane];",
    "float4 s[lane]": "float4*>(s)[lane];",
}
SLIPS = {
    ("s[2 * lane]", 1): "lanes 0 and 16 read words 0 and 32, and both lie in bank 0",
    (
        "s[lane / 2]",
        2,
    ): "lanes that read the same word are served together: a broadcast is no conflict",
    (
        "s[lane / 2]",
        16,
    ): "count what the busiest bank serves, not how many different words there are",
    ("s[32 * lane]", 1): "32 * lane mod 32 is 0 for every lane: which bank is that?",
    ("s[33 * lane]", 32): "33 * lane mod 32 is lane: 32 different banks",
    ("s[33 * lane]", 2): "33 * lane mod 32 is lane: 32 different banks",
    (
        "float4 s[lane]",
        1,
    ): "a wavefront carries 128 bytes at most, and 32 lanes ask for 512",
    ("float4 s[lane]", 32): "eight lanes of 16 bytes fill one wavefront of 128 bytes",
}


def measured_wavefronts() -> dict[str, int]:
    """Wavefronts of each access, from the trace of cuda/count_wavefronts.cu on the emulator."""
    import kernels
    from kernels.launch import launch

    from .exercise import FOLDER

    path = FOLDER / "cuda" / "count_wavefronts.cu"
    lines = path.read_text().splitlines()
    built = kernels.build(path, arch=80)
    trace = launch(built, None, (1,), (LANES,), [np.zeros(LANES, np.float32)], machine="emulator")
    counts = {}
    for access, words in ACCESSES.items():
        number = next(i for i, text in enumerate(lines, 1) if text.endswith(words))
        rows = [r for r in trace.instructions if r.source and r.source[1] == number]
        counts[access] = int(sum(r.shared_wavefronts for r in rows))
    return counts


def wavefront_counts(answer: Mapping[str, int]) -> list[str]:
    """Compare counts made by hand with the trace."""
    if not isinstance(answer, Mapping):
        return ['The answer is the dictionary of counts: check("count_wavefronts", counts)']
    truth = measured_wavefronts()
    mistakes = [f"{access}: there is no such access" for access in answer if access not in truth]
    for access, right in truth.items():
        given = answer.get(access)
        if given is None:
            mistakes.append(f"{access}: no count yet")
        elif not isinstance(given, Integral):
            mistakes.append(f"{access}: a count is an integer, not {given!r}")
        elif given != right:
            hint = SLIPS.get(
                (access, given), "how many different words does the busiest bank serve?"
            )
            mistakes.append(f"{access}: not {given}; {hint}")
    return mistakes


def a_element(lane: int, half: int) -> tuple[int, int]:
    """(row, column) of A that half `half` (0-7) of a lane's four registers holds. PTX ISA 9.7.14.5.8, m16n8k16."""
    group, pair = lane // 4, lane % 4
    return group + half // 2 % 2 * 8, 2 * pair + half % 2 + half // 4 * 8


MAP_SLIPS: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "Row and column are the other way round.": lambda lane, half: a_element(lane, half)[::-1],
    "Registers 1 and 2 are the other way round: register 1 is eight rows down, register 2 eight columns on.": (
        lambda lane, half: (
            lane // 4 + half // 4 * 8,
            2 * (lane % 4) + half % 2 + half // 2 % 2 * 8,
        )
    ),
    "lane / 4 and lane % 4 are the other way round: four neighbouring lanes share a row.": (
        lambda lane, half: (
            lane % 4 + half // 2 % 2 * 8,
            2 * (lane // 4) + half % 2 + half // 4 * 8,
        )
    ),
    "A register holds two neighbouring columns, so half 1 is one column on.": (
        lambda lane, half: (
            lane // 4 + half // 2 % 2 * 8,
            2 * (lane % 4) + half // 4 * 8,
        )
    ),
    "Lanes hold pairs: lane 1 begins at column 2, not at column 1.": (
        lambda lane, half: (
            lane // 4 + half // 2 % 2 * 8,
            lane % 4 + half % 2 + half // 4 * 8,
        )
    ),
    "Only the first register is right: where are the rows from 8 and the columns from 8?": (
        lambda lane, half: (lane // 4, 2 * (lane % 4) + half % 2)
    ),
}


def lane_map(element: Callable[[int, int], tuple[int, int]]) -> list[str]:
    """Compare `element(lane, half)` with the lane map of A in m16n8k16."""
    if not callable(element):
        return [
            'The answer is the function itself: check("lane_map", element), without parentheses'
        ]
    places = [(lane, half) for lane in range(LANES) for half in range(HALVES)]
    given = {place: element(*place) for place in places}
    for (lane, half), found in given.items():
        pair = isinstance(found, tuple | list) and len(found) == 2
        if not pair or not all(isinstance(i, Integral) for i in found):
            said = f"lane {lane}, half {half}: a row and a column are two integers, not {found!r}"
            return [said + ("; / gives a float, // an integer" if pair else "")]
    given = {place: tuple(found) for place, found in given.items()}
    wrong = [place for place in places if given[place] != a_element(*place)]
    if not wrong:
        return []
    for message, slip in MAP_SLIPS.items():
        if all(given[place] == slip(*place) for place in places):
            return [message]
    lane, half = wrong[0]
    held = len(set(given.values()))
    mistakes = [
        f"{len(places) - len(wrong)} of {len(places)} are right; lane {lane}, half {half} is the first that is not"
    ]
    if held != len(places):
        mistakes.append(f"{held} different elements are held: a 16 x 16 tile has 256")
    return mistakes


def swizzle_parameters(answer: tuple[int, int, int]) -> list[str]:
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
    mask = (1 << B) - 1
    moved = offsets ^ (((offsets >> (M + S)) & mask) << M)
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
