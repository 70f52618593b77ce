"""The ladder in miniature marks what it is told to."""

import pytest

import figures
from book.cells import steps

RUNGS = {"naive": 1.0, "tiled": 8.0, "wmma": 100.0}


def test_marked_rungs_have_their_place():
    drawn = figures.ladder_strip(RUNGS, ["wmma", "naive"], {"wmma": "float16"})
    assert drawn.facts == {"here": {"naive": 1, "wmma": 3}, "of": 3}
    assert "naive (1) and wmma (3)" in drawn.alt
    texts = [text.words for text in drawn.figure.texts]
    assert sorted(texts) == ["naive", "wmma"]
    assert len(drawn.legend) == 2


def test_neighbouring_names_do_not_meet():
    rungs = {f"a_rather_long_name_{i}": 1.0 + i for i in range(20)}
    drawn = figures.ladder_strip(rungs, list(rungs)[8:12])
    texts = drawn.figure.texts
    assert len({round(text.y) for text in texts}) == 4


@pytest.mark.parametrize("here", [["lost"], []])
def test_what_is_no_rung_cannot_be_marked(here):
    with pytest.raises(ValueError, match="the rungs are naive, tiled, wmma"):
        figures.ladder_strip(RUNGS, here)


def test_a_chapter_s_rungs_are_those_of_the_ladder():
    assert list(steps.strip("naive", "uncoalesced").facts["here"]) == ["uncoalesced", "naive"]
