"""Adding a figure is adding its file."""

import importlib
import sys

import figures

FILE = '''"""Squares, one for each number."""

from figures.drawing import Canvas, Drawing

__all__ = ["squares"]


def squares(sides):
    """One square for each side. ValueError for none."""
    if not sides:
        raise ValueError("no side was given: there is nothing to draw")
    canvas = Canvas(200, 40)
    for n, side in enumerate(sides):
        canvas.rect(40 * n, 0, side, side)
    words = ", ".join(map(str, sides))
    return Drawing(f"Sides {words}", f"Squares of {words}.", "", facts=list(sides), figure=canvas)
'''


def test_a_file_is_all_that_a_figure_needs(tmp_path, monkeypatch):
    (tmp_path / "squares.py").write_text(FILE)
    before = set(figures.drawings())
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    monkeypatch.delitem(sys.modules, "figures.squares", raising=False)
    found = figures.drawings()
    assert set(found) - before == {"squares"}
    shown = found["squares"]([3, 5])
    assert shown.facts == [3, 5] and "Squares of 3, 5." in shown.html()
    monkeypatch.delattr(figures, "squares", raising=False)
    sys.modules.pop("figures.squares")


def test_what_is_offered_is_what_a_chapter_calls():
    assert set(figures.drawings()) == set(figures.__all__)
    assert all(getattr(figures, name) is it for name, it in figures.drawings().items())
    for name in figures.__all__:
        assert name in figures.__doc__ or name in (
            "Access",
            "Drawing",
            "Listing",
            "Table",
            "owners",
            # models that figures draw, which chapters call too
            "barrier_steps",
            "box_chunks",
            "descriptor_bits",
            "deal",
            "descriptor_chunks",
            "instruction_bits",
            "matrix_bits",
            "pair_loads",
            "scale_place",
            "tensor_reach",
            "raster_order",
            "role_schedule",
        ), name
