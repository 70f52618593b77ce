"""What the chapters on copies and pipelines call: the model, the order of events, the machine's tables."""

import numpy as np
import pytest

from book.cells import event_order, pipeline_model, the_machine
from kernels.rungs import find
from measure.machine import Machine, Row

TILES = 6


@pytest.mark.parametrize(
    ("stages", "load", "compute"), [(1, 3, 1), (2, 3, 1), (3, 3, 1), (4, 3, 1), (2, 1, 5)]
)
def test_the_model_comes_to_its_formula(stages, load, compute):
    products = [
        event
        for event in pipeline_model.events(stages, load, compute, 40)
        if event["row"] == "products"
    ]
    steady = (products[-1]["end"] - products[19]["end"]) / 20
    assert steady == pytest.approx(pipeline_model.per_tile(stages, load, compute))


def test_no_product_begins_before_its_copy_has_ended():
    events = pipeline_model.events(3, 5, 2, 10)
    copies, products = events[:10], events[10:]
    assert all(c["end"] <= p["start"] for c, p in zip(copies, products, strict=True))


def bars(events, row):
    return [event for event in events if event["row"] == row]


def test_a_kernel_that_waits_never_copies_and_multiplies_at_once():
    A, B = np.ones((2, 128, 128), np.float32)
    events = event_order.async_copy(A[:, :32], B[:32], tiles=2)
    copies, products = bars(events, "copies"), bars(events, "products")
    for copy in copies:
        assert all(copy["end"] <= p["start"] or p["end"] <= copy["start"] for p in products)


def test_a_pipeline_starts_copies_ahead():
    A, B = np.ones((2, 128, 128), np.float32)
    macros = find("async_pipeline").macros
    events = event_order.async_pipeline(A[:, :64], B[:64], macros, tiles=4)
    copies, products = bars(events, "copies"), bars(events, "products")
    assert [copy["stage"] for copy in copies] == [0, 1, 2, 0]
    assert copies[2]["start"] < products[0]["end"] < copies[2]["end"]
    assert all(c["end"] <= p["start"] for c, p in zip(copies, products, strict=True))


def test_bytes_per_clock_follow_from_the_whole_gpu_and_operations_are_counted_inside(monkeypatch):
    row = Row("bandwidth", "L2", 1000.0, "GB/s", "L2", 2.0)
    loop = Row("per clock", "ffma", 250.0, "operations per clock and SM", "FFMA", 2.0)
    seen = {(each.kind, each.name): each for each in (row, loop)}
    monkeypatch.setattr(
        the_machine.machine, "recorded", lambda: Machine("Some GPU", "2026-01-01", seen)
    )
    monkeypatch.setattr(the_machine, "load", lambda kind: {"machine": {"sms": 10}})
    rows = the_machine._rows()
    assert rows["bytes per clock", "L2"].value == pytest.approx(50)
    assert rows["per clock", "ffma"].value == 250
