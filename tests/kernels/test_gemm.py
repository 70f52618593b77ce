"""One call runs a rung; what it cannot take is refused by name before anything runs."""

import numpy as np
import pytest

import kernels
from kernels import UnsupportedGPU, accuracy, build, gemm, gpu, launch, plan, random_inputs
from kernels.launch import parameters

A, B, C = random_inputs(kernels.Types(), 45, 37, 29)
no_gpu = pytest.mark.skipif(gpu() is not None, reason="a GPU is here")
emulated = {"machine": "emulator"}


@pytest.mark.parametrize("rung", ["cpu", "naive", "coarsened_1d"])
def test_alpha_and_beta(rung):
    result = gemm(rung, A, B, C, alpha=-1.5, beta=0.25, **emulated)
    assert accuracy(result.C, A, B, C, -1.5, 0.25, kernels.Types()).ok
    assert result.C.shape == (45, 37)


def test_c_is_left_as_it_was():
    before = C.copy()
    gemm("naive", A, B, C, beta=1.0, **emulated)
    assert np.array_equal(C, before)


def test_beta_zero_does_not_read_c():
    nan = np.full_like(C, np.nan)
    result = gemm("naive", A, B, nan, beta=0.0, **emulated)
    assert accuracy(result.C, A, B, None, 1, 0, kernels.Types()).ok


def test_views_are_taken_as_they_look():
    result = gemm("naive", B.T, A.T, **emulated)
    assert accuracy(result.C, B.T, A.T, None, 1, 0, kernels.Types()).ok


def test_the_result_says_how_it_was_made():
    result = gemm("tiled", A, B, macros={"BLOCK": 16}, **emulated)
    assert result.machine == "emulator"
    assert result.plan.grid == (3, 3, 1) and result.plan.block == (16, 16, 1)
    assert result.build.report.shared_bytes == 2048
    assert result.trace.total("shared_wavefronts") > 0


def test_a_rung_with_whole_tiles_is_padded():
    how = plan("coarsened_1d", 65, 3, 9, arch=80)
    assert how.padded == (128, 64, 16) and how.grid == (1, 2, 1)


def test_a_rung_that_reads_a_m_major_gets_it_transposed():
    how = plan("mma_tf32", 100, 60, 20, arch=80)
    (rows, cols), *_ = how.shapes()
    assert rows == how.padded[2] and cols == how.padded[0]
    assert kernels.find("mma_tf32").a_major == "M"


half = A.astype(np.float16)


@pytest.mark.parametrize(
    ("rung", "arguments", "words"),
    [
        ("naive", (A, B[1:]), r"shapes must be \(M, K\) and \(K, N\)"),
        ("naive", (A[0], B), r"shapes must be"),
        ("naive", (A[:0], B), r"all at least 1"),
        ("naive", (A.astype(float), B), "naive takes float32; A is float64"),
        ("tiled", (half, B), r"float32, or float16 with macros=\{'HALF_INPUT': 1\}; A is float16"),
        ("naive", (A, B, C[1:], 1, 1), r"C has shape \(44, 37\); A @ B has \(45, 37\)"),
        ("naive", (A, B, C.astype(float), 1, 1), "writes float32 under these macros; C is float64"),
        ("naive", (A, B, None, 1, 0.5), "beta = 0.5 needs C"),
        ("nave", (A, B), "no rung 'nave'"),
    ],
)
def test_wrong_arguments_are_refused(rung, arguments, words):
    with pytest.raises(ValueError, match=words):
        gemm(rung, *arguments, **emulated)


def test_a_machine_must_be_known():
    with pytest.raises(ValueError, match="auto, gpu or emulator"):
        gemm("naive", A, B, machine="tpu")


@no_gpu
@pytest.mark.parametrize("rung", ["naive", "cublas"])
def test_a_missing_gpu_is_named(rung):
    with pytest.raises(UnsupportedGPU, match=r"GPU"):
        gemm(rung, A, B, machine="gpu")


def test_an_architecture_too_old_is_named():
    with pytest.raises(UnsupportedGPU, match="mma_tf32 needs sm_80 or newer, this is sm_75"):
        gemm("mma_tf32", A, B, arch=75, **emulated)


def test_matrices_beyond_an_int_index_are_refused():
    with pytest.raises(ValueError, match="more than 2147483647 elements"):
        plan("naive", 50_000, 50_000, 50_000, arch=80)


def test_parameters_are_read_from_the_ptx():
    found = parameters(build("naive", arch=80), "gemm_naive")
    assert [p.bytes for p in found] == [8, 8, 8, 4, 4, 4, 4, 4]
    assert [p.kind == "f" for p in found] == [False] * 6 + [True] * 2


X = np.zeros((4, 4), np.float32)
FINE = [X, X, X, 4, 4, 4, 1.0, 0.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grid": (0, 1)}, r"grid \(0, 1\)"),
        ({"grid": (1, 70000)}, "65535"),
        ({"block": (64, 32)}, "2048 threads: at most 1024"),
        ({"entry": "gemm"}, "no kernel 'gemm'; it has gemm_naive"),
        ({"args": FINE[:-1]}, "takes 8 arguments, not 7"),
        ({"args": [4, *FINE[1:]]}, "argument 0: .*needs an array"),
        ({"args": [*FINE[:3], 4.0, *FINE[4:]]}, "argument 3: .*needs a 32-bit integer"),
        ({"args": [*FINE[:6], 1, 0.0]}, "argument 6: .*needs a 32-bit float"),
        ({"args": [np.zeros((8, 8), np.float32)[::2, ::2], *FINE[1:]]}, "not contiguous"),
    ],
)
def test_a_wrong_launch_is_refused(change, words):
    fine = {"entry": "gemm_naive", "grid": (1, 1), "block": (32, 32), "args": FINE}
    with pytest.raises(ValueError, match=words):
        launch(build("naive", arch=80), **{**fine, **change}, machine="emulator")
