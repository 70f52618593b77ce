"""Video instructions and products of 4-bit, 1-bit and sparse operands: the words that an H200 stored."""

import json
from pathlib import Path

import pytest
from probed import load

import emulator
from emulator.ops.video import DIFFERS

uncommon = load("uncommon")
RECORDED = json.loads(
    (Path(__file__).parents[2] / "data" / "uncommon_h200.json").read_text(encoding="utf-8")
)
PROBES = dict(enumerate(uncommon.probes()))
PRODUCTS = [number for number, probe in PROBES.items() if probe.name.startswith("mma")]
VIDEO: dict[str, list[int]] = {}
for number in PROBES.keys() - set(PRODUCTS):
    VIDEO.setdefault(PROBES[number].name.split(".")[0], []).append(number)
# Forms in which the GPU departs from the PTX ISA.
REFUSED = {
    "vadd": 83, "vsub": 83, "vabsdiff": 51, "vmin": 30, "vmax": 30, "vshl": 82, "vshr": 46, "vmad": 180, "vset": 3,
}  # fmt: skip


def agrees(number):
    probe = PROBES[number]
    name, inputs, words = RECORDED[number]
    assert (name, inputs) == (probe.name, uncommon.checksum(probe.inputs))
    return uncommon.checksum(uncommon.on_emulator(probe)) == words


def test_the_recording_is_of_these_probes():
    assert [row[0] for row in RECORDED] == [probe.name for probe in PROBES.values()]
    assert len(PRODUCTS) == 182


@pytest.mark.parametrize("number", PRODUCTS, ids=lambda number: PROBES[number].name)
def test_a_product_leaves_the_same_bits(number):
    assert agrees(number)


@pytest.mark.parametrize("root", sorted(VIDEO))
def test_a_video_instruction_leaves_the_same_bits_or_is_refused(root):
    refused = 0
    for number in VIDEO[root]:
        try:
            assert agrees(number), PROBES[number].name
        except emulator.Unsupported as problem:
            assert DIFFERS in str(problem)
            refused += 1
    assert refused == REFUSED.get(root, 0)
