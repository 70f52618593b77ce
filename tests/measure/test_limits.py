"""What counters say limits a kernel, in words."""

import pytest

from measure.limits import METRICS, analysis, recorded_limits
from measure.stall_places import places

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
    assert "loads and copies through L1 (4.0) and for the other warps at a barrier (2.5)." in said


@pytest.mark.parametrize("rung", ["mma_swizzled", "mma_tf32", "mma_multistage"])
def test_the_stored_analysis_is_of_the_stored_counters(rung):
    row = next(row for row in recorded_limits()["rows"] if row["rung"] == rung)
    assert row["analysis"] == analysis(row)


# Lines of Nsight Compute's source page of `wgmma` on an H200, with fewer columns.
PAGE = """\
"Kernel Name","gemm_wgmma",
"Address","Source","# Samples","stall_barrier","stall_long_sb","stall_wait","stall_barrier (Not Issued)"
"0x10","      SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR5], R6","10","0","0","10","0"
"0x20","      ISETP.NE.AND P1, PT, R3, RZ, PT","0","0","0","0","0"
"0x30","@!P0  BRA 0x7fdcb97a61f0","110","0","110","0","0"
"0x40","      WARPGROUP.DEPBAR.LE gsb0, 0x0","80","79","0","1","79"
"""


def test_a_branch_waits_at_what_sets_its_predicate():
    assert places(PAGE) == [
        {"reason": "long_scoreboard", "instruction": "SYNCS.PHASECHK.TRANS64.TRYWAIT", "share": 0.55},
        {"reason": "barrier", "instruction": "WARPGROUP.DEPBAR.LE", "share": 0.395},
        {"reason": "wait", "instruction": "SYNCS.PHASECHK.TRANS64.TRYWAIT", "share": 0.05},
    ]  # fmt: skip
    assert places("==PROF== no report") == []
