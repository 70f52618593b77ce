"""Block-scaled mma.sync of sm_120a against NumPy, fragments and scales by the PTX ISA's formulas."""

import numpy as np
import pytest
from cuda_source import compile_ptx

import emulator
from emulator.numbers.fp8 import VALUES

KINDS = [
    ("mxf8f6f4", 1, "e4m3", "ue8m0", 32),
    ("mxf8f6f4", 1, "e2m1", "ue8m0", 32),
    ("mxf4", 2, "e2m1", "ue8m0", 64),
    ("mxf4nvf4", 4, "e2m1", "ue4m3", 64),
]


def source(kind, vector, type, scale, k, byte, a_thread, b_thread):
    return f"""extern "C" __global__ void k(const unsigned* a, const unsigned* b, const float* c, const unsigned* sa,
        const unsigned* sb, float* d) {{
    const int t = threadIdx.x;
    float x[4];
    for (int i = 0; i < 4; ++i) x[i] = c[i * 32 + t];
    asm volatile("mma.sync.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale.scale_vec::{vector}X.f32.{type}.{type}.f32.{scale} "
        "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}}, %10, {{{byte}, {a_thread}}}, "
        "%11, {{{byte}, {b_thread}}};"
        : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
        : "r"(a[t]), "r"(a[32 + t]), "r"(a[64 + t]), "r"(a[96 + t]), "r"(b[t]), "r"(b[32 + t]), "r"(sa[t]), "r"(sb[t]));
    for (int i = 0; i < 4; ++i) d[i * 32 + t] = x[i];
}}"""


@pytest.mark.parametrize(("kind", "vector", "type", "scale", "k"), KINDS)
@pytest.mark.parametrize("last", [False, True])
def test_products(kind, vector, type, scale, k, last):
    rng = np.random.default_rng(3)
    bits = 4 if k == 64 else 8
    low, high = (122, 132) if scale == "ue8m0" else (0x30, 0x50)
    a, b = (rng.integers(0, 16 if type == "e2m1" else 0x60, (n, k)) for n in (16, 8))
    scales = [rng.integers(low, high, (n, vector)) for n in (16, 8)]
    byte = 4 - vector if last else 0
    a_thread, b_thread = (1, 3) if last else (0, 0)

    def packed(codes):
        codes = codes << 2 if type == "e2m1" and k == 32 else codes
        shifts = np.arange(0, 32, bits)
        groups = codes.reshape(len(codes), -1, 32 // bits).astype(np.uint64)
        return (groups << shifts.astype(np.uint64)).sum(-1).astype(np.uint32)

    lanes = np.arange(32)
    a_words, b_words = packed(a), packed(b)
    a_registers = np.array(
        [a_words[lanes // 4 + row, lanes % 4 + part] for part in (0, 4) for row in (0, 8)]
    )
    b_registers = np.array([b_words[lanes // 4, lanes % 4 + part] for part in (0, 4)])
    held = [rng.integers(0, 1 << 32, 32, dtype=np.uint64).astype(np.uint32) for _ in range(2)]
    bytes_ = [one.view(np.uint8).reshape(32, 4) for one in held]
    for lane in range(32):
        group, place = divmod(lane, 4)
        if place // 2 == a_thread:
            bytes_[0][lane, byte : byte + vector] = scales[0][group + 8 * (place % 2)]
        if place == b_thread:
            bytes_[1][lane, byte : byte + vector] = scales[1][group]
    c = rng.integers(-8, 9, (4, 32)).astype(np.float32)
    d = np.zeros((4, 32), np.float32)
    text = source(kind, vector, type, scale, k, byte, a_thread, b_thread)
    module = emulator.Module(compile_ptx(text, "120a"))
    module.launch("k", 1, 32, [a_registers, b_registers, c, *held, d])
    factors = [
        np.exp2(s - 127.0) if scale == "ue8m0" else VALUES["e4m3"][s].astype("f8") for s in scales
    ]
    left, right = (
        VALUES[type][x].astype("f8") * np.repeat(f, k // vector, axis=1)
        for x, f in zip((a, b), factors, strict=True)
    )
    wanted = left @ right.T
    found, before = np.zeros((16, 8)), np.zeros((16, 8))
    for i in range(4):
        found[lanes // 4 + i // 2 * 8, lanes % 4 * 2 + i % 2] = d[i]
        before[lanes // 4 + i // 2 * 8, lanes % 4 * 2 + i % 2] = c[i]
    assert np.abs(found - wanted - before).max() <= 1e-6 * np.abs(wanted).max()


def test_other_targets_and_wrong_ids_are_refused():
    text = compile_ptx(source("mxf4nvf4", 4, "e2m1", "ue4m3", 64, 0, 0, 0), "120a")
    args = [np.zeros((4, 32), np.uint32), np.zeros((2, 32), np.uint32), np.zeros((4, 32), np.float32),
            np.zeros(32, np.uint32), np.zeros(32, np.uint32), np.zeros((4, 32), np.float32)]  # fmt: skip
    with pytest.raises(emulator.Unsupported, match="sm_120"):
        emulator.Module(text.replace(".target sm_120a", ".target sm_90a")).launch("k", 1, 32, args)
    with pytest.raises(emulator.ExecutionError, match="byte-id 1"):
        emulator.Module(text.replace("{0, 0}, %r", "{1, 0}, %r")).launch("k", 1, 32, args)
