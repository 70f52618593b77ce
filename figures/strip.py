"""The ladder in miniature: where a chapter stands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, text_width

__all__ = ["ladder_strip"]

_NAMES = {"float32": "float32", "tf32": "TF32", "float16": "float16"}
_NAMES |= {"bfloat16": "bfloat16", "float8_e4m3fn": "e4m3", "int8": "int8"}
_NAMES |= {"mxfp8": "mxfp8", "nvfp4": "nvfp4"}


def ladder_strip(
    rungs: Mapping[str, float | None],
    here: Sequence[str],
    kinds: Mapping[str, str] | None = None,
    first: int = 1,
) -> Drawing:
    """All rungs as small bars in the order of their numbers, those of `here` in colour and by name.

    first: the number of the first one.

    rungs: {name: TFLOP/s}, drawn on a logarithmic scale; None for a rung that nobody has timed, which has no bar.
    kinds: {name: "float32" | "tf32" | "float16"}, the colour. `facts` holds {"here": {name: number}, "of": the last number}.
    ValueError for a name that is no rung.
    """
    names = list(rungs)
    unknown = [name for name in here if name not in rungs]
    if unknown or not here:
        known = ", ".join(names)
        raise ValueError(
            f"{', '.join(unknown) or 'nothing'} is to be marked; the rungs are {known}"
        )
    kinds = dict(kinds or {})
    places = {name: number for number, name in enumerate(names, first) if name in here}
    last = first + len(names) - 1
    untimed = [name for name, value in rungs.items() if value is None]
    said = _listed(
        [
            f"{name} ({place}{', not timed' if name in untimed else ''})"
            for name, place in places.items()
        ]
    )
    more = f" The dashed ones, {_listed(untimed)}, were not timed." if untimed else ""
    kind = {kinds.get(name, "float32") for name in places}
    return Drawing(
        title=f"Where we are: {said} of {last} rungs",
        alt=f"The ladder in miniature, {len(names)} bars in the order of their numbers. Marked: {said}.{more}",
        caption="Bars are the rungs in the order of their numbers; their heights are recorded speeds, logarithmic."
        + (" A dashed line is a rung that nobody has timed here." if untimed else ""),
        legend=tuple((style.KIND[one], f"{_NAMES[one]} inputs") for one in _NAMES if one in kind),
        facts={"here": places, "of": last},
        figure=_strip(rungs, places, kinds, WIDTH),
        narrow=_strip(rungs, places, kinds, 330),
        min_width=560,
    )


def _listed(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _strip(rungs, places, kinds, width: float) -> Canvas:
    """One strip: names of the marked bars above them, pushed apart so that none meets another."""
    size, tall = 12.0, 46.0
    names = list(rungs)
    pitch = (width - 4) / len(names)
    centre = {name: 2 + (i + 0.5) * pitch for i, name in enumerate(names)}
    rows: list[float] = []  # where each row of names ends
    label: dict[str, tuple[float, int]] = {}
    marked_at = sorted(centre[name] for name in places)
    for name in places:
        wide = text_width(name, size, mono=True)
        left = min(max(centre[name] - wide / 2, 0), max(width - wide, 0))
        following = next((x for x in marked_at if x > centre[name]), width + 8)
        left = max(0, min(left, following - 8 - wide))  # the next bar's line passes beside the name
        row = next((i for i, end in enumerate(rows) if end + 10 <= left), len(rows))
        rows[row : row + 1] = [left + wide]
        label[name] = (left, row)
    top = 17.0 * len(rows) + 4
    canvas = Canvas(width, top + tall + 3)
    known = [value for value in rungs.values() if value is not None]
    low, high = (math.log(f(known)) for f in (min, max))
    for name, value in rungs.items():
        share = (math.log(value) - low) / (high - low) if value and high > low else 1.0
        height = 6 + (tall - 6) * share
        marked = name in places
        color = style.KIND[kinds.get(name, "float32")] if marked else style.LINE
        x = centre[name]
        if value is None:
            height = 14.0
            feet = ((x, top + tall), (x, top + tall - height))
            canvas.line(*feet, color=color, lw=3 if marked else 2, dash=(1, 1))
        else:
            left, wide = x - pitch * 0.36, pitch * 0.72
            canvas.rect(left, top + tall - height, wide, height, fill=color, z=1)
        if marked:
            left, row = label[name]
            y = 8 + 17 * (len(rows) - 1 - row)
            canvas.line((x, y + 9), (x, top + tall - height - 1), color=style.MUTED, lw=1, z=2)
            canvas.text(left, y, name, size=size, mono=True, bold=True)
    canvas.line((0, top + tall), (width, top + tall), color=style.MUTED, lw=1.2, z=2)
    return canvas
