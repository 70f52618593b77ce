"""Layouts that the reader types: shape and stride in, a grid out."""

from __future__ import annotations

from collections.abc import Mapping

from tensor_layouts import ComposedLayout, Layout, Swizzle

from figures.widgets import Explorer, Span

__all__ = ["LayoutExplorer"]

LAYOUTS = {
    "row-major": "(4,8):(8,1)",
    "column-major": "(4,8):(1,4)",
    "padded rows": "(4,8):(9,1)",
    "two by two tiles": "((2,2),(2,4)):((1,8),(2,16))",
    "broadcast": "(4,8):(0,1)",
}


def written(layout: Layout | ComposedLayout | str) -> str:
    """A layout as the explorer reads it: shape:stride, with `Swizzle(B,M,S)o` before it where one follows.

    ValueError for a composition of anything else.
    """
    if isinstance(layout, str):
        return layout
    if isinstance(layout, Layout):
        return f"{layout.shape}:{layout.stride}".replace(" ", "")
    inner = layout.inner
    if layout.offset or not isinstance(layout.outer, Swizzle) or not isinstance(inner, Layout):
        raise ValueError(f"{layout}: only a swizzle of a plain layout can be written down")
    swizzle = layout.outer
    return f"Swizzle({swizzle.bits},{swizzle.base},{swizzle.shift})o" + written(inner)


class LayoutExplorer(Explorer):
    """Any layout of one or two modes: choose one or type it; one coordinate's way to its place is written out.

    layouts: {name: layout, or its text}. color: "index", "bank 4" or "bank 2" (bytes an element).
    i: the coordinate to start with, as a number.
    """

    kind = "layouts"
    asks = "Type a layout: which place does each coordinate get?"
    says = "An explorer of layouts, starting with {first}; also {others}."
    takes = (
        ("layouts", None, None),
        ("color", "index", ("index", "bank 4", "bank 2")),
        ("i", 5, Span(0, 127)),
    )

    def begins(self, layouts: Mapping | None, **given):
        texts = {str(name): written(layout) for name, layout in (layouts or LAYOUTS).items()}
        (name, first), *rest = texts.items()
        others = ", ".join(f"{name}: {words}" for name, words in rest)
        start = {"case": name, "layout": first, **given}
        return start, {"layouts": texts}, {"first": first, "others": others}
