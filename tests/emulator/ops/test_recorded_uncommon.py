"""Video instructions and products of 4-bit, 1-bit and sparse operands: the words that an H200 stored."""

import json
from pathlib import Path

import pytest
from probed import load

import emulator

uncommon = load("uncommon")
RECORDED = json.loads(
    (Path(__file__).parents[2] / "data" / "uncommon_h200.json").read_text(encoding="utf-8")
)
PROBES = dict(enumerate(uncommon.probes()))
PRODUCTS = [number for number, probe in PROBES.items() if probe.name.startswith("mma")]
VIDEO = [number for number in PROBES if number not in PRODUCTS]


def agrees(number):
    probe = PROBES[number]
    name, inputs, words = RECORDED[number]
    assert (name, inputs) == (probe.name, uncommon.checksum(probe.inputs))
    return uncommon.checksum(uncommon.on_emulator(probe)) == words


def test_the_recording_is_of_these_probes():
    assert [row[0] for row in RECORDED] == [probe.name for probe in PROBES.values()]
    assert len(PRODUCTS) == 182


INTEGERS = [number for number in PRODUCTS if ".s32." in PROBES[number].name]
FLOATS = [number for number in PRODUCTS if number not in INTEGERS]


@pytest.mark.parametrize("number", FLOATS + INTEGERS[::5], ids=lambda number: PROBES[number].name)
def test_a_product_leaves_the_same_bits(number):
    assert agrees(number)


@pytest.mark.parametrize("start", range(4))
def test_a_video_instruction_leaves_the_same_bits_or_is_refused(start):
    found = {"agrees": 0, "refused": 0}
    for number in VIDEO[11 * start :: 44]:
        try:
            assert agrees(number), PROBES[number].name
            found["agrees"] += 1
        except emulator.Unsupported:
            found["refused"] += 1
    assert found["agrees"] > found["refused"] > 0
