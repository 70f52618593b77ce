"""Products that stand in a row are computed as one; whether they may be is decided by what they read."""

from pathlib import Path

import numpy as np
import pytest

from emulator import Module
from emulator.numbers.tensor import Product
from emulator.ops.tensor import Products

SAMPLE = Path(__file__).parents[3] / "emulator" / "samples" / "mma_tile.ptx"

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry chain(.param .u64 out) {
  .reg .b32 %a, %t; .reg .f32 %z, %d<8>; .reg .b64 %p, %q; .reg .pred %guard;
  ld.param.u64 %p, [out];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %q, %t, 8;
  add.s64 %p, %p, %q;
  mov.b32 %a, 0x38003c00;
  mov.f32 %z, 0f3DCCCCCD;
  PRODUCTS
  st.global.f32 [%p], %d0;
  st.global.f32 [%p+4], %d4;
  ret;
}
"""


def product(first: int, c: str) -> str:
    d = ", ".join(f"%d{first + i}" for i in range(4))
    return f"{MMA} {{{d}}}, {{%a, %a, %a, %a}}, {{%a, %a}}, {{{c}}};"


def run(products: str, monkeypatch):
    """(what the lanes stored, how many matrices each call of Product got)."""
    calls, plain = [], Product.__call__

    def counting(self, a, b, c):
        calls.append(a.shape[1])
        return plain(self, a, b, c)

    monkeypatch.setattr(Product, "__call__", counting)
    out = np.zeros((32, 2), np.float32)
    Module(PTX.replace("PRODUCTS", products)).launch("chain", 1, 32, [out])
    return out, calls


ZEROS = "%z, %z, %z, %z"


def test_two_that_do_not_need_each_other_are_one(monkeypatch):
    out, calls = run(product(0, ZEROS) + product(4, ZEROS), monkeypatch)
    assert calls == [2]
    assert (out == out[0, 0]).all() and out[0, 0] > 1


def test_one_that_reads_the_others_result_waits_for_it(monkeypatch):
    out, calls = run(product(0, ZEROS) + product(4, "%d0, %d1, %d2, %d3"), monkeypatch)
    assert calls == [1, 1]
    assert (out[:, 1] > 1.9 * out[:, 0]).all()


def test_a_result_may_take_the_place_of_what_the_one_before_it_reads(monkeypatch):
    again = product(4, ZEROS) + product(0, "%d4, %d5, %d6, %d7") + product(4, ZEROS)
    out, calls = run(again, monkeypatch)
    assert calls == [1, 2]
    assert (out[:, 0] > 1.9 * out[:, 1]).all()


@pytest.mark.parametrize("at_once", [1, 24, 10**6])
def test_every_bit_is_that_of_one_after_the_other(at_once, monkeypatch):
    """The tile kernel: whole warps, several blocks, accumulators kept from step to step."""
    size = 128
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))

    def result():
        c = np.zeros((size, size), np.float32)
        module, sizes = Module(SAMPLE.read_text()), [np.int32(size)] * 3
        trace = module.launch(
            "gemm_mma_swizzled", 1, 128, [a, b, c, *sizes, np.float32(1), np.float32(0)]
        )
        return c, [(row.ptx_line, row.warps, row.threads) for row in trace.instructions]

    monkeypatch.setattr("emulator.ops.tensor._MATRICES_AT_ONCE", at_once)
    together, counts = result()
    monkeypatch.setattr(Products, "join", lambda self, other: False)
    alone, counts_alone = result()
    assert (together.view(np.uint32) == alone.view(np.uint32)).all() and counts == counts_alone
