"""How far a launch reaches: rows and elements beyond the end of an array, and places that several threads write."""

from __future__ import annotations

import re

import numpy as np

from .addresses import elements, sizes_of
from .exercise import Case
from .explain import parameter_name


def beyond_rows(case: Case, trace, source: str, kernel: str) -> list[str]:
    """Sentences on arrays that block (0, 0) leaves, in rows of a matrix or in elements.

    trace: of this case in ample memory. Rows of A and C that lie beyond M are left to the guards along M: what is
    looked for is a loop that goes on beyond its end.
    """
    said = []
    for number, value in enumerate(case.args):
        if not isinstance(value, np.ndarray) or value.ndim > 2:
            continue
        matrix = value.ndim == 2
        if matrix and (case.product is None or number != 1 or value.shape != case.product.B.shape):
            continue
        length = value.shape[1] if matrix else 1
        found = np.unique(elements(trace, number, value.itemsize) // length)
        beyond = found[found >= len(value)]
        if not len(beyond) or not _same_columns(elements(trace, number, value.itemsize), length):
            continue
        name = parameter_name(number, source, kernel)
        what = "row" if matrix else "element"
        span = f"{what} {beyond[0]}" if len(beyond) == 1 else f"{what}s {beyond[0]} to {beyond[-1]}"
        has = f"{name} has {len(value)} {what}{'s' if len(value) > 1 else ''}{_called(case, len(value))}"
        text = f"At {case.label} the kernel goes on to {span} of {name}, and {has}"
        text += f", numbered 0 to {len(value) - 1}."
        first = _first_read_beyond(trace, number, value.itemsize, value.size)
        if len(beyond) == 1 and beyond[0] == len(value) and first >= length:
            text += f" It begins at {what} {first // length} too: the index is {first // length} too large."
        elif len(beyond) == 1 and beyond[0] == len(value):
            text += (
                " It goes exactly one too far: is there a `<=` that must be `<`, a `>` that must be `>=`, or an index that "
                "reaches one further?"
            )
        elif matrix:
            text += " The loop along K must end there, or a guard must stop what lies beyond."
        said.append(text)
    return said[:1]


def _first_read_beyond(trace, number: int, itemsize: int, size: int) -> int:
    """The least element that the accesses touch which leave this array; 0 where that is its first one."""
    by_line: dict = {}
    for row in trace.instructions:
        for access in trace.accesses(row):
            if access.buffer == f"argument {number}":
                lanes = access.addresses[access.active] // itemsize
                if len(lanes) > 1 and lanes[0] > lanes[-1]:
                    return 0  # it counts down, so where it begins says nothing
                by_line.setdefault((row.frames, access.kind), []).append(lanes)
    touched = [np.concatenate(lanes) for lanes in by_line.values()]
    return min((int(lanes.min()) for lanes in touched if (lanes >= size).any()), default=0)


def _same_columns(found: np.ndarray, length: int) -> bool:
    """Whether each of the rows that are touched is touched in the same columns, as where only their number is wrong."""
    first = np.unique(found // length, return_index=True)[1]
    columns = np.split(found % length, first[1:])
    return all(np.array_equal(columns[0], other) for other in columns)


def fixed_sizes(case: Case, source: str, *texts: str) -> list[str]:
    """A sentence where the text holds a number that is a size of this case, which the kernel gets right, and is not given."""
    given = {number for text in texts for number in re.findall(r"\b\d+\b", text)}
    for number, line in enumerate(source.splitlines(), 1):
        for text in re.findall(r"(?<![\w.])\d+(?![\w.])", line.split("//")[0]):
            names = [name for name, n in sizes_of(case).items() if n == int(text)]
            if text not in given and int(text) > 4 and names:
                return [
                    f"It is right at {case.label}, and {text} stands in line {number}: must that be {names[0]}, which is another "
                    "number at each launch?"
                ]
    return []


def unused_axis(case: Case, ptx: str) -> list[str]:
    """A sentence where the grid has several blocks along an axis that the kernel never asks for."""
    for axis, count in zip("xyz", case.grid, strict=False):
        if count > 1 and f"%ctaid.{axis}" not in ptx:
            return [
                f"The grid has {count} blocks along {axis}, and the kernel does not use blockIdx.{axis}: all of these blocks do "
                "the same work, and that of the others is not done."
            ]
    return []


def _called(case: Case, size: int) -> str:
    names = [name for name, n in sizes_of(case).items() if n == size]
    return f" ({names[0]})" if len(names) == 1 else ""


def stored_again(case: Case, trace, source: str, kernel: str) -> list[str]:
    """A sentence where the threads of block (0, 0) store each element of the output several times."""
    stores, itemsize = [], case.args[case.output].itemsize
    for row in trace.instructions:
        for access in trace.accesses(row):
            if access.buffer == f"argument {case.output}" and access.kind == "store":
                lanes = access.addresses[access.active]
                stores.append((lanes[:, None] + np.arange(0, access.width, itemsize)).reshape(-1))
    if not stores:
        return []
    times = np.unique(np.concatenate(stores), return_counts=True)[1]
    if np.median(times) < 2:
        return []
    name = parameter_name(case.output, source, kernel)
    return [
        f"Most elements of {name} are stored {int(np.median(times))} times, by several threads that do the same work: the "
        "step of the loop must be as large as what all threads of the block do in one turn."
    ]
