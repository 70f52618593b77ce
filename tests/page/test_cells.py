"""The runner of a page's cells, in this machine's Python: what a cell needs, what it shows, and how it fails."""

import pytest

from book import chapters, page_cells
from book.page_cells import Cell, Page, needed
from kernels.errors import NoCompiler


def page_of(*sources: str, **tags: str) -> tuple[Page, list]:
    """A page of these cells, and what it tells: [("begins" or "ran", index, about)]. tags: {"cell1": a tag}."""
    heard = []
    cells = [
        Cell(i, source, frozenset([tags[f"cell{i}"]] if f"cell{i}" in tags else []))
        for i, source in enumerate(sources)
    ]
    return Page(cells, lambda *told: heard.append(told)), heard


def ran(heard: list) -> list[int]:
    return [index for what, index, _ in heard if what == "ran"]


@pytest.mark.parametrize(
    ("above", "last", "wanted"),
    [
        (["a = 1", "b = 2"], "print(b)", [1]),
        (["a = 1", "b = a"], "b", [0, 1]),
        (["a = 1", "a = 2"], "a", [1]),  # the last one that binds it
        (["a = []", "a.append(1)", "a[0] = 2"], "a", [0, 1, 2]),  # those that change it
        (["import math", "math.sqrt(4)"], "math.pi", [0]),  # a module is not changed by a call
        (["def f():\n    return later", "later = 1"], "f()", [0, 1]),
        (["x = 1", "[x for x in range(3)]"], "x", [0]),  # a comprehension binds for itself
        (["%load_ext book.exercises.cell", "%%kernel mine\n__global__"], "check('mine')", [0, 1]),
        (["a = 1"], "a = 2", []),
        (["a ="], "a", []),  # no Python
    ],
)
def test_a_cell_needs_what_binds_and_changes_its_names(above, last, wanted):
    cells = [Cell(i, source) for i, source in enumerate([*above, last])]
    assert needed(cells, len(above)) == wanted


def test_a_cell_runs_after_those_it_needs_and_these_only_when_they_changed():
    page, heard = page_of("a = 1", "b = a + 1", "c = 5", "b * 10")
    assert page.run(3) and ran(heard) == [0, 1, 3]
    assert heard[-1][2]["outputs"] == [{"text": "20\n"}]
    heard.clear()
    assert page.run(3) and ran(heard) == [3]
    heard.clear()
    page.change(0, "a = 6")
    assert page.run(3) and ran(heard) == [0, 1, 3]
    assert heard[-1][2]["outputs"] == [{"text": "70\n"}]


def test_a_whole_page_runs_what_is_in_sight_once_and_stops_where_a_cell_fails():
    page, heard = page_of("a = 1", "a += 1", "1 / 0", "a", cell1="remove-cell")
    assert not page.run_all() and ran(heard) == [0, 2]
    page.change(2, "a + 40")
    heard.clear()
    assert page.run_all() and ran(heard) == [0, 1, 2, 3]
    assert heard[-1][2]["outputs"] == [{"text": "2\n"}]


def test_what_cannot_run_here_leaves_the_rest_to_run_and_says_so():
    page, heard = page_of(
        "from kernels.errors import NoCompiler\nraise NoCompiler('x')\nrates = 1",
        "rates",
        "unknown",
    )
    assert not page.run_all()
    about = {index: more for what, index, more in heard if what == "ran"}
    assert [about[i]["elsewhere"] for i in range(3)] == [True, True, False]
    assert about[0]["outputs"][-1]["line"].startswith("NoCompiler: x is not among")


def test_what_asks_for_a_kernel_that_could_not_compile_needs_a_compiler_too(monkeypatch):
    def magic(source):
        raise NoCompiler("mine for sm_80")

    monkeypatch.setattr(page_cells, "_magic", magic)
    asks = "{}['mine']"
    page, heard = page_of("%%kernel mine\n__global__", asks, "{}['other']")
    assert not page.run_all()
    told = {index: more for what, index, more in heard if what == "ran"}
    assert [told[i]["elsewhere"] for i in range(3)] == [True, True, False]


def test_a_failure_says_where_in_the_cell_without_the_runners_own_lines():
    page, heard = page_of("x = 1\n\nx / 0")
    assert not page.run(0)
    text = heard[-1][2]["outputs"][-1]["text"]
    assert 'File "<cell 0>", line 3' in text and "x / 0" in text and "page_cells" not in text


def test_a_cell_shows_prints_html_and_its_last_value_in_order():
    page, heard = page_of(
        "class H:\n    def _repr_html_(self):\n        return '<b>x</b>'\nprint(1)\nprint(2)\ndisplay(H())\n3"
    )
    assert page.run(0)
    wanted = [{"text": "1\n2\n"}, {"html": "<b>x</b>"}, {"text": "3\n"}]
    assert heard[-1][2]["outputs"] == wanted


def test_a_shells_line_is_refused_by_name_and_the_rest_runs():
    page, heard = page_of("!nvcc x.cu", "5")
    assert page.run_all() and ran(heard) == [0, 1]
    told = heard[1][2]
    assert told["elsewhere"] and "no shell for this line: !nvcc" in told["outputs"][-1]["line"]


def test_a_form_gives_its_numbers_to_its_function(monkeypatch):
    monkeypatch.setattr(page_cells, "_FORMS", [])
    page, heard = page_of("show()")
    page.space["show"] = lambda: page_cells.form(
        {"BLOCK": (8, 16), "M": range(1, 100)}, {"BLOCK": 16, "M": 5}, print, "Mine:"
    )
    assert page.run(0)
    text = heard[-1][2]["outputs"][0]["html"]
    assert "<option selected>16</option>" in text and 'min="1" max="99" value="5"' in text
    assert page.call(0, {"BLOCK": 8, "M": 7}) == [{"text": "{'BLOCK': 8, 'M': 7}\n"}]


def test_large_products_of_numpy_are_refused_where_there_is_no_blas():
    import numpy as np

    small = page_cells._small(lambda A, B: A @ B, "blas")
    assert small(np.ones((2, 2)), np.ones((2, 2))).sum() == 8
    with pytest.raises(page_cells.NotHere, match="1024 x 1024 x 1024"):
        small(np.ones((1024, 1024)), np.ones((1024, 1024)))


@pytest.mark.parametrize("path", chapters.paths(), ids=lambda path: path.stem)
def test_every_cell_of_the_book_finds_its_names_above_it(path):
    """What a cell takes and nothing above binds is a name that Python, the set-up cell or the page has."""
    cells = [
        Cell(i, cell.source, frozenset(cell.metadata.get("tags", [])))
        for i, cell in enumerate(chapters.read(path).cells)
        if cell.cell_type == "code"
    ]
    bound = set(page_cells.SPACE) | {"display", "get_ipython", "__file__"}
    for cell in cells:
        known = page_cells.names(cell.source)
        lost = {n for n in known.takes - bound if not n.startswith(("kernel ", "%"))}
        assert not lost - known.binds, (cell.index, lost)
        bound |= known.binds
