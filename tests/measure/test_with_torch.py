"""PyTorch beside cuBLAS: nothing is recorded where it cannot be measured."""

import pytest

from kernels import UnsupportedGPU
from measure import with_torch


def test_nothing_is_recorded_without_torch(monkeypatch):
    monkeypatch.setattr(with_torch, "available", lambda: False)
    with pytest.raises(UnsupportedGPU, match="PyTorch"):
        with_torch.record()
