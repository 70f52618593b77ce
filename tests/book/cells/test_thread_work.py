"""Tables of the chapters on thread tiles, wide loads and warp tiles."""

import pytest

from book import facts
from book.cells import thread_work, warp_ablation
from kernels.settings import configuration


def test_wavefronts_per_multiply_add_are_those_of_the_machine_code():
    found, each = thread_work.loads("coarsened_1d", steps=8, wide=2)
    assert dict(found) == {16: 32, 4: 8}
    assert each == pytest.approx((8 + 2 * 32) / 128)


def test_wide_loads_save_no_wavefronts_against_the_rung_before():
    assert thread_work.loads("vectorized", 8, 3)[1] == thread_work.loads("coarsened_2d", 4, 2)[1]


def test_waves_of_a_small_product_leave_places_empty(capsys):
    thread_work.show_waves("async_pipeline", 1024, 8192)
    small, large = capsys.readouterr().out.splitlines()[1:3]
    assert int(small.split()[-1].rstrip("%")) < 50 < int(large.split()[-1].rstrip("%"))


def test_the_steps_end_at_the_fastest_setting_of_the_rung():
    drawn = warp_ablation.steps()
    first = facts.tuned("vectorized", BM=128, BN=128, BK=8, TM=8, TN=8)
    end = sum(drawn.facts.values()) + first
    timed = configuration("warp_tiled", (4096,) * 3, 90).macros
    assert end == pytest.approx(facts.tuned("warp_tiled", **timed))
    assert end > 0.998 * facts.tuned("warp_tiled", BK=8)  # nothing that a search could tell from it


def test_the_ablation_is_told_with_its_samples(monkeypatch, capsys):
    rows = [{"variant": "none", "tflops": 45.678, "ms_min": 3.0081, "ms_max": 3.0109}]
    stored = {"machine": {"gpu": "GPU"}, "recorded": "2026-11-21T00:00", "rows": rows}
    monkeypatch.setattr(warp_ablation.ablation, "stored", lambda: stored)
    warp_ablation.show_times()
    said = capsys.readouterr().out
    assert "45.7" in said and "3.008 to 3.011" in said
