"""Kernels are read out of a page's text, compiled and run; a page of our own stands for others'."""

import numpy as np
import pytest

from measure import as_printed

PAGE = """
Kernel 1 - one thread per element
#define WIDTH 16
__global__
void plain(const float *a, const float *b, float *c, const float alpha, const float beta,
const int m, const int n, const int k) {
int row = blockIdx.y * WIDTH + threadIdx.y, col = blockIdx.x * WIDTH + threadIdx.x;
if (row >= m || col >= n) return;
float sum = 0.0f;
for (int i = 0; i < k; i++) { sum += a[row * k + i] * b[i * n + col]; }
c[row * n + col] = alpha * sum + beta * c[row * n + col];
}
Some words about it.
dim3 block(16, 16, 1);
dim3 grid((n+WIDTH-1)/WIDTH, (m+WIDTH-1)/WIDTH, 1);
plain<<<grid, block>>>(a, b, c, 1.0, 0.0, m, n, k);
Kernel 2 - sums in an array with a run-time index
#define DEPTH 3
__global__
void spilled(const float *a, float *b, float *c, const int n) {
float sums[8] = {0.0f};
for (int i = 0; i < n; i++) sums[i % DEPTH] += a[i * LANES + threadIdx.x];
c[threadIdx.x] = sums[n % DEPTH];
}
"""


def test_a_kernel_is_run_as_its_page_launches_it():
    first = as_printed.read(PAGE, {"LANES": "32"})[0]
    assert (first.heading, first.entry) == ("Kernel 1 - one thread per element", "plain")
    assert first.block == (16, 16, 1) and first.blocks(40, 72, 8) == (5, 3, 1)
    ran = as_printed.emulated(first, 80, 64)
    assert ran["error"] < 1e-6 and ran["hazards"] == []


def test_a_wrong_kernel_of_a_page_shows_its_error():
    wrong = PAGE.replace("i < k; i++) { sum", "i < k - 1; i++) { sum")
    assert as_printed.emulated(as_printed.read(wrong, {"LANES": "32"})[0], 80, 64)["error"] > 1e-3


def test_the_stack_of_an_array_with_a_run_time_index_is_told():
    plain, spilled = as_printed.read(PAGE, {"LANES": "32"})
    assert as_printed.compiled(spilled, 90)["stack"] == 32
    found = as_printed.compiled(plain, 90)
    assert found["stack"] == 0 and found["blocks_per_sm"] == 8 and found["registers"] > 8


def test_a_macro_that_the_page_lacks_is_named():
    row = as_printed.compiled(as_printed.read(PAGE)[1], 90)
    assert "LANES" in row["refused"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no kernel here", "no __global__ function"),
        ("__global__\nvoid k(const double *a, int n) { }", r"double \*a"),
    ],
)
def test_what_cannot_be_read_is_named(text, words):
    with pytest.raises(ValueError, match=words):
        as_printed.read(text)


def test_matrices_are_asymmetric_and_c_is_zero():
    A, B, C = as_printed.matrices(as_printed.read(PAGE, {"LANES": "32"})[0], 32)
    assert not np.array_equal(A, B) and not np.array_equal(A, A.T) and not C.any()
