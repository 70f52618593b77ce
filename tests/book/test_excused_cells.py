"""Which cells nbval re-runs without comparing their outputs, one by one.

A cell is excused when its output depends on the machine: a time, the name of the GPU, a widget's
state. Everything else is compared. Adding a cell to this list is a decision; so it is written here.
"""

from book import chapters

EXCUSED = {}  # chapter -> first lines of its excused cells, in order


def excused(notebook) -> list[str]:
    return [
        cell.source.splitlines()[0]
        for cell in notebook.cells
        if cell.cell_type == "code" and chapters.has_tag(cell, "nbval-ignore-output")
    ]


def test_the_excused_cells_are_these(notebooks):
    found = {name: cells for name, notebook in notebooks.items() if (cells := excused(notebook))}
    assert found == EXCUSED


def test_no_cell_is_excused_from_running(notebooks):
    for name, notebook in notebooks.items():
        for cell in notebook.cells:
            assert not chapters.has_tag(cell, "nbval-skip"), name


def test_most_cells_are_compared(notebooks):
    for name, notebook in notebooks.items():
        cells = [c for c in notebook.cells if c.cell_type == "code" and c.outputs]
        assert len(excused(notebook)) <= len(cells) / 2, name
