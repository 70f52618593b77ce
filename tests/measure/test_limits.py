"""What counters say limits a kernel, in words."""

import pytest

from measure.limits import METRICS, analysis, recorded_limits

ROW = {
    **dict.fromkeys(METRICS, 1.0),
    "rung": "tiled", "tensor pipe, %": None, "L2, %": 80.4, "FMA pipe, %": 20.0, "warps resident, %": 12.5,
    "stalls": {"selected": 1.0, "barrier": 2.5, "long_scoreboard": 4.0, "wait": 0.5, "lg_throttle": None},
}  # fmt: skip


def test_the_fullest_part_and_the_longest_waits_come_first():
    said = analysis(ROW)
    assert said.startswith("tiled: busy are L2 80%, FMA pipe 20%")
    assert "tensor" not in said
    assert "every 8.0 clocks" in said
    assert "data from L1, L2 or memory (4.0) and for the other warps at a barrier (2.5)." in said


@pytest.mark.parametrize("rung", ["mma_swizzled", "mma_tf32", "mma_multistage"])
def test_the_stored_analysis_is_of_the_stored_counters(rung):
    row = next(row for row in recorded_limits()["rows"] if row["rung"] == rung)
    assert row["analysis"] == analysis(row)
