"""What each step of a change bought: a waterfall of totals, or each idea alone on the same base."""

from __future__ import annotations

from collections.abc import Mapping

from figures import style
from figures.drawing import Canvas, Drawing, text_width
from figures.measurements import plain, provenance

__all__ = ["waterfall"]


def waterfall(
    steps: Mapping[str, float],
    unit: str = "TFLOP/s",
    alone: bool = False,
    title: str | None = None,
    caption: str = "",
    machine: Mapping | str | None = None,
    recorded: str | None = None,
) -> Drawing:
    """Bars that begin where the bar before them ended: the first is the base, each other one a step.

    steps: {what was done: the value reached with it}, the base first. alone: every step was taken from the base by itself
    (an ablation), so all begin at the base. `facts` holds {step: gain}, the base left out. ValueError with fewer than two
    values or one that is not positive.
    """
    if len(steps) < 2:
        raise ValueError("a waterfall needs a base and at least one step")
    if any(value <= 0 for value in steps.values()):
        raise ValueError(f"{unit} must be positive: {dict(steps)}")
    (base, first), *later = steps.items()
    gains, before = {}, first
    for name, value in later:
        gains[name] = value - before
        before = first if alone else value
    most = max(gains, key=gains.get)
    said = ", ".join(f"{name} {_signed(gain)}" for name, gain in gains.items())
    last = plain(later[-1][1])
    alt = f"{base}: {plain(first)} {unit}. {'Each alone' if alone else 'Then'}: {said}."
    return Drawing(
        title=title
        or (
            f"Alone, {most} changes most: {_signed(gains[most])} {unit}"
            if alone
            else f"From {plain(first)} to {last} {unit}; most by {most}: {_signed(gains[most])}"
        ),
        alt=alt if alone else f"{alt} In the end {last}.",
        caption=" ".join(part for part in (caption, provenance(machine, recorded)) if part),
        legend=(
            (style.GREY, base),
            (style.KIND["good"], "faster"),
            *(((style.KIND["bad"], "slower"),) if min(gains.values()) < 0 else ()),
        ),
        facts=gains,
        figure=_drawn(steps, gains, unit, alone, 620.0, 13.5),
        narrow=_drawn(steps, gains, unit, alone, 330.0, 12),
        min_width=340,
    )


def _signed(gain: float) -> str:
    return f"{'+' if gain >= 0 else '−'}{plain(abs(gain))}"


def _drawn(steps, gains, unit: str, alone: bool, width: float, size: float):
    """One row for each step: its words, and its bar below them."""
    pitch, left, right = 42.0, 4.0, width - 4.0
    canvas = Canvas(width, pitch * len(steps) + 4)
    scale = (right - left) / max(steps.values())
    (_, start), *_ = steps.items()
    end = start
    for index, (name, value) in enumerate(steps.items()):
        y = index * pitch
        words = (
            f"{plain(value)} {unit}" if not index else f"{_signed(gains[name])} to {plain(value)}"
        )
        wanted = text_width(f"{name}  {words}", size)
        fits = size * min(1.0, (right - left) / wanted)
        canvas.text(left, y + 10, name, size=fits, bold=not index)
        canvas.text(right, y + 10, words, size=fits, ha="right", color=style.MUTED)
        canvas.rect(left, y + 20, right - left, 16, fill=style.SOFT, z=0)
        begin = 0.0 if not index else start if alone else end
        low, high = sorted((begin, value))
        color = style.GREY if not index else style.KIND["good" if value >= begin else "bad"]
        wide = max((high - low) * scale, 1.5)
        canvas.rect(left + low * scale, y + 20, wide, 16, fill=color)
        if index:  # where the bar begins, so that the eye finds the one before
            x = left + begin * scale
            canvas.line((x, y + 17), (x, y + 39), color=style.INK, lw=1.4, z=2)
        end = value
    return canvas
