"""Labelled bars, for a handful of timings or counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from figures import style
from figures.drawing import Canvas, Drawing, text_width
from figures.measurements import plain, provenance

__all__ = ["bars"]


def bars(
    values: Mapping[str, float],
    unit: str = "ms",
    title: str | None = None,
    caption: str = "",
    highlight: Sequence[str] = (),
    parts: Mapping[str, Mapping[str, float]] | None = None,
    machine: Mapping | str | None = None,
    recorded: str | None = None,
) -> Drawing:
    """Horizontal labelled bars, for a handful of timings or counts.

    values: {label: value}. highlight: labels to colour. parts: {label: {part: value}} splits a bar into named parts
    ("47 ms are 31 ms of this and 16 of that"). `facts` holds the values. Raises ValueError for none, or a negative one.
    """
    if not values:
        raise ValueError("no value was given: there is nothing to draw")
    if any(value < 0 for value in values.values()):
        raise ValueError(f"a bar cannot be negative: {dict(values)}")
    if strangers := [name for name in [*highlight, *(parts or {})] if name not in values]:
        raise ValueError(f"no bar is called {strangers[0]!r}; there are {', '.join(values)}")
    parts = dict(parts or {})
    names = list(dict.fromkeys(part for split in parts.values() for part in split))
    palette = dict(
        zip(
            names,
            (style.VERMILION, style.ORANGE, style.SKY, style.GREEN, style.PURPLE),
            strict=False,
        )
    )
    high = max(values.values()) or 1

    def drawn(width: float, size: float):
        left, right, pitch = 4.0, width - 4.0, 50.0
        canvas = Canvas(width, pitch * len(values) + 2)
        for index, (label, value) in enumerate(values.items()):
            y = index * pitch
            words = f"{label}: {plain(value)} {unit}"
            fits = size * min(1.0, (right - left) / text_width(words, size))
            canvas.text(left, y + 11, words, size=fits, bold=label in highlight)
            canvas.rect(left, y + 22, right - left, 18, fill=style.SOFT, z=0)
            at = left
            for part, share in parts.get(label, {"": value}).items():
                color = palette.get(part) or (style.ORANGE if label in highlight else style.BLUE)
                wide = max((right - left) * share / high, 1.5 if share else 0)
                canvas.rect(at, y + 22, wide, 18, fill=color)
                at += wide
        return canvas

    spoken = ", ".join(f"{label}: {plain(value)} {unit}" for label, value in values.items())
    most, least = max(values, key=values.get), min(values, key=values.get)
    ratio = (
        f", {plain(values[most] / values[least])} times {least}"
        if values[least] > 0 and most != least
        else ""
    )
    return Drawing(
        title=title or f"{most}: {plain(values[most])} {unit}{ratio}",
        alt=f"Bars. {spoken}.",
        caption=" ".join(part for part in (caption, provenance(machine, recorded)) if part),
        legend=tuple((palette[name], name) for name in names),
        facts=dict(values),
        figure=drawn(560.0, 14),
        narrow=drawn(340.0, 12.5),
        min_width=340,
    )
