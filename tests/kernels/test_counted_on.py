"""On the emulator as an older GPU, a rung that is about an instruction which that GPU lacks is still counted with it."""

import sys

import pytest

import kernels
from kernels import RUNGS
from kernels.gemm import arch_on_emulator


@pytest.mark.parametrize(
    ("rung", "arch"),
    [("naive", 75), ("wmma", 75), ("async_copy", 80), ("mma_sync", 80), ("wgmma", 90)],
)
def test_what_a_rung_is_compiled_for_where_sm_75_is_asked_for(rung, arch, monkeypatch):
    monkeypatch.setattr(sys.modules["kernels.gemm"], "DEFAULT_ARCH", 75)
    assert arch_on_emulator(rung) == arch
    assert arch_on_emulator(rung, 90) == 90


def test_every_rung_that_has_its_instruction_on_sm_80_alone_says_so():
    for name, rung in RUNGS.items():
        if rung.path is None or rung.min_arch > 75:
            continue
        older, newer = (kernels.build(name, arch=arch).ptx for arch in (75, 80))
        for instruction in ("cp.async", "m16n8k16"):
            if instruction in newer and instruction not in older:
                assert rung.counted_on == 80, name
