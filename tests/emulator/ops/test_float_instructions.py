"""Floating-point instructions end to end: modifiers, packed halves, immediates, conversions.

Rounding itself is tested against exact rationals in test_floats; here NumPy's IEEE arithmetic, float64
and struct are the references.
"""

import struct
from fractions import Fraction

import numpy as np
import pytest
from fragments_of_ptx import pairs, run

SPECIALS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.5,
    3.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-40,
    1.17549435e-38,
    3.4028235e38,
    1 / 3,
]


def same(a, b):
    """Equal bit for bit, any NaN being as good as another."""
    a, b = np.asarray(a), np.asarray(b)
    bits = f"u{a.itemsize}"
    return bool(((a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))).all())


@pytest.fixture
def f32():
    rng = np.random.default_rng(1)
    values = np.array([*SPECIALS, *rng.standard_normal(6)], "f4")
    return pairs(values, values)


@pytest.mark.parametrize(
    "opcode, function",
    [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div.rn", np.divide)],
)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_arithmetic_is_ieee(opcode, function, kind, f32):
    x, y = (v.astype(f"f{kind[1:]}"[0] + str(int(kind[1:]) // 8)) for v in f32)
    rounding = "" if opcode == "div.rn" else ".rn"
    got = run(
        f"{opcode}{rounding}.{kind} %d, %a, %b;", {"%a": (kind, x), "%b": (kind, y)}, {"%d": kind}
    )
    with np.errstate(all="ignore"):
        assert same(got, function(x, y))


def test_fma_rounds_once():
    rng = np.random.default_rng(2)
    a = rng.standard_normal(2000).astype("f4")
    b = rng.standard_normal(2000).astype("f4")
    c = (-(a.astype("f8") * b)).astype("f4")  # so that low bits of the product survive
    c[::7] = rng.standard_normal(286)[: len(c[::7])]
    got = run(
        "fma.rn.f32 %d, %a, %b, %c;",
        {"%a": ("f32", a), "%b": ("f32", b), "%c": ("f32", c)},
        {"%d": "f32"},
    )
    for x, y, z, g in zip(a.tolist(), b.tolist(), c.tolist(), got, strict=True):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        candidates = [np.nextafter(g, np.float32(-np.inf)), g, np.nextafter(g, np.float32(np.inf))]
        errors = [abs(Fraction(float(v)) - exact) for v in candidates]
        assert errors[1] == min(errors)


def test_fma_with_uniform_and_immediate_operands():
    x = np.linspace(-3, 3, 64).astype("f4")
    code = "fma.rn.f32 %d, %a, 0f40000000, %b; fma.rn.f32 %e, %b, 0f40400000, 0f3F800000;"
    d, e = run(code, {"%a": ("f32", x), "%b": ("f32", 0.25)}, {"%d": "f32", "%e": "f32"})
    assert same(d, x * np.float32(2) + np.float32(0.25))
    assert (e == 1.75).all()


def test_flush_and_saturate(f32):
    x, y = f32
    inputs = {"%a": ("f32", x), "%b": ("f32", y)}
    tiny = np.float32(2.0**-126)

    def flush(v):
        return np.where(np.abs(v) < tiny, np.copysign(np.float32(0), v), v)

    with np.errstate(all="ignore"):
        got = run("mul.ftz.f32 %d, %a, %b;", inputs, {"%d": "f32"})
        assert same(got, flush(flush(x) * flush(y)))
        got = run("add.sat.f32 %d, %a, %b;", inputs, {"%d": "f32"})
        total = x + y
        assert same(
            got, np.where(np.isnan(total), np.float32(0), np.clip(total, 0, 1) + np.float32(0))
        )


def test_directed_rounding_brackets_the_truth():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, 500)).astype("f4")
    inputs = {"%a": ("f32", x), "%b": ("f32", y)}
    down, up, zero = (
        run(f"add.{r}.f32 %d, %a, %b;", inputs, {"%d": "f32"}) for r in ("rm", "rp", "rz")
    )
    exact = x.astype("f8") + y  # exact: two float32 of like size
    assert (down <= exact).all() and (up >= exact).all()
    assert (np.abs(zero) <= np.abs(exact)).all()
    assert ((down == up) == (down == exact)).all()


def test_minimum_and_maximum(f32):
    x, y = f32
    inputs = {"%a": ("f32", x), "%b": ("f32", y)}
    low, high = (run(f"{op}.f32 %d, %a, %b;", inputs, {"%d": "f32"}) for op in ("min", "max"))
    nan = np.isnan(x) & np.isnan(y)
    assert (np.isnan(low) == nan).all() and (np.isnan(high) == nan).all()
    ok = ~nan
    assert (low[ok] == np.fmin(x, y)[ok]).all() and (high[ok] == np.fmax(x, y)[ok]).all()
    strict = run("min.NaN.f32 %d, %a, %b;", inputs, {"%d": "f32"})
    assert (np.isnan(strict) == (np.isnan(x) | np.isnan(y))).all()


def test_negation_absolute_copysign(f32):
    x, y = f32
    inputs = {"%a": ("f32", x), "%b": ("f32", y)}
    d, e, f = run(
        "neg.f32 %d, %a; abs.f32 %e, %a; copysign.f32 %f, %a, %b;",
        inputs,
        {"%d": "f32", "%e": "f32", "%f": "f32"},
    )
    assert same(d, -x) and same(e, np.abs(x)) and same(f, np.copysign(y, x))


COMPARISONS = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: (x < y) | (x > y), "lt": lambda x, y: x < y,
    "ge": lambda x, y: x >= y, "equ": lambda x, y: ~((x < y) | (x > y)), "ltu": lambda x, y: ~(x >= y),
    "neu": lambda x, y: x != y, "gtu": lambda x, y: ~(x <= y),
    "num": lambda x, y: ~(np.isnan(x) | np.isnan(y)), "nan": lambda x, y: np.isnan(x) | np.isnan(y),
}  # fmt: skip


@pytest.mark.parametrize("operator", COMPARISONS)
def test_comparisons(operator, f32):
    x, y = f32
    for kind, dtype in (("f32", "f4"), ("f64", "f8"), ("f16", "f2")):
        with np.errstate(over="ignore"):
            p, q = x.astype(dtype), y.astype(dtype)
        code = f"{{ .reg .pred p; setp.{operator}.{kind} p, %a, %b; selp.u32 %d, 1, 0, p; }}"
        got = run(code, {"%a": (kind, p), "%b": (kind, q)}, {"%d": "u32"})
        assert (got == COMPARISONS[operator](p, q)).all()
    got = run(
        f"set.{operator}.u32.f32 %d, %a, %b;", {"%a": ("f32", x), "%b": ("f32", y)}, {"%d": "u32"}
    )
    assert (got == np.where(COMPARISONS[operator](x, y), 0xFFFFFFFF, 0)).all()


def test_testp():
    x = np.array([*SPECIALS, 5e-41], "f4")
    checks = {
        "finite": np.isfinite(x), "infinite": np.isinf(x), "number": ~np.isnan(x), "notanumber": np.isnan(x),
        "subnormal": (np.abs(x) < 2.0**-126) & (x != 0),
        "normal": np.isfinite(x) & (np.abs(x) >= np.float32(2.0**-126)),
    }  # fmt: skip
    for name, expected in checks.items():
        code = f"{{ .reg .pred p; testp.{name}.f32 p, %a; selp.u32 %d, 1, 0, p; }}"
        assert (run(code, {"%a": ("f32", x)}, {"%d": "u32"}) == expected).all(), name


HALF_OPERATIONS = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul": (2, lambda a, b: a * b),
    "fma.rn": (3, lambda a, b, c: a * b + c),
}


@pytest.mark.parametrize("opcode", HALF_OPERATIONS)
def test_half_precision(opcode):
    """f16 and its pairs: float64 holds every intermediate exactly."""
    operands, reference = HALF_OPERATIONS[opcode]
    rng = np.random.default_rng(4)
    arrays = [rng.standard_normal(256).astype("f2") for _ in range(operands)]
    for array in arrays:
        array[:6] = [0, np.inf, -0.0, 6e-8, 65504, 1]
    with np.errstate(all="ignore"):
        expected = reference(*(a.astype("f8") for a in arrays)).astype("f2")
    names = ["%a", "%b", "%c"][:operands]
    got = run(
        f"{opcode}.f16 %d, {', '.join(names)};",
        {n: ("f16", a) for n, a in zip(names, arrays, strict=True)}, {"%d": "f16"},
    )  # fmt: skip
    assert same(got, expected)
    got = run(
        f"{opcode}.f16x2 %d, {', '.join(names)};",
        {n: ("f16x2", a.view("u4")) for n, a in zip(names, arrays, strict=True)}, {"%d": "f16x2"},
    )  # fmt: skip
    assert same(got.view("f2"), expected)


def test_bfloat16():
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((2, 128)).astype("f4")
    to_bits = (x.view("u4") >> 16).astype("u2"), (y.view("u4") >> 16).astype("u2")
    a, b = ((bits.astype("u4") << 16).view("f4") for bits in to_bits)
    got = run(
        "fma.rn.bf16 %d, %a, %b, %a;",
        {"%a": ("bf16", to_bits[0]), "%b": ("bf16", to_bits[1])},
        {"%d": "bf16"},
    )
    value = (got.astype("u4") << 16).view("f4").astype("f8")
    exact = a.astype("f8") * b + a
    assert (np.abs(value - exact) <= np.abs(exact) * 2.0**-8 + 1e-38).all()
    packed = [bits.view("u4") for bits in to_bits]
    pair = run(
        "mul.bf16x2 %d, %a, %b;",
        {"%a": ("b32", packed[0]), "%b": ("b32", packed[1])},
        {"%d": "b32"},
    )
    single = run(
        "mul.bf16 %d, %a, %b;",
        {"%a": ("bf16", to_bits[0]), "%b": ("bf16", to_bits[1])},
        {"%d": "bf16"},
    )
    assert (pair.view("u2") == single).all()


def test_packed_comparison():
    a = np.array([1, 2, 3, 4], "f2")
    b = np.array([1, 5, 2, 4], "f2")
    code = "{ .reg .pred p, q; setp.lt.f16x2 p|q, %a, %b; selp.u32 %d, 1, 0, p; selp.u32 %e, 1, 0, q; }"
    d, e = run(
        code, {"%a": ("b32", a.view("u4")), "%b": ("b32", b.view("u4"))}, {"%d": "u32", "%e": "u32"}
    )
    assert (d == [0, 0]).all() and (e == [1, 0]).all()


def test_conversions_between_floats_and_integers():
    x = np.array(
        [
            0.0,
            -0.0,
            0.5,
            1.5,
            2.5,
            -1.5,
            -2.5,
            1e10,
            -1e10,
            np.inf,
            -np.inf,
            np.nan,
            3.99,
            -3.99,
            255.6,
        ],
        "f4",
    )
    top = 2**31 - 1

    def clip(v):
        return np.array([0 if np.isnan(i) else int(max(-top - 1, min(top, i))) for i in v])

    for mode, function in (
        ("rni", np.rint),
        ("rzi", np.trunc),
        ("rmi", np.floor),
        ("rpi", np.ceil),
    ):
        got = run(f"cvt.{mode}.s32.f32 %d, %a;", {"%a": ("f32", x)}, {"%d": "s32"})
        assert (got == clip(function(x).astype("f8"))).all(), mode
        got = run(f"cvt.{mode}.f32.f32 %d, %a;", {"%a": ("f32", x)}, {"%d": "f32"})
        assert same(got, function(x)), mode
    got = run("cvt.rzi.u8.f32 %d, %a;", {"%a": ("f32", x)}, {"%d": "u32"})
    assert got[-1] == 255 and got[7] == 255 and got[8] == 0
    n = np.array([0, 1, -1, 2**24 + 1, 2**31 - 1, -(2**31), 12345678], "i4")
    assert same(run("cvt.rn.f32.s32 %d, %a;", {"%a": ("s32", n)}, {"%d": "f32"}), n.astype("f4"))
    down = run("cvt.rz.f32.s32 %d, %a;", {"%a": ("s32", n)}, {"%d": "f32"}).astype("f8")
    assert (np.abs(down) <= np.abs(n.astype("f8"))).all()
    assert same(run("cvt.rn.f64.s32 %d, %a;", {"%a": ("s32", n)}, {"%d": "f64"}), n.astype("f8"))


def test_conversions_between_floats():
    rng = np.random.default_rng(6)
    x = np.concatenate(
        [rng.standard_normal(200), SPECIALS, [65519, 65520, 2.0**-25, 6.1e-5]]
    ).astype("f4")
    with np.errstate(over="ignore"):
        assert same(
            run("cvt.rn.f16.f32 %d, %a;", {"%a": ("f32", x)}, {"%d": "f16"}), x.astype("f2")
        )
    h = x[:200].astype("f2")
    assert same(run("cvt.f32.f16 %d, %a;", {"%a": ("f16", h)}, {"%d": "f32"}), h.astype("f4"))
    assert same(run("cvt.f64.f32 %d, %a;", {"%a": ("f32", x)}, {"%d": "f64"}), x.astype("f8"))
    d = rng.standard_normal(100)
    assert same(run("cvt.rn.f32.f64 %d, %a;", {"%a": ("f64", d)}, {"%d": "f32"}), d.astype("f4"))
    y = np.roll(x[:200], 1)
    got = run(
        "cvt.rn.f16x2.f32 %d, %a, %b;", {"%a": ("f32", x[:200]), "%b": ("f32", y)}, {"%d": "b32"}
    )
    expected = x[:200].astype("f2").view("u2").astype("u4") << 16 | y.astype("f2").view("u2")
    assert (got == expected).all()


def test_approximations_are_close():
    x = np.linspace(0.01, 9, 500).astype("f4")
    checks = {
        "rcp.approx": 1 / x, "sqrt.approx": np.sqrt(x), "rsqrt.approx": 1 / np.sqrt(x), "ex2.approx": np.exp2(x),
        "lg2.approx": np.log2(x), "sin.approx": np.sin(x), "cos.approx": np.cos(x), "tanh.approx": np.tanh(x),
        "sqrt.rn": np.sqrt(x), "rcp.rn": 1 / x,
    }  # fmt: skip
    for opcode, expected in checks.items():
        got = run(f"{opcode}.f32 %d, %a;", {"%a": ("f32", x)}, {"%d": "f32"})
        assert np.allclose(got, expected, rtol=2e-6, atol=1e-6), opcode


def test_float_immediates_and_moves():
    code = "mov.f32 %d, 0f3FC00000; mov.f64 %e, 0d3FF8000000000000; mov.b32 %f, 0f3FC00000; mov.f64 %g, 1.5;"
    d, e, f, g = run(code, {}, {"%d": "f32", "%e": "f64", "%f": "b32", "%g": "f64"})
    assert (d == 1.5).all() and (e == 1.5).all() and (g == 1.5).all()
    assert f[0] == struct.unpack("<I", struct.pack("<f", 1.5))[0]


def test_packed_single_precision():
    x, y = np.random.default_rng(7).standard_normal((2, 64)).astype("f4")
    code = "fma.rn.f32x2 %d, %a, %b, %a; add.rn.ftz.f32x2 %e, %a, %b;"
    d, e = run(
        code, {"%a": ("b64", x.view("u8")), "%b": ("b64", y.view("u8"))}, {"%d": "b64", "%e": "b64"}
    )
    exact = x.astype("f8") * y + x
    assert np.allclose(d.view("f4"), exact, rtol=2.0**-23) and same(e.view("f4"), x + y)
