"""A small project's tests of its kernels, as they would be written for a GPU: `pytest --emulate-gpu` runs them without one."""

import numpy as np
import pytest

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
template <typename T>
__global__ void transposed(const T* in, T* out, int rows, int cols) {
    __shared__ T tile[16][17];
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < cols && y < rows) tile[threadIdx.y][threadIdx.x] = in[y * cols + x];
    MEET;
    const int to_x = blockIdx.y * 16 + threadIdx.x, to_y = blockIdx.x * 16 + threadIdx.y;
    if (to_x < rows && to_y < cols) out[to_y * rows + to_x] = tile[threadIdx.x][threadIdx.y];
}
"""


def transpose(matrix, meet):
    cp = pytest.importorskip("cupy")
    options, name = (f"-DMEET={meet}",), "transposed<double>"
    kernel = cp.RawModule(code=SOURCE, options=options, name_expressions=[name]).get_function(name)
    rows, cols = matrix.shape
    out = cp.zeros((cols, rows))
    blocks = (-(-cols // 16), -(-rows // 16))
    kernel(blocks, (16, 16), (matrix, out, np.int32(rows), np.int32(cols)))
    cp.testing.assert_array_equal(out, matrix.T)


def test_cupy():
    cp = pytest.importorskip("cupy")
    x, y = cp.random.random(1000, dtype=cp.float32), cp.arange(1000, dtype=cp.float32)
    wanted = y + np.float32(2.5) * x
    kernel = cp.RawKernel(SOURCE.replace("MEET", ""), "saxpy")
    kernel((4,), (256,), (np.float32(2.5), x, y, np.int32(1000)))
    cp.testing.assert_allclose(y, wanted, rtol=1e-6)


def test_cupy_template():
    cp = pytest.importorskip("cupy")
    transpose(cp.random.random((33, 50)), "__syncthreads()")


@pytest.mark.xfail(
    strict=True, reason="a barrier is missing: a hazard, though no number need be wrong"
)
def test_a_race():
    cp = pytest.importorskip("cupy")
    transpose(cp.random.random((33, 50)), "")


def test_cuda_core():
    core = pytest.importorskip("cuda.core")
    cp = pytest.importorskip("cupy")
    device = core.Device()
    device.set_current()
    stream = device.create_stream()
    program = core.Program(SOURCE.replace("MEET", ""), code_type="c++")
    kernel = program.compile("cubin", name_expressions=("saxpy",)).get_kernel("saxpy")
    x, y = cp.ones(100, cp.float32), cp.zeros(100, cp.float32)
    where = core.LaunchConfig(grid=1, block=128)
    core.launch(stream, where, kernel, np.float32(3), x.data.ptr, y.data.ptr, np.int32(100))
    assert cp.asnumpy(y).tolist() == [3.0] * 100


def test_numba():
    cuda = pytest.importorskip("numba.cuda")

    @cuda.jit
    def block_sums(x, out):
        part = cuda.shared.array(128, np.float32)
        i = cuda.threadIdx.x
        part[i] = x[cuda.grid(1)]
        half = 64
        while half:
            cuda.syncthreads()
            if i < half:
                part[i] += part[i + half]
            half //= 2
        if i == 0:
            out[cuda.blockIdx.x] = part[0]

    x, out = np.random.default_rng(2).random(512, np.float32), np.zeros(4, np.float32)
    block_sums[4, 128](x, out)
    np.testing.assert_allclose(out, x.reshape(4, 128).sum(1), rtol=1e-5)
