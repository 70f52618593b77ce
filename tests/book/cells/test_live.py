"""Live controls: what a run says, what a page shows, and the widgets as a reader would move them, without a browser."""

import json
import time

import pytest

import kernels
from book import chapters
from book.cells import live

SMALL = {"choices": {"BLOCK": (8, 16)}, "shape": (32, 32, 16)}


def test_a_run_says_what_is_right_and_what_is_wrong():
    right = live.run("tiled", {"BLOCK": 16}, (32, 32, 16))
    assert right.right and right.verdict == "The product is right."
    assert {row[0]: row[2] for row in right.rows}["load A"] > 0
    wrong = live.run("tiled", {"BLOCK": 16}, (32, 32, 16), [("Bs[k][tile_col]", "Bs[k][0]")])
    assert not wrong.right and "wrong" in wrong.verdict
    broken = live.run("tiled", {"BLOCK": 16}, (32, 32, 16), [("Bs[k][tile_col]", "Bs[k][tile_col")])
    assert broken.problem.startswith("It does not compile")
    outside = live.run("tiled", {"BLOCK": 16}, (32, 32, 16), [("Bs[k]", "Bs[k + 9999]")])
    assert "OutOfBounds" in outside.problem
    refused = live.run("vectorized", {"BK": 8, "TM": 4}, (128, 128, 16))
    assert (
        refused.problem
        == "It does not compile: the kernel asks that each thread loads as many float4"
    )


def test_a_run_counts_what_no_lane_addresses_and_what_a_block_takes():
    done = live.run("wgmma", {"BM": 64, "BN": 64}, (64, 64, 64))
    rows = {row[0]: row[1:] for row in done.rows}
    assert rows["TMA reads"][1] == 2 * 64 * 64 * 2 // 32  # both tiles, once
    assert rows["wgmma reads"][2] > 0
    built = kernels.build("wgmma", {"BM": 64, "BN": 64}, arch="90a")
    assert f"{built.report.registers} registers" in done.block
    assert "128 threads" in done.block
    early = ("wgmma_wait<0>();", "wgmma_wait<1>();")
    assert live.run("wgmma", {"BM": 64, "BN": 64}, (64, 64, 128), [early]).trace.hazards
    copied = {row[0]: row[1:] for row in live.run("async_copy", {"PAD": 4}, (128, 128, 16)).rows}
    assert copied["cp.async reads"][1] and not copied["cp.async reads"][2]
    assert copied["cp.async writes"][2] > copied["cp.async writes"][3]  # the padding's conflicts


def test_a_page_has_a_figure_of_all_settings(monkeypatch):
    monkeypatch.setenv("GEMM_LIVE", "0")
    made = live.kernel("tiled", **SMALL)
    assert set(made.figure.data["counts"]) == {"8", "16"}
    assert "64 threads" in made.figure.data["blocks"]["8"]
    assert not live.wanted()
    with pytest.raises(ValueError, match="at most 24"):
        _ = live.kernel("warp_tiled").figure
    with pytest.raises(ValueError, match="does not contain"):
        live.kernel("tiled", free={"a": "no such words"})


def done(panel) -> None:
    """Waits until no run is under way."""
    until = time.monotonic() + 60
    while panel.job.is_alive():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_widgets_run_the_kernel():
    pytest.importorskip("ipywidgets")
    panel = live.Panel(live.kernel("tiled", **SMALL, free={"the read": "Bs[k][tile_col]"}))
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


def test_a_long_run_is_stopped():
    def for_ever():
        while True:
            time.sleep(0.01)

    job = live.Job(for_ever)
    job.start()
    job.stop()
    job.join(5)
    assert not job.is_alive() and job.stopped


def test_no_stored_output_holds_a_widget():
    for path in chapters.paths():
        outputs = [o for c in chapters.read(path).cells for o in c.get("outputs", [])]
        kinds = {kind for output in outputs for kind in output.get("data", {})}
        assert not [kind for kind in kinds if "widget" in kind], path.name
        assert "widgets" not in json.loads(path.read_text(encoding="utf-8"))["metadata"]
