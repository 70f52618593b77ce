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


def test_a_rung_that_nobody_timed_has_no_bar_and_says_so():
    drawn = figures.ladder_strip({**RUNGS, "tcgen05": None}, ["tcgen05"])
    assert "tcgen05 (4, not timed)" in drawn.title and "not timed" in drawn.alt + drawn.caption
    bars = [shape for shapes in drawn.figure.paths.values() for shape in shapes if shape.closed]
    assert len(bars) == len(RUNGS)
    assert "timed" not in figures.ladder_strip(RUNGS, ["naive"]).caption


def test_a_page_without_such_rungs_draws_none():
    assert steps.strip("tcgen05").facts["of"] > steps.strip("naive").facts["of"]


def test_a_chapter_s_rungs_are_those_of_the_ladder():
    assert list(steps.strip("naive", "uncoalesced").facts["here"]) == ["uncoalesced", "naive"]
