"""The launches that several exercises of this part share."""

from math import comb

import numpy as np

from book.exercises.exercise import Case
from book.exercises.launches import EPSILON, poisoned
from kernels.shapes import ceil_div


def pieces(size: int, block: int, counts=(512, 1000, 31, 257)):
    """Launches for a kernel that sums pieces of so many neighbouring floats; a piece at the end may be short."""

    def cases(rng) -> tuple[Case, ...]:
        made = []
        for n in (*counts, int(rng.integers(2, 2000))):
            x = rng.standard_normal(n).astype(np.float32)
            starts = np.arange(0, n, size)
            wide = x.astype(float)
            made.append(
                Case(
                    f"n={n}", (x, poisoned((len(starts),)), np.int32(n)), 1, np.add.reduceat(wide, starts),
                    (ceil_div(n, block),), (block,), tolerance=(size + 4) * EPSILON,
                    scale=np.add.reduceat(np.abs(wide), starts),
                    special=f"n={n} is no multiple of {size}" if n % size else "",
                )
            )  # fmt: skip
        return tuple(made)

    return cases


def of_pieces(size: int, pick):
    """A suspect from which of the `size` places of each piece are summed, how often: (size,) weights."""

    def guess(case):
        x = case.args[0].astype(float)
        padded = np.zeros(ceil_div(len(x), size) * size)
        padded[: len(x)] = x
        return padded.reshape(-1, size) @ np.asarray(pick(np.arange(size)), float)

    return guess


def piece_suspects(size: int) -> dict:
    """What is summed of a piece when a step is left out, or taken twice."""
    steps = [1 << i for i in range(size.bit_length() - 1)]
    halves = steps[::-1]
    rows = {
        "Only the first of the values is there: nothing is added to the place that is stored": lambda t: (
            t == 0
        ),
        **{
            f"The step over a distance of {step} is missing: half of the values are never added": (
                lambda t, step=step: t & step == 0
            )
            for step in steps
        },
        "Every step adds the thread's own value once more: the values of higher lanes never come down": lambda t: (
            np.where(t == 0, size, 0)
        ),
        "Only the last of the values is there: the sum is set (`=`) where it must be added to (`+=`), or what is stored "
        "is not the place where the sum stands": lambda t: t == size - 1,
        "In each step the sum so far is doubled: `sum += a` adds a to it, `sum += sum + a` adds the sum once more": lambda t: [
            2 ** (len(steps) - int(i).bit_count()) for i in t
        ],
        "Everything is added twice": lambda t: 2 + 0 * t,
        "Each step subtracts the other value, and must add it": lambda t: [
            (-1) ** int(i).bit_count() for i in t
        ],
        "Each step adds the neighbour again: the distance stays 1": lambda t: [
            comb(len(steps), int(i)) for i in t
        ],
        f"Thread {size - 1} stores its sum: by these steps the sum of all arrives at thread 0 (or what is added is the other "
        "value twice, and not the sum so far)": lambda t: np.where(t == size - 1, size, 0),
        "Each step brings the first value of another thread, and not the sum that it has by then: what is added must be what "
        "was summed before": lambda t: t & (t - 1) == 0,
        "Lane 1 stores its sum: by these steps the sum of all arrives at lane 0": lambda t: (
            by_shuffles(size, halves)[1]
        ),
    }
    return {message: of_pieces(size, pick) for message, pick in rows.items()}


def by_shuffles(size: int, distances) -> np.ndarray:
    """(size, size): how often each lane counts each value after shuffles down over these distances."""
    held, lanes = np.eye(size), np.arange(size)
    for distance in distances:
        held = held + held[np.where(lanes + distance < size, lanes + distance, lanes)]
    return held
