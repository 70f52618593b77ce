"""The judges of the two answers that are no kernels, but functions in Python: a tensor map, and registers shared out."""

from __future__ import annotations

import numpy as np

from emulator import TensorMap
from kernels.shapes import ceil_div


def _kind(dtype) -> str:
    return np.dtype(dtype).name


def encoded_map(describe) -> list[str]:
    """Compare `describe(matrix, rows, row_bytes)` with the tensor maps that it should give, field by field."""
    if not callable(describe):
        return [
            'The answer is the function itself: check("encode_map", describe), without parentheses'
        ]
    asked = (  # type, shape of the whole array, columns of the matrix, rows and bytes of a box
        (np.float16, (100, 320), 320, 64, 128),
        (np.float32, (70, 240), 176, 32, 128),
        (np.float16, (65, 480), 272, 16, 64),
        (np.int8, (90, 400), 208, 8, 32),
    )
    for dtype, shape, columns, rows, row_bytes in asked:
        size = np.dtype(dtype).itemsize
        matrix = np.zeros(shape, dtype)[:, :columns]
        what = f"{rows} rows of {row_bytes} bytes of a {_kind(dtype)} matrix of {matrix.shape[0]} x {matrix.shape[1]}"
        try:
            found = describe(matrix, rows, row_bytes)
        except ValueError as error:
            return [
                f"For {what}, TensorMap refuses. {error}.",
                *_refused(str(error), rows, row_bytes, size),
            ]
        if said := _not_the_map(found, matrix, rows, row_bytes, size):
            return [f"For {what}: {said}"]
    return []


def _refused(text: str, rows: int, row_bytes: int, size: int) -> list[str]:
    if "integers" in text and "." in text.split("box", 1)[-1].split(")")[0]:
        return ["The box has whole numbers: / gives a float, // an integer."]
    if f"row has {row_bytes} bytes" in text:
        return [
            f"The box is right. The swizzle spans another number of bytes than its rows have, {row_bytes}."
        ]
    if "each 1 to 256" in text:
        return [
            f"A box is a tile, not the whole matrix: {rows} rows of {row_bytes // size} elements of {size} bytes."
        ]
    if "swizzle" in text and "one of" in text:
        return ["The swizzle is a number of bytes, those of a row of the box."]
    if f"row has {rows * size} bytes" in text and rows * size != row_bytes:
        return ["The box counts rows first, then columns: its sides are the other way round."]
    if f"row has {row_bytes * size} bytes" in text or f", {row_bytes})" in text:
        return ["The box counts elements. A row of row_bytes bytes has row_bytes // itemsize."]
    if f"row has {row_bytes // 2 * size} bytes" in text:
        return ["An element does not always have two bytes: ask matrix.itemsize."]
    if "neighbours in a row" in text or "rows are" in text:
        return ["The rows of the map have to be the rows of the matrix: do not transpose it."]
    return []


def _not_the_map(found, matrix, rows: int, row_bytes: int, size: int) -> str:
    if found is None:
        return "the function returns nothing. Does it end with return TensorMap(...)?"
    if not isinstance(found, TensorMap):
        return f"the answer is a TensorMap, not {type(found).__name__}"
    columns = row_bytes // size
    if found.box != (rows, columns):
        if found.box == (columns, rows):
            return (
                "the box's sides are the other way round. Rows come first, as in the matrix's shape"
            )
        if found.box[0] == rows and found.box[1] == row_bytes:
            return "the box counts elements, not bytes. A row of row_bytes bytes has row_bytes // itemsize"
        if found.box[0] == rows and found.box[1] * 2 == row_bytes:
            return f"the box has {found.box[1]} columns of {size} bytes. Not every element has two bytes: ask matrix.itemsize"
        return f"the box is {found.box}, and should be ({rows}, {columns}): rows, then elements of {size} bytes"
    if found.swizzle != row_bytes:
        if not found.swizzle:
            return "the box is right, and there is no swizzle, so a column of chunks would lie in the same banks"
        return f"the box is right. The swizzle spans {found.swizzle} bytes, and a row of the box has {row_bytes}"
    if found.shape != matrix.shape:
        return (
            f"the extents are {found.shape}, those of the matrix {matrix.shape}. The map describes the whole matrix, and the "
            "kernel names the tile"
        )
    if found.address != matrix.__array_interface__["data"][0] or found.strides != matrix.strides:
        return "the map describes a copy of the matrix. It has to point at the matrix itself, whose rows may lie further apart"
    if set(found.element_strides) != {1} or found.interleave or found.fill != "zero":
        return "box and swizzle are right. Leave element_strides, interleave and fill as they are by default"
    if found.itemsize != size or found.format == "tf32":
        return f"the format is {found.format}, and the matrix holds {_kind(matrix.dtype)}"
    return ""


LEAST, UNIT = 24, 8


def best_share(launched: int, consumers: int, producer: int) -> tuple[int, int]:
    """Registers per thread of the producer and of each consumer: as few and as many as can be."""
    small = max(LEAST, ceil_div(producer, UNIT) * UNIT)
    return small, (launched * (consumers + 1) - small) // consumers // UNIT * UNIT


def shared_registers(share) -> list[str]:
    """Compare `share(launched, consumers, producer)` with the best that setmaxnreg allows; say which rule is broken."""
    if not callable(share):
        return [
            'The answer is the function itself: check("balance_roles", share), without parentheses'
        ]
    rng = np.random.default_rng()
    asked = [(168, 2, 40), (168, 2, 24), (160, 2, 40), (128, 3, 30), (128, 1, 13)]
    asked += [
        (8 * int(rng.integers(12, 22 - 5 * (c != 2))), c, int(rng.integers(10, 57)))
        for c in (1, 2, 3, 2)
    ]
    for launched, consumers, producer in asked:
        what = f"share({launched}, {consumers}, {producer})"
        found = share(launched, consumers, producer)
        pair = isinstance(found, tuple | list) and len(found) == 2
        if not pair or not all(isinstance(n, int | np.integer) for n in found):
            more = "; / gives a float, // an integer" if pair else ""
            return [
                f"{what} gives {found!r}: the answer is two integers, the producer's and a consumer's{more}"
            ]
        if said := _bad_share(tuple(map(int, found)), launched, consumers, producer):
            return [f"{what} gives {tuple(map(int, found))}. {said}."]
    return []


def _bad_share(found, launched: int, consumers: int, producer: int) -> str:
    small, large = found
    right = best_share(launched, consumers, producer)
    if found == right:
        return ""
    if found == right[::-1]:
        return "The two are the other way round: the producer's number comes first"
    if small == right[0] and (said := _too_many(small, large, consumers, launched)):
        return said
    for name, number in (("producer", small), ("consumers", large)):
        if number % UNIT:
            return f"{number} for the {name} is no multiple of {UNIT}, in which registers are handed out"
        if not LEAST <= number <= 256:
            return f"setmaxnreg takes from {LEAST} to 256, not {number}"
    if small < producer:
        return f"The producer's code needs {producer} registers, so {small} are too few"
    if small > right[0]:
        return f"The producer needs no more than {right[0]}: {producer}, rounded up to a multiple of {UNIT}, and {LEAST} at least"
    held, there = small + consumers * large, launched * (consumers + 1)
    return f"{small} + {consumers} x {large} = {held} of {there}: there is room for {right[1]} in each consumer"


def _too_many(small: int, large: int, consumers: int, launched: int) -> str:
    """What is said where they hold more than the block was given."""
    held, there = small + consumers * large, launched * (consumers + 1)
    sums = f"{small} + {consumers} x {large} = {held}"
    if held > there:
        if held <= 512:
            return (
                f"{sums} fit the multiprocessor, but the block was given {consumers + 1} x {launched} = {there} at launch, "
                "and the consumers would wait for ever"
            )
        return (
            f"{sums} per lane of the {consumers + 1} warpgroups, and there are {consumers + 1} x {launched} = {there}: "
            "the consumers would wait for ever"
        )
    return ""
