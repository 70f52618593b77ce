"""Comparisons that a GPU will be asked for: every setting can run, and what is rewritten still multiplies."""

import numpy as np
import pytest

from kernels.gemm import gemm, plan
from kernels.settings import configuration
from measure.row import extents
from measure.variants import COMPARED, HOPPER, chain_plans, rewritten

SETTINGS = [
    pytest.param(c.rung, n, c.formats, change, id=f"{c.rung} {n} {change}")
    for c in COMPARED
    for n in c.sizes
    for change in c.changes
]


@pytest.mark.parametrize(("rung", "size", "formats", "change"), SETTINGS)
def test_every_setting_fits_the_gpu(rung, size, formats, change):
    chosen = configuration(rung, extents(size), 90, formats).macros
    how = plan(rung, *extents(size), {**chosen, **change}, 90)
    assert how.build.spills == 0 and how.shared_bytes <= 227 * 1024


def test_every_step_of_the_chain_fits_and_multiplies_the_same_types():
    plans = chain_plans(4096).values()
    assert len(plans) == len(HOPPER) and {p.types for p in plans} == {next(iter(plans)).types}
    assert all(p.build.spills == 0 and p.shared_bytes <= 227 * 1024 for p in plans)


@pytest.mark.parametrize("case", [c for c in COMPARED if c.rewritten], ids=lambda c: c.rung)
def test_what_is_rewritten_has_the_same_product_unless_it_leaves_something_out(case):
    rng = np.random.default_rng(8)
    as_it_is = plan(case.rung, 256, 256, 256, arch=90, defaults=True)
    A, B = (rng.uniform(-1, 1, (256, 256)).astype(as_it_is.types.input_dtype) for _ in range(2))
    exact = A.astype(np.float64) @ B
    for name, changes in case.rewritten.items():
        other = rewritten(case.rung, name, changes, as_it_is, 256)
        assert other.build.ptx != as_it_is.build.ptx
        C = gemm(case.rung, A, B, macros=other.macros, machine="emulator", built=other.build).C
        right = np.abs(C - exact).max() < 0.03 * np.abs(exact).max()
        assert right != case.wrong


def test_a_text_that_the_source_lacks_is_refused():
    as_it_is = plan("mma_swizzled", 256, 256, 256, arch=90, defaults=True)
    with pytest.raises(ValueError, match="mma_swizzled does not contain 'nothing like it'"):
        rewritten("mma_swizzled", "none", (("nothing like it", ""),), as_it_is, 256)
