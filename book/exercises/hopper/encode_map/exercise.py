"""Encode a tensor map."""

import numpy as np

from book.exercises.exercise import Exercise
from emulator import TensorMap


def encoded_map(describe, _) -> list[str]:
    asked = (  # type, shape of the whole array, columns of the matrix, rows and bytes of a box
        (np.float16, (100, 320), 320, 64, 128),
        (np.float32, (70, 240), 176, 32, 128),
        (np.float16, (65, 480), 272, 16, 64),
        (np.int8, (90, 400), 208, 8, 32),
    )
    for dtype, shape, columns, rows, row_bytes in asked:
        size = np.dtype(dtype).itemsize
        matrix = np.zeros(shape, dtype)[:, :columns]
        what = f"{rows} rows of {row_bytes} bytes of a {matrix.dtype.name} matrix of {matrix.shape[0]} x {matrix.shape[1]}"
        try:
            found = describe(matrix, rows, row_bytes)
        except ValueError as error:
            box = error.refused.box if hasattr(error, "refused") else ()
            said = _wrong_box(box, matrix, rows, row_bytes)
            return [
                f"For {what}, TensorMap refuses. {error}.",
                *([f"{said[0].upper()}{said[1:]}."] if said else []),
            ]
        if said := _not_the_map(found, matrix, rows, row_bytes, size):
            return [f"For {what}: {said}"]
    return []


def _wrong_box(box, matrix, rows: int, row_bytes: int) -> str:
    columns = row_bytes // matrix.itemsize
    if box == (columns, rows) != (rows, columns):
        return "the box's sides are the other way round. Rows come first, as in the matrix's shape"
    if box == matrix.shape:
        return f"a box is a tile, not the whole matrix: {rows} rows of {columns} elements"
    if box[-1:] == (row_bytes,):
        return (
            "the box counts elements, not bytes. A row of row_bytes bytes has row_bytes // itemsize"
        )
    if box[-1:] == (row_bytes // 2,) != (columns,):
        return "not every element has two bytes: ask matrix.itemsize"
    return ""


def _not_the_map(found, matrix, rows: int, row_bytes: int, size: int) -> str:
    if found is None:
        return "the function returns nothing. Does it end with return TensorMap(...)?"
    if not isinstance(found, TensorMap):
        return f"the answer is a TensorMap, not {type(found).__name__}"
    columns = row_bytes // size
    if found.box != (rows, columns):
        should = f"the box is {found.box}, and should be ({rows}, {columns}): rows, then elements of {size} bytes"
        return _wrong_box(found.box, matrix, rows, row_bytes) or should
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
    plain = set(found.element_strides) == {1} and not found.interleave and found.fill == "zero"
    if plain and found.itemsize == size and found.format != "tf32":
        return ""
    return "box and swizzle are right. Leave format, element_strides, interleave and fill as they are by default"


EXERCISE = Exercise.read(
    __file__,
    judge=encoded_map,
    variable="describe",
    twin=lambda run: run.python()(np.zeros((64, 64), np.float32), 64, 128).box[1],
)
