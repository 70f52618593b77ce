"""What a reader of a page need not read is folded, and nothing else is."""

import copy

import nbformat
import pytest

from book import plumbing, telling


@pytest.mark.parametrize(
    ("source", "tag"),
    [
        ("import numpy as np\nfrom book.cells import memory", "hide-input"),
        ('figures.ladder_strip("naive")', "hide-input"),
        ('_ = limits.show("naive")', "hide-input"),
        ('answers.predict("a", "b")', "remove-input"),
        ('steps.strip("naive")', "remove-input"),
        ('steps.bars("naive")', "hide-input"),
        ('answers.check("ex-a")', "remove-input"),
        ('found = run()\nanswers.settle("ex-a", found)', "remove-cell"),
        ("import numpy as np\nA = np.ones(3)", None),
        ('print(source("naive"))', None),
        ("%%kernel x\nint i;", None),
        ("shown = memory.traffic(trace)", None),
        ("", None),
    ],
)
def test_plumbing_is_told_from_what_is_to_be_read(source, tag):
    assert plumbing.wanted(source) == tag


def test_a_cell_that_is_to_be_seen_stays_in_sight():
    notebook = nbformat.v4.new_notebook()
    cells = {"shown": ["shown"], "hide-cell": ["hide-cell"], "": []}
    notebook.cells = [
        nbformat.v4.new_code_cell("import numpy", metadata={"tags": tags})
        for tags in cells.values()
    ]
    plumbing.tag(notebook)
    assert [cell.metadata.tags for cell in notebook.cells] == [
        ["shown"],
        ["hide-cell"],
        ["hide-input"],
    ]


def test_a_text_that_tells_an_answer_is_cut_from_the_heading_behind_it():
    form = 'class="gl-q" data-name="a" data-mode="predict" data-sealed="eyJhbnN3ZXIiOiAzMn0="'  # 32
    output = nbformat.v4.new_output("display_data", {"text/html": f"<div {form}></div>"})
    cells = [
        nbformat.v4.new_markdown_cell("## One"),
        nbformat.v4.new_code_cell("", outputs=[output]),
        nbformat.v4.new_markdown_cell(
            "It is 32.\n\n### More\n\n32.\n\n## Two\n\nHere 32 tells nothing."
        ),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    plumbing.tag(notebook)
    assert [cell.source for cell in notebook.cells[2:]] == [
        "It is 32.\n\n### More\n\n32.",
        "## Two\n\nHere 32 tells nothing.",
    ]
    assert [cell.metadata for cell in notebook.cells[2:]] == [
        {"jupyter": {"source_hidden": True}},
        {},
    ]


def test_every_chapter_folds_its_plumbing(notebooks):
    for name, notebook in notebooks.items():
        tagged = copy.deepcopy(notebook)
        plumbing.tag(tagged)
        for cell, wanted in zip(notebook.cells, tagged.cells, strict=True):
            assert cell.metadata == wanted.metadata, f"{name}: `python -m book.chapters setup`"


def test_what_tells_an_answer_is_folded_in_jupyterlab_text_and_outputs(notebooks):
    folded = {"markdown": 0, "code": 0}
    for name, notebook in notebooks.items():
        for place, asked in telling.behind(notebook):
            cell = notebook.cells[place]
            if telling.told(telling.seen(telling.shown(cell)), asked):
                key = "source_hidden" if cell.cell_type == "markdown" else "outputs_hidden"
                assert cell.metadata.get("jupyter", {}).get(key), f"{name}, cell {place}"
                folded[cell.cell_type] += 1
    assert all(folded.values())
