"""CuTe's product: what is stored is what the source says, and it is right on the emulator."""

import importlib.util
import json

import numpy as np
import pytest

from emulator import Module
from measure import with_cute
from measure.foreign import hash_of


@pytest.mark.parametrize("arch", with_cute.ARCHITECTURES)
def test_what_is_stored_was_made_from_this_source(arch):
    made = with_cute.stored_ptx(arch)
    head = json.loads(made.ptx.splitlines()[0].removeprefix("// "))
    said = f"python -m measure cute --arch {arch} makes it anew"
    assert head["source"] == hash_of(with_cute.SOURCE), said
    assert f".target sm_{arch}" in made.ptx and "/" not in made.ptx.split(".file")[1].split('"')[1]


@pytest.mark.parametrize("arch", with_cute.ARCHITECTURES)
@pytest.mark.parametrize("size", [(128, 128, 32), (256, 128, 96), (128, 384, 64)])
def test_the_stored_product_is_right(arch, size):
    M, N, K = size
    made = with_cute.stored_ptx(arch)
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (M, K)).astype(np.float16)
    B = rng.uniform(-1, 1, (K, N)).astype(np.float16)
    C = np.full((M, N), np.nan, np.float32)
    grid = (N // made.setting["BN"], M // made.setting["BM"])
    args = [A, B, C, np.int32(M), np.int32(N), np.int32(K)]
    trace = Module(made.ptx).launch(made.entry, grid, made.threads, args, made.shared_bytes)
    assert np.allclose(C, A.astype(np.float64) @ B.astype(np.float64), atol=1e-4)
    assert not trace.hazards


@pytest.mark.skipif(not importlib.util.find_spec("cutlass"), reason="CuTe is not installed here")
def test_cute_still_writes_what_is_stored():
    made, stored = with_cute.compiled(80), with_cute.stored_ptx(80)
    if made.version == stored.version:
        assert made.ptx == stored.ptx.split("\n", 1)[1]
