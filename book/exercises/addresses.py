"""What the addresses of a launch say of its mistake: arrays that are never touched, and rows taken to be of another length."""

from __future__ import annotations

import re

import numpy as np

from .exercise import Case
from .explain import parameter_name


def touched(trace) -> dict[int, set[str]]:
    """For each array argument the kinds of access that the first block's warps made to it."""
    found: dict[int, set[str]] = {}
    for row in trace.instructions:
        for access in trace.accesses(row):
            if access.buffer.startswith("argument "):
                kind = "store" if access.kind == "store" else access.kind
                found.setdefault(int(access.buffer.split()[1]), set()).add(kind)
    return found


def untouched(case: Case, trace, source: str, kernel: str) -> list[str]:
    """Sentences on arrays that the kernel should have read or written and has not touched at all."""
    kinds = touched(trace)
    said, unread = [], []
    for number, value in enumerate(case.args):
        if not isinstance(value, np.ndarray):
            continue
        name = parameter_name(number, source, kernel)
        if number == case.output:
            if not kinds.get(number, set()) - {"load"}:
                said.append(f"Nothing is ever stored to {name}.")
        elif number not in kinds:
            unread.append(name)
    if unread:
        are = "is" if len(unread) == 1 else "are"
        said.append(f"{' and '.join(unread)} {are} not read, or what is read is not used.")
    return said


def shared_outputs(case: Case, trace) -> list[str]:
    """A sentence where many threads of the first block store to the same few elements of the output."""
    stores, width = [], case.args[case.output].itemsize
    for row in trace.instructions:
        for access in trace.accesses(row):
            if access.buffer == f"argument {case.output}" and access.kind == "store":
                lanes = np.flatnonzero(access.active)
                stores.append(
                    np.stack([access.addresses[lanes] // width, 32 * access.warp + lanes])
                )
    if not stores:
        return []
    by_threads = np.unique(np.concatenate(stores, axis=1), axis=1)  # a thread may store there again
    places, times = np.unique(by_threads[0], return_counts=True)
    if times.max() < 2 or len(places) * 2 > times.sum():
        return []
    return [
        f"{times.max()} stores of block (0, 0) go to one element, and other elements get none: two threads of a block "
        "must never have the same row and the same column."
    ]


def strides(case: Case, trace, source: str, kernel: str) -> list[str]:
    """Sentences on matrices whose rows the kernel takes to be longer or shorter than they are.

    trace: of this case, a product of whole tiles, in ample memory. Block (0, 0) should touch a rectangle of
    each matrix. Where it touches exactly what would be that rectangle if rows had another length, that
    length was used.
    """
    said = []
    for number, (rows, columns) in _rectangles(case).items():
        right = case.args[number].shape[1]
        found = elements(trace, number, case.args[number].itemsize)
        if not len(found) or np.array_equal(found, _rectangle(rows, columns, right)):
            continue
        name = parameter_name(number, source, kernel)
        for size, what in _other_lengths(case, number):
            taken = [_rectangle(rows, columns, size), _in_steps(rows, columns, right, size)]
            if size != right and any(np.array_equal(found, other) for other in taken):
                said.append(
                    f"The rows of {name} are taken to begin {what} apart; they are {right} elements apart"
                    f"{_called(case, right)}."
                )
                break
    return said


def _rectangles(case: Case) -> dict[int, tuple[int, int]]:
    """For A, B and C, how many rows and columns of it block (0, 0) has to do with; nothing where tiles are not whole."""
    sizes = sizes_of(case)
    if (
        case.product is None
        and len(case.grid) == 1
        and isinstance(case.args[0], np.ndarray)
        and case.args[0].ndim == 2
        and case.expected.ndim == 1
    ):
        rows, columns = case.args[0].shape  # sums of rows
        return {} if rows % case.grid[0] else {0: (rows // case.grid[0], columns)}
    if case.product is None and len(case.grid) == 2 and case.output == 1:
        return _of_a_mapping(case)
    if case.product is None or len(case.grid) != 2:
        return {}
    M, N, K = sizes.values()
    across, down = case.grid
    if M % down or N % across:
        return {}
    by_columns = case.args[1].shape == (N, K) != (K, N)  # B is given column by column
    of_b = (N // across, K) if by_columns else (K, N // across)
    return {0: (M // down, K), 1: of_b, case.output: (M // down, N // across)}


def _of_a_mapping(case: Case) -> dict[int, tuple[int, int]]:
    """The same where whole tiles of a matrix go to a matrix of the same shape, or of the transposed one."""
    source, (across, down) = case.args[0], case.grid
    if not isinstance(source, np.ndarray) or source.ndim != 2 or case.expected.ndim != 2:
        return {}
    (M, N), turned = source.shape, case.expected.shape == source.shape[::-1]
    if M % down or N % across or not (turned or case.expected.shape == source.shape):
        return {}
    rows, columns = M // down, N // across
    return {0: (rows, columns), 1: (columns, rows) if turned else (rows, columns)}


def _rectangle(rows: int, columns: int, length: int) -> np.ndarray:
    return np.unique(np.arange(rows)[:, None] * length + np.arange(columns))


def _in_steps(rows: int, columns: int, length: int, size: int) -> np.ndarray:
    """The same where each 16 rows begin in the right place, and lie `size` apart from there: fragments with a wrong stride."""
    row = np.arange(rows)[:, None]
    return np.unique(row // 16 * 16 * length + row % 16 * size + np.arange(columns))


def elements(trace, number: int, itemsize: int) -> np.ndarray:
    """The elements of this array that the first block touched, sorted. Empty where one begins between two elements."""
    found = []
    for row in trace.instructions:
        for access in trace.accesses(row):
            if access.buffer == f"argument {number}":
                lanes = access.addresses[access.active]
                found.append((lanes[:, None] + np.arange(0, access.width, itemsize)).reshape(-1))
    places = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
    return places // itemsize if not (places % itemsize).any() else places[:0]


def _called(case: Case, size: int) -> str:
    names = [name for name, value in sizes_of(case).items() if value == size]
    return f" ({names[0]})" if len(names) == 1 else ""


def sizes_of(case: Case) -> dict[str, int]:
    if case.product is None:
        named = {name: int(n) for name, n in re.findall(r"(\w)=(\d+)", case.label)}
        if not named and isinstance(case.args[0], np.ndarray) and case.args[0].ndim == 2:
            named = dict(zip("MN", case.args[0].shape, strict=True))
        return named
    (M, K), N = case.product.A.shape, case.product.B.shape[1]
    return {"M": M, "N": N, "K": K}


def _other_lengths(case: Case, number: int):
    value = case.args[number]
    size = value.shape[1] * value.itemsize
    yield size, f"{size} elements (a length in bytes, where C++ counts elements)"
    for name, length in sizes_of(case).items():
        yield length, f"{length} elements ({name})"
    for tile in (16, 32, 64, 8):
        yield tile, f"{tile} elements (a tile's width)"
