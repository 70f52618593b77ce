"""The trials that pages show are those of the notes."""

import re

from book.cells import trials
from kernels.rung import FOLDER

NOTES = (FOLDER / "HOPPER_NOTES.md").read_text(encoding="utf-8")


def numbers(found) -> list[float]:
    if isinstance(found, dict):
        return [n for value in found.values() for n in numbers(value)]
    if isinstance(found, list):
        return [n for value in found for n in numbers(value)]
    return [found] if isinstance(found, int | float) else []


def test_every_number_stands_in_the_notes():
    there = {float(word) for word in re.findall(r"\d+(?:\.\d+)?(?:e-\d+)?", NOTES)}
    kinds = ("dense", "groups", "memory", "clocks", "promotion", "errors", "shapes", "costs")
    for kind in kinds:
        for number in numbers(trials.stored()[kind]):
            assert {number, round(number * 100, 4)} & there, (kind, number)


def test_tables_are_shown(capsys):
    for show in (trials.dense, trials.promotion, trials.shapes):
        show()
    before = capsys.readouterr().out
    trials.dense("no store")
    said = capsys.readouterr().out
    assert "832" in said and "103.9%" in said
    assert "ping-pong" in before and "ping-pong" not in said
