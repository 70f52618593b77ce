"""The ladder: one bar of TFLOP/s for each rung, beside cuBLAS."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, text_width
from figures.measurements import INPUTS, plain, provenance, ticks

__all__ = ["ladder"]


def ladder(
    rows: Sequence[Mapping],
    limits: Mapping[str, float] | None = None,
    machine: Mapping | str | None = None,
    recorded: str | None = None,
    title: str | None = None,
) -> Drawing:
    """One bar of TFLOP/s for each rung, a tick for cuBLAS in the same run, a line for the hardware's limit.

    rows: as in `results/*.json`; "rung" and "tflops" must be there, "inputs" gives the colour, "ratio_to_cublas" (or
    "cublas_ms" with "ms_median") the tick. limits: {"float32" | "tf32" | "float16": TFLOP/s}. machine, recorded: for the
    caption. The scale is logarithmic where the rungs span more than a factor of 30.
    `facts` holds {rung: (tflops, cublas or None)}. Raises ValueError without measurements.
    """
    rows, limits = _checked(rows), dict(limits or {})
    values = [row["tflops"] for row in rows]
    rivals = [value for row in rows if (value := _cublas(row))]
    log = max(values) / min(values) > 30
    kinds = [kind for kind in INPUTS if any(_kind(row) == kind for row in rows)]
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

    for tick in ticks(low, high, log):
        canvas.line((place(tick), top), (place(tick), bottom), color=style.LINE, lw=1, z=0)
        canvas.label(place(tick), bottom + 13, f"{tick:g}", size=11, ha="center")
    axis = "TFLOP/s, logarithmic: each grid line is ten times the one before" if log else "TFLOP/s"
    canvas.label((left + right) / 2, bottom + 33, axis, size=11.5, ha="center")
    if rivals:
        canvas.label(names + 44, 9, "TFLOP/s", size=10.5, ha="right")
        canvas.label(left - 8, 9, "of cuBLAS", size=10.5, ha="right")
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
                label = f"{INPUTS[_kind(row)]} limit {plain(limit)}"
                canvas.label(place(limit) + 6, y + pitch / 2, label, size=11)
        rival = _cublas(row)
        if rival and not _is_library(row):
            _tick(canvas, place(rival), y + 2, y + pitch - 2, ahead=row["tflops"] >= rival)
        canvas.text(names + 44, y + pitch / 2, plain(row["tflops"]), size=12, ha="right")
        if rival and not _is_library(row):
            share = f"{row['tflops'] / rival:.0%}"
            canvas.label(left - 8, y + pitch / 2, share, size=12, ha="right")
    canvas.line((left, top), (left, bottom), color=style.MUTED, lw=1.2, z=2)
    best = max(
        (row for row in rows if not _is_library(row)),
        key=lambda row: row["tflops"],
        default=rows[0],
    )
    legend = [(style.KIND[kind], f"{INPUTS[kind]} inputs") for kind in kinds]
    if rivals:
        legend.append((style.INK_VAR, "cuBLAS in the same run"))
    size = {(row.get("m"), row.get("n"), row.get("k")) for row in rows}
    shape = size.pop() if len(size) == 1 else (None,)
    where = f" M, N, K = {', '.join(map(str, shape))}." if None not in shape else ""
    return Drawing(
        title=title or _ladder_title(best),
        alt="Bars of TFLOP/s: " + ", ".join(_spoken(row) for row in rows) + ".",
        caption=provenance(machine, recorded) + where,
        legend=tuple(legend),
        facts={row["rung"]: (row["tflops"], _cublas(row)) for row in rows},
        figure=canvas,
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

    for tick in ticks(low, high, log):
        for y in range(0, int(bottom), int(pitch)):  # beside the bars, not through the words
            ends = (place(tick), y + 17), (place(tick), y + 31)
            canvas.line(*ends, color=style.LINE, lw=1, z=0)
        side = "left" if place(tick) < 12 else "right" if place(tick) > right - 12 else "center"
        canvas.label(place(tick), bottom + 11, f"{tick:g}", size=11, ha=side)
    axis = "TFLOP/s, logarithmic" if log else "TFLOP/s"
    canvas.label((left + right) / 2, bottom + 29, axis, size=11.5, ha="center")
    for index, row in enumerate(rows):
        y = index * pitch
        color = style.KIND.get(_kind(row), style.GREY)
        rival = None if _is_library(row) else _cublas(row)
        canvas.text(left + 4, y + 9, row["rung"], size=12, mono=True)
        columns = {right - 40: plain(row["tflops"])}
        if rival:
            columns[right] = f"{row['tflops'] / rival:.0%}"
        for x, said in columns.items():
            canvas.label(x, y + 9, said, size=12, ha="right", mono=True)
        canvas.rect(left, y + 18, place(row["tflops"]) - left, 10, fill=color, z=1)
        if (limit := limits.get(_kind(row))) is not None:
            ends = (place(limit), y + 17), (place(limit), y + 31)
            canvas.line(*ends, color=color, lw=1.6, dash=(4, 3), z=2)
        if rival:
            _tick(canvas, place(rival), y + 16, y + 30, ahead=row["tflops"] >= rival)
    canvas.line((left, 0), (left, bottom), color=style.MUTED, lw=1.2, z=2)
    return canvas


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


def _kind(row) -> str:
    return row.get("inputs", "float32")


def _is_library(row) -> bool:
    return row["rung"].startswith("cublas")


def _cublas(row) -> float | None:
    """What cuBLAS reached in the same run, TFLOP/s."""
    if row.get("ratio_to_cublas"):
        return row["tflops"] / row["ratio_to_cublas"]
    if row.get("cublas_ms") and row.get("ms_median"):
        return row["tflops"] * row["ms_median"] / row["cublas_ms"]
    return None


def _tick(canvas: Canvas, x: float, top: float, bottom: float, ahead: bool) -> None:
    """cuBLAS beside a bar: with air to both sides, unless the bar is ahead, whose end is to be seen."""
    if not ahead:
        canvas.line((x, top), (x, bottom), color=style.CARD, lw=5, z=3)
    canvas.line((x, top), (x, bottom), color=style.INK, lw=2.2, z=4)


def _ladder_title(best) -> str:
    rival = _cublas(best)
    share = f", {best['tflops'] / rival:.0%} of cuBLAS" if rival else ""
    return f"The best rung, {best['rung']}, reaches {plain(best['tflops'])} TFLOP/s{share}"


def _spoken(row) -> str:
    rival = _cublas(row)
    share = f" ({row['tflops'] / rival:.0%} of cuBLAS)" if rival and not _is_library(row) else ""
    return f"{row['rung']} {plain(row['tflops'])}{share}"
