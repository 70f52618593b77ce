"""Video instructions: what is refused. What the others leave is compared with a GPU's words in test_recorded_uncommon.py."""

import pytest
from probed import load

import emulator
from emulator.ops.video import DIFFERS

uncommon = load("uncommon")


def run(body):
    uncommon.on_emulator(uncommon.Probe("one", body, uncommon.video_words(1, 128), 1))


@pytest.mark.parametrize(
    "body",
    [
        "vadd.u32.u32.u32 %y0.h1, %x0, %x1, %x2;",
        "vadd.u32.u32.u32.sat %y0, %x0, %x1;",
        "vsub.s32.s32.s32.sat %y0.b0, %x0, %x1, %x2;",
        "vadd.s32.s32.s32.min %y0, %x0, %x1, %x2;",
        "vmin.u32.u32.s32.max %y0, %x0, %x1, %x2;",
        "vshl.s32.s32.u32.sat.clamp %y0, %x0, %x3;",
        "vmad.u32.u32.u32.shr7 %y0, %x0, %x1, %x2;",
        "vmad.s32.s32.u32.sat %y0, %x0, %x1, %x2;",
    ],
)
def test_where_a_gpu_departs_from_the_isa_it_is_refused(body):
    with pytest.raises(emulator.Unsupported, match=DIFFERS):
        run(body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("vadd.s32.u32.s32 %y0.b3, %x0, %x1;", "c goes with"),
        ("vadd.s32.u32.s32 %y0, %x0, %x1, %x2;", "c goes with"),
        ("vadd.s32.u32.s32.add %y0.b3, %x0, %x1, %x2;", "not both"),
        ("vadd.s32.u32 %y0, %x0, %x1;", "3 types"),
        ("vadd.s32.u32.s32 %y0, %x0.h2, %x1;", "takes no .h2"),
        ("vshl.s32.u32.s32.clamp %y0, %x0, %x1;", "shift"),
        ("vshl.s32.u32.u32 %y0, %x0, %x1;", "needs one of .clamp, .wrap"),
        ("vmad.s32.u32.u32 %y0, -%x0, %x1, -%x2;", "either"),
        ("vmad.s32.u32.u32.po %y0, -%x0, %x1, %x2;", "no negated"),
        ("vadd2.s32.u32.s32.sat.add %y0, %x0, %x1, %x2;", "does not go with"),
        ("vadd2.s32.u32.s32 %y0, %x0, %x1;", "takes 4 operands"),
        ("vadd2.s32.u32.s32 %y0, %x0.h4, %x1, %x2;", "takes no .h4"),
        ("vadd4.s32.u32.s32 %y0, %x0.b10, %x1, %x2;", "takes no .b10"),
        ("vavrg.s32.u32.s32 %y0, %x0, %x1;", "vavrg"),
        ("add.u32 %y0, %x0.b1, %x1;", "no selector"),
        ("mul.lo.u32 %y0, -%x0, %x1;", "no sign"),
    ],
)
def test_what_ptxas_refuses_is_refused(body, why):
    with pytest.raises(emulator.EmulatorError, match=why) as caught:
        run(body)
    assert "PTX line" in str(caught.value)
