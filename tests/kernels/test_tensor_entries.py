"""The entry points of the tensor-core rungs that are not GEMMs of the ladder: single atoms."""

import numpy as np
import pytest

import kernels
from kernels.launch import launch

ATOMS = "14_mma_atoms.cu"


def run(file, entry, grid, block, args, shared_bytes=0, arch=80):
    built = kernels.build(file, arch=arch)
    launch(built, entry, grid, block, args, shared_bytes, machine="emulator")


def halves(rng, *shape):
    return rng.standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize("arch", [75, 80, 90])
def test_atom_m16n8k16(arch):
    rng = np.random.default_rng()
    A, B, C = halves(rng, 16, 16), halves(rng, 8, 16), np.full((16, 8), np.nan, np.float32)
    run(ATOMS, "atom_m16n8k16", (1,), (32,), [A, B, C], arch=arch)
    np.testing.assert_allclose(C, A.astype(float) @ B.T.astype(float), atol=1e-4)


def test_atom_m16n8k8_tf32_rounds_its_inputs_to_ten_bits():
    rng = np.random.default_rng()
    A, B = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 8), (8, 8)))
    C = np.full((16, 8), np.nan, np.float32)
    run(ATOMS, "atom_m16n8k8_tf32", (1,), (32,), [A, B, C])
    exact = A.astype(float) @ B.T.astype(float)
    magnitude = np.abs(A).astype(float) @ np.abs(B).T.astype(float)
    error = np.abs(C - exact) / magnitude
    assert error.max() < 2 * 2.0**-11
    assert error.max() > 2.0**-16  # closer would mean that nothing was rounded


@pytest.mark.parametrize("arch", [75, 80])
def test_atom_m8n8k4_is_four_products_one_for_each_quad_pair(arch):
    rng = np.random.default_rng()
    A, B = halves(rng, 4, 4, 8), halves(rng, 4, 4, 8)  # A column-major: (k, m); B row-major: (k, n)
    C = np.full((4, 8, 8), np.nan, np.float32)
    run(ATOMS, "atom_m8n8k4_nt", (1,), (32,), [A, B, C], arch=arch)
    np.testing.assert_allclose(C, A.astype(float).swapaxes(1, 2) @ B.astype(float), atol=1e-4)
