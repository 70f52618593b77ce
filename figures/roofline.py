"""The roofline: rungs under the roofs of memory and arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, text_width
from figures.measurements import INPUTS, plain, provenance, ticks

__all__ = ["roofline"]


def roofline(
    points: Mapping[str, tuple[float, float]],
    bandwidth: float,
    peaks: Mapping[str, float],
    kinds: Mapping[str, str] | None = None,
    machine: Mapping | str | None = None,
    recorded: str | None = None,
    title: str | None = None,
    caption: str = "",
) -> Drawing:
    """Rungs under the roofs of memory and arithmetic.

    points: {rung: (operations per byte of global traffic, TFLOP/s)}. bandwidth: TB/s. peaks: {name: TFLOP/s}, highest roof
    last or first. kinds: {rung: "float32" | "tf32" | "float16"} for the colours. `facts` holds the points and, as "ridge", the
    operations per byte at which each peak meets the memory roof. Raises ValueError for values that are not positive.
    """
    if not points or not peaks:
        raise ValueError("a roofline needs at least one point and one peak")
    numbers = [bandwidth, *peaks.values(), *(value for point in points.values() for value in point)]
    if min(numbers) <= 0:
        raise ValueError("operations per byte, TFLOP/s and TB/s are positive")
    kinds = dict(kinds or {})
    ridge = {name: peak / bandwidth for name, peak in peaks.items()}
    x_low = 10 ** math.floor(math.log10(min(p[0] for p in points.values()) * 0.8))
    x_high = 10 ** math.ceil(
        math.log10(max([p[0] for p in points.values()] + list(ridge.values())) * 1.3)
    )
    y_low = 10 ** math.floor(math.log10(min(p[1] for p in points.values()) * 0.8))
    y_high = max(peaks.values()) * 2.2
    shown = [kind for kind in INPUTS if kind in {kinds.get(name, "float32") for name in points}]
    best = max(points, key=lambda name: points[name][1])
    roof = [
        peak for name, peak in peaks.items() if name.startswith(INPUTS[kinds.get(best, "float32")])
    ]
    share = points[best][1] / max(roof or peaks.values())
    bounds = (x_low, x_high, y_low, y_high)
    return Drawing(
        title=title
        or f"{best}, at {plain(points[best][0])} operations per byte, reaches {share:.0%} of its arithmetic roof",
        alt=f"Roofline with memory at {bandwidth:g} TB/s and peaks "
        + ", ".join(f"{name} {plain(peak)} TFLOP/s" for name, peak in peaks.items())
        + ". "
        + ", ".join(
            f"{name}: {plain(x)} operations per byte, {plain(y)} TFLOP/s"
            for name, (x, y) in points.items()
        )
        + ".",
        caption=" ".join(part for part in (caption, provenance(machine, recorded)) if part),
        legend=tuple((style.KIND[kind], f"{INPUTS[kind]} inputs") for kind in shown)
        if kinds
        else (),
        facts={"points": dict(points), "ridge": ridge},
        figure=_roofs(points, bandwidth, peaks, kinds, bounds, WIDTH, 400.0),
        narrow=_roofs(points, bandwidth, peaks, kinds, bounds, 360.0, 340.0)
        if len(points) <= 8
        else None,
        min_width=560,
    )


def _roofs(points, bandwidth, peaks, kinds, bounds, width: float, bottom: float):
    """The roofline drawn `width` wide; bounds: lowest and highest operations per byte, and TFLOP/s."""
    x_low, x_high, y_low, y_high = bounds
    left, right, top = (62.0, width - 20.0, 8.0) if width >= WIDTH else (46.0, width - 18.0, 8.0)
    canvas = Canvas(width, bottom + 44)

    def px(x):
        return left + (right - left) * math.log(x / x_low) / math.log(x_high / x_low)

    def py(y):
        return bottom - (bottom - top) * math.log(y / y_low) / math.log(y_high / y_low)

    for tick in ticks(x_low, x_high, True):
        canvas.line((px(tick), top), (px(tick), bottom), color=style.LINE, z=0)
        canvas.label(px(tick), bottom + 13, f"{tick:g}", size=11, ha="center")
    for tick in ticks(y_low, y_high, True):
        canvas.line((left, py(tick)), (right, py(tick)), color=style.LINE, z=0)
        canvas.label(left - 7, py(tick), f"{tick:g}", size=11, ha="right")
    canvas.label(
        (left + right) / 2,
        bottom + 33,
        "floating-point operations per byte",
        size=11.5,
        ha="center",
    )
    canvas.label(14, (top + bottom) / 2, "TFLOP/s", size=11.5, ha="center", rotate=90)
    taken: list[tuple[float, float, float, float]] = []
    tallest = max(peaks.values())
    x_start = max(x_low, y_low / bandwidth)
    canvas.line(
        (px(x_start), py(x_start * bandwidth)),
        (px(tallest / bandwidth), py(tallest)),
        color=style.INK,
        lw=2,
        z=2,
    )
    slope_words = f"memory {bandwidth:g} TB/s"
    for name, peak in peaks.items():
        canvas.line((px(peak / bandwidth), py(peak)), (right, py(peak)), color=style.INK, lw=2, z=2)
        label = f"{name} {plain(peak)} TFLOP/s"
        wide = text_width(label, 11.5)
        canvas.text(right - 4, py(peak) - 13, label, size=11.5, ha="right")
        taken.append((right - 4 - wide, py(peak) - 22, right, py(peak) + 3))
    middle = (x_start * tallest / bandwidth) ** 0.5
    angle = math.degrees(math.atan2(py(middle) - py(middle * 2 * 1.0), px(middle * 2) - px(middle)))
    mx, my = px(middle), py(middle * bandwidth)
    along = math.radians(angle)
    canvas.text(
        mx - 11 * math.sin(along),
        my - 11 * math.cos(along),
        slope_words,
        size=11.5,
        ha="center",
        rotate=angle,
    )
    marks = [(px(x), py(y)) for x, y in points.values()]
    taken += [(x - 6, y - 6, x + 6, y + 6) for x, y in marks]
    for peak in peaks.values():  # the roofs themselves
        taken.append((px(peak / bandwidth), py(peak) - 3, right, py(peak) + 3))
    for step in range(80):
        x = x_start * (tallest / bandwidth / x_start) ** (step / 79)
        taken.append((px(x) - 3, py(x * bandwidth) - 3, px(x) + 3, py(x * bandwidth) + 3))
    for step in range(12):  # the slanted label
        s = (step - 5.5) / 11 * text_width(slope_words, 11.5)
        cx, cy = (
            mx - 11 * math.sin(along) + s * math.cos(along),
            my - 11 * math.cos(along) - s * math.sin(along),
        )
        taken.append((cx - 9, cy - 9, cx + 9, cy + 9))
    for (name, _), (x, y) in sorted(
        zip(points.items(), marks, strict=True), key=lambda item: -item[1][0]
    ):
        color = style.KIND.get(kinds.get(name, "float32"), style.BLUE)
        canvas.circle(x, y, 5.5, fill=color, edge=style.CARD, lw=1.4, z=4)
        wide = text_width(name, 11)
        box = _free_place(x, y, wide, taken, (left, top, right, bottom))
        taken.append(box)
        cx, cy = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        canvas.text(cx, cy, name, size=11, ha="center")
        if abs(cy - y) > 16:
            canvas.line((x, y), (cx, cy + (7 if cy < y else -7)), color=style.MUTED, lw=0.8, z=1)
    return canvas


def _free_place(x, y, wide, taken, bounds):
    """A box for a label near (x, y) that meets nothing in `taken`, nearest first."""
    half, tall = wide / 2, 15
    options = [(0, -15), (0, 15), (half + 11, 0), (-half - 11, 0)]
    for ring in range(1, 14):
        options += [
            (dx * (half + 11), s * (15 + 13 * ring)) for s in (1, -1) for dx in (0, 0.7, -0.7)
        ]
    for dx, dy in options:
        box = (x + dx - half, y + dy - tall / 2, x + dx + half, y + dy + tall / 2)
        inside = (
            box[0] > bounds[0] and box[2] < bounds[2] and box[1] > bounds[1] and box[3] < bounds[3]
        )
        if inside and not any(
            box[0] < t[2] and t[0] < box[2] and box[1] < t[3] and t[1] < box[3] for t in taken
        ):
            return box
    return (x - half, y - 22, x + half, y - 7)
