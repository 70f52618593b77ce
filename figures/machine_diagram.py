"""The machine: an SM with its four schedulers, and the memories behind it, with what was measured of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, number
from figures.measurements import provenance

__all__ = ["machine"]

KIB = 1024
SCHEDULERS = 4  # of an SM, since Volta


@dataclass(frozen=True)
class Place:
    """A storage of the machine: what the picture calls it, and the rows of a recording that tell of it."""

    title: str
    words: str
    latency: str
    per_clock: str = ""
    bandwidth: str = ""
    cache: str = ""  # the latency's name where a place is both a memory and a cache


PLACES = (
    Place(
        "shared memory and L1",
        "one per SM, for the blocks that run there",
        "shared memory",
        "shared memory",
        cache="L1",
    ),
    Place("L2 cache", "one per GPU, between the SMs and device memory", "L2", "L2", "L2"),
    Place("device memory", "DRAM, beside the chip", "device memory", "", "device memory, read"),
)
CORE = (
    style.tint(style.YELLOW, 0.6),
    style.tint(style.BLUE, 0.3),
    style.tint(style.GREY, 0.4),
    style.tint(style.ORANGE, 0.55),
)
FILL = (style.tint(style.SKY, 0.45), style.tint(style.GREEN, 0.35), style.tint(style.PURPLE, 0.35))


def machine(
    rows: Sequence[Mapping],
    about: Mapping,
    recorded: str | None = None,
) -> Drawing:
    """A GPU from its registers to its device memory, each place with latency and bandwidth as measured.

    rows: as in `results/machine-<gpu>.json`: "kind" ("latency" in clocks, "bytes per clock" of one SM, "bandwidth" in GB/s,
    "per clock" in operations of one SM), "name" and "value"; what a recording lacks is left out of the picture. about: "gpu"
    and "sms", and as far as known "register_bytes", "shared_bytes" (of one SM), "l2_bytes" and "memory_bytes". `facts` holds
    {place: {"latency", "bytes per clock", "GB/s"}}. ValueError without rows.
    """
    if not rows:
        raise ValueError("no measurement was given: python -m measure machine records them")
    missing = [key for key in ("gpu", "sms") if key not in about]
    if missing:
        raise ValueError(f"`about` lacks {', '.join(missing)}")
    seen = {(row["kind"], row["name"]): row["value"] for row in rows}
    facts = {place.title: _known(place, seen) for place in PLACES}
    sizes = {
        "shared memory and L1": about.get("shared_bytes"),
        "L2 cache": about.get("l2_bytes"),
        "device memory": about.get("memory_bytes"),
    }
    per_clock = {
        words: seen[key]
        for words, key in (
            ("FP32 operations per clock", ("per clock", "ffma")),
            ("FP16 operations per clock, tensor cores", ("per clock", "mma f16")),
        )
        if key in seen
    }
    near, far = (facts[PLACES[i].title].get("latency") for i in (0, 2))
    finding = (
        f"Device memory is {far / near:.0f} times as far away as shared memory"
        if near and far
        else f"{about['gpu']}: from registers to device memory"
    )
    spoken = "; ".join(
        f"{name}: {', '.join(_lines(known)) or 'not measured'}" for name, known in facts.items()
    )
    parts = (about, facts, sizes, per_clock)
    return Drawing(
        title=finding,
        alt=f"A GPU of {about['sms']} SMs. An SM has {SCHEDULERS} schedulers, each with registers, CUDA cores and a "
        f"tensor core, and a shared memory. Then {spoken}.",
        caption=provenance(about, recorded),
        facts=facts,
        figure=_drawn(WIDTH, *parts),
        narrow=_drawn(330, *parts),
        min_width=560,
    )


def _known(place: Place, seen: Mapping) -> dict[str, float]:
    keys = {
        "latency": ("latency", place.latency),
        "latency of the cache": ("latency", place.cache),
        "bytes per clock": ("bytes per clock", place.per_clock),
        "GB/s": ("bandwidth", place.bandwidth),
    }
    return {name: seen[key] for name, key in keys.items() if key in seen}


def _lines(known: Mapping[str, float]) -> list[str]:
    words = {
        "latency": "{} clocks until the data is there",
        "latency of the cache": "{} where L1 answers",
        "bytes per clock": "{} bytes per clock and SM",
        "GB/s": "{} GB/s for all SMs",
    }
    return [words[name].format(number(round(value))) for name, value in known.items()]


def _size(count: float | None) -> str:
    for unit, step in (("GiB", KIB**3), ("MiB", KIB**2), ("KiB", KIB)):
        if count and count >= step:
            return f"{count / step:.3g} {unit}"
    return ""


def _drawn(width, about, facts, sizes, per_clock) -> Canvas:
    """Boxes from the top down, joined by arrows; on a phone with smaller type, and the same words."""
    wide = width > 500
    size, line = (12.0, 16.0) if wide else (11.0, 14.5)
    parts = ["scheduler", "registers", "CUDA cores", "tensor core"]
    across = SCHEDULERS if wide else 2  # on a phone in two rows
    one = 26 + 23 * len(parts)
    core = one * -(-SCHEDULERS // across)
    top_lines = [f"{number(round(v))} {words}" for words, v in per_clock.items()]
    heads = 26 + (line * len(top_lines))
    inside = heads + core + 16 + _deep(facts[PLACES[0].title], line) + 12
    below = [_deep(facts[place.title], line) for place in PLACES[1:]]
    canvas = Canvas(width, 8 + inside + sum(26 + deep for deep in below) + 4)
    for shift in (8, 4):  # the other SMs, behind this one
        canvas.rect(2 + shift, 8 - shift, width - 14, inside, fill=style.CARD, edge=style.LINE, z=0)
    canvas.rect(2, 8, width - 14, inside, fill=style.CARD, edge=style.MUTED, lw=1.4, z=1)
    canvas.text(14, 24, f"SM, one of {about['sms']}", size=size + 1, bold=True)
    for index, words in enumerate(top_lines):
        canvas.label(14, 24 + line * (index + 1), words, size=size)
    y, pitch = 8 + heads, (width - 14 - 24) / across
    held = _size((about.get("register_bytes") or 0) / SCHEDULERS)
    for index in range(SCHEDULERS):
        x, up = 14 + index % across * pitch, y + index // across * one
        canvas.rect(x, up, pitch - 8, one - 14, fill=style.SOFT, z=1.5)
        for place, words in enumerate(parts):
            top = up + 6 + 23 * place
            said = f"{words} {held}" if words == "registers" and held else words
            how = {"size": size - (1 if wide else 0.8), "color": "#111111"}
            canvas.cell(x + 5, top, pitch - 18, 19, CORE[place], said, inset=0, z=2, **how)
    y += core
    _place(canvas, PLACES[0], facts, sizes, 14, y, width - 38, line, size, FILL[0])
    y = 8 + inside
    for place, deep, fill in zip(PLACES[1:], below, FILL[1:], strict=True):
        canvas.arrow(width / 2 - 8, y + 2, width / 2 - 8, y + 24, size=7)
        canvas.arrow(width / 2 + 8, y + 24, width / 2 + 8, y + 2, size=7)
        _place(canvas, place, facts, sizes, 2, y + 26, width - 6, line, size, fill)
        y += 26 + deep
    return canvas


def _deep(known: Mapping, line: float) -> float:
    return 30 + line * (1 + len(known))


def _place(canvas, place, facts, sizes, x, y, width, line, size, fill) -> None:
    known = facts[place.title]
    canvas.rect(x, y, width, _deep(known, line), fill=fill, z=1.5)
    held = _size(sizes[place.title])
    title = place.title + (f", {held}" if held else "")
    canvas.text(x + 10, y + 15, title, size=size + 0.5, bold=True, color="#111111")
    for index, words in enumerate([place.words, *_lines(known)]):
        canvas.text(x + 10, y + 33 + line * index, words, size=size, color="#111111")
