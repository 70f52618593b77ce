"""Block formats: what rounding costs, what survives it, and where scales stand."""

import numpy as np
import pytest

from emulator.numbers.fp8 import VALUES
from kernels import blocks, gemm

FORMATS = {"mxfp8": ("e4m3", 32), "nvfp4": ("e2m1", 16)}


def drawn(rng, shape):
    """Normal numbers, rows of very different sizes."""
    return (rng.normal(size=shape) * 2.0 ** rng.integers(-20, 20, (shape[0], 1))).astype(np.float32)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("k", [1, 23, 64, 129])
def test_each_number_is_the_nearest_that_its_block_has(rng, name, k):
    """Against a search through all numbers of the format, times the block's scale."""
    type, block = FORMATS[name]
    x = drawn(rng, (5, k))
    found = blocks.quantise(x, name)
    numbers = np.unique(VALUES[type][np.isfinite(VALUES[type])].astype(np.float64))
    scale = np.exp2(found.scales - 127.0) if name == "mxfp8" else VALUES["e4m3"][found.scales]
    for (row, at), value in np.ndenumerate(x.astype(np.float64)):
        there = numbers * scale[row, at // block] * found.factor
        error = np.abs(blocks.values_of(found)[row, at] - value)
        assert error <= np.abs(there - value).min() * (1 + 1e-12)


def test_scales_of_mxfp8_are_the_least_powers_of_two_that_clip_nothing(rng):
    x = drawn(rng, (64, 256))
    x[0, :32] = np.linspace(0, 448, 32)  # 448 itself needs a scale of 1
    most = np.abs(x.reshape(64, 8, 32)).max(axis=2)
    scale = np.exp2(blocks.quantise(x, "mxfp8").scales - 127.0)
    assert (most <= 448 * scale).all() and (most > 448 * scale / 2).all()
    assert scale[0, 0] == 1


def test_the_largest_number_of_nvfp4_uses_both_ranges(rng):
    x = rng.normal(size=(32, 64)).astype(np.float32)
    found = blocks.quantise(x, "nvfp4")
    assert found.scales.max() == 0x7E  # 448
    assert found.factor == pytest.approx(np.abs(x).max() / (6 * 448))


@pytest.mark.parametrize("name", FORMATS)
def test_zeros_stay_zeros(name):
    assert not blocks.values_of(blocks.quantise(np.zeros((3, 40), np.float32), name)).any()


def test_what_cannot_be_rounded_is_named():
    with pytest.raises(ValueError, match="finite numbers"):
        blocks.quantise(np.array([[1, np.inf]], np.float32), "mxfp8")
    with pytest.raises(ValueError, match="choose mxfp8 or nvfp4"):
        blocks.quantise(np.zeros((1, 2), np.float32), "mxfp4")


def test_scales_stand_in_tiles_of_128_rows_and_4(rng):
    scales = rng.integers(1, 256, (200, 10)).astype(np.uint8)
    found = blocks.tiled(scales, 256, 8)
    assert found.size == 256 * 16
    for (r, s), code in np.ndenumerate(scales):
        tile = r // 128 * 4 + s // 4
        assert found[tile * 512 + r % 32 * 16 + r % 128 // 32 * 4 + s % 4] == code
    assert found.astype(int).sum() == scales.astype(int).sum()  # and zeros elsewhere


@pytest.mark.parametrize(("rung", "low", "high"), [("mxfp8", 0.03, 0.045), ("nvfp4", 0.11, 0.16)])
def test_the_error_is_that_of_rounding_the_inputs(rng, rung, low, high):
    """Of normal inputs, over the length of the float64 product; without rounding them, the kernel is exact to 1e-6."""
    A, B = (rng.normal(size=s).astype(np.float32) for s in ((128, 512), (512, 128)))
    C = gemm(f"tcgen05_{rung}", A, B, machine="emulator").C
    wanted = A.astype(np.float64) @ B.astype(np.float64)
    rounded = blocks.numbers_of(A, rung) @ blocks.numbers_of(B.T, rung).T
    length = np.linalg.norm(wanted)
    assert low < np.linalg.norm(C - wanted) / length < high
    assert np.linalg.norm(C - rounded) / length < 1e-6


@pytest.fixture
def rng():
    return np.random.default_rng(5)
