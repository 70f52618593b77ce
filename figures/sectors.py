"""What one warp asks of global memory: the sectors that it touches, and how full they are."""

from __future__ import annotations

import itertools

from figures import style
from figures.access import LINE_BYTES, SECTOR_BYTES, Access, as_accesses
from figures.drawing import WIDTH, Canvas, Drawing, number, plural

__all__ = ["global_access"]


def global_access(accesses, title: str | None = None, caption: str = "") -> Drawing:
    """A warp's global access: 32 lanes, their addresses, and the 32-byte sectors that these lie in.

    accesses: one `Access` (or 32 byte addresses, of 4 bytes each), or a mapping of names to them, drawn one below
    the other. `facts` holds {name: {"sectors", "ideal", "lines", "used_bytes"}}.
    Raises ValueError for anything that is not one warp's access.
    """
    panels = as_accesses(accesses)
    facts = {
        name: {
            "sectors": len(access.sectors),
            "ideal": access.sectors_ideal,
            "lines": len({sector // LINE_BYTES for sector in access.sectors}),
            "used_bytes": access.used_bytes,
        }
        for name, access in panels.items()
    }
    step, head, gap = 23.0, 24, 30
    panel_height = head + 22 + 74 + 30 + 22
    canvas = Canvas(WIDTH, len(panels) * panel_height + (len(panels) - 1) * gap)
    for index, (name, access) in enumerate(panels.items()):
        _sector_panel(canvas, index * (panel_height + gap), name, access, facts[name], step, head)
    return Drawing(
        title=title or _sector_title(facts),
        alt=_sector_alt(panels, facts),
        caption=caption
        or "Top: the lanes of one warp. Bottom: the 32-byte sectors they touch, in address order, four to a 128-byte line;"
        " each sector is coloured where a lane uses it and grey where bytes are moved for nobody.",
        facts=facts,
        figure=canvas,
        min_width=590,
    )


def _sector_panel(canvas, top, name, access: Access, facts, step, head):
    sectors = access.sectors
    count, moved = len(sectors), len(sectors) * SECTOR_BYTES
    share = facts["used_bytes"] / moved
    left = (WIDTH - 32 * step) / 2
    summary = f"{plural(count, 'sector')} = {number(moved)} bytes moved, {number(facts['used_bytes'])} used ({share:.0%})"
    canvas.text(left, top + 9, name or "one request", size=13, bold=True)
    canvas.text(left + 32 * step, top + 9, summary, size=12, ha="right", color=style.INK)
    y_lanes, y_sectors = top + head, top + head + 22 + 74
    for lane in range(32):
        x = left + lane * step
        active = lane in access.lanes
        color = style.lane_color(lane) if active else style.SOFT
        ink = None if active else style.MUTED
        canvas.cell(x + 1, y_lanes, step - 2, 22, color, lane, inset=0, color=ink, size=10.5)

    lines = sorted({sector // LINE_BYTES for sector in sectors})
    line_gap = 6 if len(lines) > 1 else 0
    room = 32 * step - line_gap * (len(lines) - 1)
    pitch = min(room / count, 150)
    start = left + (32 * step - pitch * count - line_gap * (len(lines) - 1)) / 2
    where, x = {}, start
    for line in lines:
        x_line = x
        for sector in (s for s in sectors if s // LINE_BYTES == line):
            where[sector] = x
            canvas.rect(x + 0.5, y_sectors, pitch - 1, 26, fill=style.SOFT, edge=style.LINE, lw=0.8)
            x += pitch
        canvas.line(
            (x_line + 1, y_sectors + 30), (x - 1, y_sectors + 30), color=style.MUTED, lw=1.4
        )
        x += line_gap

    drawn = set()
    for lane in access.lanes:
        address = access.addresses[lane]
        sector = address // SECTOR_BYTES * SECTOR_BYTES
        scale = (pitch - 1) / SECTOR_BYTES
        x0 = where[sector] + 0.5 + (address - sector) * scale
        w = access.bytes * scale
        if address not in drawn:
            inset = 0.4 if w > 5 else 0
            canvas.rect(
                x0 + inset, y_sectors + 1, w - 2 * inset, 24, fill=style.lane_color(lane), z=2
            )
            drawn.add(address)
        canvas.line(
            (left + lane * step + step / 2, y_lanes + 23),
            (x0 + w / 2, y_sectors - 1),
            color=style.MUTED,
            lw=0.9,
            alpha=0.75,
        )
    _address_labels(
        canvas,
        [(where[min(s for s in sectors if s // LINE_BYTES == n)], n) for n in lines],
        x,
        y_sectors,
    )


def _address_labels(canvas, starts, right, y):
    """Addresses of the lines, relative to the first, where they fit."""
    base, free = starts[0][1], -1.0
    for x, line in starts:
        label = f"+{number((line - base) * LINE_BYTES)} B"
        wide = len(label) * 6.6
        if x >= free and x + wide < WIDTH:
            canvas.label(x + 1, y + 42, label, size=10.5)
            free = x + wide + 10


def _sector_title(facts) -> str:
    if len(facts) == 1:
        (fact,) = facts.values()
        if fact["sectors"] <= fact["ideal"]:
            return f"One request, {plural(fact['sectors'], 'sector')}: as few as can be"
        return f"One request, {plural(fact['sectors'], 'sector')}, where {fact['ideal']} would do"
    return "Sectors a request: " + ", ".join(
        f"{fact['sectors']} in {name}" for name, fact in facts.items()
    )


def _sector_alt(panels, facts) -> str:
    parts = []
    for name, access in panels.items():
        fact = facts[name]
        addresses = [access.addresses[lane] for lane in access.lanes]
        steps = {b - a for a, b in itertools.pairwise(addresses)}
        stride = f"{number(steps.pop())} bytes apart" if len(steps) == 1 else "at uneven distances"
        parts.append(
            f"{name or 'A warp'}: {plural(len(access.lanes), 'lane')} of {access.bytes} bytes, {stride}, touch"
            f" {plural(fact['sectors'], 'sector')} in {plural(fact['lines'], 'line')} of 128 bytes; ideal {fact['ideal']}."
        )
    return " ".join(parts)
