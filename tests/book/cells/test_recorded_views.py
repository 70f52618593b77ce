"""Tables and pictures of what was recorded say what the files say."""

import json
from itertools import product

import numpy as np
import pytest

from book.cells import intensity, limits, one_type, raster, search
from measure import provenance

ROW = {
    "rung": "fast", "cycles": 1.8e6, "milliseconds": 1.0, "issue slots used, %": 30.0, "FMA pipe, %": 4.0,
    "tensor pipe, %": 80.4, "shared-memory pipe, %": 50.0, "L2, %": 40.0,
    "stalls": {"selected": 1.0, "wait": 0.5, "barrier": 2.5, "lg_throttle": 0.001},
}  # fmt: skip
LOOKS = [
    {"clocks.sm": mhz, "clocks.max.sm": "1980", "power.draw": watts, "power.limit": "700"}
    for mhz, watts in (("1500", "690"), ("1200", "701.4"))
]


@pytest.fixture
def counted(monkeypatch):
    stored = {
        "rows": [ROW],
        "sustained": [
            {"rung": "fast", "burst_tflops": 10.0, "sustained_tflops": 8.0, "seconds": 2, "watched": LOOKS}
        ],
        "machine": {"gpu": "Some GPU"},
        "recorded": "2026-01-02T03:04",
    }  # fmt: skip
    monkeypatch.setattr(limits, "stored", lambda: stored)


def test_the_bar_of_cublas_is_the_tick_beside_the_rung():
    facts = one_type.compare(["wgmma_fp8"], 8192, inputs="tf32").facts
    assert facts["cublas"][0] == facts["wgmma_fp8"][1]


def test_busy_parts_and_clock(counted, tables):
    limits.show("fast")
    assert tables[0].rows == (("fast", "30%", "4%", "80%", "50%", "40%", "1.80"),)
    with pytest.raises(KeyError, match="fast"):
        limits.row("slow")


def test_waits_are_ordered_and_small_ones_left_out(counted):
    found = limits.waits("fast")
    assert list(found.facts) == ["the other warps at a barrier", "a fixed number of clocks"]
    assert "barrier" in found.title


def test_a_long_run_shows_the_lowest_clock_and_the_highest_power(counted, tables):
    limits.show_sustained()
    assert tables[0].rows == (("fast", "10.0", "8.0", "80%", "1,200", "701", "700"),)


@pytest.fixture
def tuned(tmp_path, monkeypatch):
    def row(bm, tflops, dropped=""):
        ms = 1 / tflops if tflops else None
        held = {
            "threads": 256,
            "registers": 128,
            "shared_bytes": 0,
            "blocks_per_sm": 1,
            "occupancy": 0.125,
        }
        return {"rung": "r", "macros": {"BM": bm, "BN": 8}, "ms": ms, "tflops": tflops, "dropped": dropped, **held}  # fmt: skip

    rows = [row(2, 5.0), row(4, 9.0), row(2, 7.0), row(8, None, "spills 8 bytes"),
            row(9, None, "9 bytes of shared memory, a block has 8")]  # fmt: skip
    (tmp_path / "tune-gpu.json").write_text(
        json.dumps({"rows": rows, "machine": {"gpu": "G", "arch": 90}, "recorded": "2026-01-02"})
    )
    monkeypatch.setattr(provenance, "FOLDER", tmp_path)
    search.recorded.cache_clear()
    yield
    search.recorded.cache_clear()


def test_settings_come_fastest_first_and_reasons_are_counted(tuned):
    assert [row["tflops"] for row in search.settings("r")] == [9.0, 7.0, 5.0]
    assert search.by(search.settings("r"), "BM") == {2: [7.0, 5.0], 4: [9.0]}
    assert search.why_dropped("r") == {
        "timed": 3, "registers spill": 1, "too much shared memory": 1
    }  # fmt: skip
    assert search.strips("r", "tile", search.tile).facts == {"2x8": (7.0, 2), "4x8": (9.0, 1)}


def test_occupancy_is_computed_not_read_from_the_recording(tuned):
    assert {(row["blocks_per_sm"], row["occupancy"]) for row in search.settings("r")} == {(2, 0.25)}


@pytest.mark.parametrize(("size", "share"), [(1024, 32 / 132), (4096, 512 / 528)])
def test_rounds_of_tiles(size, share):
    assert search.last_round(size, 128, 256) == pytest.approx(share)


@pytest.mark.parametrize(("group", "shape"), list(product((1, 3, 8), ((4, 6), (8, 5)))))
def test_the_kernels_order_takes_every_tile_once(group, shape):
    order = raster.order(group, *shape)
    assert sorted(order.ravel()) == list(range(order.size))
    rows = min(group, shape[0])
    assert list(order[:rows, 0]) == list(range(rows))  # down a column of the first group
    assert np.all(np.diff(order[0]) > 0)


def test_bytes_asked_follow_from_the_tile():
    # 128 x 128 tiles of float16: 2 * 128 * 128 operations per k-step for 512 bytes, and the stores of C
    stores, loads = 4 * 4096**2, 2 * 4096**3 * 2 / 128
    assert intensity.asked("mma_swizzled") == pytest.approx(2 * 4096**3 / (loads + stores))
