"""The emulator where NumPy's indices have 32 bits, as in WebAssembly: a stand-in for NumPy that is as strict."""

import numpy as np
import pytest

import emulator
from emulator.machine.memory import Buffer
from kernels.check import check_one

MACHINE = {
    np.dtype(name) for name in ("i1", "i2", "i4", "u1", "u2", "?")
}  # that fit an intp of 32 bits


def narrow(index):
    """TypeError for numbers that such a NumPy does not take for indices without a cast."""
    if np.asarray(index).dtype not in MACHINE:
        raise TypeError(f"Cannot cast array data from {np.asarray(index).dtype} to int32")
    return index


class Strict(np.ndarray):
    def take(self, index, *more, **how):
        return np.ndarray.take(self.view(np.ndarray), narrow(index), *more, **how)


@pytest.fixture
def wasm(monkeypatch):
    """np.intp is int32; `bincount`, and `take` from the machine's memory, refuse int64."""
    count, view = np.bincount, Buffer.view
    monkeypatch.setattr(np, "intp", np.int32)
    monkeypatch.setattr(np, "bincount", lambda x, *a, **k: count(narrow(x), *a, **k))
    monkeypatch.setattr(Buffer, "view", lambda self, dtype: view(self, dtype).view(Strict))


@pytest.mark.parametrize(
    ("rung", "size"),
    [
        ("coarsened_2d", (65, 70, 9)),  # bank conflicts
        ("mma_multistage", (65, 72, 40)),  # packets of cp.async
        ("wgmma_cluster", (129, 72, 72)),  # copies by TMA, arrivals at another block's mbarrier
        ("wgmma_split", (65, 72, 264)),  # accesses to another block's shared memory
    ],
)
def test_a_rung_runs_where_indices_have_32_bits(rung, size, wasm):
    found, hazards = check_one(rung, size)
    assert found.ok and not hazards


def test_addresses_in_several_buffers_at_once(wasm):
    out, one, two = np.zeros(32, "u4"), np.full(32, 1, "u4"), np.full(32, 2, "u4")
    module = emulator.Module(
        """.version 9.0\n.target sm_90\n.address_size 64
        .visible .entry k(.param .u64 out, .param .u64 one, .param .u64 two) {
        .reg .b64 %o, %a, %b, %n; .reg .b32 %t, %v; .reg .pred %p;
        ld.param.u64 %o, [out]; ld.param.u64 %a, [one]; ld.param.u64 %b, [two]; mov.u32 %t, %tid.x;
        setp.lt.u32 %p, %t, 16; selp.b64 %a, %a, %b, %p; mul.wide.u32 %n, %t, 4;
        add.u64 %a, %a, %n; add.u64 %o, %o, %n; ld.global.u32 %v, [%a]; st.global.u32 [%o], %v; ret; }"""
    )
    module.launch("k", 1, 32, [out, one, two])
    assert out.tolist() == [1] * 16 + [2] * 16


def test_what_counts_is_the_address_in_the_launch_and_not_the_hosts():
    memory = bytearray(4096 + 16)
    odd = 16 - np.frombuffer(memory, "u1").ctypes.data % 16 + 8  # 8 beyond a multiple of 16
    array = np.frombuffer(memory, np.float16, 8 * 64, odd).reshape(8, 64)
    assert array.ctypes.data % 16 == 8
    emulator.TensorMap(array, (8, 64), swizzle=128)
    with pytest.raises(ValueError, match="begins at 0x8: a multiple of 16"):
        emulator.TensorMap(array[:, 4:], (8, 8))
