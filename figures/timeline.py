"""Who does what when: rows of bars over time, as a trace or a GPU's clocks had them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, number, text_width

__all__ = ["timeline"]

COLORS = {
    "load": style.KIND["load"],
    "ldmatrix": style.PURPLE,
    "compute": style.KIND["compute"],
    "store": style.GREEN,
    "wait": style.tint(style.GREY, 0.45),
    "barrier": style.KIND["barrier"],
}
NAMES = {
    "load": "copy under way",
    "wait": "waiting",
    "compute": "multiplying",
    "ldmatrix": "ldmatrix",
}


def bar(row: str, start: float, end: float, kind: str, stage: int | None = None) -> dict:
    """An event for `timeline`."""
    event = {"row": row, "start": start, "end": end, "kind": kind}
    return event if stage is None else {**event, "stage": stage}


def timeline(
    events: Sequence[Mapping],
    unit: str = "clocks",
    title: str | None = None,
    caption: str = "",
    numbers: str = "stages",
) -> Drawing:
    """Bars over time, one row for each actor, in the order in which they first appear.

    events: each has "row" (the producer, the tensor core ...), "start" and "end", a "kind" (one of load, ldmatrix,
    compute, store, wait, barrier) and, if it concerns one, a "stage": the number on the bar; `numbers` says what these
    are. Bars of a row that overlap are drawn in lanes below each other. `facts` holds {row: share of the time
    that its bars other than "wait" cover}. ValueError
    names an event that lacks something or ends before it begins.
    """
    events = [dict(event) for event in events]
    if not events:
        raise ValueError("no event was given: there is nothing to draw")
    for event in events:
        if missing := [key for key in ("row", "start", "end", "kind") if key not in event]:
            raise ValueError(f"an event without {missing[0]!r}: {event}")
        if event["kind"] not in COLORS:
            raise ValueError(f"{event['kind']!r} is no kind; there are {', '.join(COLORS)}")
        if event["end"] < event["start"]:
            raise ValueError(f"an event that ends before it begins: {event}")
    low, high = min(e["start"] for e in events), max(e["end"] for e in events)
    if high == low:
        raise ValueError("events that take no time cannot be drawn")
    rows = list(dict.fromkeys(event["row"] for event in events))
    busy = {row: _covered([e for e in events if e["row"] == row], high - low) for row in rows}
    last = rows[-1]
    kinds = [kind for kind in COLORS if any(event["kind"] == kind for event in events)]
    said = ", ".join(f"{row} {share:.0%}" for row, share in busy.items())
    whole = "the time" if "time" in unit or unit == "clocks" else f"these {unit}"
    return Drawing(
        title=title or f"{last[:1].upper()}{last[1:]} works {busy[last]:.0%} of the time",
        alt=f"A timeline of {number(high - low)} {unit}. Share of {whole} at work: {said}.",
        caption=" ".join(p for p in (caption, f"Numbers on the bars are {numbers}.") if p)
        if any("stage" in event for event in events)
        else caption,
        legend=tuple((COLORS[kind], NAMES.get(kind, kind)) for kind in kinds),
        facts=busy,
        figure=_drawn(events, rows, low, high, unit, WIDTH, beside=True),
        narrow=_drawn(events, rows, low, high, unit, 330, beside=False),
        min_width=560,
    )


def _covered(events: Sequence[Mapping], whole: float) -> float:
    """Share of the time in which at least one of these events, other than waiting, goes on."""
    covered, until = 0.0, float("-inf")
    spans = sorted((e["start"], e["end"]) for e in events if e["kind"] != "wait")
    for start, end in spans:
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered / whole


def _lanes(events: Sequence[Mapping]) -> list[tuple[int, Mapping]]:
    """(lane, event): the first lane in which nothing is still going on."""
    ends: list[float] = []
    placed = []
    for event in sorted(events, key=lambda e: (e["start"], e["end"])):
        lane = next((i for i, end in enumerate(ends) if end <= event["start"]), len(ends))
        ends[lane : lane + 1] = [event["end"]]
        placed.append((lane, event))
    return placed


def _step(span: float, most: int) -> float:
    """The smallest of 1, 2, 5, 10, 20 ... that divides a span into at most so many parts."""
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(power * one for one in (1, 2, 5, 10) if power * one * most >= span)


def _drawn(events, rows, low, high, unit, width, beside: bool) -> Canvas:
    """beside: the rows' names stand to the left of their bars, not above them."""
    size, tall, gap = 12.0, 22.0, 8.0
    left = max(text_width(row, size) for row in rows) + 12 if beside else 2.0
    above = 0.0 if beside else 17.0
    placed = {row: _lanes([e for e in events if e["row"] == row]) for row in rows}
    lanes = {row: 1 + max(lane for lane, _ in found) for row, found in placed.items()}
    height = sum(above + tall * lanes[row] + gap for row in rows)
    canvas = Canvas(width, height + 34)
    scale = (width - left - 6) / (high - low)
    y = 0.0
    for row in rows:
        deep = tall * lanes[row]
        canvas.text(0, y + (deep / 2 if beside else 8), row, size=size)
        y += above
        canvas.rect(left, y, (high - low) * scale, deep, fill=style.SOFT, z=0)
        for lane, event in placed[row]:
            wide = (event["end"] - event["start"]) * scale
            x, top = left + (event["start"] - low) * scale, y + lane * tall
            color = COLORS[event["kind"]]
            canvas.rect(x + 0.5, top + 2, max(wide - 1, 1), tall - 4, fill=color)
            words = str(event.get("stage", ""))
            if words and wide > text_width(words, 11) + 3:
                ink = style.text_on(color)
                canvas.text(x + wide / 2, top + tall / 2, words, size=11, ha="center", color=ink)
        y += deep + gap
    step = _step(high - low, 6 if beside else 3)
    for index in range(int((high - low) / step) + 1):
        x = left + index * step * scale
        side = "left" if not index else "right" if x > width - 24 else "center"
        canvas.line((x, 0), (x, height - 2), color=style.LINE, lw=1, z=0.5)
        words = number(index * step)
        canvas.label(x, height + 8, words, size=11, ha=side)
    words = f"{unit} since the beginning"
    canvas.label((left + width) / 2, height + 25, words, size=11.5, ha="center")
    return canvas
