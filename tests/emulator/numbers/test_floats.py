"""Floating-point arithmetic against exact rationals, element by element."""

from fractions import Fraction

import numpy as np
import pytest
from exact_rounding import bits_of, operands, round_exactly

from emulator.numbers import approximations, comparisons, floats, fma, formats

ROUNDINGS = ("rn", "rz", "rm", "rp")

EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b if b else None,
    "fma": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("format", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("operation", sorted(EXACT))
def test_one_rounding_as_in_exact_rationals(operation, format, rounding):
    arity = 3 if operation == "fma" else 2
    for spread in (3, 30, 2000):
        values = [operands(format, 400, 10 * arity + i + spread, spread) for i in range(arity)]
        if operation == "fma":  # cancellation: c near -a*b
            near = floats.mul(values[0], values[1], format)
            finite = np.isfinite(formats.widen(near, format))
            values[2][:150] = np.where(finite, floats.neg(near, format), values[2])[:150]
        got = getattr(floats, operation)(*values, format, rounding)
        wide = [formats.widen(v, format) for v in values]
        for i, result in enumerate(bits_of(got, format)):
            exact = EXACT[operation](*(Fraction(float(w[i])) for w in wide))
            if exact:
                assert int(result) == round_exactly(exact, format, rounding), [w[i] for w in wide]
            elif exact == 0 and operation != "mul":
                assert formats.widen(got, format)[i] == 0


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("format", ["f32", "f64"])
def test_square_roots(format, rounding):
    a = floats.absolute(operands(format, 600, 5, 2000), format)
    with np.errstate(over="ignore"):
        a[:50] = a[:50] * a[:50]  # perfect squares
    got = floats.sqrt(a, format, rounding).astype(np.float64)
    for x, root in zip(a.astype(np.float64), got, strict=True):
        if not np.isfinite(x) or x == 0:
            continue
        dtype = formats.FORMATS[format].dtype
        below = Fraction(float(np.nextafter(dtype(root), dtype(-np.inf))))
        above = Fraction(float(np.nextafter(dtype(root), dtype(np.inf))))
        exact, here = Fraction(float(x)), Fraction(float(root))
        if rounding in ("rz", "rm"):
            assert here**2 <= exact < above**2
        elif rounding == "rp":
            assert below**2 < exact <= here**2
        else:
            assert ((below + here) / 2) ** 2 <= exact <= ((here + above) / 2) ** 2


def test_fma_repairs_the_double_rounding():
    # a * b = 2^-24 - 2^-70: float64 loses the 2^-70 and leaves a tie, which then rounds up to even
    a = np.array([(1 - 2.0**-23) * 2.0**-12], np.float32)
    b = np.array([(1 + 2.0**-23) * 2.0**-12], np.float32)
    c = np.array([1 + 2.0**-23], np.float32)
    twice = (a.astype(np.float64) * b + c).astype(np.float32)
    assert twice[0] == np.float32(1 + 2.0**-22)
    assert fma.fma_f32(a, b, c)[0] == np.float32(1 + 2.0**-23)
    # the same among subnormal results, whose midpoints lie elsewhere
    a, b = np.float32([2.0**-76 * (1 - 2.0**-23)]), np.float32([2.0**-74 * (1 + 2.0**-23)])
    c = np.float32([2.0**-149 * (2**22 + 1)])
    assert fma.fma_f32(a, b, c)[0] == c[0]


def test_fma_over_many_elements_matches_small_ones_in_any_shape():
    rng = np.random.default_rng(1)
    a, b, c = rng.standard_normal((3, 9, 5, 1000)).astype(np.float32)
    c.flat[::7] = -(a * b).flat[::7]
    a.flat[::501] = np.nan
    whole = fma.fma_f32(a, b, c)
    parts = np.stack([fma.fma_f32(*rows) for rows in zip(a, b, c, strict=True)])
    assert (bits_of(whole, "f32") == bits_of(parts, "f32")).all()
    assert fma.fma_f32(a[::2, :, ::3], b[::2, :, ::3], c[::2, :, ::3]).shape == (5, 5, 334)
    out = np.zeros_like(a)
    assert fma.fma_f32(a, b, c, out=out) is out
    assert (bits_of(out, "f32") == bits_of(whole, "f32")).all()
    assert (bits_of(whole, "f32")[np.isnan(whole)] == 0x7FFFFFFF).all()


@pytest.mark.parametrize("format", ["f16", "bf16", "f32"])
def test_nan_and_infinity(format):
    inf = formats.narrow(np.array([np.inf]), format)
    nan = formats.narrow(np.array([np.nan]), format)
    one = formats.narrow(np.array([1.0]), format)
    zero = formats.narrow(np.array([0.0]), format)
    canonical = formats.FORMATS[format].nan
    for result in (
        floats.add(inf, floats.neg(inf, format), format),
        floats.mul(inf, zero, format),
        floats.fma(inf, zero, one, format),
        floats.fma(one, one, nan, format),
        floats.sqrt(floats.neg(one, format), format),
        floats.div(zero, zero, format),
        floats.add(floats.neg(nan, format), one, format),
    ):
        assert int(bits_of(result, format)[0]) == canonical
    assert formats.widen(floats.div(one, floats.neg(zero, format), format), format)[0] == -np.inf
    assert formats.widen(floats.fma(inf, one, one, format), format)[0] == np.inf


@pytest.mark.parametrize("format", ["f16", "bf16", "f32", "f64"])
def test_extrema(format):
    values = [1.0, -2.0, 0.0, -0.0, np.inf, -np.inf, np.nan]
    x = formats.narrow(np.array(values), format)
    a, b = np.repeat(x, len(x)), np.tile(x, len(x))
    u, v = np.repeat(values, len(values)), np.tile(values, len(values))
    low, high = comparisons.minimum(a, b, format), comparisons.maximum(a, b, format)
    for i in range(len(u)):
        pair = [p for p in (u[i], v[i]) if p == p]
        expect_low = min(pair, key=lambda p: (p, np.copysign(1, p)), default=np.nan)
        expect_high = max(pair, key=lambda p: (p, np.copysign(1, p)), default=np.nan)
        for got, expected in ((low, expect_low), (high, expect_high)):
            wide = formats.widen(got, format)[i]
            np.testing.assert_equal(wide, expected)
            assert expected != expected or np.signbit(wide) == np.signbit(expected)
    strict = formats.widen(comparisons.minimum(a, b, format, nan=True), format)
    assert (np.isnan(strict) == (np.isnan(u) | np.isnan(v))).all()
    mixed = formats.widen(comparisons.maximum(a, b, format, xorsign_abs=True), format)
    number = ~np.isnan(u) & ~np.isnan(v)
    assert (np.abs(mixed[number]) == np.maximum(np.abs(u), np.abs(v))[number]).all()
    assert (np.signbit(mixed[number]) == (np.signbit(u) ^ np.signbit(v))[number]).all()


def test_modifiers():
    tiny = np.array([1e-40, -1e-40, 2.0], np.float32)
    one = np.ones(3, np.float32)
    flushed = floats.mul(tiny, one, ftz=True)
    assert flushed.tolist() == [0, 0, 2] and np.signbit(flushed).tolist() == [False, True, False]
    assert floats.mul(tiny, one)[0] == tiny[0]
    low = np.full(3, 2.0**-100, np.float32)
    assert floats.fma(low, low, np.zeros(3, np.float32), ftz=True).tolist() == [0, 0, 0]
    x = np.array([-3.0, 0.25, 7.0, np.nan, -0.0], np.float32)
    saturated = floats.add(x, np.zeros(5, np.float32), sat=True)
    assert saturated.tolist() == [0, 0.25, 1, 0, 0] and not np.signbit(saturated).any()
    for format in ("f16", "bf16", "f32"):
        y = formats.narrow(np.array([-3.0, 0.25, -0.0, np.nan]), format)
        ones, zeros = formats.narrow(np.ones(4), format), formats.narrow(np.zeros(4), format)
        clamped = formats.widen(floats.fma(y, ones, zeros, format, relu=True), format)
        assert clamped[:3].tolist() == [0, 0.25, 0] and np.isnan(clamped[3])


def test_packed_halves_are_the_same_functions_on_a_16_bit_view():
    rng = np.random.default_rng(2)
    halves = rng.standard_normal((3, 4, 64)).astype(np.float16)
    registers = [h.view(np.uint32) for h in halves]
    a, b, c = (r.view(np.float16) for r in registers)
    got = floats.fma(a, b, c, "f16").view(np.uint32)
    exact = halves.astype(np.float64)
    expected = (exact[0] * exact[1] + exact[2]).astype(np.float16).view(np.uint32)
    assert (got == expected).all()


def test_comparisons_with_nan():
    a = np.array([1, 2, np.nan, np.nan], np.float32)
    b = np.array([2, 2, 1, np.nan], np.float32)
    table = {
        "eq": [0, 1, 0, 0], "ne": [1, 0, 0, 0], "lt": [1, 0, 0, 0], "le": [1, 1, 0, 0],
        "gt": [0, 0, 0, 0], "ge": [0, 1, 0, 0], "equ": [0, 1, 1, 1], "neu": [1, 0, 1, 1],
        "ltu": [1, 0, 1, 1], "leu": [1, 1, 1, 1], "gtu": [0, 0, 1, 1], "geu": [0, 1, 1, 1],
        "num": [1, 1, 0, 0], "nan": [0, 0, 1, 1],
    }  # fmt: skip
    for operator, expected in table.items():
        assert comparisons.compare(operator, a, b).tolist() == [bool(x) for x in expected], operator


def test_approximations_are_within_a_unit_of_the_true_value():
    x = np.linspace(0.01, 20, 500).astype(np.float32)
    exact = {"ex2": np.exp2, "lg2": np.log2, "tanh": np.tanh, "rsqrt": lambda v: v**-0.5}
    for name, function in exact.items():
        np.testing.assert_allclose(
            approximations.approximate(name, x),
            function(x.astype(np.float64)),
            rtol=2.0**-23,
            atol=1e-9,
        )
    special = np.array([0.0, -0.0, np.inf, -1.0], np.float32)
    assert approximations.approximate("lg2", special).tolist()[:3] == [-np.inf, -np.inf, np.inf]
    assert approximations.approximate("rcp", special).tolist() == [np.inf, -np.inf, 0, -1]
    assert np.isnan(approximations.approximate("rsqrt", special)[3])


def test_testp_and_signs():
    x = np.array([1.0, 1e-40, 0.0, np.inf, np.nan], np.float32)
    assert comparisons.testp("normal", x).tolist() == [True, False, False, False, False]
    assert comparisons.testp("subnormal", x).tolist() == [False, True, False, False, False]
    assert comparisons.testp("finite", x).tolist() == [True, True, True, False, False]
    assert floats.copysign(np.float32([-1.0]), np.float32([5.0])).tolist() == [-5.0]


@pytest.mark.parametrize("format", ["f32", "f64"])
def test_fma_where_nothing_is_to_be_rounded(format):
    """A product of zero keeps -0 + -0; one that overflows is finite beside an infinite addend."""
    dtype = formats.FORMATS[format].dtype
    most = float(np.finfo(dtype).max)
    cases = [
        (-0.0, 7.0, -0.0, -0.0),
        (-0.0, 7.0, 0.0, 0.0),
        (3.0, -0.0, -0.0, -0.0),
        (most, most, -np.inf, -np.inf),
        (-most, most, np.inf, np.inf),
        (-most, 0.0, np.inf, np.inf),
        (np.inf, 2.0, -np.inf, np.nan),
        (np.inf, -0.0, np.inf, np.nan),
        (0.0, 3.0, 5e-324, 5e-324),
        (most, most, 1.0, np.inf),
    ]
    a, b, c, expected = (np.array(column).astype(dtype) for column in zip(*cases, strict=True))
    found = floats.fma(a, b, c, format)
    nan = np.isnan(expected)
    assert (np.isnan(found) == nan).all()
    bits = formats.FORMATS[format].bits
    assert (found.view(bits) == expected.view(bits))[~nan].all(), list(
        zip(found, cases, strict=True)
    )
