"""Measurements: the ladder of rungs, the roofline, and labelled bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, text_width

_INPUTS = {"float32": "FP32", "tf32": "TF32", "float16": "FP16"}


def _checked(rows) -> list[dict]:
    rows = [dict(row) for row in rows]
    if not rows:
        raise ValueError("no measurement was given: there is nothing to draw")
    for row in rows:
        for key in ("rung", "tflops"):
            if key not in row:
                raise ValueError(f"a measurement without {key!r}: {row}")
        if not row["tflops"] > 0:
            raise ValueError(f"{row['rung']}: {row['tflops']} TFLOP/s is no measurement")
    return rows


def _provenance(machine: Mapping | str | None, recorded: str | None) -> str:
    gpu = machine.get("gpu", "") if isinstance(machine, Mapping) else (machine or "")
    words = [f"on {gpu}" if gpu else "", f"recorded {recorded}" if recorded else ""]
    if gpu.lower().startswith("data sheet"):
        return f"From the {gpu}."
    said = ", ".join(word for word in words if word)
    return f"Measured {said}." if gpu else f"{said.capitalize()}." if said else ""


def _kind(row) -> str:
    return row.get("inputs", "float32")


def _is_library(row) -> bool:
    return row["rung"].split()[0] == "cublas"


def _cublas(row) -> float | None:
    """What cuBLAS reached in the same run, TFLOP/s."""
    if row.get("ratio_to_cublas"):
        return row["tflops"] / row["ratio_to_cublas"]
    if row.get("cublas_ms") and row.get("ms_median"):
        return row["tflops"] * row["ms_median"] / row["cublas_ms"]
    return None


def _ticks(low: float, high: float, log: bool) -> list[float]:
    if log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return [
            10.0**d for d in decades if low <= 10.0**d * 1.0000001 and 10.0**d <= high * 1.0000001
        ]
    step = 10 ** math.floor(math.log10(high))
    step = next(s for s in (step / 5, step / 2, step, step * 2) if high / s <= 7)
    return [step * i for i in range(int(high / step + 1e-9) + 1)]


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ladder(
    rows: Sequence[Mapping],
    limits: Mapping[str, float] | None = None,
    machine: Mapping | str | None = None,
    recorded: str | None = None,
    scale: str = "auto",
    title: str | None = None,
    caption: str = "",
) -> Drawing:
    """One bar of TFLOP/s for each rung, a tick for cuBLAS in the same run, a line for the hardware's limit.

    rows: as in `results/*.json`; "rung" and "tflops" must be there, "inputs" gives the colour, "ratio_to_cublas" (or
    "cublas_ms" with "ms_median") the tick. limits: {"float32" | "tf32" | "float16": TFLOP/s}. machine, recorded: for the
    caption. scale: "linear", "log", or "auto", which takes log when the rungs span more than a factor of 30.
    `facts` holds {rung: (tflops, cublas or None)}. Raises ValueError without measurements.
    """
    rows, limits = _checked(rows), dict(limits or {})
    if scale not in ("auto", "linear", "log"):
        raise ValueError(f'scale is "auto", "linear" or "log", not {scale!r}')
    values = [row["tflops"] for row in rows]
    rivals = [value for row in rows if (value := _cublas(row))]
    log = scale == "log" or (scale == "auto" and max(values) / min(values) > 30)
    kinds = [kind for kind in _INPUTS if any(_kind(row) == kind for row in rows)]
    limits = {kind: limits[kind] for kind in kinds if kind in limits}
    most = max(values + rivals + list(limits.values()))
    low = 10 ** math.floor(math.log10(min(values) * 0.999)) if log else 0.0
    high = most * (1.15 if log else 1.02)

    names = min(max(text_width(row["rung"], 12, mono=True) for row in rows) + 14, 190)
    left = names + (124 if rivals else 52)
    right, pitch, top = WIDTH - (112 if limits else 16), 25.0, 22 if rivals else 4
    bottom = top + pitch * len(rows)
    canvas = Canvas(WIDTH, bottom + 44)

    def place(value: float) -> float:
        share = math.log(value / low) / math.log(high / low) if log else value / high
        return left + share * (right - left)

    for tick in _ticks(low, high, log):
        canvas.line((place(tick), top), (place(tick), bottom), color=style.LINE, lw=1, z=0)
        canvas.text(place(tick), bottom + 13, f"{tick:g}", size=11, ha="center", color=style.MUTED)
    axis = "TFLOP/s, logarithmic: each grid line is ten times the one before" if log else "TFLOP/s"
    canvas.text((left + right) / 2, bottom + 33, axis, size=11.5, ha="center", color=style.MUTED)
    if rivals:
        canvas.text(names + 44, 9, "TFLOP/s", size=10.5, ha="right", color=style.MUTED)
        canvas.text(left - 8, 9, "of cuBLAS", size=10.5, ha="right", color=style.MUTED)
    labelled = set()
    for index, row in enumerate(rows):
        y = top + index * pitch
        color = style.KIND.get(_kind(row), style.GREY)
        canvas.text(4, y + pitch / 2, row["rung"], size=12, mono=True)
        canvas.rect(left, y + 4, place(row["tflops"]) - left, pitch - 8, fill=color, z=1)
        if (limit := limits.get(_kind(row))) is not None:
            canvas.line(
                (place(limit), y), (place(limit), y + pitch), color=color, lw=1.6, dash=(4, 3), z=2
            )
            if _kind(row) not in labelled:
                labelled.add(_kind(row))
                label = f"{_INPUTS[_kind(row)]} limit {_plain(limit)}"
                canvas.text(place(limit) + 6, y + pitch / 2, label, size=11, color=style.MUTED)
        rival = _cublas(row)
        if rival and not _is_library(row):
            _tick(canvas, place(rival), y + 2, y + pitch - 2, ahead=row["tflops"] >= rival)
        canvas.text(names + 44, y + pitch / 2, _plain(row["tflops"]), size=12, ha="right")
        if rival and not _is_library(row):
            share = f"{row['tflops'] / rival:.0%}"
            canvas.text(left - 8, y + pitch / 2, share, size=12, ha="right", color=style.MUTED)
    canvas.line((left, top), (left, bottom), color=style.MUTED, lw=1.2, z=2)
    best = max(
        (row for row in rows if not _is_library(row)),
        key=lambda row: row["tflops"],
        default=rows[0],
    )
    legend = [(style.KIND[kind], f"{_INPUTS[kind]} inputs") for kind in kinds]
    if rivals:
        legend.append((style.INK_VAR, "cuBLAS in the same run"))
    size = {(row.get("m"), row.get("n"), row.get("k")) for row in rows}
    shape = size.pop() if len(size) == 1 else (None,)
    where = f" M, N, K = {', '.join(map(str, shape))}." if None not in shape else ""
    return Drawing(
        title=title or _ladder_title(best),
        alt="Bars of TFLOP/s: " + ", ".join(_spoken(row) for row in rows) + ".",
        caption=" ".join(
            part for part in (caption, _provenance(machine, recorded) + where) if part.strip()
        ),
        legend=tuple(legend),
        facts={row["rung"]: (row["tflops"], _cublas(row)) for row in rows},
        figure=canvas.figure(),
        narrow=_narrow_ladder(rows, limits, log, low, high),
        min_width=560,
    )


def _narrow_ladder(rows, limits, log: bool, low: float, high: float):
    """The ladder for a phone: what a rung is called and reaches stands above its bar."""
    width, pitch = 340.0, 34.0
    left, right, bottom = 2.0, width - 6.0, pitch * len(rows)
    canvas = Canvas(width, bottom + 40)

    def place(value: float) -> float:
        share = math.log(value / low) / math.log(high / low) if log else value / high
        return left + share * (right - left)

    for tick in _ticks(low, high, log):
        for y in range(0, int(bottom), int(pitch)):  # beside the bars, not through the words
            ends = (place(tick), y + 17), (place(tick), y + 31)
            canvas.line(*ends, color=style.LINE, lw=1, z=0)
        side = "left" if place(tick) < 12 else "right" if place(tick) > right - 12 else "center"
        canvas.text(place(tick), bottom + 11, f"{tick:g}", size=11, ha=side, color=style.MUTED)
    axis = "TFLOP/s, logarithmic" if log else "TFLOP/s"
    canvas.text((left + right) / 2, bottom + 29, axis, size=11.5, ha="center", color=style.MUTED)
    for index, row in enumerate(rows):
        y = index * pitch
        color = style.KIND.get(_kind(row), style.GREY)
        rival = None if _is_library(row) else _cublas(row)
        canvas.text(left + 4, y + 9, row["rung"], size=12, mono=True)
        columns = {right - 40: _plain(row["tflops"])}
        if rival:
            columns[right] = f"{row['tflops'] / rival:.0%}"
        for x, said in columns.items():
            canvas.text(x, y + 9, said, size=12, ha="right", mono=True, color=style.MUTED)
        canvas.rect(left, y + 18, place(row["tflops"]) - left, 10, fill=color, z=1)
        if (limit := limits.get(_kind(row))) is not None:
            ends = (place(limit), y + 17), (place(limit), y + 31)
            canvas.line(*ends, color=color, lw=1.6, dash=(4, 3), z=2)
        if rival:
            _tick(canvas, place(rival), y + 16, y + 30, ahead=row["tflops"] >= rival)
    canvas.line((left, 0), (left, bottom), color=style.MUTED, lw=1.2, z=2)
    return canvas.figure()


def _tick(canvas: Canvas, x: float, top: float, bottom: float, ahead: bool) -> None:
    """cuBLAS beside a bar: with air to both sides, unless the bar is ahead, whose end is to be seen."""
    if not ahead:
        canvas.line((x, top), (x, bottom), color=style.CARD, lw=5, z=3)
    canvas.line((x, top), (x, bottom), color=style.INK, lw=2.2, z=4)


def _ladder_title(best) -> str:
    rival = _cublas(best)
    share = f", {best['tflops'] / rival:.0%} of cuBLAS" if rival else ""
    return f"The best rung, {best['rung']}, reaches {_plain(best['tflops'])} TFLOP/s{share}"


def _spoken(row) -> str:
    rival = _cublas(row)
    share = f" ({row['tflops'] / rival:.0%} of cuBLAS)" if rival and not _is_library(row) else ""
    return f"{row['rung']} {_plain(row['tflops'])}{share}"


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
            words = f"{label}: {_plain(value)} {unit}"
            canvas.text(left, y + 11, words, size=size, bold=label in highlight)
            canvas.rect(left, y + 22, right - left, 18, fill=style.SOFT, z=0)
            at = left
            for part, share in parts.get(label, {"": value}).items():
                color = palette.get(part) or (style.ORANGE if label in highlight else style.BLUE)
                wide = max((right - left) * share / high, 1.5 if share else 0)
                canvas.rect(at, y + 22, wide, 18, fill=color)
                at += wide
        return canvas.figure()

    spoken = ", ".join(f"{label}: {_plain(value)} {unit}" for label, value in values.items())
    most, least = max(values, key=values.get), min(values, key=values.get)
    ratio = (
        f", {_plain(values[most] / values[least])} times {least}"
        if values[least] > 0 and most != least
        else ""
    )
    return Drawing(
        title=title or f"{most}: {_plain(values[most])} {unit}{ratio}",
        alt=f"Bars. {spoken}.",
        caption=" ".join(part for part in (caption, _provenance(machine, recorded)) if part),
        legend=tuple((palette[name], name) for name in names),
        facts=dict(values),
        figure=drawn(560.0, 14),
        narrow=drawn(340.0, 12.5),
        min_width=340,
    )


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

    points: {rung: (operations a byte of global traffic, TFLOP/s)}. bandwidth: TB/s. peaks: {name: TFLOP/s}, highest roof
    last or first. kinds: {rung: "float32" | "tf32" | "float16"} for the colours. `facts` holds the points and, as "ridge", the
    operations a byte at which each peak meets the memory roof. Raises ValueError for values that are not positive.
    """
    if not points or not peaks:
        raise ValueError("a roofline needs at least one point and one peak")
    numbers = [bandwidth, *peaks.values(), *(value for point in points.values() for value in point)]
    if min(numbers) <= 0:
        raise ValueError("operations a byte, TFLOP/s and TB/s are positive")
    kinds = dict(kinds or {})
    ridge = {name: peak / bandwidth for name, peak in peaks.items()}
    x_low = 10 ** math.floor(math.log10(min(p[0] for p in points.values()) * 0.8))
    x_high = 10 ** math.ceil(
        math.log10(max([p[0] for p in points.values()] + list(ridge.values())) * 1.3)
    )
    y_low = 10 ** math.floor(math.log10(min(p[1] for p in points.values()) * 0.8))
    y_high = max(peaks.values()) * 2.2
    shown = [kind for kind in _INPUTS if kind in {kinds.get(name, "float32") for name in points}]
    best = max(points, key=lambda name: points[name][1])
    roof = [
        peak for name, peak in peaks.items() if name.startswith(_INPUTS[kinds.get(best, "float32")])
    ]
    share = points[best][1] / max(roof or peaks.values())
    bounds = (x_low, x_high, y_low, y_high)
    return Drawing(
        title=title
        or f"{best}, at {_plain(points[best][0])} operations a byte, reaches {share:.0%} of its arithmetic roof",
        alt=f"Roofline with memory at {bandwidth:g} TB/s and peaks "
        + ", ".join(f"{name} {_plain(peak)} TFLOP/s" for name, peak in peaks.items())
        + ". "
        + ", ".join(
            f"{name}: {_plain(x)} operations a byte, {_plain(y)} TFLOP/s"
            for name, (x, y) in points.items()
        )
        + ".",
        caption=" ".join(part for part in (caption, _provenance(machine, recorded)) if part),
        legend=tuple((style.KIND[kind], f"{_INPUTS[kind]} inputs") for kind in shown)
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
    """The roofline drawn `width` wide; bounds: lowest and highest operations a byte, and TFLOP/s."""
    x_low, x_high, y_low, y_high = bounds
    left, right, top = (62.0, width - 20.0, 8.0) if width >= WIDTH else (46.0, width - 18.0, 8.0)
    canvas = Canvas(width, bottom + 44)

    def px(x):
        return left + (right - left) * math.log(x / x_low) / math.log(x_high / x_low)

    def py(y):
        return bottom - (bottom - top) * math.log(y / y_low) / math.log(y_high / y_low)

    for tick in _ticks(x_low, x_high, True):
        canvas.line((px(tick), top), (px(tick), bottom), color=style.LINE, z=0)
        canvas.text(px(tick), bottom + 13, f"{tick:g}", size=11, ha="center", color=style.MUTED)
    for tick in _ticks(y_low, y_high, True):
        canvas.line((left, py(tick)), (right, py(tick)), color=style.LINE, z=0)
        canvas.text(left - 7, py(tick), f"{tick:g}", size=11, ha="right", color=style.MUTED)
    canvas.text(
        (left + right) / 2,
        bottom + 33,
        "floating-point operations a byte of global traffic",
        size=11.5,
        ha="center",
        color=style.MUTED,
    )
    canvas.text(
        14, (top + bottom) / 2, "TFLOP/s", size=11.5, ha="center", color=style.MUTED, rotate=90
    )
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
        label = f"{name} {_plain(peak)} TFLOP/s"
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
    return canvas.figure()


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


__all__ = ["bars", "ladder", "roofline"]
