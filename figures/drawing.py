"""What a figure function returns, and the canvas that it draws on.

A `Drawing` holds a `Canvas` and shows itself as one theme-aware inline SVG with a title, a legend, a caption and alt text.
The SVG is written here, so a picture needs no library. A `Listing` is the same for what is better as HTML than as a drawing:
source code. Both print as plain text that contains the alt text, so that a reader without graphics, and a test that compares
text, get the content.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from figures import carried, style

__all__ = ["Drawing", "Listing"]

WIDTH = 760  # CSS pixels: the text column of the book's theme
TEXT_Z = 5  # what lies higher is drawn over the words
NARROW = '<div class="gl-narrow" style="display:none">'  # hidden without its style sheet, too

_FRAME_CSS = (
    style.css()
    + ".gl{margin:.4em 0;padding:.8em 1em;background:var(--gl-card);color:var(--gl-ink);border:1px solid var(--gl-line);"
    "border-radius:10px;font:14px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;"
    "max-width:100%;box-sizing:border-box;text-align:left}"
    ".gl *{box-sizing:border-box}"
    ".gl-title{font-weight:650;font-size:15.5px;line-height:1.35;margin:0 0 .35em;color:var(--gl-ink)}"
    "figure.gl figcaption.gl-caption{margin:.5em 0 0;padding:0;color:var(--gl-muted)!important;font-size:13px;"
    "overflow-wrap:anywhere;font-weight:400;text-align:left;max-width:none;width:auto;display:block}"
    ".gl-scroll{overflow-x:auto;margin:0;-webkit-overflow-scrolling:touch}"
    ".gl svg{display:block;width:100%;height:auto;margin:0 auto;"
    f"stroke-linejoin:round;font-family:{style.SANS_CSS};--gl-mono:{style.MONO_CSS}}}"
    ".gl-legend{display:flex;flex-wrap:wrap;gap:.15em 1.1em;margin:.3em 0 .2em;font-size:13px;color:var(--gl-muted)}"
    ".gl-legend i{display:inline-block;width:.85em;height:.85em;border-radius:3px;margin-right:.4em;"
    "vertical-align:-.06em;border:1px solid var(--gl-line)}"
    # the book's theme puts a white card behind HTML outputs of a dark page; figures bring their own
    "html[data-theme=dark] .bd-content div.cell_output .text_html:not(:has(table.dataframe)):has(>.gl)"
    "{background:transparent;padding:0}"
)

# Which of two drawings is shown hangs on the figure's own width, so it is right in a notebook's output as well.
_NARROW_CSS = (
    ".gl-scroll:has(>.gl-narrow){container-type:inline-size}"
    "@container (max-width:520px){.gl-wide{display:none}.gl-narrow{display:block!important}}"
)
carried.STYLES |= {carried.FIGURE: _FRAME_CSS, 'class="gl-narrow"': _NARROW_CSS}


def frame(
    body: str,
    title: str,
    alt: str,
    caption: str = "",
    legend: Sequence[tuple[str, str]] = (),
) -> str:
    """One figure as an HTML fragment: title, legend [(colour, label)], body, caption. `carried.whole` adds its style."""
    keys = "".join(
        f'<span><i style="background:{color}"></i>{html.escape(label)}</span>'
        for color, label in legend
    )
    label = f' aria-label="{html.escape(alt)}"'
    return (
        f"{carried.FIGURE}{'' if label in body else label}>"
        + (f'<p class="gl-title">{html.escape(title)}</p>' if title else "")
        + (f'<div class="gl-legend" aria-hidden="true">{keys}</div>' if keys else "")
        + f'<div class="gl-scroll">{body}</div>'
        + (f'<figcaption class="gl-caption">{html.escape(caption)}</figcaption>' if caption else "")
        + "</figure>"
    )


@dataclass(frozen=True)
class Shown:
    """Something a cell can end with. `facts` holds the numbers that it shows, for tests and for prose."""

    title: str
    alt: str
    caption: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def bare(self) -> str:
        """The figure as an HTML fragment without its style sheets and scripts."""
        raise NotImplementedError

    def html(self) -> str:
        """The figure as a self-contained HTML fragment."""
        return carried.whole(self.bare())

    def plain(self) -> str:
        """The figure as text."""
        lines = [self.title, f"[{self.alt}]"]
        return "\n".join([*lines, self.caption] if self.caption else lines)

    def __repr__(self) -> str:
        return self.plain()

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": self.plain()}


@dataclass(frozen=True, repr=False)
class Drawing(Shown):
    """A picture with a title that states its finding and an alternative text."""

    figure: Canvas | None = None
    narrow: Canvas | None = None  # the same for a phone, where there is one
    min_width: int = 560  # below this many CSS pixels the figure scrolls sideways rather than becoming unreadable

    def svg(self) -> str:
        """The figure as a compact inline SVG whose page colours follow the page's theme."""
        return self.figure.svg(self.alt, self.min_width)

    def bare(self) -> str:
        body = self.svg()
        if self.narrow is not None:
            narrow = self.narrow.svg(self.alt, 280)
            body = f'<div class="gl-wide">{body}</div>{NARROW}{narrow}</div>'
        return frame(body, self.title, self.alt, self.caption, self.legend)


@dataclass(frozen=True, repr=False)
class Listing(Shown):
    """Source code or a table as theme-aware HTML, with a plain-text form."""

    body: str = ""
    text: str = ""

    def bare(self) -> str:
        return frame(self.body, self.title, self.alt, self.caption, self.legend)

    def plain(self) -> str:
        return "\n".join(part for part in (self.title, self.text, self.caption) if part)


def _n(value: float) -> str:
    """A coordinate with one decimal, as an SVG says it: 12, 12.5."""
    return f"{round(float(value), 1) + 0.0:g}"


def _page(color: str) -> str:
    """A colour of the page as the variable that follows the theme; any other as it is."""
    for name, (light, _) in style.PAGE.items():
        if color == light:
            return f"var(--gl-{name},{light})"
    return color


class Shape(NamedTuple):
    """A line through `points`, closed or not; with `radius`, a circle around the only point."""

    points: tuple[tuple[float, float], ...]
    closed: bool = False
    radius: float = 0

    def path(self) -> str:
        """As the `d` of an SVG's path."""
        if self.radius:
            ((x, y),) = self.points
            r, step = _n(self.radius), _n(2 * self.radius)
            return f"M{_n(x - self.radius)} {_n(y)}a{r} {r} 0 1 0 {step} 0a{r} {r} 0 1 0 -{step} 0z"
        (x, y), *rest = self.points
        said = f"M{_n(x)} {_n(y)}" + "".join(f"L{_n(x)} {_n(y)}" for x, y in rest)
        return f"{said}z" if self.closed else said


class Look(NamedTuple):
    """What shapes of one path have in common. `lw`: the line's width in pixels; `dash`: in widths of the line."""

    z: float
    fill: str
    edge: str
    lw: float
    alpha: float
    dash: tuple[float, ...] | None

    def css(self) -> str:
        said = [f"fill:{_page(self.fill)}"]
        if self.edge != "none":
            said.append(f"stroke:{_page(self.edge)};stroke-width:{_n(self.lw)}")
            if self.dash:
                said.append(f"stroke-dasharray:{','.join(_n(d * self.lw) for d in self.dash)}")
        if self.alpha != 1:
            said.append(f"opacity:{self.alpha:g}")
        return ";".join(said)


class Words(NamedTuple):
    """A text; `y` is its baseline's. `rotate`: degrees, against the clock, around a point at its middle."""

    x: float
    y: float
    words: str
    size: float
    color: str
    ha: str
    bold: bool
    mono: bool
    rotate: float

    def css(self) -> str:
        anchor = {"left": "start", "center": "middle", "right": "end"}[self.ha]
        said = f"font-size:{_n(self.size)}px;fill:{_page(self.color)}"
        said += f";text-anchor:{anchor}" if anchor != "start" else ""
        said += ";font-weight:700" if self.bold else ""
        return f"{said};font-family:var(--gl-mono)" if self.mono else said

    def text(self) -> str:
        x, y, turn = self.x, self.y, ""
        if self.rotate:
            angle = math.radians(self.rotate)
            down = (
                0.27 * self.size
            )  # from the middle of its letters to the line on which they stand
            x, y = x + down * math.sin(angle), y + down * math.cos(angle)
            turn = f' transform="rotate({_n(-self.rotate)} {_n(x)} {_n(y)})"'
        return f'<text x="{_n(x)}" y="{_n(y)}"{turn}>{html.escape(self.words, quote=False)}</text>'


class Canvas:
    """A picture measured in CSS pixels, x to the right and y down, that groups equal shapes into one path.

    Equal colours become one SVG path, so a grid of a thousand cells stays small.
    """

    def __init__(self, width: float = WIDTH, height: float = 300):
        self.width, self.height = width, height
        self.paths: dict[Look, list[Shape]] = {}
        self._texts: list[Words] = []

    def rect(self, x, y, w, h, fill="none", edge="none", lw=1.0, alpha=1.0, dash=None, z=1):
        corners = ((x, y), (x + w, y), (x + w, y + h), (x, y + h))
        self._add(Shape(corners, closed=True), fill, edge, lw, alpha, dash, z)

    def line(self, *points, color=style.MUTED, lw=1.0, alpha=1.0, dash=None, z=1):
        self._add(Shape(points), "none", color, lw, alpha, dash, z)

    def polygon(self, points, fill="none", edge="none", lw=1.0, alpha=1.0, z=1):
        self._add(Shape(tuple(points), closed=True), fill, edge, lw, alpha, None, z)

    def circle(self, x, y, r, fill="none", edge="none", lw=1.0, z=1):
        self._add(Shape(((x, y),), radius=r), fill, edge, lw, 1.0, None, z)

    def arrow(self, x0, y0, x1, y1, color=style.MUTED, lw=1.4, size=6, z=2):
        length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1e-9)
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        bx, by = x1 - size * ux, y1 - size * uy
        self.line((x0, y0), (bx, by), color=color, lw=lw, z=z)
        half = size * 0.55
        self.polygon(
            [(x1, y1), (bx - half * uy, by + half * ux), (bx + half * uy, by - half * ux)],
            fill=color,
            z=z,
        )

    def text(
        self,
        x,
        y,
        words,
        size=12,
        color=style.INK,
        ha="left",
        bold=False,
        mono=False,
        rotate=0,
    ):
        """Text whose middle is at y."""
        base = y + 0.36 * size
        self._texts.append(Words(x, base, str(words), size, color, ha, bold, mono, rotate))

    def label(self, x, y, words, **how):
        """Text beside what is drawn, in the muted colour."""
        self.text(x, y, words, color=style.MUTED, **how)

    def cell(self, x, y, w, h, fill, words="", inset=0.5, color=None, z=1, **how):
        """A cell of a grid, smaller than its place by `inset` on each side, with words in its middle."""
        self.rect(x + inset, y + inset, w - 2 * inset, h - 2 * inset, fill=fill, z=z)
        if words != "":
            color = color or style.text_on(fill)
            self.text(x + w / 2, y + h / 2, words, ha="center", color=color, **how)

    def _add(self, shape, fill, edge, lw, alpha, dash, z):
        self.paths.setdefault(Look(z, fill, edge, lw, alpha, dash), []).append(shape)

    @property
    def texts(self) -> list[Words]:
        """All words of the picture, those of one look side by side."""
        return sorted(self._texts, key=lambda text: [repr(part) for part in text[3:]])

    def svg(self, alt: str, min_width: int) -> str:
        """The picture as an inline SVG; page colours are variables, which follow the page's theme."""
        paths = [
            (
                look.z,
                f'<path d="{"".join(shape.path() for shape in shapes)}" style="{look.css()}"/>',
            )
            for look, shapes in sorted(self.paths.items(), key=lambda path: path[0].z)
        ]
        words = "".join(
            f'<g style="{css}">{"".join(text.text() for text in group)}</g>'
            for css, group in groupby(self.texts, Words.css)
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(self.width)} {_n(self.height)}" role="img"'
            f' aria-label="{html.escape(alt)}" style="min-width:{min_width}px;max-width:{1.15 * self.width:.0f}px">'
        )
        below = "".join(path for z, path in paths if z <= TEXT_Z)
        above = "".join(path for z, path in paths if z > TEXT_Z)
        return f"{head}{below}{words}{above}</svg>"


def text_width(words: str, size: float = 12, mono: bool = False) -> float:
    """About how wide `words` are, in pixels, in the widest font that a page may use."""
    return len(words) * size * (0.605 if mono else 0.6)


def number(value: float) -> str:
    """A count with thousands separators, or three significant digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def plural(count: int, word: str) -> str:
    """`1 sector`, `2 sectors`."""
    return f"{number(count)} {word}{'' if count == 1 else 's'}"
