"""A layout, composed by hand."""

import numpy as np
from tensor_layouts import Layout, rank, size

from book.exercises.exercise import Exercise


def _plain(value):
    """With Python's own integers, which a Layout wants."""
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    return int(value) if isinstance(value, np.integer) else value


# A step in each of the three directions, and the thread and value that has made it once.
_STEPS = (
    ("t % 4", "four rows down", 96, (1, 0)),
    ("t / 4", "a column to the right", 1, (4, 0)),
    ("v", "a row down", 24, (0, 1)),
)


def composed_layout(answer, _) -> list[str]:
    """Compare a layout ((shape), (stride)) of (t, v) with the offsets that the exercise asks for."""
    if isinstance(answer, str):
        return [
            "The answer is two tuples, not a text: leave out the quotation marks and the colon."
        ]
    try:
        shape, stride = map(_plain, answer if len(answer) == 2 else None)
        layout = Layout(shape, stride)
    except TypeError:
        return [
            "The answer is a shape and a stride, tuples of integers: ((4, 8), 4) and one number for each of these."
        ]
    except ValueError as error:  # a size below 0, or parentheses that differ
        return [
            f"{error}. Shape and stride need the same parentheses: one stride for each number of the shape."
        ]
    if rank(layout) != 2 or size(shape[0]) != 32 or size(shape[1]) != 4:
        return [
            "The layout takes (t, v): 32 threads and 4 values, so its two modes have sizes 32 and 4."
        ]
    right = {(t, v): 24 * (4 * (t % 4) + v) + t // 4 for t in range(32) for v in range(4)}
    given = {at: layout(*at) for at in right}
    if given == right:
        return []
    steps = [
        f"One step of {name} is {what}: {step} elements. This layout takes {given[at]}."
        for name, what, step, at in _STEPS
        if given[at] != step
    ]
    if steps:
        return steps
    t, v = next(at for at in right if given[at] != right[at])
    place = f"row {4 * (t % 4) + v} of column {t // 4}, at offset {right[t, v]}"
    return [f"Thread {t}, value {v} is {place}; this layout gives {given[t, v]}."]


EXERCISE = Exercise.read(
    __file__,
    judge=composed_layout,
    variable="(shape, stride)",
    twin=lambda run: Layout(((4, 8), 4), ((96, 1), 24))(6, 2),
)
