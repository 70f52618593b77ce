"""Opcodes and their families, instructions and the GPUs that have them, chips and their peaks."""

import pytest

from kernels import RUNGS
from kernels.gpus import CHIPS
from kernels.occupancy import LIMITS
from measure import opcodes, probes
from measure.results import recorded


@pytest.fixture(scope="module")
def used():
    return opcodes.used()


def test_every_opcode_of_the_ladder_has_a_family_and_every_family_an_opcode(used):
    found = {opcodes.family(opcode) for opcode in used}
    assert found == set(opcodes.FAMILIES)


def test_an_unknown_opcode_has_no_family():
    with pytest.raises(KeyError, match="tex"):
        opcodes.family("tex.2d.v4.f32.s32")


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        ("cp.async.mbarrier.arrive.shared.b64", "mbarrier"),
        ("fma.rn.f32", "floating point"),
        ("mul.wide.s32", "integers"),
        ("min.s32", "integers"),
        ("ld.param.f32", "loads, parameters"),
        ("st.relaxed.cta.b32", "stores, global"),
        ("setp.neu.f32", "comparison, selection"),
    ],
)
def test_opcodes_that_look_alike_are_told_apart(opcode, name):
    assert opcodes.family(opcode).name == name


def test_opcodes_are_those_of_the_rungs(used):
    assert set(used["mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32"]) == {"mma_atoms"}
    assert "naive" not in used["bar.sync"]
    there = {name for name, rung in RUNGS.items() if rung.path and rung.min_arch <= 80}
    assert set(used["ret"]) == there
    assert opcodes.opcodes("naive")["ret"] == 1


@pytest.mark.parametrize(
    ("instruction", "first"), [("ldmatrix", 75), ("cp.async", 80), ("stmatrix", 90)]
)
def test_instructions_begin_with_an_architecture(instruction, first):
    for arch in (75, 80, 90):
        assert probes.exists(instruction, arch) == (arch >= first)


def test_an_architecture_s_own_instructions_are_told_apart():
    row = probes.support((89, 90, 120))["wgmma"]
    assert row == {89: "no", 90: "sm_90a", 120: "no"}


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_chip_s_units_make_its_peak(chip):
    assert chip.of_units == pytest.approx(chip.fp32, rel=0.02)
    assert chip.arch in LIMITS or chip.arch == 70


def test_the_recorded_gpu_is_as_its_sheet_says():
    machine = recorded().machine
    chip = next(chip for chip in CHIPS if chip == recorded().peak)
    assert (machine["sms"], machine["arch"]) == (chip.sms, chip.arch)
    assert machine["clock_mhz"] == chip.boost_mhz
    assert machine["l2_bytes"] == chip.l2_mb * 2**20


@pytest.mark.parametrize(
    ("opcode", "section"),
    [
        ("and.b32", "9.7.8"),
        ("bfind.u32", "9.7.1"),
        ("activemask.b32", "9.7.13.11"),
        ("ld.global.nc.v4.f32", "9.7.9.9"),
        ("ld.global.v4.f32", "9.7.9.8"),
        ("bar.warp.sync", "9.7.13.2"),
    ],
)
def test_an_opcode_has_a_section_of_its_own(opcode, section):
    assert opcodes.section(opcode) == section
