"""An autotuner's findings, and the order in which blocks take the tiles of C."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, number, plural, text_width
from figures.measurements import provenance

__all__ = ["strips", "tile_order"]


def strips(
    groups: Mapping[object, Sequence[float]],
    name: str,
    machine: Mapping | str | None = None,
    recorded: str | None = None,
) -> Drawing:
    """One row of dots for each value of a parameter; a dot is one setting, the largest of a row is filled.

    The best of a row stands beside its name. The axis starts at 0 only where the measurements come near it.

    groups: {value of the parameter: measurements}, more is better. name: the parameter ("STAGES"). `facts` holds
    {value: (best, how many)}. ValueError for no measurement, or one that is not positive.
    """
    groups = {str(value): sorted(found) for value, found in groups.items() if len(found)}
    if not groups:
        raise ValueError("no measurement was given: there is nothing to draw")
    if min(found[0] for found in groups.values()) <= 0:
        raise ValueError("a measurement is positive")
    best = max(groups, key=lambda value: groups[value][-1])
    highest, lowest = groups[best][-1], min(found[0] for found in groups.values())
    high = highest + 0.04 * (highest if lowest < highest / 3 else highest - lowest or highest)
    low = 0.0 if lowest < highest / 3 else max(0.0, lowest - (high - highest))
    names = 16 + max(text_width(f"{name} {value}", 12, mono=True) for value in groups)
    left, right, pitch, top = names + 62, WIDTH - 14.0, 34.0, 6.0
    bottom = top + pitch * len(groups)
    canvas = Canvas(WIDTH, bottom + 44)

    def place(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    for tick in _ticks(low, high):
        canvas.line((place(tick), top), (place(tick), bottom), color=style.LINE, z=0)
        canvas.label(place(tick), bottom + 13, f"{tick:g}", size=11, ha="center")
    canvas.label((left + right) / 2, bottom + 33, "TFLOP/s", size=11.5, ha="center")
    for at, (value, found) in enumerate(groups.items()):
        y = top + (at + 0.5) * pitch
        canvas.text(4, y, f"{name} {value}", size=12, mono=True, bold=value == best)
        canvas.line((left, y), (right, y), color=style.LINE, z=0)
        for one in found[:-1]:
            canvas.circle(place(one), y, 5, edge=style.BLUE, lw=1.4, z=2)
        color = style.ORANGE if value == best else style.BLUE
        canvas.circle(place(found[-1]), y, 6.5, fill=color, edge=style.CARD, lw=1.2, z=3)
        canvas.text(names + 46, y, number(found[-1]), size=12, ha="right")
    spoken = ", ".join(
        f"{name} {value}: best {number(found[-1])} of {plural(len(found), 'setting')}"
        for value, found in groups.items()
    )
    axis = "" if low == 0 else "The axis does not start at 0."
    return Drawing(
        title=f"The best setting has {name} {best}: {number(groups[best][-1])} TFLOP/s",
        alt=f"Dots of TFLOP/s, one row for each value of {name}. {spoken}.",
        caption=" ".join(part for part in (axis, provenance(machine, recorded)) if part),
        legend=(
            (style.ORANGE, "the best of all"),
            (style.BLUE, "the best of its row; rings: the others"),
        ),
        facts={value: (found[-1], len(found)) for value, found in groups.items()},
        figure=canvas,
        min_width=470,
    )


def tile_order(
    order: Sequence[Sequence[int]],
    at_once: int,
) -> Drawing:
    """The tiles of C, each with its place in the order of work; those that run at the same time share a colour.

    order: (tile rows, tile columns) numbers from 0. at_once: how many blocks run at a time. Bars at the side and on top mark
    which rows of tiles of A and which columns of tiles of B the first of them read. `facts` holds {"rows", "columns"}, counts
    of these, and "strips", their sum. ValueError for an order that is not one.
    """
    rows, columns = len(order), len(order[0])
    if sorted(n for row in order for n in row) != list(range(rows * columns)):
        raise ValueError("an order numbers every tile once, from 0")
    if at_once < 1:
        raise ValueError("at least one block runs at a time")
    first = [(r, c) for r in range(rows) for c in range(columns) if order[r][c] < at_once]
    used_rows, used_columns = {r for r, _ in first}, {c for _, c in first}
    left, top = 54.0, 42.0
    cell = min(36.0, (WIDTH - left - 10) / columns)
    tall = min(cell, 24.0)
    canvas = Canvas(max(left + columns * cell + 8, 320), top + rows * tall + 6)
    canvas.label(left, 8, "columns of B", size=11)
    canvas.label(4, top - 12, "rows of A", size=11)
    for r in range(rows):
        fill = style.wavefront_color(0) if r in used_rows else style.SOFT
        canvas.rect(left - 22, top + r * tall + 1, 14, tall - 2, fill=fill)
    for c in range(columns):
        fill = style.wavefront_color(0) if c in used_columns else style.SOFT
        canvas.rect(left + c * cell + 1, top - 22, cell - 2, 14, fill=fill)
    for r in range(rows):
        for c in range(columns):
            turn = order[r][c] // at_once
            fill = style.wavefront_color(turn)
            x, y = left + c * cell, top + r * tall
            how = {"size": min(10, cell * 0.36), "bold": turn == 0}
            canvas.cell(x, y, cell, tall, fill, order[r][c], **how)
    strips_read = len(used_rows) + len(used_columns)
    words = f"{plural(len(used_rows), 'row')} of A and {plural(len(used_columns), 'column')} of B"
    return Drawing(
        title=f"The first {at_once} tiles read {words}: {strips_read} strips",
        alt=f"{rows} x {columns} tiles of C, numbered in the order in which blocks take them, {at_once} at a time. "
        f"The first {at_once} read {words}.",
        facts={"rows": len(used_rows), "columns": len(used_columns), "strips": strips_read},
        figure=canvas,
        min_width=int(min(canvas.width * 0.8, 560)),
    )


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, eight at most."""
    step = 10 ** math.floor(math.log10(high - low))
    step = next(s for s in (step / 5, step / 2, step, step * 2) if (high - low) / s <= 7)
    return [step * i for i in range(math.ceil(low / step - 1e-9), int(high / step + 1e-9) + 1)]
