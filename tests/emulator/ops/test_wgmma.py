"""wgmma in all its forms: types, widths, layouts in shared memory and registers, scales."""

import numpy as np
import pytest
from cuda_source import compile_ptx
from wgmma_source import (
    SIZE,
    Form,
    fill,
    from_accumulators,
    place,
    source,
    to_accumulators,
    to_fragment,
)  # fmt: skip

import emulator

pytest.importorskip("tensor_layouts")


def encode(x, kind):
    """float64 to the nearest element's bits; x must be representable."""
    if kind == "f16":
        return x.astype(np.float16).view(np.uint16)
    if kind == "bf16":
        return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if kind == "tf32":
        return x.astype(np.float32).view(np.uint32)
    if kind in ("s8", "u8"):
        return x.astype(np.int64).astype(np.uint8)
    return encode_fp8(x, *{"e4m3": (3, 7), "e5m2": (2, 15)}[kind])


def encode_fp8(x, mantissa, bias):
    """Small multiples of 1/4 as 8-bit floats, from the definition."""
    size = np.abs(x)
    exponent = np.floor(np.log2(np.where(size > 0, size, 1)))
    fraction = size / 2.0**exponent * (1 << mantissa) - (1 << mantissa)
    bits = ((exponent + bias) * (1 << mantissa) + fraction).astype(np.int64)
    assert (fraction == np.floor(fraction)).all()
    return (np.where(size > 0, bits, 0) | (x < 0) << 7).astype(np.uint8)


def numbers(rng, shape, kind):
    """Values that every type holds, whose sums are exact."""
    if kind == "u8":
        return rng.integers(0, 256, shape).astype(np.float64)
    if kind == "s8":
        return rng.integers(-128, 128, shape).astype(np.float64)
    return rng.integers(-6, 7, shape) / 2.0


def decode_d(words, n, kind):
    d = from_accumulators(words, n, kind == "f16")
    native = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[kind]
    return d.view(native).astype(np.float64)


def run(module, form, swizzle=128, seed=0, add=1, start=(0, None), steps=(None, None, None, None)):
    """Launches one form; returns (D, the D that should be, the Trace)."""
    rng = np.random.default_rng(seed)
    size = SIZE[form.a]
    a, b = numbers(rng, (64, form.k), form.a), numbers(rng, (form.n, form.k), form.b)
    c = rng.integers(-9, 10, (64, form.n)).astype(np.float64)
    image = rng.integers(0, 256, 80 * 1024).astype(np.uint8)
    at = place(
        64, form.k, size, swizzle, "K" if form.a_major == "K" else "MN", start[0], *steps[:2]
    )
    b_start = start[1] if start[1] is not None else 40 * 1024
    bt = place(
        form.n, form.k, size, swizzle, "K" if form.b_major == "K" else "MN", b_start, *steps[2:]
    )
    fill(image, at, encode(a, form.a))
    fill(image, bt, encode(b, form.b))
    native = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[form.d]
    held = to_accumulators(c.astype(native).view(f"u{np.dtype(native).itemsize}"), form.d == "f16")
    out = np.ascontiguousarray(held).view(np.uint32)
    trace = module.launch(
        form.name, 1, 128,
        [image, np.int32(len(image) // 16), np.uint64(at.descriptor), np.uint64(bt.descriptor),
         to_fragment(encode(a, form.a)).copy(), out, np.int32(add)],
        shared_bytes=len(image),
    )  # fmt: skip
    want = form.scale_a * form.scale_b * (a @ b.T) + (c if add else 0)
    return decode_d(out, form.n, form.d), want, trace


def check(form, **more):
    module = emulator.Module(compile_ptx(source(form), "90a"))
    got, want, trace = run(module, form, **more)
    assert (got == want).all()
    assert trace.hazards == []
    return trace


EVERY_N = range(8, 257, 8)


def test_every_width():
    """All 32 widths, accumulators added to and replaced."""
    forms = [Form(n) for n in EVERY_N]
    module = emulator.Module(compile_ptx("".join(source(form) for form in forms), "90a"))
    for form in forms:
        for add in (0, 1):
            got, want, trace = run(module, form, seed=form.n, add=add)
            assert (got == want).all(), form
            assert trace.hazards == []


FLOATS = [
    ("f32", "f16", "f16"),
    ("f16", "f16", "f16"),
    ("f32", "bf16", "bf16"),
    ("f32", "tf32", "tf32"),
    *[(d, a, b) for d in ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")],
]
INTEGERS = [("s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")]


@pytest.mark.parametrize("types", FLOATS + INTEGERS, ids=".".join)
def test_every_type_from_shared_memory_and_from_registers(types):
    d, a, b = types
    n = 48 if d == "s32" else 40
    scales = [(1, 1)] if d == "s32" else [(-1, 1), (1, -1)]
    forms = [
        Form(n, d, a, b, scale_a=sa, scale_b=sb, from_registers=r)
        for (sa, sb), r in zip(scales * 2, (False, False, True, True), strict=False)
    ]
    if d == "s32":
        forms = [Form(n, d, a, b, from_registers=r) for r in (False, True)]
    module = emulator.Module(compile_ptx("".join(source(form) for form in forms), "90a"))
    for form in forms:
        got, want, trace = run(module, form, seed=3)
        assert (got == want).all(), form
        assert trace.hazards == []


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("majors", ["KK", "MK", "KN", "MN"])
def test_every_layout_of_16_bit_operands(swizzle, majors):
    """Dense tiles, tiles with room between them, and a start in the middle of a swizzled panel."""
    form = Form(96, "f32", "bf16", "bf16", a_major=majors[0], b_major=majors[1])
    module = emulator.Module(compile_ptx(source(form), "90a"))
    wide = max(swizzle, 16)
    between = (1024, 8192) if swizzle else (16384, 1024)
    apart = between if majors[0] == "M" else (16384, 8 * wide + 1024)
    apart += between if majors[1] == "N" else (16384, 8 * wide + 1024)
    for start, steps in (((0, None), (None,) * 4), ((1024, 41 * 1024), apart)):
        got, want, trace = run(module, form, swizzle, start=start, steps=steps)
        assert (got == want).all()
        assert trace.hazards == []
    if (
        majors == "KK" and swizzle > 32
    ):  # the second k-step of a panel starts 32 bytes further right
        got, want, _ = run(module, form, swizzle, start=(32, 40 * 1024 + 32))
        assert (got == want).all()


@pytest.mark.parametrize(
    "types", [("f32", "tf32", "tf32"), ("f32", "e4m3", "e5m2"), ("s32", "s8", "u8")]
)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_every_layout_of_other_operands(types, swizzle):
    form = Form(96, *types)
    module = emulator.Module(compile_ptx(source(form), "90a"))
    got, want, trace = run(module, form, swizzle)
    assert (got == want).all()
    assert trace.hazards == []


def test_integers_wrap_or_clamp():
    rng = np.random.default_rng(1)
    for sat in (False, True):
        form = Form(16, "s32", "u8", "u8", satfinite=sat)
        module = emulator.Module(compile_ptx(source(form), "90a"))
        a, b = rng.integers(200, 256, (64, 32)), rng.integers(200, 256, (16, 32))
        image = np.zeros(80 * 1024, np.uint8)
        at, bt = place(64, 32, 1, 128, "K", 0), place(16, 32, 1, 128, "K", 40 * 1024)
        fill(image, at, a.astype(np.uint8))
        fill(image, bt, b.astype(np.uint8))
        out = np.full((8, 128), 2**31 - 1000, np.int32)
        module.launch(
            form.name, 1, 128,
            [image, np.int32(len(image) // 16), np.uint64(at.descriptor), np.uint64(bt.descriptor),
             np.zeros((4, 128), np.uint32), out, np.int32(1)], shared_bytes=len(image),
        )  # fmt: skip
        want = a.astype(np.int64) @ b.T + 2**31 - 1000
        want = np.clip(want, None, 2**31 - 1) if sat else want.astype(np.uint32).view(np.int32)
        assert (from_accumulators(out, 16, False) == want).all()


def test_tf32_ignores_thirteen_bits():
    form = Form(8, "f32", "tf32", "tf32")
    module = emulator.Module(compile_ptx(source(form), "90a"))
    rng = np.random.default_rng(5)
    a, b = (
        rng.integers(1, 1 << 30, (n, 8)).astype(np.uint32) % (1 << 23) | 0x3F800000 for n in (64, 8)
    )
    image = np.zeros(80 * 1024, np.uint8)
    at, bt = place(64, 8, 4, 128, "K", 0), place(8, 8, 4, 128, "K", 40 * 1024)
    fill(image, at, a)
    fill(image, bt, b)
    out = np.zeros((4, 128), np.float32)
    module.launch(
        form.name, 1, 128,
        [image, np.int32(len(image) // 16), np.uint64(at.descriptor), np.uint64(bt.descriptor),
         np.zeros((4, 128), np.uint32), out, np.int32(0)], shared_bytes=len(image),
    )  # fmt: skip
    cut_a, cut_b = ((x & 0xFFFFE000).view(np.float32).astype(np.float64) for x in (a, b))
    got = from_accumulators(out.view(np.uint32), 8, False).view(np.float32)
    assert np.allclose(got, cut_a @ cut_b.T, rtol=1e-6)
    whole = a.view(np.float32).astype(np.float64) @ b.view(np.float32).T
    assert np.abs(got - cut_a @ cut_b.T).max() < np.abs(got - whole).max() / 50


def test_counts_see_conflicts():
    """A K-major tile of 128-byte rows costs one wavefront per core matrix if swizzled, eight if not."""
    form = Form(64)
    module = emulator.Module(compile_ptx(source(form), "90a"))
    for swizzle, ways in ((128, 1), (0, 1), (64, 1), (32, 1)):
        _, _, trace = run(module, form, swizzle)
        (row,) = trace.rows("wgmma.mma_async")
        ideal = 2 * (64 + form.n) // 8
        assert (row.shared_wavefronts_ideal, row.shared_wavefronts) == (ideal, ways * ideal)
        assert row.bytes == (64 + form.n) * 32
    # core matrices whose rows are 128 bytes apart without swizzle do not exist; eight rows of one
    # bank group come about where an MN-major tile's k-step is a whole line
    form = Form(64, a_major="M", b_major="N")
    module = emulator.Module(compile_ptx(source(form), "90a"))
    _, _, trace = run(module, form, 128)
    (row,) = trace.rows("wgmma.mma_async")
    assert row.shared_wavefronts == row.shared_wavefronts_ideal == 2 * (64 + 64) // 8


REFUSED = {
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {f}, %rd1, %rd1, %r1, 0, p, 1, 1, 0, 0;": r"\.sp",
    "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {r}, %rd1, %rd1, p;": "k256|b1",
    "wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {f}, %rd1, %rd1, p, 1, 1, 0, 0;": "bf16 times bf16 to f16",
    "wgmma.mma_async.sync.aligned.m64n8k8.f32.f16.f16 {f}, %rd1, %rd1, p, 1, 1, 0, 0;": "k is 16",
    "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {r}, %rd1, %rd1, p;": "n = 40",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f}, %rd1, %rd1, p, 2, 1, 0, 0;": "1 or -1",
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {f}, %rd1, %rd1, p, 1, 1, 0, 0;": "8 registers",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_modelled_is_refused_by_name(text):
    line = text.format(f="{%f1,%f2,%f3,%f4}", r="{%r2,%r3,%r4,%r5}") if "{" in text else text
    ptx = f""".version 8.0
.target sm_90a
.address_size 64
.visible .entry k() {{
    .reg .pred p; .reg .f32 %f<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    {line}
    ret;
}}"""
    with pytest.raises(emulator.PtxError, match=REFUSED[text]):
        emulator.Module(ptx).launch("k", 1, 128, [])
