"""The bits of number formats: sign, exponent, fraction, and those that are ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, text_width

__all__ = ["bit_fields"]

FIELDS = ("sign", "exponent", "fraction", "ignored")
COLORS = {
    "sign": style.PURPLE,
    "exponent": style.SKY,
    "fraction": style.ORANGE,
    "ignored": style.tint(style.GREY, 0.45),
}
NAMES = {"fraction": "bits after the point"}


def bit_fields(formats: Mapping[str, Sequence[int]], title: str | None = None) -> Drawing:
    """One row of cells for each format, a cell for each bit, the most significant on the left.

    formats: {name: (sign, exponent, fraction[, ignored])}, numbers of bits. `facts` holds {name: bits in all}. ValueError
    for a format without bits or with more than 64.
    """
    if not formats:
        raise ValueError("no format was given: there is nothing to draw")
    widths = {name: dict(zip(FIELDS, bits, strict=False)) for name, bits in formats.items()}
    totals = {name: sum(found.values()) for name, found in widths.items()}
    for name, total in totals.items():
        if not 1 <= total <= 64 or min(formats[name]) < 0:
            raise ValueError(f"{name} has {total} bits: 1 to 64 can be drawn")
    said = "; ".join(
        f"{name}: "
        + ", ".join(f"{bits} {NAMES.get(field, field)}" for field, bits in found.items())
        for name, found in widths.items()
    )
    shown = [field for field in FIELDS if any(found.get(field) for found in widths.values())]
    return Drawing(
        title=title or "Number formats, bit by bit",
        alt=f"Rows of bits. {said}.",
        legend=tuple((COLORS[field], NAMES.get(field, field)) for field in shown),
        facts=totals,
        figure=_drawn(widths, totals, WIDTH),
        narrow=_drawn(widths, totals, 340.0),
        min_width=480,
    )


def _drawn(widths, totals, width: float):
    beside = width > 500
    left = max(text_width(name, 12) for name in widths) + 12 if beside else 0.0
    cell = min((width - left - 2) / max(totals.values()), 19.0)
    tall, gap, above = 22.0, 12.0, 0.0 if beside else 17.0
    canvas = Canvas(width, len(widths) * (tall + gap + above))
    y = 0.0
    for name, found in widths.items():
        canvas.text(0, y + (tall / 2 if beside else 7), name, size=12)
        y += above
        x = left
        for field, bits in found.items():
            for _ in range(bits):
                canvas.rect(x + 0.5, y, cell - 1, tall, fill=COLORS[field])
                x += cell
            if bits * cell > text_width(str(bits), 11):
                middle = x - bits * cell / 2
                ink = style.text_on(COLORS[field])
                canvas.text(middle, y + tall / 2, bits, size=11, ha="center", color=ink, bold=True)
        y += tall + gap
    return canvas
