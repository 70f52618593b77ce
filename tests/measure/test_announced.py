"""Wrong numbers of announced bytes, as a GPU was seen to take them; the kernel that asks is run on the emulator."""

import numpy as np
import pytest

import kernels
from emulator import TensorMap
from measure import announced
from measure.provenance import recording


def rows():
    return recording("announced")["rows"]


def test_every_number_that_is_asked_was_recorded():
    asked = [(box, n, each) for (box, n), every in announced.ASKED.items() for each in every]
    assert [(tuple(row["box"]), row["boxes"], row["announced"]) for row in rows()] == asked


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['announced']} of {row['brought']}")
def test_a_phase_ends_in_every_block_only_for_the_right_number(row):
    if row["announced"] == row["brought"]:
        assert row["over"] == row["blocks"]
    elif row["announced"] > row["brought"]:
        assert row["over"] == 0
    else:
        assert row["over"] < row["blocks"]


@pytest.mark.parametrize("asked", announced.ASKED)
def test_the_first_number_is_what_the_copies_bring(asked):
    box, boxes = asked
    one = TensorMap(np.ones((1024, 64), np.float16), box)
    assert announced.ASKED[asked][0] == boxes * one.box_bytes


@pytest.mark.parametrize(("number", "ends"), [(64, True), (48, False), (80, False)])
def test_on_the_emulator_a_copy_lands_as_a_whole(number, ends):
    one, over = TensorMap(np.ones((1024, 64), np.float16), (4, 8)), np.zeros(2, np.int32)
    numbers = [np.int32(n) for n in (1, one.box_bytes, number, 2000)]
    built = kernels.build(announced.SOURCE, arch="90a")
    kernels.launch(built, None, 2, 1, [one, over, *numbers], one.box_bytes, machine="emulator")
    assert over.tolist() == [ends, ends]
