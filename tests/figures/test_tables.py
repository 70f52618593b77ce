"""A table explains its columns, in HTML and for who cannot hover."""

import re

import pytest

import figures

COLUMNS = {"": "", "sectors": "32-byte pieces of <global> memory", "note": "why `cp.async` ..."}


@pytest.fixture
def table():
    rows = [["naive", 4096, "`k` & more"], ["tiled", None, "-"]]
    return figures.table(COLUMNS, rows, title="Fewer sectors", caption="At 64.")


def test_numbers_are_aligned_right_and_words_left(table):
    assert re.findall(r'<table class="gl-table ([^"]*)"', table.html()) == ["n2"]
    assert ".gl-table.n2 tr>:nth-child(2){text-align:right" in table.html()
    assert "<td>4,096</td><td><code>k</code> &amp; more</td>" in table.html()


def test_every_heading_points_to_its_meaning(table):
    html = table.html()
    described = re.findall(r'aria-describedby="([^"]+)"', html)
    meanings = dict(re.findall(r'<dd id="([^"]+)">(.*?)</dd>', html))
    assert [meanings[where] for where in described] == [
        "32-byte pieces of &lt;global&gt; memory",
        "why <code>cp.async</code> ...",
    ]
    assert html.count('tabindex="0" aria-describedby') == 2


def test_two_tables_of_a_page_do_not_share_names(table):
    other = figures.table(COLUMNS, [["naive", 1, ""]])
    ids = [re.findall(r' id="([^"]+)"', one.html()) for one in (table, other)]
    assert ids[0] and not set(ids[0]) & set(ids[1])


def test_the_text_form_has_the_same_cells(table):
    assert table.plain().splitlines() == [
        "Fewer sectors",
        "       sectors  note",
        "naive    4,096  k & more",
        "tiled        -  -",
        "At 64.",
    ]


def test_a_column_without_a_meaning_is_refused():
    with pytest.raises(ValueError, match="columns without a meaning: GHz"):
        figures.table({"": "", "GHz": ""}, [["a", 1]])


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="3 columns, but 1 cells"):
        figures.table(COLUMNS, [["a"]])
