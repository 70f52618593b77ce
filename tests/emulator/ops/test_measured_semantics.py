"""What PTX leaves open or is easily mistaken: the emulator does what the rules say that an H200 obeys.

`tests/data/probes/semantics.py` has the PTX and the operands, `semantic_rules.py` the rules; no recorded result breaks one.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from probed import load

DATA = Path(__file__).parents[2] / "data"
semantics = load("semantics")
RECORDED = {
    (row["family"], row["name"]): row
    for row in json.loads((DATA / "semantics_h200.json").read_text(encoding="utf-8"))
}
PROBES = [probe for probe in semantics.probes() if semantics.rule_of(*probe[:2])]


def test_no_recorded_result_breaks_its_rule():
    assert len(PROBES) == 77
    rows = [RECORDED[probe[:2]] for probe in PROBES]
    assert {row["broken"] for row in rows} == {0}
    assert [row["threads"] for row in rows] == [len(probe[3]) for probe in PROBES]


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: f"{probe[0]}: {probe[1]}")
def test_the_emulator_obeys_the_rule(probe):
    family, name, body, inputs = probe
    found = semantics.on_emulator(body, inputs)
    assert not isinstance(found, str), found
    rule = semantics.rule_of(family, name)
    for column, word in enumerate(rule(name, inputs)):
        wrong = np.flatnonzero(found[:, column] != word.astype(np.uint32))
        assert not len(wrong), (
            f"word {column} of {len(wrong)} threads differs, first of inputs "
            f"{[hex(v) for v in inputs[wrong[0]]]}: {found[wrong[0], column]:08x}"
        )
