"""The emulator's totals against counts by hand, and what is read from ncu."""

import pytest

from kernels import gpu
from measure import compare
from measure.compare import count_on_emulator, parse_ncu

NCU = """==PROF== Connected to process 321
"ID","Process ID","Kernel Name","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","smsp__none.sum"
"","","","sector",""
"0","321","gemm_naive","1,310,720","n/a"
==PROF== Disconnected
"""


def test_ncu_output_is_read():
    assert parse_ncu(NCU) == {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 1310720.0}
    assert parse_ncu("==ERROR== no permission\n") == {}


def test_naive_counts_are_those_of_its_index_arithmetic():
    M, N, K = 64, 96, 40
    counts = count_on_emulator("naive", (M, N, K))
    warps = M * N // 32
    assert counts["global requests, loads"] == 2 * warps * K
    # A: one value for the warp, one sector; B: 32 neighbours, four sectors.
    assert counts["global sectors, loads"] == (1 + 4) * warps * K
    assert counts["global sectors, stores"] == 4 * warps
    assert counts["shared wavefronts, all"] == 0


def test_uncoalesced_touches_a_sector_for_each_row():
    M, N, K = 64, 64, 40
    counts = count_on_emulator("uncoalesced", (M, N, K))
    assert counts["global sectors, loads"] == (32 + 1) * (M * N // 32) * K
    assert counts["global sectors, stores"] == M * N


@pytest.mark.skipif(gpu() is not None, reason="a GPU is here")
def test_without_a_gpu_the_emulator_stands_alone(tmp_path, monkeypatch, capsys):
    module = __import__("sys").modules["measure.compare"]
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    rows = compare(["naive"], (32, 32, 32))
    assert rows and all(row["gpu"] is None and row["emulator"] > 0 for row in rows)
    assert "no recorded comparison" in capsys.readouterr().out
