"""Kernels in the field's usual styles, compiled by NVRTC, run right the first time."""

from math import erf, gamma
from pathlib import Path

import numpy as np
import pytest
from cuda_source import compile_ptx

import emulator

SOURCE = (Path(__file__).parent / "kernels_of_others.cu").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def module():
    return emulator.Module(compile_ptx(SOURCE, 80))


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def test_cub_block_reduce(module, rng):
    x, out = rng.integers(-50, 50, 5000).astype("f4"), np.zeros(1, "f4")
    trace = module.launch("cub_reduce", 3, 256, [x, out, np.int32(5000)])
    assert out[0] == x.sum() and not trace.hazards


def test_cub_block_scan_and_sort(module, rng):
    x, out = rng.integers(0, 100, 512).astype("i4"), np.zeros(512, "i4")
    assert not module.launch("cub_scan", 1, 128, [x, out]).hazards
    assert (out == np.cumsum(x)).all()
    keys = rng.integers(0, 1 << 32, 512, dtype="u4")
    expected = np.sort(keys)
    assert not module.launch("cub_sort", 1, 128, [keys]).hazards
    assert (keys == expected).all()


def test_cooperative_groups(module, rng):
    x, out = rng.integers(0, 100, 256).astype("i4"), np.zeros(256 * 3 + 1, "i4")
    module.launch("cg_reduce", 2, 128, [x, out])
    sums, maxima, scans = out[:-1].reshape(256, 3).T
    assert (sums == np.repeat(x.reshape(-1, 32).sum(1), 32)).all()
    assert (maxima == np.repeat(x.reshape(-1, 8).max(1), 8)).all()
    assert (scans == np.cumsum(x.reshape(-1, 32), axis=1).reshape(-1)).all()
    assert out[-1] == (x & 1).sum()


def test_softmax(module, rng):
    x = rng.standard_normal((4, 777)).astype("f4")
    y = np.zeros_like(x)
    trace = module.launch("softmax", 4, 128, [x, y, np.int32(777)], shared_bytes=64)
    e = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    assert np.allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5) and not trace.hazards


def test_half_and_bfloat16_intrinsics(module, rng):
    n = 100
    a = rng.standard_normal((n, 2)).astype("f2")
    bits = (rng.standard_normal((n, 2)).astype("f4").view("u4") >> 16).astype("u2")
    b = (bits.astype("u4") << 16).view("f4")
    c, d, e = np.zeros((n, 2), "f2"), np.zeros((n, 2), "u2"), np.zeros(n, "f4")
    module.launch("halves", 1, 128, [a, bits, c, d, e, np.int32(n)])
    exact = a.astype("f8")
    assert (c == (exact * exact + 0.5).astype("f2")).all()
    assert np.allclose((d.astype("u4") << 16).view("f4"), b + b * b, rtol=2e-2, atol=1e-2)
    expected = (exact * b).sum(1) + np.exp(exact[:, 0]) + (a[:, 0] > a[:, 1])
    assert np.allclose(e, expected, rtol=1e-2, atol=1e-2)


def test_math_library(module, rng):
    x, d = rng.standard_normal(128).astype("f4") * 3, rng.standard_normal(128) * 2
    y, z = np.zeros(128, "f4"), np.zeros(128)
    module.launch("math", 1, 128, [x, d, y, z])
    v = x.astype("f8")
    expected = (
        np.sin(v)
        + np.cos(v) * np.tanh(v)
        + abs(v) ** 1.3
        + np.array([erf(i) for i in v])
        + np.log1p(abs(v))
    )
    expected += (
        1 / np.sqrt(abs(v) + 1)
        + np.floor(v)
        + np.fmod(v, float(np.float32(0.7)))
        + np.arctan2(v, 2)
    )
    assert np.allclose(y, expected + np.cbrt(v), rtol=1e-5, atol=1e-5)
    expected = (
        np.sin(d) * np.exp(d) + abs(d) ** 0.3 + np.sqrt(abs(d)) / (1 + d * d) + np.log(abs(d) + 1)
    )
    assert np.allclose(z, expected + np.array([gamma(1 + abs(i)) for i in d]), rtol=1e-12)


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def cut(p, q):
    return abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)


def test_integer_intrinsics(module, rng):
    x = rng.integers(-(1 << 31), 1 << 31, 64).astype("i4")
    x[:4] = [-(1 << 31), 0, -1, (1 << 31) - 1]
    y = rng.integers(-(1 << 63), (1 << 63) - 1, 64, dtype="i8")
    a, b, c = np.zeros(64, "i4"), np.zeros(64, "i8"), np.zeros(64, "u8")
    module.launch("ints", 1, 64, [x, y, a, b, c])
    for i in range(64):
        v, w = int(x[i]), int(y[i])
        u, uw = v & 0xFFFFFFFF, w & (1 << 64) - 1
        total = (
            cut(v, 7)
            + v
            - cut(v, 13) * 13
            + u.bit_count()
            + 32
            - u.bit_length()
            + (u & -u).bit_length()
        )
        total += int(f"{u:032b}"[::-1], 2) % 101 + cut(signed(abs(v), 32), 3) + (v >> 3)
        total += (u & 0xFFFF) * 2 % (1 << 16) | ((u >> 16) * 2 % (1 << 16)) << 16
        total += abs(u - 3) + 4 + (v * v >> 32)
        total += sum(((i << 32 | u) >> 8 * (0x3214 >> 4 * k & 7) & 255) << 8 * k for k in range(4))
        total += ((i << 32 | u) << 5 >> 32) + min(v, i)
        assert a[i] == signed(total, 32)
        total = (
            cut(w, 1000003)
            + w
            - cut(w, 77) * 77
            + uw.bit_count()
            + 64
            - uw.bit_length()
            + (w >> 5) * 3
        )
        assert b[i] == signed(total + (w * w >> 64) + cut(w, i + 1), 64)
        assert int(c[i]) == (uw // 12345 + uw % (i + 3) + (uw * uw >> 64)) & (1 << 64) - 1


def test_libcu_atomics_and_a_spin_lock(module):
    value, lock, total = np.zeros(1, "i4"), np.zeros(2, "i4"), np.zeros(1)
    module.launch("atomics", 2, 64, [value, lock, total])
    assert (value[0], *lock, total[0]) == (384, 0, 128, 64)


def test_block_pipeline(module, rng):
    x = rng.standard_normal(5 * 128).astype("f4")
    y = np.zeros_like(x)
    trace = module.launch("pipe", 1, 128, [x, y, np.int32(5)])
    assert (y == 2 * x.reshape(5, 128)[:, ::-1].reshape(-1)).all() and not trace.hazards


def test_assertions(module):
    x = np.arange(64, dtype="i4")
    module.launch("asserts", 1, 64, [x])
    assert (x == np.arange(64) + 1).all()
    with pytest.raises(emulator.Trap, match="assertion failed") as caught:
        module.launch("asserts", 1, 64, [np.arange(64, dtype="i4") + 50])
    assert caught.value.thread == (50, 0, 0)


def test_structures_in_local_memory_and_calls(module):
    y = np.zeros(64, "f4")
    module.launch("locals", 1, 64, [y, np.int32(7)])
    assert (y == [sum(i * t % 6 * t + i % 6 for i in range(7)) for t in range(64)]).all()


def test_printf(capsys):
    source = """#include <cstdio>
    extern "C" __global__ void hello(const char* unused) {
        if (threadIdx.x % 20 == 3)
            printf("thread %d of block %u: %5.2f %s %c%% %lld\\n", threadIdx.x, blockIdx.x, threadIdx.x * 0.5f, "ok", 'x',
                   (1ll << 40) + threadIdx.x);
    }"""
    source = source.replace(
        "#include <cstdio>", 'extern "C" __device__ int printf(const char*, ...);'
    )
    emulator.Module(compile_ptx(source, 80)).launch("hello", 2, 32, [None])
    lines = [
        f"thread {t} of block {b}: {t / 2:5.2f} ok x% {(1 << 40) + t}\n"
        for b in (0, 1)
        for t in (3, 23)
    ]
    assert capsys.readouterr().out == "".join(lines)
