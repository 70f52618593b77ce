"""Copies of sectors: whole under an exclusive or, torn by padding and by an addition."""

import pytest

import figures


def places(rule):
    return lambda row, chunk: 4 * row + rule(row, chunk)


def test_an_exclusive_or_keeps_sectors_whole_and_costs_nothing():
    drawn = figures.sector_copies({
        "plain": places(lambda row, chunk: chunk),
        "xor": places(lambda row, chunk: chunk ^ row // 2 % 4),
    })  # fmt: skip
    assert drawn.facts["plain"] == drawn.facts["xor"] == {"sectors": 16, "wavefronts": 8, "torn": 0}


def test_padding_and_addition_tear_the_sectors_of_every_second_row_or_pair():
    drawn = figures.sector_copies({
        "padding": lambda row, chunk: 5 * row + chunk,
        "addition": places(lambda row, chunk: (chunk + row // 2) % 4),
    })  # fmt: skip
    assert drawn.facts["padding"] == {"sectors": 24, "wavefronts": 15, "torn": 8}
    assert drawn.facts["addition"]["torn"] == 8


@pytest.mark.parametrize("rule", [lambda row, chunk: 0, lambda row, chunk: chunk - 1 - row])
def test_places_that_cannot_be_are_refused(rule):
    with pytest.raises(ValueError, match="share a place"):
        figures.sector_copies({"wrong": rule})
