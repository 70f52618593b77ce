"""One warp's kernel, and the name of what is wrong with a product."""

import numpy as np
import pytest

from book.cells import one_warp

DOUBLE = """
extern "C" __global__ void twice(const float* in, float* out) { out[threadIdx.x] = 2 * in[threadIdx.x]; }
"""


@pytest.fixture
def product():
    rng = np.random.default_rng(8)
    A, B = (rng.standard_normal(shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    return A, B, (A.astype(float) @ B.astype(float)).astype(np.float32)


def test_arrays_are_changed_in_place():
    into = np.zeros(32, np.float32)
    one_warp.run(DOUBLE, np.arange(32, dtype=np.float32), into)
    assert np.array_equal(into, 2 * np.arange(32))


def test_a_right_product_has_no_findings(product, capsys):
    A, B, C = product
    assert one_warp.findings(C, A, B) == []
    one_warp.explain(C, A, B)
    assert capsys.readouterr().out == "right\n"


def test_a_mistake_is_named(product):
    A, B, _ = product
    blocks = A.reshape(2, 8, 2, 8).transpose(0, 3, 2, 1).reshape(16, 16)
    C = (blocks.astype(float) @ B.astype(float)).astype(np.float32)
    assert "block of A is transposed" in one_warp.findings(C, A, B)[0]


def test_one_wrong_element_is_found(product):
    A, B, C = product
    C[3, 5] *= 1.01
    assert "row 3" in one_warp.findings(C, A, B)[0].lower()
