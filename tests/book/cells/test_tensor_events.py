"""What the roles of tcgen05_pipelined do, and the model of sets of sums that take turns."""

import pytest

from book.cells import tensor_events


def test_each_role_does_each_step_once_and_sets_take_turns():
    found = tensor_events.events(tiles=3, steps=2, stages=2)
    for what, count in {"copies": 6, "multiplies": 6, "begins": 3, "stores": 3}.items():
        assert sum(event.what == what for event in found) == count
    for event in found:
        if event.what in ("begins", "stores"):
            assert event.place == event.tile % 2
            assert event.parity == (event.tile // 2 + (event.what == "begins")) % 2
    order = [(event.what, event.tile) for event in found]
    assert order.index(("begins", 1)) < order.index(("stores", 0))
    assert order.index(("begins", 2)) > order.index(("stores", 0))


@pytest.mark.parametrize(("sets", "end"), [(1, 4 * 15), (2, 4 * 10 + 5)])
def test_a_second_set_hides_the_store(sets, end):
    assert tensor_events.tiles_over_time(sets, 10, 5)[-1]["end"] == end


def test_a_store_longer_than_the_products_is_not_hidden():
    assert tensor_events.tiles_over_time(2, 5, 10)[-1]["end"] == 5 + 4 * 10
