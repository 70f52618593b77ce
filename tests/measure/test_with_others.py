"""Products of CuTe, Triton and PyTorch: what is stored is what the source says, and right; what is missing is named."""

import importlib.util
import json

import numpy as np
import pytest

from emulator import Module
from kernels.errors import UnsupportedGPU
from measure import provenance, with_cute, with_torch, with_triton
from measure.foreign import hash_of

STORED = [(module, arch) for module in (with_cute, with_triton) for arch in module.ARCHITECTURES]
SIZES = {
    with_cute: ((128, 128, 32), (256, 128, 96), (128, 384, 64)),
    with_triton: ((128, 128, 32), (144, 160, 48), (16, 272, 96)),  # multiples of 16, as it was compiled for
}  # fmt: skip
MADE_BY = {with_cute: "cutlass", with_triton: "triton"}


@pytest.mark.parametrize(("module", "arch"), STORED)
def test_what_is_stored_was_made_from_this_source(module, arch):
    made = module.stored_ptx(arch)
    head = json.loads(made.ptx.splitlines()[0].removeprefix("// "))
    said = f"{module.__name__} makes it anew: python -m measure cute --arch {arch}, or triton --ptx"
    assert head["source"] == hash_of(module.SOURCE), said
    assert f".target sm_{arch}" in made.ptx and "/" not in made.ptx.split(".file")[1].split('"')[1]


@pytest.mark.parametrize(
    ("module", "arch", "size"), [(*one, size) for one in STORED for size in SIZES[one[0]]]
)
def test_the_stored_product_is_right(module, arch, size):
    M, N, K = size
    made = module.stored_ptx(arch)
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (M, K)).astype(np.float16)
    B = rng.uniform(-1, 1, (K, N)).astype(np.float16)
    C = np.full((M, N), np.nan, np.float32)
    grid = (-(-N // made.setting["BN"]), -(-M // made.setting["BM"]))
    args = [A, B, C, np.int32(M), np.int32(N), np.int32(K)]
    args = made.arguments(*args) if module is with_triton else args
    trace = Module(made.ptx).launch(made.entry, grid, made.threads, args, made.shared_bytes)
    assert np.allclose(C, A.astype(np.float64) @ B.astype(np.float64), atol=1e-4)
    known = {"missing-proxy-fence"} if (module, arch) == (with_triton, 90) else set()
    assert {hazard.kind for hazard in trace.hazards} <= known


@pytest.mark.parametrize(("module", "arch"), [one for one in STORED if one != (with_cute, 90)])
def test_a_compiler_still_writes_what_is_stored(module, arch):
    if not importlib.util.find_spec(MADE_BY[module]):
        pytest.skip(f"{MADE_BY[module]} is not installed here")
    made, stored = module.compiled(arch), module.stored_ptx(arch)
    assert made.shared_bytes > 0 and made.entry == stored.entry
    if made.version == stored.version:
        assert made.ptx == stored.ptx.split("\n", 1)[1]


@pytest.mark.parametrize(("module", "name"), [(with_torch, "PyTorch"), (with_triton, "Triton")])
def test_nothing_is_recorded_without(module, name, monkeypatch):
    monkeypatch.setattr(module, "available", lambda: False)
    with pytest.raises(UnsupportedGPU, match=name):
        module.record()


def test_without_a_recording_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(provenance, "FOLDER", tmp_path)
    assert provenance.recording("triton") is None
