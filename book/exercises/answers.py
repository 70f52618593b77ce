"""Judges the answers that are not kernels: counts, lane maps, swizzle parameters. Each returns the mistakes it found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real

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
WORDS = {  # which word each lane reads; the float4 reads four
    "s[lane]": lambda lane: lane,
    "s[2 * lane]": lambda lane: 2 * lane,
    "s[lane / 2]": lambda lane: lane // 2,
    "s[32 * lane]": lambda lane: 32 * lane,
    "s[33 * lane]": lambda lane: 33 * lane,
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
    lines = path.read_text(encoding="utf-8").splitlines()
    built = kernels.build(path, arch=80)
    trace = launch(built, None, (1,), (LANES,), [np.zeros(LANES, np.float32)], machine="emulator")
    counts = {}
    for access, words in ACCESSES.items():
        number = next(i for i, text in enumerate(lines, 1) if text.endswith(words))
        rows = [r for r in trace.instructions if r.source and r.source[1] == number]
        counts[access] = int(sum(r.shared_wavefronts for r in rows))
    return counts


def _whole(value):
    """The integer that this number is, also where it was computed as 2048 / 256; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value // 1:
        return None
    return int(value)


def _wavefront_slip(access: str, given: int) -> str:
    """What to look at, for a count that is wrong: the words of the first lanes, and their banks."""
    if (access, given) in SLIPS:
        return SLIPS[access, given]
    if given < 1:
        return "a read takes one wavefront even where there is no conflict"
    if access not in WORDS:
        return (
            "lane 0 reads words 0 to 3 and lane 1 words 4 to 7, so eight lanes fill the 32 banks once: "
            "how many such groups of lanes are there?"
        )
    words = [WORDS[access](lane) for lane in (0, 1, 2, 16)]
    banks = [word % 32 for word in words]
    return (
        f"lanes 0, 1, 2 and 16 read words {_listed(words)}, in banks {_listed(banks)}: "
        "how many different words does the busiest bank serve?"
    )


def _listed(numbers) -> str:
    """ "0, 33 and 66"."""
    *some, last = map(str, numbers)
    return f"{', '.join(some)} and {last}"


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
        elif (number := _whole(given)) is None:
            mistakes.append(f"{access}: a count is an integer, not {given!r}")
        elif number != right:
            mistakes.append(f"{access}: not {number}; {_wavefront_slip(access, number)}")
    return mistakes


SM_80 = {"threads": 2048, "registers": 65_536, "KiB of shared memory": 164, "blocks": 32}
RESIDENT = {  # threads per block, registers per thread, KiB of shared memory per block
    "256 threads, 32 registers, 16 KiB": (256, 32, 16),
    "256 threads, 96 registers, 16 KiB": (256, 96, 16),
    "128 threads, 40 registers, 40 KiB": (128, 40, 40),
    "64 threads, 24 registers, 0 KiB": (64, 24, 0),
    "512 threads, 128 registers, 0 KiB": (512, 128, 0),
}


def resident_blocks(answer: Mapping[str, int]) -> list[str]:
    """Compare blocks per multiprocessor of an A100, counted by hand, with kernels.occupancy; say which limit was missed."""
    from kernels.occupancy import occupancy

    if not isinstance(answer, Mapping):
        return ['The answer is the dictionary of counts: check("count_blocks", blocks)']
    mistakes = [f"{row}: there is no such row" for row in answer if row not in RESIDENT]
    for row, (threads, registers, kib) in RESIDENT.items():
        given = answer.get(row)
        if given is None:
            mistakes.append(f"{row}: no count yet")
            continue
        if (number := _whole(given)) is None:
            mistakes.append(
                f"{row}: a count is an integer, not {given!r}"
                + (
                    "; a part of a block is not resident, so round down"
                    if isinstance(given, Real) and not isinstance(given, bool)
                    else ""
                )
            )
            continue
        given = number
        right = occupancy(80, threads, registers, kib * 1024).blocks
        if given == right:
            continue
        uses = {
            "threads": threads,
            "registers": threads * registers,
            "KiB of shared memory": kib + 1,
            "blocks": 1,
        }
        over = [name for name, each in uses.items() if given * each > SM_80[name]]
        if given < 0:
            mistakes.append(f"{row}: not {given}; a count is 0 or more")
        elif over == ["KiB of shared memory"] and given * kib <= SM_80[over[0]]:
            mistakes.append(f"{row}: not {given}; each block takes 1 KiB more, for the system")
        elif over:
            name = over[0]
            mistakes.append(
                f"{row}: not {given}; that takes {given * uses[name]:,} {name}, and there are {SM_80[name]:,}"
            )
        else:
            mistakes.append(
                f"{row}: not {given}; one more fits: threads, registers, shared memory and blocks all suffice for it"
            )
    return mistakes


def _offset(shape, stride, coordinate) -> int:
    """The offset of a coordinate in a layout; a number for a nested mode counts its first part fastest."""
    if isinstance(shape, int):
        return coordinate * stride
    if isinstance(coordinate, tuple):
        return sum(map(_offset, shape, stride, coordinate))
    total = 0
    for part, step in zip(shape, stride, strict=True):
        size = _size(part)
        total += _offset(part, step, coordinate % size)
        coordinate //= size
    return total


def _size(shape) -> int:
    return shape if isinstance(shape, int) else int(np.prod([_size(part) for part in shape]))


def _shape_of(value):
    """The same nesting with None for each integer; False where there is anything else."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return None
    if not isinstance(value, tuple | list):
        return False
    inner = tuple(_shape_of(part) for part in value)
    return False if False in inner else inner


def _plain(value):
    return int(value) if isinstance(value, Integral) else tuple(_plain(part) for part in value)


# A step in each of the three directions, and the thread and value that has made it once.
_STEPS = (
    ("t % 4", "four rows down", 96, (1, 0)),
    ("t / 4", "a column to the right", 1, (4, 0)),
    ("v", "a row down", 24, (0, 1)),
)
LAYOUT_SLIPS = {
    "These strides count elements of the tile column by column, not in memory: compose them with (16,8):(24,1).": ((4, 16), 1),
    "The strides of t % 4 and of t / 4 are the other way round: t % 4 goes down the rows.": ((1, 96), 24),
    "One step of t % 4 is four rows down, not one: each thread has four rows.": ((24, 1), 24),
    "The rows lie 24 elements apart, not 8: the tile is part of a wider matrix.": ((32, 1), 8),
    "One step of v is a row down, not a column to the right.": ((96, 1), 1),
    "Four rows down are 4 * 24 elements, not 4.": ((4, 1), 24),
    "One step of t / 4 is one column, which is 1 element: rows lie next to each other, not columns.": ((96, 24), 24),
}  # fmt: skip


def composed_layout(answer) -> list[str]:
    """Compare a layout ((shape), (stride)) of (t, v) with the offsets that the exercise asks for."""
    if isinstance(answer, str):
        return [
            "The answer is two tuples, not a text: leave out the quotation marks and the colon."
        ]
    pair = isinstance(answer, tuple | list) and len(answer) == 2
    if not pair or _shape_of(answer[0]) in (None, False) or _shape_of(answer[1]) in (None, False):
        return [
            "The answer is a shape and a stride, tuples of integers: ((4, 8), 4) and one number for each of these."
        ]
    shape, stride = map(_plain, answer)
    if _shape_of(shape) != _shape_of(stride):
        return [
            "Shape and stride need the same parentheses: one stride for each number of the shape."
        ]
    if len(shape) != 2 or _size(shape[0]) != 32 or _size(shape[1]) != 4:
        return [
            "The layout takes (t, v): 32 threads and 4 values, so its two modes have sizes 32 and 4."
        ]
    right = {(t, v): 24 * (4 * (t % 4) + v) + t // 4 for t in range(32) for v in range(4)}
    given = {at: _offset(shape, stride, at) for at in right}
    if given == right:
        return []
    for message, slip in LAYOUT_SLIPS.items():
        if given == {at: _offset(((4, 8), 4), slip, at) for at in right}:
            return [message]
    steps = [
        f"One step of {name} is {what}: {size} elements. This layout takes {given[at]}."
        for name, what, size, at in _STEPS
        if given[at] != size
    ]
    if given[0, 0] == 0 and steps:
        return steps
    t, v = next(at for at in right if given[at] != right[at])
    wrong = sum(given[at] != right[at] for at in right)
    return [
        f"{128 - wrong} of 128 offsets are right. Thread {t}, value {v} is row {4 * (t % 4) + v} of column {t // 4}, "
        f"at offset {right[t, v]}; this layout gives {given[t, v]}."
    ]


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
        pair = isinstance(found, tuple | list | np.ndarray) and len(found) == 2
        if not pair or not all(isinstance(i, Integral) for i in found):
            said = f"lane {lane}, half {half}: a row and a column are two integers, not {found!r}"
            return [said + ("; / gives a float, // an integer" if pair else "")]
    given = {place: tuple(map(int, found)) for place, found in given.items()}
    wrong = [place for place in places if given[place] != a_element(*place)]
    if not wrong:
        return []
    for message, slip in MAP_SLIPS.items():
        if all(given[place] == slip(*place) for place in places):
            return [message]
    lane, half = wrong[0]
    mistakes = [
        f"{len(places) - len(wrong)} of {len(places)} are right; lane {lane}, half {half} is the first that is not"
    ]
    if told := _step_of_map(given):
        return [*mistakes, told]
    held = len(set(given.values()))
    if held != len(places):
        mistakes.append(f"{held} different elements are held: a 16 x 16 tile has 256")
    return mistakes


# One step from lane 0, half 0, and where it must lead.
MAP_STEPS = {
    (0, 1): "the other half of register 0 lies one column to the right of half 0",
    (0, 2): "register 1 begins eight rows below register 0, in the same column",
    (0, 4): "register 2 begins eight columns to the right of register 0, in the same row",
    (1, 0): "two columns to the right of what lane 0 holds, because a register holds two",
    (
        4,
        0,
    ): "the next row begins, because four lanes of two columns each hold the eight columns of a row",
}


def _step_of_map(given) -> str | None:
    """The first step from lane 0, half 0 that leads to a wrong element: what it must mean, and where it leads."""
    if given[0, 0] != (0, 0):
        return f"Lane 0 holds element (0, 0) in half 0, and this gives {given[0, 0]}."
    for place, meaning in MAP_STEPS.items():
        if given[place] != a_element(*place):
            lane, half = place
            return f"Lane {lane}, half {half}: {meaning}. This gives {given[place]}."
    return None


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
