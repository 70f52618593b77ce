"""The emulator's totals against counts by hand."""

import pytest

from kernels import gpu
from kernels.rungs import find
from kernels.settings import BOOK_ARCH, configuration
from measure import compare, provenance
from measure.compare import count_on_emulator


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
    monkeypatch.setattr(provenance, "FOLDER", tmp_path)
    rows = compare(["naive"], (32, 32, 32))
    assert rows and all(row["gpu"] is None and row["emulator"] > 0 for row in rows)
    assert "no recorded comparison" in capsys.readouterr().out


def test_what_is_counted_is_the_setting_of_the_size():
    """A launch whose setting is not the row's default has the geometry that its build was made for."""
    size = (128, 128, 64)
    chosen = dict(configuration("coarsened_1d", size, BOOK_ARCH).macros)
    assert chosen != find("coarsened_1d").resolve()
    counts = count_on_emulator("coarsened_1d", size)
    assert counts == count_on_emulator("coarsened_1d", size, chosen)
    assert counts.machine["shared wavefronts, loads"] < counts["shared wavefronts, loads"]
