"""Others' kernels beside the ladder: what can be said of them without a GPU."""

import pytest

from kernels import RUNGS
from measure import peers
from measure.provenance import recording


def test_a_checkout_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "compiler", lambda: ["nvcc"])
    with pytest.raises(RuntimeError, match=r"no checkout of fast\.cu: .*fast\.cu"):
        peers.build(tmp_path / "made", tmp_path)
    monkeypatch.setattr(peers, "compiler", list)
    with pytest.raises(RuntimeError, match="no nvcc"):
        peers.build(tmp_path / "made", tmp_path)


def test_what_was_recorded_is_right_and_of_one_run():
    stored = recording("peers")
    assert not stored["commit"].endswith("+")
    assert {*stored["sources"]["commits"]} == {peer.name for peer in peers.PEERS}
    for size in peers.SIZES:
        rows = {row["kernel"]: row for row in stored["rows"] if row["size"] == size}
        assert {peer.name for peer in peers.PEERS} | {"cuBLASLt", "cublasGemmEx"} <= set(rows)
        assert len(set(rows) & set(RUNGS)) == 1
        for row in rows.values():
            assert row["of_bound"] <= 1
            assert row["us_min"] <= row["us"] <= row["us_max"]
            assert row["tflops"] == pytest.approx(2e-6 * size**3 / row["us"], abs=0.1)


def test_builds_that_differ_are_different_files(tmp_path):
    assert len({peers.library(tmp_path, peer) for peer in peers.PEERS}) == len(peers.PEERS)
