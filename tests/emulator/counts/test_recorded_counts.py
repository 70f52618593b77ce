"""Counts of single Hopper instructions on an H200: the rules reproduce the recorded rows."""

import importlib.util
import json
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "data"
MEASURED = DATA.parents[1] / "results" / "accesses"
SPEC = importlib.util.spec_from_file_location("count_rules", DATA / "probes" / "count_rules.py")
rules = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(rules)
ROWS = json.loads((MEASURED / "h200_hopper_accesses.json").read_text(encoding="utf-8"))["rows"]
CLOCKS = json.loads((MEASURED / "h200_wgmma_clocks.json").read_text(encoding="utf-8"))["rows"]
L2 = {"l2_requests_read", "l2_sectors_read"}


def family(row):
    return row["kernel"].split("_n")[0] if row.get("module") == "wgmma" else row["kernel"]


@pytest.mark.parametrize("kernel", sorted({family(row) for row in ROWS}))
def test_rules_reproduce_what_was_counted(kernel):
    """L2 merges requests for one line that are under way together: it may count less than asked."""
    for row in (row for row in ROWS if family(row) == kernel):
        off = rules.differences(row)
        near = all(abs(measured / ruled - 1) <= 0.125 for measured, ruled in off.values() if ruled)
        assert set(off) <= L2 and near, (row, off)


def test_few_rows_are_left_over():
    assert len(ROWS) >= 700
    assert sum(bool(rules.differences(row)) for row in ROWS) == 6
    assert sum(rules.expected(row) is None for row in ROWS) == 6


@pytest.mark.parametrize("row", CLOCKS, ids=lambda r: f"{r['type']}-{r['d']}-n{r['n']}-{r['a']}")
def test_clocks_of_wgmma(row):
    expected = rules.clocks(row["n"], row["a"])
    measured = [value for name, value in row.items() if name.startswith("clocks_")]
    assert len(measured) == 4
    assert all(abs(clocks - expected) < 0.1 for clocks in measured), (expected, measured)
