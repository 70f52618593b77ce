"""Triton's product: what is stored is what the source says, and it is right on the emulator."""

import importlib.util
import json

import numpy as np
import pytest

from emulator import Module
from kernels.errors import UnsupportedGPU
from measure import provenance, with_triton

SIZES = [(128, 128, 32), (144, 160, 48), (16, 272, 96)]  # multiples of 16, as it was compiled for


@pytest.mark.parametrize("arch", with_triton.ARCHITECTURES)
def test_what_is_stored_was_made_from_this_source(arch):
    made = with_triton.stored_ptx(arch)
    head = json.loads(made.ptx.splitlines()[0].removeprefix("// "))
    assert head["source"] == with_triton.hash_of(with_triton.SOURCE), (
        "python -m measure triton --ptx makes it anew"
    )
    assert f".target sm_{arch}" in made.ptx and "/" not in made.ptx.split(".file")[1].split('"')[1]


@pytest.mark.parametrize("arch", with_triton.ARCHITECTURES)
@pytest.mark.parametrize("size", SIZES)
def test_the_stored_product_is_right(arch, size):
    M, N, K = size
    made = with_triton.stored_ptx(arch)
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (M, K)).astype(np.float16)
    B = rng.uniform(-1, 1, (K, N)).astype(np.float16)
    C = np.full((M, N), np.nan, np.float32)
    grid = (-(-N // made.setting["BN"]), -(-M // made.setting["BM"]))
    args = made.arguments(A, B, C, np.int32(M), np.int32(N), np.int32(K))
    trace = Module(made.ptx).launch(made.entry, grid, made.threads, args, made.shared_bytes)
    assert np.allclose(C, A.astype(np.float64) @ B.astype(np.float64), atol=1e-4)
    kinds = {hazard.kind for hazard in trace.hazards}
    assert kinds <= ({"missing-proxy-fence"} if arch == 90 else set())


def test_nothing_is_timed_without_a_gpu(monkeypatch):
    monkeypatch.setattr(with_triton, "available", lambda: False)
    with pytest.raises(UnsupportedGPU, match="Triton"):
        with_triton.record()


def test_without_a_recording_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(provenance, "FOLDER", tmp_path)
    assert with_triton.recorded() is None


@pytest.mark.skipif(not importlib.util.find_spec("triton"), reason="Triton is not installed here")
@pytest.mark.parametrize("arch", with_triton.ARCHITECTURES)
def test_triton_still_writes_what_is_stored(arch):
    made, stored = with_triton.compiled(arch), with_triton.stored_ptx(arch)
    assert made.shared_bytes > 0 and made.entry == stored.entry
    if made.version == stored.version:
        assert made.ptx == stored.ptx.split("\n", 1)[1]
