"""A tensor map says what TMA needs of an array, and refuses what the driver would refuse."""

import numpy as np
import pytest

from emulator import TensorMap
from emulator.machine.tensor_map import FORMATS
from kernels.tensor_map import DRIVER_NAMES

HALVES = np.zeros((100, 64), np.float16)

WRONG = {
    "each 1 to 256": (HALVES, {"box": (257, 64)}),
    "at most the swizzle's span": (HALVES, {"box": (8, 64), "swizzle": 64}),
    "2 integers, one per dimension": (HALVES, {"box": (64,)}),
    "a multiple of 16$": (HALVES, {"box": (64, 4)}),
    "fill 'one': one of zero, nan": (HALVES, {"box": (8, 8), "fill": "one"}),
    "swizzle 16: one of 0, 32": (HALVES, {"box": (8, 8), "swizzle": 16}),
    "float32 has 4 bytes": (HALVES, {"box": (8, 8), "format": "float32"}),
    "no format complex64": (np.zeros((8, 8), np.complex64), {"box": (8, 8)}),
    "begins at": (HALVES[:, 1:], {"box": (8, 8)}),
    "neighbours in a row are 4 bytes apart": (HALVES[:, ::2], {"box": (8, 8)}),
    "rows are .24,. bytes apart": (np.zeros((3, 12), np.float16), {"box": (1, 8)}),
    "1 to 5 dimensions, not 6": (np.zeros((1,) * 5 + (8,), np.float16), {"box": (1,) * 5 + (8,)}),
    "element strides": (HALVES, {"box": (8, 8), "element_strides": (9, 1)}),
    "interleave 16 needs 3 dimensions": (HALVES, {"box": (8, 8), "interleave": 16}),
    "only floating-point": (np.zeros((8, 16), np.int8), {"box": (8, 16), "fill": "nan"}),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_the_driver_would_refuse_is_said(words):
    array, settings = WRONG[words]
    with pytest.raises(ValueError, match=words):
        TensorMap(array, **settings)


def test_a_map_knows_its_array():
    window = HALVES[10:30, 8:40]
    found = TensorMap(window, (16, 32), swizzle=64, element_strides=(2, 1))
    assert found.address == HALVES.ctypes.data + 10 * 128 + 16
    assert (found.shape, found.strides, found.format) == ((20, 32), (128, 2), "float16")
    assert found.box_bytes == 8 * 32 * 2  # every second row of the box


def test_bfloat16_is_stored_as_uint16():
    found = TensorMap(np.zeros((8, 64), np.uint16), (8, 64), format="bfloat16", swizzle=128)
    assert (found.format, found.itemsize) == ("bfloat16", 2)


def test_every_format_has_a_name_for_the_driver():
    assert set(DRIVER_NAMES) == set(FORMATS)
