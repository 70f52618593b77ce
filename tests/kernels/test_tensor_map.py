"""A tensor map says what TMA needs of an array; what it refuses, tests/emulator/ops/test_tma.py has."""

import numpy as np

from emulator import TensorMap
from emulator.machine.tensor_map import FORMATS
from kernels.tensor_map import DRIVER_NAMES

HALVES = np.zeros((100, 64), np.float16)


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
