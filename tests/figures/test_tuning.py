"""Strips of measurements, and the order of tiles."""

import pytest

import figures


def test_strips_name_the_best_of_each_row_and_of_all():
    drawing = figures.strips({2: [40.0, 41.0], 3: [44.25, 20.0], 4: []}, "STAGES")
    assert drawing.facts == {"2": (41.0, 2), "3": (44.25, 2)}
    assert "STAGES 3" in drawing.title


@pytest.mark.parametrize(
    ("found", "from_zero"), [([4.0, 40.0], True), ([30.0, 40.0], False), ([40.0], False)]
)
def test_an_axis_that_does_not_start_at_0_says_so(found, from_zero):
    drawing = figures.strips({2: found}, "STAGES")
    assert ("does not start at 0" not in drawing.caption) == from_zero


@pytest.mark.parametrize("groups", [{}, {1: []}, {1: [0.0]}, {1: [-2.0, 3.0]}])
def test_strips_need_measurements(groups):
    with pytest.raises(ValueError):
        figures.strips(groups, "STAGES")


@pytest.mark.parametrize(
    ("at_once", "strips"), [(1, (1, 1)), (3, (1, 3)), (4, (2, 3)), (6, (2, 3))]
)
def test_tiles_that_run_together_read_these_rows_and_columns(at_once, strips):
    drawing = figures.tile_order([[0, 1, 2], [3, 4, 5]], at_once)
    assert (drawing.facts["rows"], drawing.facts["columns"]) == strips
    assert drawing.facts["strips"] == sum(strips)


@pytest.mark.parametrize("order", [[[0, 1], [1, 2]], [[1, 2], [3, 4]]])
def test_an_order_numbers_every_tile_once(order):
    with pytest.raises(ValueError):
        figures.tile_order(order, 2)
