"""The page on reading a profile: every metric and stall is explained, and recorded rows fulfil their equations."""

import pytest

from book.cells import equal_tiles, limits, profile_terms
from measure.limits import METRICS


def test_every_column_of_the_tables_is_explained():
    assert set(profile_terms.BUSY) == set(limits.BUSY)
    assert {key for key, _ in profile_terms.OTHER.values()} <= set(METRICS)


@pytest.mark.parametrize("rung", [row["rung"] for row in limits.stored()["rows"]])
def test_stalls_add_up_to_warps_per_scheduler_over_the_issue_rate(rung):
    row = limits.row(rung)
    expected = 16 * row["warps resident, %"] / row["issue slots used, %"]
    assert profile_terms.clocks_per_issue(rung) == pytest.approx(expected, rel=0.05)


def test_the_busiest_part_is_the_one_that_the_analysis_names():
    names = {"naive": "path to shared memory", "warp_tiled": "issue slots"}
    for rung, words in names.items():
        assert f"busy are {words}" in limits.row(rung)["analysis"]
    assert profile_terms.busiest("naive") == "shared memory"
    assert profile_terms.busiest("warp_tiled") == "issue slots"


def test_the_model_of_a_queue_waits_half_a_service_time_at_half_load():
    waits = profile_terms.queue().facts
    assert waits["50% busy"] == pytest.approx(0.5) and waits["80% busy"] == pytest.approx(2)


def test_a_step_that_nobody_timed_is_left_out(capsys):
    there, not_there = ("mma_swizzled", {"BM": 128}), ("mma_swizzled", {"BM": 7})
    assert list(equal_tiles.found({"a": there, "b": not_there})) == ["a"]
    assert equal_tiles.waterfall({"a": there, "b": not_there}) is None
    assert "not timed on" in capsys.readouterr().out
