"""The widgets as a reader would move them, without a browser."""

import time

import pytest

from book.cells import live
from book.cells.panel import Job, Panel

SMALL = {"choices": {"BLOCK": (8, 16)}, "shape": (32, 32, 16)}


def done(panel) -> None:
    """Waits until no run is under way."""
    until = time.monotonic() + 60
    while panel.job.is_alive():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_widgets_run_the_kernel():
    pytest.importorskip("ipywidgets")
    panel = Panel(live.kernel("tiled", **SMALL, free={"the read": "Bs[k][tile_col]"}))
    done(panel)
    assert "The product is right" in panel.state.value
    first = panel.counts.value
    panel.sliders["BLOCK"].value = 16
    done(panel)
    assert panel.counts.value != first and panel.outcome.macros["BLOCK"] == 16
    panel.boxes["the read"].value = "Bs[k][0]"
    done(panel)
    assert "The product is wrong" in panel.state.value
    panel.lane.value = 5
    assert "Lane 5" in panel.said.value and "<svg" in panel.picture.value
    panel.begin_again()
    done(panel)
    assert panel.counts.value == first


def test_the_widgets_run_a_kernel_of_others():
    pytest.importorskip("ipywidgets")
    asked = {"shape": (32, 32, 64), "start": {"TILES": 1}, "free": {"its column": "thread % 8 * 4"}}
    panel = Panel(live.kernel("all copy, 4 bytes", {"ALIGN": (4, 16)}, **asked))
    done(panel)
    assert "The product is right" in panel.state.value
    requests = dict(row[:2] for row in panel.outcome.rows)["cp.async reads"]
    panel.sliders["ALIGN"].value = 16
    done(panel)
    assert dict(row[:2] for row in panel.outcome.rows)["cp.async reads"] * 4 == requests
    panel.boxes["its column"].value = "thread % 4 * 4"
    done(panel)
    assert "The product is wrong" in panel.state.value
    panel.size.value = 64
    done(panel)
    assert panel.outcome.trace.grid[:2] == (2, 2)


def test_a_long_run_is_stopped():
    def for_ever():
        while True:
            time.sleep(0.01)

    job = Job(for_ever)
    job.start()
    job.stop()
    job.join(5)
    assert not job.is_alive() and job.stopped
