"""What one warp asks of shared memory: the banks that it uses, and its wavefronts."""

from __future__ import annotations

from figures import style
from figures.access import BANKS, Access, as_accesses
from figures.drawing import WIDTH, Canvas, Drawing, plural

__all__ = ["shared_banks"]


def shared_banks(
    accesses, rows: str = "lane", title: str | None = None, caption: str = ""
) -> Drawing:
    """A warp's shared access over the 32 banks.

    accesses: one `Access` (or 32 byte addresses, of 4 bytes each), or a mapping of names to them. rows: "lane" draws
    one row per lane and colours it by wavefront; "wavefront" draws one row per wavefront and colours it by lane.
    `facts` holds {name: {"wavefronts", "ideal"}}. Raises ValueError for anything that is not one warp's access.
    """
    panels = as_accesses(accesses)
    if rows not in ("lane", "wavefront"):
        raise ValueError(f'rows are "lane" or "wavefront", not {rows!r}')
    facts = {
        name: {"wavefronts": access.wavefronts, "ideal": access.wavefronts_ideal}
        for name, access in panels.items()
    }
    draw = _lane_panel if rows == "lane" else _wavefront_panel
    heights = [_panel_height(access, rows) for access in panels.values()]
    top = 0 if any(panels) else -20  # a single access without a name needs no heading
    canvas = Canvas(WIDTH, top + sum(heights) + 18 * (len(heights) - 1))
    for (name, access), height in zip(panels.items(), heights, strict=True):
        draw(canvas, top, name, access, facts[name])
        top += height + 18
    most = max(fact["wavefronts"] for fact in facts.values())
    if rows == "lane":
        shown = min(most, 8)
        legend = tuple((style.wavefront_color(w), f"wavefront {w + 1}") for w in range(shown))
        if most > 8:
            legend += (("transparent", f"… to {most}, colours repeat"),)
    else:
        legend = tuple(
            (style.lane_color(8 * group + 5), f"lanes {8 * group}-{8 * group + 7}")
            for group in range(4)
        )
    packets = any(access.kind == "cp.async.cg" for access in panels.values())
    return Drawing(
        title=title or _bank_title(facts),
        alt=_bank_alt(panels, facts),
        caption=caption or _bank_caption(rows, packets),
        legend=legend,
        facts=facts,
        figure=canvas,
        min_width=590,
    )


def _bank_caption(rows: str, packets: bool) -> str:
    """What rows, columns and numbers are. packets: of cp.async.cg, whose wavefronts are not drawn."""
    if packets:
        return (
            f"One row per {'lane' if rows == 'lane' else 'eight lanes'}, one column per bank; the number is the "
            f"{'set of eight lanes' if rows == 'lane' else 'lane'}. The title gives the wavefronts that the emulator's "
            "packet rule counts. They are not drawn, because a packet does not belong to one lane."
        )
    if rows == "lane":
        return "One row per lane, one column per bank; the number is the wavefront that serves it."
    return (
        "One row per wavefront, one column per bank; the number is the lane that it serves, "
        "\u00d7n one word for n lanes."
    )


_LABEL, _CELL, _ROW = 44, 22.0, 15.0


def _panel_height(access: Access, rows: str) -> float:
    return 44 + (len(access.lanes) * _ROW if rows == "lane" else access.wavefronts * 20)


def _bank_axis(canvas, top, name, fact):
    plain = fact["wavefronts"] <= fact["ideal"]  # fewer where lanes share wide words
    cost = plural(fact["wavefronts"], "wavefront") + (
        "" if plain else f", {fact['ideal']} without conflicts"
    )
    if name:
        canvas.text(_LABEL, top + 8, name, size=13, bold=True)
        canvas.text(_LABEL + 32 * _CELL, top + 8, cost, size=12, ha="right", color=style.INK)
    canvas.label(_LABEL - 7, top + 33, "bank", size=10.5, ha="right")
    for bank in range(BANKS):
        canvas.label(_LABEL + (bank + 0.5) * _CELL, top + 33, bank, size=10, ha="center")


def _banks_of(access: Access, lane: int) -> tuple[int, int]:
    """First bank and number of banks that a lane touches."""
    return access.addresses[lane] // 4 % BANKS, max(access.bytes // 4, 1)


def _grid(canvas, y, rows, height):
    for row in range(rows):
        canvas.rect(_LABEL, y + row * height, 32 * _CELL, height - 2, fill=style.SOFT)
    for bank in range(1, 32):
        x = _LABEL + bank * _CELL
        canvas.line((x, y), (x, y + rows * height - 2), color=style.CARD, lw=1)


def _lane_panel(canvas, top, name, access: Access, fact):
    _bank_axis(canvas, top, name, fact)
    served = access.wavefront_of_lane()
    y = top + 44
    _grid(canvas, y, len(access.lanes), _ROW)
    for row, lane in enumerate(access.lanes):
        bank, banks = _banks_of(access, lane)
        color = style.wavefront_color(served[lane])
        middle = y + row * _ROW + (_ROW - 2) / 2
        place = (_LABEL + bank * _CELL + 0.5, y + row * _ROW, banks * _CELL - 1, _ROW - 2)
        canvas.cell(*place, color, served[lane] + 1, inset=0, z=2, size=9.5)
        if row == 0 or lane % 4 == 0 or row == len(access.lanes) - 1:
            label = f"lane {lane}" if row == 0 else lane
            canvas.label(_LABEL - 7, middle, label, size=10, ha="right")


def _wavefront_panel(canvas, top, name, access: Access, fact):
    _bank_axis(canvas, top, name, fact)
    served = access.wavefront_of_lane()
    y, seen = top + 44, set()
    rows = max(served.values()) + 1
    _grid(canvas, y, rows, 20)
    for row in range(rows):
        canvas.label(_LABEL - 7, y + row * 20 + 9, row + 1, size=10.5, ha="right")
    for lane in access.lanes:
        bank, banks = _banks_of(access, lane)
        place = (served[lane], bank)
        if place in seen:  # another lane reads the same word: one broadcast serves both
            continue
        seen.add(place)
        sharing = [n for n in access.lanes if (served[n], _banks_of(access, n)[0]) == place]
        color = style.lane_color(lane)
        label = str(lane) if len(sharing) == 1 else f"\u00d7{len(sharing)}"
        box = (_LABEL + bank * _CELL + 0.5, y + served[lane] * 20, banks * _CELL - 1, 18)
        canvas.cell(*box, color, label, inset=0, z=2, size=10 if len(label) < 3 else 8.5)


def _bank_title(facts) -> str:
    if len(facts) == 1:
        (fact,) = facts.values()
        if fact["wavefronts"] <= fact["ideal"]:
            return f"No bank conflict: {plural(fact['wavefronts'], 'wavefront')}"
        ways = fact["wavefronts"] / fact["ideal"]
        article = "An" if ways in (8, 11, 18) else "A"
        conflict = (
            f"{article} {ways:.0f}-way bank conflict" if ways == int(ways) else "Bank conflicts"
        )
        return (
            f"{conflict}: {plural(fact['wavefronts'], 'wavefront')} where {fact['ideal']} would do"
        )
    return "Wavefronts a request: " + ", ".join(
        f"{fact['wavefronts']} in {name}" for name, fact in facts.items()
    )


def _bank_alt(panels, facts) -> str:
    parts = []
    for name, access in panels.items():
        banks = {
            (access.addresses[lane] // 4 + i) % BANKS
            for lane in access.lanes
            for i in range(max(access.bytes // 4, 1))
        }
        parts.append(
            f"{name or 'A warp'}: {plural(len(access.lanes), 'lane')} of {access.bytes} bytes ({access.kind}) meet in"
            f" {plural(len(banks), 'bank')} of 32 and take {plural(facts[name]['wavefronts'], 'wavefront')};"
            f" {min(facts[name]['ideal'], facts[name]['wavefronts'])} without conflicts."
        )
    return " ".join(parts)
