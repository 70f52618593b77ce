"""A software pipeline over time, by a model small enough to check by hand."""

from __future__ import annotations

from dataclasses import dataclass

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, plural

__all__ = ["pipeline_timeline", "schedule"]


@dataclass(frozen=True)
class Slot:
    """One tile's way through a pipeline, in units of the model's time."""

    tile: int
    stage: int
    load_start: float
    load_end: float
    compute_start: float
    compute_end: float


def schedule(stages: int, load: float, compute: float, tiles: int) -> list[Slot]:
    """When each tile is loaded and computed.

    The model: a tile's load takes `load` from its start and may start as soon as its stage is free, however many loads are
    already under way; one tile is computed at a time, in order, each for `compute`. In the steady state a tile takes
    max(compute, (load + compute) / stages). ValueError for anything that is not positive.
    """
    if stages < 1 or tiles < 1 or load < 0 or compute <= 0:
        raise ValueError(
            "a pipeline needs at least one stage, one tile, and a computation that takes time"
        )
    slots: list[Slot] = []
    for tile in range(tiles):
        free = slots[tile - stages].compute_end if tile >= stages else 0.0
        ready = free + load
        start = max(ready, slots[-1].compute_end if slots else 0.0)
        slots.append(Slot(tile, tile % stages, free, ready, start, start + compute))
    return slots


def pipeline_timeline(
    stages: int | tuple[int, ...],
    load: float = 3,
    compute: float = 1,
    tiles: int = 8,
    title: str | None = None,
    caption: str = "",
) -> Drawing:
    """The stages of a pipeline over time, for one or several numbers of stages, drawn by the model of `schedule`.

    `facts` holds {stages: {"time", "busy"}}: the model's total time, and the share of it that computes.
    """
    counts = (stages,) if isinstance(stages, int) else tuple(stages)
    if not counts:
        raise ValueError("no number of stages was given: there is nothing to draw")
    plans = {count: schedule(count, load, compute, tiles) for count in counts}
    end = max(slots[-1].compute_end for slots in plans.values())
    left, row, head, foot = 92.0, 24.0, 26.0, 20.0
    heights = {count: head + row * (count + 1) + foot for count in counts}
    canvas = Canvas(WIDTH, sum(heights.values()) - foot + 2)
    scale = (WIDTH - left - 8) / end
    top, facts = 0.0, {}
    for count, slots in plans.items():
        time = slots[-1].compute_end
        busy = tiles * compute / time
        facts[count] = {"time": time, "busy": busy}
        canvas.text(0, top + 9, plural(count, "stage"), size=13, bold=True)
        canvas.text(
            WIDTH - 8,
            top + 9,
            f"{plural(tiles, 'tile')} in {time:g}; computing {busy:.0%} of the time",
            size=12,
            ha="right",
        )
        y = top + head
        for stage in range(count):
            canvas.text(
                left - 10,
                y + stage * row + row / 2,
                f"stage {stage}",
                size=11,
                ha="right",
                color=style.MUTED,
            )
            canvas.rect(left, y + stage * row + 2, end * scale, row - 4, fill=style.SOFT, z=0)
        canvas.text(
            left - 10,
            y + count * row + row / 2,
            "math units",
            size=11,
            ha="right",
            color=style.MUTED,
        )
        canvas.rect(left, y + count * row + 2, end * scale, row - 4, fill=style.SOFT, z=0)
        for slot in slots:
            yy = y + slot.stage * row
            _box(
                canvas,
                left,
                scale,
                slot.load_start,
                slot.load_end,
                yy,
                row,
                style.KIND["load"],
                slot.tile,
            )
            if slot.compute_start > slot.load_end:
                _box(
                    canvas,
                    left,
                    scale,
                    slot.load_end,
                    slot.compute_start,
                    yy,
                    row,
                    style.tint(style.GREY, 0.45),
                    None,
                )
            for place in (yy, y + count * row):
                _box(
                    canvas,
                    left,
                    scale,
                    slot.compute_start,
                    slot.compute_end,
                    place,
                    row,
                    style.KIND["compute"],
                    slot.tile,
                )
        top += heights[count]
    best = max(facts, key=lambda count: facts[count]["busy"])
    alone = len(counts) == 1
    return Drawing(
        title=title
        or (
            f"{plural(best, 'stage')}: the math units compute {facts[best]['busy']:.0%} of the time"
            if alone
            else f"{_words(counts)} stages: the math units compute"
            f" {_words(format(facts[count]['busy'], '.0%') for count in counts)} of the time"
        ),
        alt="A timeline by a model. "
        + " ".join(
            f"{plural(count, 'stage')}: {tiles} tiles take {facts[count]['time']:g}, computing {facts[count]['busy']:.0%}."
            for count in counts
        ),
        caption=" ".join(
            part
            for part in (
                caption,
                f"A model, not a measurement: a load takes {load:g}, a computation {compute:g}; a load starts when its stage"
                " is free. Numbers are tiles.",
            )
            if part
        ),
        legend=(
            (style.KIND["load"], "load under way"),
            (style.tint(style.GREY, 0.45), "loaded, waiting its turn"),
            (style.KIND["compute"], "compute"),
        ),
        facts=facts,
        figure=canvas,
        min_width=600,
    )


def _words(values) -> str:
    """`1, 2 and 4`."""
    *most, last = map(str, values)
    return f"{', '.join(most)} and {last}" if most else last


def _box(canvas, left, scale, start, end, y, row, color, tile):
    wide = (end - start) * scale
    if wide <= 0:
        return
    canvas.rect(left + start * scale + 0.75, y + 2, max(wide - 1.5, 0.5), row - 4, fill=color, z=1)
    if tile is not None and wide > 13:
        canvas.text(
            left + (start + end) / 2 * scale,
            y + row / 2,
            tile,
            size=10.5,
            ha="center",
            color=style.text_on(color),
        )
