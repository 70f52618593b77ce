"""Layouts against traces: agreement is found, and so is a layout that is wrong."""

import numpy as np
import pytest
from tensor_layouts import Layout, compose

import kernels
from book.cells import addresses
from kernels.launch import launch

SOURCE = """
extern "C" __global__ void turn(const float* in, float* out) {
    __shared__ float tile[64];
    for (int i = 0; i < 2; ++i) {
        tile[(threadIdx.x * 3 + i) % 64] = in[threadIdx.x + 64 * i];
        __syncthreads();
        out[threadIdx.x % 8 * 8 + threadIdx.x / 8 + 64 * i] = tile[threadIdx.x];
        __syncthreads();
    }
}
"""


@pytest.fixture(scope="module")
def trace():
    data = np.arange(128, dtype=np.float32)
    built = kernels.build(SOURCE.replace("for", "#pragma unroll 1\nfor"), arch=80)
    return launch(built, "turn", (1,), (64,), [data, data.copy()], machine="emulator")


def test_a_layout_predicts_every_thread_of_every_warp(trace, capsys):
    store = compose(Layout((8, 8), (1, 8)), Layout((8, 8), (8, 1)))
    for turn in (0, 1):
        says = addresses.predicted(store, 64, bytes=4) + 256 * turn
        addresses.compare("store", says, addresses.seen(trace, "st.global", 0, "global", turn))
    out = capsys.readouterr().out
    assert out.count("store: 64 threads, every address as predicted") == 2


def test_a_wrong_layout_is_told_by_its_first_wrong_thread(trace, capsys):
    says = addresses.predicted(Layout(64, 1), 64, bytes=4)
    addresses.compare("store", says, addresses.seen(trace, "st.global", 0, "global"))
    assert "thread 1: predicted byte 4, seen 32" in capsys.readouterr().out
    addresses.compare("short", says[:32], addresses.seen(trace, "ld.global", 0, "global"))
    assert "32 threads predicted, 64 seen" in capsys.readouterr().out


def test_what_did_not_run_cannot_be_seen(trace):
    with pytest.raises(IndexError):
        addresses.seen(trace, "st.global", 1, "global")
    with pytest.raises(IndexError):
        addresses.seen(trace, "st.shared", 0, "shared", turn=2)
