"""What the chapters' tools show, as tables rather than as text."""

import pytest

from book.cells import columns


@pytest.fixture
def tables(monkeypatch) -> list:
    """The tables that were shown, in order."""
    shown: list = []
    monkeypatch.setattr(columns, "display", shown.append)
    return shown
