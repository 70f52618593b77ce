"""PyTorch beside cuBLAS: recorded numbers, with a label, where it cannot be measured."""

import json

import pytest

from kernels import UnsupportedGPU
from measure import provenance, with_torch


@pytest.fixture(autouse=True)
def no_torch_here(monkeypatch):
    monkeypatch.setattr(with_torch, "available", lambda: False)


def test_recorded_rows_stand_in(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "FOLDER", tmp_path)
    found = with_torch.side_by_side()
    assert found["label"].startswith("recorded on")
    assert set(found["tflops"]) == {"mma_multistage", "cublas"}
    assert all(value > 0 for value in found["tflops"].values())


def test_a_recording_of_torch_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "FOLDER", tmp_path)
    stored = {"label": "recorded on some GPU", "tflops": {"torch.mm": 1.0}}
    (tmp_path / "torch-some-gpu.json").write_text(json.dumps(stored))
    assert with_torch.side_by_side() == stored


def test_nothing_is_recorded_without_torch():
    with pytest.raises(UnsupportedGPU, match="PyTorch"):
        with_torch.record()
