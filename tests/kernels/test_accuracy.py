"""The error bound lets right results pass and catches small mistakes."""

import numpy as np
import pytest

from kernels import Types, accuracy, random_inputs
from kernels.accuracy import ACCUMULATION_ERROR

SIZES = [(1, 1, 1), (33, 65, 17), (64, 48, 4096)]


def truncate(x, bits):
    """Cut a float32 after `bits` bits of its fraction, as tensor cores read TF32."""
    return (x.view(np.uint32) & np.uint32(0xFFFFFFFF << (23 - bits) & 0xFFFFFFFF)).view(np.float32)


def sequential(A, B):
    """fp32, one product after the other."""
    total = np.zeros((A.shape[0], B.shape[1]), np.float32)
    for k in range(A.shape[1]):
        total += np.outer(A[:, k], B[k])
    return total


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("inputs", ["float32", "float16", "tf32"])
@pytest.mark.parametrize("output", ["float32", "float16"])
def test_a_right_result_passes_with_room(size, inputs, output):
    types = Types(inputs, output=output)
    A, B, C = random_inputs(types, *size)
    a, b = A.astype(np.float32), B.astype(np.float32)
    if inputs == "tf32":
        a, b = truncate(a, 10), truncate(b, 10)
    result = (np.float32(-1.25) * sequential(a, b) + np.float32(0.75) * C).astype(output)
    found = accuracy(result, A, B, C, -1.25, 0.75, types)
    assert found.ok and found.of_bound < 1


@pytest.mark.parametrize("inputs", ["float32", "float16", "tf32"])
def test_one_term_of_thousands_left_out_is_seen(inputs):
    types = Types(inputs)
    A, B, _ = random_inputs(types, 32, 32, 4096)
    result = A[:, 1:].astype(np.float32) @ B[1:].astype(np.float32)
    found = accuracy(result, A, B, None, 1, 0, types)
    assert found.wrong > 100


def test_half_precision_accumulation_is_seen():
    types = Types("float16")
    A, B, _ = random_inputs(types, 16, 16, 512)
    total = np.zeros((16, 16), np.float16)
    for k in range(512):
        total += np.outer(A[:, k], B[k])
    assert not accuracy(total.astype(np.float32), A, B, None, 1, 0, types).ok


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_one_wrong_element_is_found_and_named(bad):
    A, B, C = random_inputs(Types(), 37, 41, 29)
    result = (A.astype(np.float64) @ B + 2 * C).astype(np.float32)
    assert accuracy(result, A, B, C, 1, 2, Types()).ok
    result[11, 23] = bad
    found = accuracy(result, A, B, C, 1, 2, Types())
    assert (found.wrong, found.index) == (1, (11, 23))
    assert "C[11, 23]" in str(found)


def test_the_bound_scales_with_alpha():
    A, B, _ = random_inputs(Types(), 20, 20, 20)
    exact = A.astype(np.float64) @ B
    spread = np.sqrt((A * A).astype(np.float64) @ (B * B))
    off = exact + 3e3 * ACCUMULATION_ERROR["float32"] * spread
    for alpha in (1e-3, 1.0, 1e3):
        assert accuracy(alpha * exact, A, B, None, alpha, 0, Types()).ok
        assert not accuracy(alpha * off, A, B, None, alpha, 0, Types()).ok
