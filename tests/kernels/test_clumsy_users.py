"""Settings and arguments that would give wrong answers are refused by name before the launch."""

import numpy as np
import pytest

import kernels
from kernels.launch import launch

A = np.ones((20, 30), np.float32)
B = np.ones((30, 10), np.float32)


@pytest.mark.parametrize(
    ("rung", "macros", "words"),
    [
        ("wmma", {"WM": 17}, "multiple"),
        ("wmma_shared", {"WM": 17}, "multiple"),
        ("wmma_shared", {"PAD": 4}, "PAD of 8"),
        ("wmma_async", {"STAGES": 1}, "two STAGES"),
        ("mma_tf32", {"BK": 8}, "BK to be a multiple of 16"),
        ("mma_tf32", {"STAGES": 1}, "two STAGES"),
        ("mma_multistage", {"STAGES": 1}, "two STAGES"),
        ("warp_specialized", {"PRODUCERS": 65}, "whole warps"),
        ("coarsened_1d", {"BM": 1}, "multiple of TM"),
        ("tiled", {"HALF_INPUT": 2}, "0 or 1"),
        ("tiled", {"BLOCK": 16.0}, "an integer"),
        ("tiled", {"BLOCK": 0}, "at least 1"),
        ("async_copy", {"TN": 7}, "whole thread tiles"),
        ("cpu", {"BM": 64}, "no macro"),
    ],
)
def test_settings_that_give_wrong_answers(rung, macros, words):
    types = kernels.find(rung).types()
    a, b, _ = kernels.random_inputs(types, 20, 10, 30)
    with pytest.raises(ValueError, match=words):
        kernels.gemm(rung, a, b, macros=macros, machine="emulator")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"A": A.tolist()}, "NumPy or CuPy"),
        ({"A": np.ma.masked_array(A, A > 0)}, "unmasked"),
        ({"A": A.astype(">f4")}, "takes float32; A is >f4"),
        ({"alpha": "1"}, "alpha is one real number"),
        ({"alpha": 1j}, "alpha is one real number"),
        ({"alpha": 1e60}, "does not fit"),
        ({"machine": "emu"}, "no machine"),
        ({"macros": "BLOCK=8"}, "mapping"),
    ],
)
def test_arguments_that_are_wrong(arguments, words):
    with pytest.raises((TypeError, ValueError), match=words):
        kernels.gemm("naive", **{"A": A, "B": B, "machine": "emulator", **arguments})


def test_inputs_may_be_read_only():
    square = np.ones((32, 32), np.float32)
    square.flags.writeable = False
    assert (kernels.gemm("tiled", square, square, machine="emulator").C == 32).all()


@pytest.mark.parametrize("grid", [1.5, None, "11", (1, 2.5), (), (1, 1, 1, 1), 0])
def test_grids_that_are_no_integers(grid):
    built = kernels.build("naive", arch=80)
    with pytest.raises(ValueError, match="up to three integers"):
        launch(built, None, grid, 32, [], machine="emulator")
