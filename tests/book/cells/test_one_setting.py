"""One run at one setting: what is right, what is wrong, and what is counted."""

import kernels
from book.cells.one_setting import run


def test_a_run_says_what_is_right_and_what_is_wrong():
    right = run("tiled", {"BLOCK": 16}, (32, 32, 16))
    assert right.right and right.verdict == "The product is right."
    assert {row[0]: row[2] for row in right.rows}["load A"] > 0
    wrong = run("tiled", {"BLOCK": 16}, (32, 32, 16), [("Bs[k][tile_col]", "Bs[k][0]")])
    assert not wrong.right and "wrong" in wrong.verdict
    broken = run("tiled", {"BLOCK": 16}, (32, 32, 16), [("Bs[k][tile_col]", "Bs[k][tile_col")])
    assert broken.problem.startswith("It does not compile")
    outside = run("tiled", {"BLOCK": 16}, (32, 32, 16), [("Bs[k]", "Bs[k + 9999]")])
    assert "OutOfBounds" in outside.problem
    refused = run("vectorized", {"BK": 8, "TM": 4}, (128, 128, 16))
    assert (
        refused.problem
        == "It does not compile: the kernel asks that each thread loads as many float4"
    )


def test_a_run_counts_what_no_lane_addresses_and_what_a_block_takes():
    done = run("wgmma", {"BM": 64, "BN": 64}, (64, 64, 64))
    rows = {row[0]: row[1:] for row in done.rows}
    assert rows["TMA reads"][1] == 2 * 64 * 64 * 2 // 32  # both tiles, once
    assert rows["wgmma reads"][2] > 0
    built = kernels.build("wgmma", {"BM": 64, "BN": 64}, arch="90a")
    assert f"{built.report.registers} registers" in done.block
    assert "128 threads" in done.block
    early = ("wgmma_wait<0>();", "wgmma_wait<1>();")
    assert run("wgmma", {"BM": 64, "BN": 64}, (64, 64, 128), [early]).trace.hazards
    copied = {row[0]: row[1:] for row in run("async_copy", {"PAD": 4}, (128, 128, 16)).rows}
    assert copied["cp.async reads"][1] and not copied["cp.async reads"][2]
    assert copied["cp.async writes"][2] > copied["cp.async writes"][3]  # the padding's conflicts
