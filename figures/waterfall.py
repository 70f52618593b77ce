"""What each step of a change bought: a waterfall of totals."""

from __future__ import annotations

from collections.abc import Mapping

from figures import style
from figures.drawing import Canvas, Drawing, text_width
from figures.measurements import plain, provenance

__all__ = ["waterfall"]


def waterfall(
    steps: Mapping[str, float],
    title: str | None = None,
    caption: str = "",
    machine: Mapping | str | None = None,
    recorded: str | None = None,
) -> Drawing:
    """Bars that begin where the bar before them ended: the first is the base, each other one a step.

    steps: {what was done: the value reached with it}, TFLOP/s, the base first. `facts` holds {step: gain}, the base
    left out. ValueError with fewer than two values or one that is not positive.
    """
    if len(steps) < 2:
        raise ValueError("a waterfall needs a base and at least one step")
    if any(value <= 0 for value in steps.values()):
        raise ValueError(f"TFLOP/s must be positive: {dict(steps)}")
    (base, first), *later = steps.items()
    gains, before = {}, first
    for name, value in later:
        gains[name] = value - before
        before = value
    most = max(gains, key=gains.get)
    said = ", ".join(f"{name} {_signed(gain)}" for name, gain in gains.items())
    last = plain(later[-1][1])
    return Drawing(
        title=title
        or f"From {plain(first)} to {last} TFLOP/s; most by {most}: {_signed(gains[most])}",
        alt=f"{base}: {plain(first)} TFLOP/s. Then: {said}. In the end {last}.",
        caption=" ".join(part for part in (caption, provenance(machine, recorded)) if part),
        legend=(
            (style.GREY, base),
            (style.KIND["good"], "faster"),
            *(((style.KIND["bad"], "slower"),) if min(gains.values()) < 0 else ()),
        ),
        facts=gains,
        figure=_drawn(steps, gains, 620.0, 13.5),
        narrow=_drawn(steps, gains, 330.0, 12),
        min_width=340,
    )


def _signed(gain: float) -> str:
    return f"{'+' if gain >= 0 else '−'}{plain(abs(gain))}"


def _drawn(steps, gains, width: float, size: float):
    """One row for each step: its words, and its bar below them."""
    pitch, left, right = 42.0, 4.0, width - 4.0
    canvas = Canvas(width, pitch * len(steps) + 4)
    scale = (right - left) / max(steps.values())
    end = 0.0
    for index, (name, value) in enumerate(steps.items()):
        y = index * pitch
        words = (
            f"{plain(value)} TFLOP/s" if not index else f"{_signed(gains[name])} to {plain(value)}"
        )
        wanted = text_width(f"{name}  {words}", size)
        fits = size * min(1.0, (right - left) / wanted)
        canvas.text(left, y + 10, name, size=fits, bold=not index)
        canvas.label(right, y + 10, words, size=fits, ha="right")
        canvas.rect(left, y + 20, right - left, 16, fill=style.SOFT, z=0)
        low, high = sorted((end, value))
        color = style.GREY if not index else style.KIND["good" if value >= end else "bad"]
        wide = max((high - low) * scale, 1.5)
        canvas.rect(left + low * scale, y + 20, wide, 16, fill=color)
        if index:  # where the bar begins, so that the eye finds the one before
            x = left + end * scale
            canvas.line((x, y + 17), (x, y + 39), color=style.INK, lw=1.4, z=2)
        end = value
    return canvas
