"""The clock between two marks, and the kernel that sets them."""

from types import SimpleNamespace

import numpy as np
import pytest

from kernels.build import build
from kernels.launch import launch
from measure import clock


def marks(*rows):
    """A mark as a GPU leaves it: clocks and nanoseconds of each multiprocessor, zero where no block came."""
    return SimpleNamespace(get=lambda: np.array(rows, np.int64))


def test_the_clock_is_the_median_of_the_multiprocessors_that_both_marks_came_to():
    before = marks((1000, 500), (7000, 500), (0, 0), (50, 500), (10, 500))
    after = marks((2800, 1500), (8600, 1500), (9999, 1500), (0, 0), (1710, 1500))
    assert clock.ghz(before, after) == pytest.approx(1.7)


def test_marks_without_a_common_multiprocessor_are_an_error():
    with pytest.raises(RuntimeError, match="no multiprocessor was seen by both marks"):
        clock.ghz(marks((1000, 500), (0, 0)), marks((0, 0), (1000, 900)))


def test_a_mark_has_a_row_for_each_multiprocessor_that_a_block_came_to():
    seen = np.zeros((clock.MOST_SMS, 2), np.int64)
    launch(build(clock.SOURCE, arch=80), "clock_mark", 4, 32, [seen], machine="emulator")
    assert 1 <= (seen[:, 1] > 0).sum() <= 4
