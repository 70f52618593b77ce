"""The PTX that an H200 executed, executed here: mma and wmma of every type leave the same bits."""

from pathlib import Path

import numpy as np
import pytest
from probed import load

import emulator
from emulator.numbers.tensor import to_matrices

DATA = Path(__file__).parents[2] / "data"
products, numerics = load("products"), load("numerics")
RECORDED = np.load(DATA / "tensor_sums_h200.npz")
ENTRIES = [e for e in numerics.recorded() if not e.kind.startswith("wgmma")]


def executed(entry, text, a, b, c):
    """D's bits as the emulator leaves them in memory, (tiles, m, n)."""
    fragment = numerics.fragment(entry, "d")
    warps = len(c) // fragment.matrices
    inputs = [numerics.packed(entry, r, x) for r, x in zip("abc", (a, b, c), strict=True)]
    d = np.zeros((entry.registers("d"), warps, 32), np.uint64 if entry.d == "f64" else np.uint32)
    emulator.Module(text).launch(entry.name, warps, 32, [*inputs, d])
    return to_matrices(fragment, d).reshape(len(c), entry.m, entry.n)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_every_bit_in_memory_is_the_gpus(entry):
    operands = numerics.cases(entry, numerics.tiles_of(entry), 7)
    found = numerics.picked(executed(entry, products.module([entry]), *operands))
    wrong = np.argwhere(numerics.differing(entry, found, RECORDED[entry.name]))
    assert not len(wrong), f"{len(wrong)} of {found.size} differ, first in class {wrong[0][0] % 12}"


def test_the_target_decides_how_sums_are_cut():
    """1 - 1 + 2**-n: sm_80 keeps 24 bits below the largest term, sm_90 25."""
    entry = products.Entry("mma", 16, 8, 16, "f16", "f16", "f32", "f32")
    a, b = np.zeros((1, 16, 16), np.float16), np.zeros((1, 16, 8), np.float16)
    a[0, 3, :3], b[0, :3, 5] = (1, 1, 2.0**-12), (1, -1, 2.0**-13)
    bits = a.view(np.uint16), b.view(np.uint16), np.zeros((1, 16, 8), np.uint32)
    text = products.module([entry])
    for target, expected in (("sm_80", 0), ("sm_87", 0), ("sm_90", 2.0**-25), ("sm_103", 2.0**-25)):
        changed = text.replace(".target sm_90a", f".target {target}")
        assert executed(entry, changed, *bits).view(np.float32)[0, 3, 5] == expected, target
    with pytest.raises(emulator.Unsupported, match="sm_61 has no tensor cores"):
        executed(entry, text.replace(".target sm_90a", ".target sm_61"), *bits)


F64 = """.version 9.0
.target sm_90
.address_size 64
.entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {
    .reg .b64 %a, %b, %c, %d;
    .reg .f64 %x<2>, %y<2>, %s<4>;
    ld.param.u64 %a, [pa];
    ld.param.u64 %b, [pb];
    ld.param.u64 %c, [pc];
    ld.param.u64 %d, [pd];
    wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%x0}, [%a], 5;
    wmma.load.b.sync.aligned.row.m8n8k4.global.f64 {%y0}, [%b], 9;
    wmma.load.c.sync.aligned.col.m8n8k4.global.f64 {%s0, %s1}, [%c], 10;
    wmma.mma.sync.aligned.row.row.m8n8k4.rn.f64.f64.f64.f64 {%s2, %s3}, {%x0}, {%y0}, {%s0, %s1};
    wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%d], {%s2, %s3}, 11;
    ret;
}
"""


def test_wmma_of_f64_from_load_to_store():
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(-99, 99, s).astype(np.float64) for s in ((8, 5), (4, 9), (8, 10)))
    d = np.zeros((8, 11))
    emulator.Module(F64).launch("k", 1, 32, [a, b, c, d])
    assert (d[:, :8] == a[:, :4] @ b[:, :8] + c[:, :8].T).all() and not d[:, 8:].any()
