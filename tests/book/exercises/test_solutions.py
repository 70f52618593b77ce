"""The answers that the solutions give are the ones that the checks accept.

A cell with `= None  # your answer` has the solution's answer in its metadata, as `answer`.
"""

import pytest
from nbclient import NotebookClient

from book import chapters

BLANK = "= None  # your answer"


def asking(path) -> list:
    cells = [cell for cell in chapters.read(path).cells if cell.cell_type == "code"]
    return [cell for cell in cells if BLANK in cell.source]


CHAPTERS = {path.stem: path for path in chapters.paths() if asking(path)}


def test_some_chapter_asks():
    assert CHAPTERS


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_solutions_are_right(name):
    notebook = chapters.read(CHAPTERS[name])
    asked = [cell for cell in notebook.cells if BLANK in cell.source]
    for cell in asked:
        cell.source = cell.source.replace(BLANK, f"= {cell.metadata['answer']}")
    where = {"metadata": {"path": str(CHAPTERS[name].parent)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute()
    for cell in asked:
        said = "".join(output.get("text", "") for output in cell.outputs)
        assert "is right" in said, f"{cell.source}\n{said}"
