"""The seeded mistakes are caught as they were when `python -m measure mistakes --emulate` judged them all: here, in the one
case in which each was caught, the quickest of each kernel and of each kind, and one right row of each kernel.
"""

import pytest

from kernels.mistakes import held_out, judge, seeded
from kernels.mistakes.names import NAMES
from measure.mistakes import digest
from measure.mistakes_table import emulated

HELD = emulated()
JUDGED = sorted((row for row in seeded() if row.key in HELD), key=lambda r: HELD[r.key]["seconds"])


def quickest(rows, *names):
    """Of rows that agree in these attributes the first."""
    return list({tuple(getattr(row, n) for n in names): row for row in reversed(rows)}.values())


WRONG = [row for row in JUDGED if row.wrong]
CAUGHT = [row for row in WRONG if HELD[row.key]["how"]]
HERE = {row.key: row for row in [*quickest(CAUGHT, "rung"), *quickest(CAUGHT, "kind", "table")]}
TWINS = quickest([row for row in JUDGED if not row.wrong], "rung")


def first_case(row):
    """The case in which the emulator caught a row; of what it did not catch, the first."""
    return (max(0, HELD[row.key].get("case", -1)),)


@pytest.mark.parametrize("row", HERE.values(), ids=lambda row: row.key)
def test_a_seeded_mistake_is_caught_as_it_was(row):
    found = judge(row, first_case(row))
    assert (found.how, found.kind) == (HELD[row.key]["how"], HELD[row.key]["found"])


@pytest.mark.parametrize("row", TWINS, ids=lambda row: row.key)
def test_what_is_right_is_quiet(row):
    assert judge(row, first_case(row)).how == ""


def test_the_stored_verdicts_are_of_the_texts_as_they_are():
    """Else `python -m measure mistakes --emulate` judges anew what has changed, in seconds for each row."""
    rows = (*seeded(), *held_out())
    assert [row.key for row in rows if HELD.get(row.key, {}).get("digest") != digest(row)] == []


def test_what_is_not_caught_has_its_reason():
    assert [row.key for row in WRONG if not HELD[row.key]["how"] and not row.reason] == []
    assert [row.key for row in CAUGHT if row.reason] == []


def test_half_are_drawn_and_most_kernels_have_one():
    tables = [row.table for row in seeded()]
    assert tables.count("drawn") >= 75 and tables.count("drawn") + tables.count("written") >= 150
    assert tables.count("twins") >= 60 and len({row.rung for row in seeded() if row.wrong}) >= 15
    assert {row.kind for row in seeded() if row.wrong} == set(NAMES)
    assert len({row.key for row in seeded()}) == len(tables)
