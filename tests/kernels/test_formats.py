"""Number formats that NumPy lacks, against their definition and by their own rules."""

import numpy as np
import pytest

from kernels.formats import E4M3, decode, encode

VALUES = np.concatenate(
    [np.random.default_rng(3).normal(0, scale, 4000) for scale in (1e-3, 0.1, 1, 100)]
).astype(np.float32)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_encoding_takes_the_nearest_number(name):
    every = np.arange(2**16 if name == "bfloat16" else 2**8).astype(
        np.uint16 if name == "bfloat16" else np.uint8
    )
    numbers = decode(every, name).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    got = decode(encode(VALUES, name), name).astype(np.float64)
    clipped = np.clip(VALUES.astype(np.float64), numbers[0], numbers[-1])
    at = np.clip(np.searchsorted(numbers, clipped), 1, len(numbers) - 1)
    least = np.minimum(abs(numbers[at] - clipped), abs(numbers[at - 1] - clipped))
    assert (abs(got - clipped) == least).all()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_ties_go_to_the_even_code(name):
    codes = np.arange(1, 100).astype(np.uint16 if name == "bfloat16" else np.uint8)
    low, high = decode(codes, name), decode((codes + 1).astype(codes.dtype), name)
    ties = ((low.astype(np.float64) + high) / 2).astype(np.float32)
    assert (encode(ties, name) == codes + codes % 2).all()
    assert (encode(-low, name) & (codes.dtype.type(1) << (8 * codes.itemsize - 1))).all()


def test_e4m3_is_a_sign_four_bits_of_exponent_and_three_of_mantissa():
    code = np.arange(128)
    exponent, mantissa = code >> 3, code & 7
    value = np.where(exponent, (8 + mantissa) * 2.0 ** (exponent - 10), mantissa * 2.0**-9)
    assert (E4M3[:127] == value[:127]).all() and (E4M3[128:255] == -value[:127]).all()


def test_what_is_stored_comes_back():
    codes = np.array([c for c in range(256) if c & 127 != 127 and c != 128], np.uint8)
    assert (encode(decode(codes, "float8_e4m3fn"), "float8_e4m3fn") == codes).all()
    assert E4M3[126] == 448 and E4M3[1] == 2.0**-9 and np.isnan(E4M3[127])
