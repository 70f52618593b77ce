"""What a launch touches of its arrays, compared with what it has to touch: which of them at all, and which part of each.

A wrong index, stride or step shows in the elements that a block reads and stores. What they must be is what the exercise's
solution touches in the same launch.
"""

from collections import defaultdict

import numpy as np

from .exercise import Case
from .explain import own_line, parameter_name


def astray(case: Case, mine, right, source: str, kernel: str, file: str) -> str | None:
    """A sentence on the first block that touches other elements than it must, None where there is none.

    mine, right: these give the trace of one block in ample memory, of the reader's kernel and of the solution.
    """
    wanted = [
        (case.output, False),
        *((i, True) for i, a in enumerate(case.args) if isinstance(a, np.ndarray)),
    ]
    for block in _corners(case.grid):
        layers = [(*block[:2], z) for z in range((*case.grid, 1, 1)[2])]
        traces = [[of(layer) for layer in layers] for of in (mine, right)]
        if any(trace is None for traced in traces for trace in traced):
            return None
        places = [list(map(_places, traced)) for traced in traces]
        touched = {key: [_touched(found, case, *key) for found in places] for key in wanted}
        unread = [
            parameter_name(number, source, kernel)
            for (number, loads), (has, must) in touched.items()
            if loads and len(must) and not len(has)
        ]
        if unread and len(touched[wanted[0]][0]):
            are = "are" if len(unread) > 1 else "is"
            return f"{' and '.join(unread)} {are} not read, or what is read is not used."
        whose = (
            f"Block {block}"
            if len(layers) == 1
            else f"The {len(layers)} blocks ({block[0]}, {block[1]}, z)"
        )
        for (number, loads), (has, must) in touched.items():
            if not len(must) or np.array_equal(has, must):
                continue
            name, shape = parameter_name(number, source, kernel), case.args[number].shape
            if not len(has):
                return f"{whose} stores nothing to {name}, and must store to {area(name, shape, must)}."
            does, do = ("reads", "read") if loads else ("stores to", "store to")
            if len(layers) > 1:
                does = do
            return (
                f"{whose} {does} {area(name, shape, has)}, and must {do} {area(name, shape, must)}"
                f"{_at(traces[0][0], number, loads, file)}.{_one_too_far(has, must, shape)}"
            )
    return None


def _one_too_far(has, must, shape) -> str:
    """Where it is all right, and one element, or one row, beyond."""
    more = np.setdiff1d(has, must)
    row = shape[-1] if len(shape) > 1 else 1
    if len(np.setdiff1d(must, has)) or more.min() <= must.max() or len(np.unique(more // row)) > 1:
        return ""
    return (
        " That is exactly one too far: is there a `<=` that must be `<`, a `>` that must be `>=`, or an index that reaches "
        "one further?"
    )


def _corners(grid) -> list[tuple[int, int, int]]:
    """The first block, its neighbour along each axis, and the last one; those above each other along z count as one."""
    x, y, _ = (*grid, 1, 1)[:3]
    found = [(0, 0, 0), (min(1, x - 1), 0, 0), (0, min(1, y - 1), 0), (x - 1, y - 1, 0)]
    return list(dict.fromkeys(found))


def _places(trace) -> dict[tuple[str, bool], list[tuple[np.ndarray, int]]]:
    """{(buffer, whether they are loads): [(byte addresses, bytes from each)]} of what the block does in global memory."""
    found = defaultdict(list)
    for row in trace.instructions:
        if any(one.space == "global" for one in row.samples):
            for access in trace.accesses(row):
                place = access.addresses[access.active], access.width
                found[access.buffer, _is_load(access)].append(place)
    return found


def _touched(layers, case: Case, number: int, loads: bool) -> np.ndarray:
    size, by_width = case.args[number].itemsize, defaultdict(list)
    for places in layers:
        for addresses, width in places.get((f"argument {number}", loads), ()):
            by_width[max(width // size, 1)].append(addresses // size)
    found = [
        (np.unique(np.concatenate(first))[:, None] + np.arange(count)).reshape(-1)
        for count, first in by_width.items()
    ]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _is_load(access) -> bool:
    return access.kind.startswith(("load", "cp.async"))


def area(name: str, shape, found: np.ndarray) -> str:
    """ "rows 0 to 31, columns 32 to 63 of C", "x[0] to x[127]"."""
    if len(shape) == 2:
        rows, columns = found // shape[1], found % shape[1]
        r, c = np.unique(rows), np.unique(columns)
        if len(found) == len(r) * len(c) and len(found) > 1:
            return f"{_span('row', r)}, {_span('column', c)} of {name}"
    row = int(np.prod(shape[1:]))
    return spans(name, (max(shape[0], int(found.max()) // row + 1), *shape[1:]), found)


def _span(what: str, values: np.ndarray) -> str:
    if len(values) == 1:
        return f"{what} {values[0]}"
    if (np.diff(values) == 1).all():
        return f"{what}s {values[0]} to {values[-1]}"
    return f"{what}s {', '.join(map(str, values[:3]))}" + (
        f" and so on to {values[-1]}" if len(values) > 3 else ""
    )


def _at(trace, number: int, loads: bool, file: str) -> str:
    """ " (line 12)", where only one line reads or stores there."""
    lines = {
        own_line(row.frames, file)
        for row in trace.instructions
        for access in trace.accesses(row)[:2]
        if access.buffer == f"argument {number}" and _is_load(access) == loads
    } - {None}
    return f" (line {lines.pop()})" if len(lines) == 1 else ""


def spans(name: str, shape, found: np.ndarray, most: int = 3) -> str:
    """ "X[0][16] to X[0][31]", "x[1], x[3], x[5] and so on (16 in all, the last x[31])"."""

    def at(i) -> str:
        return name + "".join(f"[{k}]" for k in np.unravel_index(int(i), shape))

    runs = np.split(found, np.flatnonzero(np.diff(found) != 1) + 1)
    parts = [
        f"{at(run[0])} to {at(run[-1])}" if len(run) > 1 else at(run[0]) for run in runs[:most]
    ]
    if len(runs) > most:
        return f"{', '.join(parts)} and so on ({len(found)} in all, the last {at(found[-1])})"
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
