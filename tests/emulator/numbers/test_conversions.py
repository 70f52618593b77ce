"""Conversions against Python integers and exact rationals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_rounding import bits_of, operands, round_exactly

from emulator.numbers.conversions import INTEGERS, convert, pack
from emulator.numbers.formats import FORMATS, narrow, widen

FLOATS = ("f16", "bf16", "f32", "f64")
INTEGRAL = {"rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil, "rni": round}


def integers(name, count=300):
    limits = np.iinfo(INTEGERS[name])
    rng = np.random.default_rng(7)
    bits = 8 * np.dtype(INTEGERS[name]).itemsize
    values = [limits.min, limits.max, 0, 1, limits.max - 1, limits.min + 1, limits.max // 2 + 1]
    for width in rng.integers(1, bits + 1, count):
        size = int(rng.integers(0, 1 << 62)) % (1 << int(width)) | 1 << (int(width) - 1)
        size = size if rng.random() < 0.5 else (1 << int(width) - 1) + int(rng.integers(0, 3))
        values += [v for v in (size, -size) if limits.min <= v <= limits.max]
    return np.array(values, INTEGERS[name])


@pytest.mark.parametrize("to", sorted(INTEGERS))
@pytest.mark.parametrize("source", sorted(INTEGERS))
def test_integers_wrap_or_saturate(source, to):
    x = integers(source, 60)
    limits = np.iinfo(INTEGERS[to])
    span = limits.max - limits.min + 1
    wrapped = [(int(v) - limits.min) % span + limits.min for v in x]
    assert convert(x, to, source).tolist() == wrapped
    clamped = [min(max(int(v), limits.min), limits.max) for v in x]
    assert convert(x, to, source, sat=True).tolist() == clamped


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("source", ["u64", "s64", "u32", "s32", "s16", "u8"])
def test_integers_to_floats_round_once(source, to, rounding):
    x = integers(source)
    got = bits_of(convert(x, to, source, rounding), to)
    for value, result in zip(x.tolist(), got, strict=True):
        expected = round_exactly(Fraction(value), to, rounding) if value else 0
        assert int(result) == expected, value


@pytest.mark.parametrize("rounding", sorted(INTEGRAL))
@pytest.mark.parametrize("to", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_integers_saturate(source, to, rounding):
    x = operands(source, 200, 3, 40)
    halves = narrow(
        np.array([0.5, 1.5, 2.5, -0.5, -1.5, 127.5, -128.5, 2.0**31, -(2.0**31)]), source
    )
    x = np.concatenate([x, halves, narrow(np.array([np.inf, -np.inf, np.nan]), source)])
    limits = np.iinfo(INTEGERS[to])
    got = convert(x, to, source, rounding)
    for value, result in zip(widen(x, source).tolist(), got.tolist(), strict=True):
        if math.isnan(value):
            expected = 0
            if source == "f64" or to in ("u64", "s64"):
                expected = limits.min if to[0] == "s" else limits.max // 2 + 1
        elif math.isinf(value):
            expected = limits.max if value > 0 else limits.min
        else:
            expected = min(max(INTEGRAL[rounding](value), limits.min), limits.max)
        assert result == expected, value


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize(
    ("source", "to"),
    [("f64", "f32"), ("f64", "f16"), ("f64", "bf16"), ("f32", "f16"), ("f32", "bf16")],
)
def test_floats_narrow_with_one_rounding(source, to, rounding):
    for spread in (4, 20, 1100):
        x = operands(source, 400, spread, spread)
        got = bits_of(convert(x, to, source, rounding), to)
        for value, result in zip(widen(x, source).tolist(), got, strict=True):
            if value and math.isfinite(value):
                assert int(result) == round_exactly(Fraction(value), to, rounding), value


@pytest.mark.parametrize(("source", "to"), [("f16", "f32"), ("bf16", "f32"), ("f32", "f64")])
def test_floats_widen_exactly(source, to):
    x = operands(source, 300, 9, 2000)
    assert (widen(convert(x, to, source), to) == widen(x, source)).all()


def test_tf32_rounds_halves_away_and_keeps_ten_bits():
    ulp = 2.0**-10
    x = np.array([1 + ulp / 2, -1 - ulp / 2, 1 + 1.5 * ulp, 1 + ulp / 4, np.inf, 0.0], np.float32)
    away = convert(x, "tf32", "f32", "rna")
    assert away.tolist() == [1 + ulp, -1 - ulp, 1 + 2 * ulp, 1.0, np.inf, 0.0]
    assert convert(x, "tf32", "f32", "rn").tolist()[:3] == [1.0, -1.0, 1 + 2 * ulp]
    assert convert(x, "tf32", "f32", "rz").tolist()[:3] == [1.0, -1.0, 1 + ulp]
    assert (convert(operands("f32", 99, 4, 20), "tf32", "f32").view(np.uint32) & 0x1FFF == 0).all()
    assert convert(np.float32([np.nan]), "tf32", "f32").view(np.uint32)[0] == 0x7FC00000


def test_modifiers():
    x = np.array([-1.5, 0.25, 3.0, np.nan], np.float32)
    assert convert(x, "f16", "f32", "rn", sat=True).tolist() == [0, 0.25, 1, 0]
    assert convert(x, "f16", "f32", "rn", relu=True)[:3].tolist() == [0, 0.25, 3]
    assert convert(np.float32([1e30, -1e30]), "f16", "f32", "rn", satfinite=True).tolist() == [
        65504,
        -65504,
    ]
    assert convert(np.float32([1e-40, 1.0]), "f64", "f32", ftz=True).tolist() == [0, 1]
    assert convert(np.float64([1e-40, 1.0]), "f32", "f64", "rn", ftz=True).tolist() == [0, 1]
    assert convert(x[:3], "f32", "f32", "rpi").tolist() == [-1, 1, 3]
    assert convert(np.float16([2.5, -2.5]), "f16", "f16", "rni").tolist() == [2, -2]


def test_packing_puts_the_first_operand_high():
    high, low = np.float16([1.0]), np.float16([2.0])
    assert pack(high, low)[0] == 0x3C004000


def test_formats_are_the_four():
    assert set(FORMATS) == set(FLOATS)
