"""Where the chapter tests find the chapters and the rendered book."""

from pathlib import Path

import nbformat
import pytest

from book import chapters


@pytest.fixture(scope="session")
def notebooks() -> dict[str, nbformat.NotebookNode]:
    """Chapter name -> notebook, in reading order."""
    return {path.stem: nbformat.read(path, as_version=4) for path in chapters.paths()}


def pytest_collection_modifyitems(items) -> None:
    """What asks for the rendered book is run behind it: `make test` renders beside the other tests."""
    for item in items:
        if "site" in getattr(item, "fixturenames", ()):
            item.add_marker("site")


@pytest.fixture(scope="session")
def site() -> Path:
    """The rendered book, as `make book` leaves it."""
    place = chapters.ROOT / "_build" / "html"
    if not (place / "index.html").exists():
        pytest.fail("the book is not rendered: run `make book` first (`make test` does)")
    return place
