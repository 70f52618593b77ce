"""How a kernel cuts the product into tiles, as a picture."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, plural

__all__ = ["tile_picture"]

_SIDE = 214.0


def tile_picture(
    macros: Mapping[str, int],
    atom: tuple[int, int] | None = None,
    name: str = "",
    title: str | None = None,
) -> Drawing:
    """Block, warp and thread tiles of a rung, each panel enlarging one tile of the panel before.

    macros: BM, BN, BK, and where the rung has them WM, WN, TM, TN. atom: (16, 8) for an MMA's output, drawn instead of
    thread tiles. `facts` holds {"warps", "per_warp"}: tiles in a block and in a warp. ValueError where tiles do not nest.
    """
    missing = [key for key in ("BM", "BN", "BK") if key not in macros]
    if missing:
        raise ValueError(f"a tile picture needs BM, BN and BK; {', '.join(missing)} missing")
    bm, bn, bk = (int(macros[key]) for key in ("BM", "BN", "BK"))
    wm, wn = macros.get("WM"), macros.get("WN")
    inner = atom or ((macros["TM"], macros.get("TN", 1)) if "TM" in macros else (1, 1))
    inner_name = "MMA" if atom else "thread"
    levels = [("block", bm, bn)]
    if wm and wn:
        levels.append(("warp", int(wm), int(wn)))
    levels.append((inner_name, int(inner[0]), int(inner[1])))
    for (outer, m, n), (part, tm, tn) in itertools.pairwise(levels):
        if min(m, n, tm, tn) < 1 or m % tm or n % tn:
            raise ValueError(f"{part} tiles of {tm} x {tn} do not fill a {outer} tile of {m} x {n}")
    canvas = Canvas(WIDTH if len(levels) > 2 else WIDTH * 0.72, _SIDE + 74)
    _product_panel(canvas, 8, 40, bm, bn, bk)
    gap = (canvas.width - 16 - _SIDE * len(levels)) / (len(levels) - 1)
    zoom = (
        8 + _SIDE * 0.34 + _SIDE * 0.28,
        40 + _SIDE * 0.34 + _SIDE * 0.28,
        _SIDE * 0.19,
        _SIDE * 0.19,
    )
    colors = {"warp": style.GREEN, "thread": style.BLUE, "MMA": style.ORANGE}
    for index in range(1, len(levels)):
        outer, m, n = levels[index - 1]
        part, tm, tn = levels[index]
        x = 8 + index * (_SIDE + gap)
        zoom = _split_panel(canvas, x, 40, outer, (m, n), part, (tm, tn), colors[part], zoom)
    counts = [m * n // (tm * tn) for (_, m, n), (_, tm, tn) in itertools.pairwise(levels)]
    words = f"{name + ': a' if name else 'A'} block computes {bm} x {bn} of C, {bk} of K at a time"
    chain = "; ".join(
        f"a {outer} tile of {m} x {n} holds {plural(count, part + ' tile')} of {tm} x {tn}"
        for (outer, m, n), (part, tm, tn), count in zip(levels, levels[1:], counts, strict=False)
    )
    return Drawing(
        title=title or words,
        alt=f"{words}: {chain}.",
        caption=(chain[0].upper() + chain[1:] + "."),
        facts={
            "warps": counts[0] if len(levels) == 3 else None,
            "per_warp": counts[-1] if len(levels) == 3 else None,
            "per_block": (bm * bn) // (levels[-1][1] * levels[-1][2]),
        },
        figure=canvas,
        min_width=600 if len(levels) > 2 else 430,
    )


def _product_panel(canvas, x, y, bm, bn, bk):
    """A, B and C with the strips that one block reads."""
    s, small, gap = _SIDE, _SIDE * 0.28, _SIDE * 0.06
    big = s - small - gap
    cx, cy = x + small + gap, y + small + gap
    canvas.text(x, y - 26, "the product", size=13, bold=True)
    for px, py, w, h, name in (
        (cx, y, big, small, "B"),
        (x, cy, small, big, "A"),
        (cx, cy, big, big, "C"),
    ):
        canvas.rect(px, py, w, h, fill=style.SOFT)
        canvas.label(px + w - 6, py + h - 10, name, size=13, bold=True, ha="right")
    tile, at = s * 0.19, s * 0.28
    canvas.rect(cx + at, y, tile, small, fill=style.tint(style.SKY, 0.45))
    canvas.rect(x, cy + at, small, tile, fill=style.tint(style.SKY, 0.45))
    step = small * 0.3
    canvas.rect(cx + at, y + step, tile, step, fill=style.BLUE, z=2)
    canvas.rect(x + step, cy + at, step, tile, fill=style.BLUE, z=2)
    canvas.rect(cx + at, cy + at, tile, tile, fill=style.BLUE, z=2)
    canvas.label(x, y + s + 13, f"As {bm} x {bk}, Bs {bk} x {bn}", size=11.5)


def _split_panel(canvas, x, y, outer, outer_size, part, part_size, color, zoom):
    """One tile enlarged and cut into parts; returns where its highlighted part lies."""
    (m, n), (tm, tn) = outer_size, part_size
    scale = _SIDE / max(m, n)
    w, h = n * scale, m * scale
    px, py, pw, ph = zoom
    canvas.line((px + pw, py), (x, y), color=style.MUTED, dash=(3, 3), lw=1)
    canvas.line((px + pw, py + ph), (x, y + h), color=style.MUTED, dash=(3, 3), lw=1)
    canvas.text(x, y - 26, f"{outer} tile", size=13, bold=True)
    canvas.label(x, y - 10, f"{m} x {n}", size=11.5)
    canvas.rect(x, y, w, h, fill=style.SOFT)
    rows, columns = m // tm, n // tn
    if max(rows, columns) <= 64:
        cw, ch = w / columns, h / rows
        inset = 1 if min(cw, ch) > 6 else 0.25
        for row in range(rows):
            for column in range(columns):
                shade = color if (row, column) == (0, columns - 1) else style.tint(color, 0.3)
                canvas.rect(
                    x + column * cw + inset,
                    y + row * ch + inset,
                    cw - 2 * inset,
                    ch - 2 * inset,
                    fill=shade,
                )
    else:
        cw, ch = w / columns, h / rows
        canvas.rect(x, y, w, h, fill=style.tint(color, 0.3))
        canvas.rect(x + w - max(cw, 2), y, max(cw, 2), max(ch, 2), fill=color, z=2)
    canvas.label(x, y + _SIDE + 13, f"{rows} x {columns} {part} tiles of {tm} x {tn}", size=11.5)
    return x + w - cw, y, cw, ch
