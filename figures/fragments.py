"""Layouts as grids, and who holds what of a matrix in an MMA."""

from __future__ import annotations

from collections.abc import Callable

from tensor_layouts import Layout, MMAAtom, rank, size

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, plural

__all__ = ["fragment", "layout_grid", "owners"]

_OPERANDS = {"A": ("M", "K"), "B": ("K", "N"), "C": ("M", "N")}
MAX_CELLS = 64  # along one side of a grid


def owners(atom: MMAAtom, operand: str) -> dict[tuple[int, int], tuple[int, int]]:
    """Who holds each element of A (M, K), B (K, N) or C (M, N): {(row, column): (lane, value)}.

    The atom's layouts map (thread, value) to a column-major offset; `thr_id` maps its threads to
    lanes. Raises ValueError for an operand that is not A, B or C.
    """
    if operand not in _OPERANDS:
        raise ValueError(f"an MMA has operands A, B and C, not {operand!r}")
    m, n, _k = atom.shape_mnk
    layout = {"A": atom.a_layout, "B": atom.b_layout, "C": atom.c_layout}[operand]
    extent = {"A": m, "B": n, "C": m}[operand]
    threads, values = size(layout.shape[0]), size(layout.shape[1])
    held = {}
    for thread in range(threads):
        lane = atom.thr_id(thread) if atom.thr_id is not None else thread
        for value in range(values):
            offset = layout(thread, value)
            first, second = offset % extent, offset // extent
            held[(second, first) if operand == "B" else (first, second)] = (lane, value)
    rows, columns = _shape(atom, operand)
    if len(held) != rows * columns:
        raise ValueError(
            f"{atom.name}: {operand} is {rows} x {columns}, but its layout names {len(held)} places"
        )
    return held


def _shape(atom: MMAAtom, operand: str) -> tuple[int, int]:
    extents = dict(zip("MNK", atom.shape_mnk, strict=True))
    return tuple(extents[axis] for axis in _OPERANDS[operand])


def fragment(
    atom: MMAAtom,
    operands: str = "ABC",
    lane: int | None = None,
    title: str | None = None,
) -> Drawing:
    """Which lane holds which element of an MMA's matrices, and in which of its registers' values.

    atom: from `tensor_layouts.atoms`. operands: any of A, B and C; all three stand as in a
    product, A left of C, B above it. lane: the one to pick out; the others fade.
    `facts` holds {operand: {(row, column): (lane, value)}}. ValueError for a lane without a part.
    """
    if not operands or any(operand not in _OPERANDS for operand in operands):
        raise ValueError(f"operands are some of A, B and C, not {operands!r}")
    held = {operand: owners(atom, operand) for operand in operands}
    lanes = {who for places in held.values() for who, _ in places.values()}
    if max(lanes) > 31:
        raise ValueError(f"{atom.name} spans {max(lanes) + 1} lanes; only one warp can be drawn")
    if lane is not None and lane not in lanes:
        raise ValueError(f"lane {lane} holds nothing of {atom.name}")
    shapes = {operand: _shape(atom, operand) for operand in operands}
    for operand, (rows, columns) in shapes.items():
        if max(rows, columns) > MAX_CELLS:
            raise ValueError(f"{operand} is {rows} x {columns}: at most {MAX_CELLS} can be drawn")
    head, gap, side = 26, 22, 24  # the panel's name and column numbers, between panels, row numbers
    apart = "A" in shapes and ("B" in shapes or "C" in shapes)
    left_columns = shapes["A"][1] if "A" in shapes else 0
    right_columns = max((shapes[o][1] for o in "BC" if o in shapes), default=0)
    room = WIDTH - side * (1 + apart) - gap * apart
    cell = min(34.0, room / (left_columns + right_columns))
    tall = 27.0 if cell >= 24 else 22.0
    x_right = side + (left_columns * cell + gap + side if "A" in shapes else 0)
    y_low = (head + shapes["B"][0] * tall + 12) if "B" in shapes else 0
    if "B" in shapes and len(shapes) == 2 and "A" in shapes:
        y_low = 0  # A and B side by side
    places = {"A": (side, y_low), "B": (x_right, 0), "C": (x_right, y_low)}
    height = max(places[o][1] + head + shapes[o][0] * tall for o in shapes) + 4
    width = max(places[o][0] + shapes[o][1] * cell for o in shapes) + 6
    canvas = Canvas(max(width, 360), height)
    for operand in operands:
        _owner_panel(
            canvas, *places[operand], operand, held[operand], shapes[operand], cell, tall, lane
        )
    one = min(lanes) if lane is None else lane
    if set(operands) == set("ABC") and y_low > 150:
        _holdings(canvas, held, one, x_right - side - 12)
    counts = {o: len(held[o]) // len({who for who, _ in held[o].values()}) for o in operands}
    m, n, k = atom.shape_mnk
    each = ", ".join(f"{counts[o]} of {o}" for o in operands)
    return Drawing(
        title=title
        or (
            f"m{m}n{n}k{k}: {'each of ' + plural(len(lanes), 'lane') if lane is None else f'lane {lane}'} holds {each}"
        ),
        alt=f"{atom.ptx}. "
        + " ".join(
            f"Lane {one} holds {o} at "
            + ", ".join(f"({r},{c})" for (r, c), (who, _) in _by_value(held[o]) if who == one)
            + "."
            for o in operands
        ),
        caption=f"{atom.ptx}. In each cell: the lane (T), and which of its values of that matrix the element is.",
        legend=tuple(
            (style.lane_color(8 * group + 5), f"lanes {8 * group}-{8 * group + 7}")
            for group in sorted({who // 8 for who in lanes})
        ),
        facts=held,
        figure=canvas,
        min_width=int(min(max(canvas.width * 0.85, 320), 580)),
    )


def _holdings(canvas, held, lane, room):
    """What one lane holds, in the corner that A and B leave free."""
    canvas.text(4, 14, f"lane {lane} holds", size=13, bold=True)
    y, columns = 40, 4 if room > 4 * 94 else 2
    for operand, places in held.items():
        mine = [(value, place) for place, (who, value) in _by_value(places) if who == lane]
        for at in range(0, len(mine), columns):
            for column, (value, (row, col)) in enumerate(mine[at : at + columns]):
                words = f"{operand.lower()}{value}"
                box = (4 + column * 94, y - 9, 24, 18)
                canvas.cell(*box, style.lane_color(lane), words, inset=0, size=10)
                canvas.text(32 + column * 94, y, f"({row}, {col})", size=11)
            y += 24
        y += 12
    canvas.label(4, y, "(row, column) of each element", size=11)


def _by_value(places):
    return sorted(places.items(), key=lambda item: item[1])


def _owner_panel(canvas, x0, y0, operand, held, shape, cell, tall, picked):
    rows, columns = shape
    axes = _OPERANDS[operand]
    canvas.text(x0, y0 + 6, f"{operand}  ({axes[0]} x {axes[1]})", size=12, bold=True)
    top = y0 + 26
    for column in range(columns):
        canvas.label(x0 + (column + 0.5) * cell, y0 + 19, column, size=9, ha="center")
    for row in range(rows):
        canvas.label(x0 - 5, top + (row + 0.5) * tall, row, size=9, ha="right")
    for (row, column), (lane, value) in held.items():
        faded = picked is not None and lane != picked
        color = style.SOFT if faded else style.lane_color(lane)
        words = style.MUTED if faded else style.text_on(color)
        x, y = x0 + column * cell, top + row * tall
        canvas.rect(x + 0.5, y + 0.5, cell - 1, tall - 1, fill=color)
        if cell >= 20:
            name = f"{operand.lower()}{value}"
            how = {"ha": "center", "color": words}
            canvas.text(x + cell / 2, y + tall * 0.32, f"T{lane}", size=9.5, bold=not faded, **how)
            canvas.text(x + cell / 2, y + tall * 0.72, name, size=8.5, **how)
        else:
            canvas.text(x + cell / 2, y + tall / 2, lane, size=8, ha="center", color=words)


def layout_grid(
    layout: Layout | Callable[..., int],
    shape: tuple[int, int] | None = None,
    cells: str = "index",
    color: str | None = None,
    title: str | None = None,
    caption: str = "",
) -> Drawing:
    """Any layout as a grid.

    layout: a `tensor_layouts` layout of rank 1 or 2 (nested modes and swizzles as well), or any function of (row,
    column) if `shape` says how large the grid is. cells:
    "index" draws what the layout maps each coordinate to; "tv" reads a (thread, value) layout backwards: `shape` is the
    tile (rows, columns), and each element shows the thread and value that the layout sends to its column-major offset.
    color: "index" (order), "bank" (of 4-byte elements), "lane", or None for the fitting one.
    `facts` holds {"cells": {(row, column): index or (thread, value)}}. ValueError for what cannot be drawn.
    """
    if cells not in ("index", "tv"):
        raise ValueError(f'cells are "index" or "tv", not {cells!r}')
    if color not in (None, "index", "bank", "lane"):
        raise ValueError(f'color is "index", "bank" or "lane", not {color!r}')
    rows, columns, values = _evaluate(layout, shape, cells)
    if max(rows, columns) > MAX_CELLS:
        raise ValueError(f"{rows} x {columns} cells: at most {MAX_CELLS} on a side can be drawn")
    tv = cells == "tv"
    most = max((0 if tv else value) for value in values.values())
    label = max(len(_cell_words(value)) for value in values.values())
    cell = min(max(label * 7.2 + 10, 26), 46, (WIDTH - 40) / columns)
    tall, left, top = min(cell, 28.0), 32, 20
    canvas = Canvas(max(left + columns * cell + 6, 300), top + rows * tall + 4)
    size_of_words = min(11, (cell - 4) / max(label * 0.62, 1))
    for column in range(columns):
        canvas.label(
            left + (column + 0.5) * cell, 10, column, size=min(10, cell * 0.5), ha="center"
        )
    for row in range(rows):
        canvas.label(left - 6, top + (row + 0.5) * tall, row, size=10, ha="right")
    paint = color or ("lane" if tv else "index")
    for (row, column), value in values.items():
        x, y = left + column * cell, top + row * tall
        fill = style.SOFT if value is None else _paint(value, paint, most)
        words = _cell_words(value) if size_of_words >= 6 else ""
        canvas.cell(x, y, cell, tall, fill, words, size=size_of_words)
    name = (
        str(layout)
        if not callable(layout) or isinstance(layout, Layout)
        else getattr(layout, "__name__", str(layout))
    )
    first = ", ".join(f"({r},{c}) -> {_cell_words(values[r, c])}" for r, c in sorted(values)[:6])
    return Drawing(
        title=title or (f"{name}: {rows} x {columns}"),
        alt=f"A grid of {rows} rows and {columns} columns for the layout {name}: {first}"
        + (" and so on." if len(values) > 6 else "."),
        caption=caption,
        facts={"cells": values},
        figure=canvas,
        min_width=int(min(canvas.width * 0.8, 600)),
    )


def _evaluate(layout, shape, cells):
    """(rows, columns, {(row, column): index or (thread, value) or None})."""
    if cells == "tv":
        if shape is None:
            raise ValueError(
                "a thread-value layout needs the shape of the tile it covers: shape=(rows, columns)"
            )
        rows, columns = shape
        values = {(row, column): None for row in range(rows) for column in range(columns)}
        for thread in range(size(layout.shape[0])):
            for value in range(size(layout.shape[1])):
                offset = layout(thread, value)
                if offset >= rows * columns:
                    raise ValueError(
                        f"thread {thread}, value {value} lies at {offset}, outside {rows} x {columns}"
                    )
                place = (offset % rows, offset // rows)
                if values[place] is None:
                    values[place] = (thread, value)
        return rows, columns, values
    if shape is None:
        if not hasattr(layout, "shape"):
            raise ValueError("a plain function needs shape=(rows, columns)")
        modes = rank(layout)
        if modes > 2:
            raise ValueError(f"rank {modes}: group the modes until two are left, or take a slice")
        if modes < 2:
            count = size(layout)
            return 1, count, {(0, column): int(layout(column)) for column in range(count)}
        shape = (size(layout.shape[0]), size(layout.shape[1]))
    rows, columns = shape
    return rows, columns, {(r, c): int(layout(r, c)) for r in range(rows) for c in range(columns)}


def _cell_words(value) -> str:
    if value is None:
        return ""
    return f"T{value[0]} V{value[1]}" if isinstance(value, tuple) else str(value)


def _paint(value, paint: str, most: int) -> str:
    number = value[0] if isinstance(value, tuple) else value
    if paint == "lane":
        return style.lane_color(number % 32)
    if paint == "bank":
        return style.bank_color(number % 32)
    return style.tint(style.viridis(0.15 + 0.85 * number / max(most, 1)), 0.7)
