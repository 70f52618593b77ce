"""What a figure function returns, and the canvas that it draws on.

A `Drawing` holds a Matplotlib figure and shows itself as one theme-aware inline SVG with a title, a legend, a caption and
alt text. A `Listing` is the same for what is better as HTML than as a drawing: source code. Both print as plain text that
contains the alt text, so that a reader without graphics, and a test that compares text, get the content.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from figures import style

__all__ = ["Drawing", "Listing"]

WIDTH = 760  # CSS pixels: the text column of the book's theme

_FRAME_CSS = (
    style.css()
    + ".gl{margin:.4em 0;padding:.8em 1em;background:var(--gl-card);color:var(--gl-ink);border:1px solid var(--gl-line);"
    "border-radius:10px;font:14px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;"
    "max-width:100%;box-sizing:border-box;text-align:left}"
    ".gl *{box-sizing:border-box}"
    ".gl-title{font-weight:650;font-size:15.5px;line-height:1.35;margin:0 0 .35em;color:var(--gl-ink)}"
    "figure.gl figcaption.gl-caption{margin:.5em 0 0;padding:0;color:var(--gl-muted)!important;font-size:13px;"
    "font-weight:400;text-align:left;max-width:none;width:auto;display:block}"
    ".gl-scroll{overflow-x:auto;margin:0;-webkit-overflow-scrolling:touch}"
    ".gl svg{display:block;width:100%;height:auto;margin:0 auto}"
    ".gl-legend{display:flex;flex-wrap:wrap;gap:.15em 1.1em;margin:.3em 0 .2em;font-size:13px;color:var(--gl-muted)}"
    ".gl-legend i{display:inline-block;width:.85em;height:.85em;border-radius:3px;margin-right:.4em;"
    "vertical-align:-.06em;border:1px solid var(--gl-line)}"
    # the book's theme puts a white card behind HTML outputs of a dark page; figures bring their own
    "html[data-theme=dark] .bd-content div.cell_output .text_html:not(:has(table.dataframe)):has(>.gl)"
    "{background:transparent;padding:0}"
)

# Which of two drawings is shown hangs on the figure's own width, so it is right in a notebook's output as well.
_NARROW_CSS = (
    ".gl-scroll:has(>.gl-narrow){container-type:inline-size}.gl-narrow{display:none}"
    "@container (max-width:520px){.gl-wide{display:none}.gl-narrow{display:block}}"
)


def frame(
    body: str,
    title: str,
    alt: str,
    caption: str = "",
    legend: Sequence[tuple[str, str]] = (),
    css: str = "",
) -> str:
    """One figure as a self-contained HTML fragment: style, title, legend [(colour, label)], body, caption."""
    keys = "".join(
        f'<span><i style="background:{color}"></i>{html.escape(label)}</span>'
        for color, label in legend
    )
    return (
        f'<figure class="gl" aria-label="{html.escape(alt)}"><style>{_FRAME_CSS}{css}</style>'
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

    def html(self) -> str:
        """The figure as a self-contained HTML fragment."""
        raise NotImplementedError

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
    """A Matplotlib figure with a title that states its finding and an alternative text."""

    figure: Figure | None = None
    narrow: Figure | None = None  # the same for a phone, where there is one
    min_width: int = 560  # below this many CSS pixels the figure scrolls sideways rather than becoming unreadable

    def svg(self) -> str:
        """The figure as a compact inline SVG whose page colours follow the page's theme."""
        return self._svg(self.figure, self.min_width)

    def _svg(self, figure: Figure, min_width: int) -> str:
        salt = hashlib.sha256(self.alt.encode()).hexdigest()[:8]
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
            buffer = io.StringIO()
            figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        return _tidy(buffer.getvalue(), self.alt, min_width)

    def html(self) -> str:
        if self.narrow is None:
            return frame(self.svg(), self.title, self.alt, self.caption, self.legend)
        body = f'<div class="gl-wide">{self.svg()}</div><div class="gl-narrow">{self._svg(self.narrow, 280)}</div>'
        return frame(body, self.title, self.alt, self.caption, self.legend, _NARROW_CSS)

    def png(self, scale: float = 2) -> bytes:
        """The figure with its title on a light card as PNG bytes, for a README."""
        buffer = io.BytesIO()
        _width, height = self.figure.get_size_inches()
        label = self.figure.text(
            0.02,
            1 + 0.18 / height,
            self.title,
            fontsize=14,
            color=style.INK,
            weight="bold",
            wrap=False,
        )
        self.figure.savefig(
            buffer,
            format="png",
            dpi=72 * scale,
            facecolor=style.CARD,
            bbox_inches="tight",
            pad_inches=0.2,
            metadata={"Software": None},
        )
        label.remove()
        return buffer.getvalue()


@dataclass(frozen=True, repr=False)
class Listing(Shown):
    """Source code or a table as theme-aware HTML, with a plain-text form."""

    body: str = ""
    text: str = ""
    css: str = ""

    def html(self) -> str:
        return frame(self.body, self.title, self.alt, self.caption, self.legend, self.css)

    def plain(self) -> str:
        return "\n".join(part for part in (self.title, self.text, self.caption) if part)


def _tidy(svg: str, alt: str, min_width: int) -> str:
    """Matplotlib's SVG without its wrapping, with page colours as CSS variables and 1 decimal of a pixel."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.S)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.S)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", svg)
    svg = re.sub(r"font-family: 'DejaVu Sans Mono'[^;\"]*", "font-family:var(--gl-mono)", svg)
    svg = re.sub(r"font-family: 'DejaVu Sans'[^;\"]*", "", svg)

    svg = re.sub(r"<[^>]*>", _tidy_tag, svg)
    svg = re.sub(r">\s*\n\s*", ">", svg).replace("> <", "><")
    for _ in range(4):  # groups that hold one element, nested
        svg = re.sub(r"<g>(<(?:path|text|use)\b[^>]*(?:/>|>[^<]*</text>))</g>", r"\1", svg)
    svg = svg.replace("<g></g>", "")
    svg = re.sub(
        r'(?:<text style="([^"]*)"[^>]*>[^<]*</text>)(?:<text style="\1"[^>]*>[^<]*</text>)+',
        _share_style,
        svg,
    )
    box = re.search(r'viewBox="([^"]*)"', svg).group(1)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box}" role="img"'
        f' aria-label="{html.escape(alt)}" style="min-width:{min_width}px;max-width:{1.15 * float(box.split()[2]):.0f}px;'
        f'font-family:{html.escape(style.SANS_CSS)};--gl-mono:{html.escape(style.MONO_CSS)}">'
    )
    return head + svg[svg.index(">") + 1 :]


def _tidy_tag(match: re.Match) -> str:
    tag = re.sub(r"\s+", " ", match.group())
    tag = re.sub(
        r"-?\d+\.\d+", lambda digits: f"{float(digits.group()):.1f}".removesuffix(".0"), tag
    )
    for name, (light, _) in style.PAGE.items():
        tag = tag.replace(light, f"var(--gl-{name},{light})")
    tag = re.sub(r"(?<=[;:]) +|;(?= *;)", "", tag)
    return tag.replace(' "', '"').replace('style=";', 'style="')


def _share_style(match: re.Match) -> str:
    """Texts of one style as one group."""
    style_attribute = f' style="{match.group(1)}"'
    return f"<g{style_attribute}>{match.group().replace(style_attribute, '')}</g>"


class Canvas:
    """A Matplotlib figure measured in CSS pixels, x to the right and y down, that groups equal shapes into one path.

    Equal colours become one SVG path, so a grid of a thousand cells stays small.
    """

    def __init__(self, width: float = WIDTH, height: float = 300):
        self.width, self.height = width, height
        self._paths: dict[tuple, list[Path]] = {}
        self._texts: list[tuple] = []

    def rect(self, x, y, w, h, fill="none", edge="none", lw=1.0, alpha=1.0, dash=None, z=1):
        corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)]
        codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
        self._add(Path(corners, codes), fill, edge, lw, alpha, dash, z)

    def line(self, *points, color=style.MUTED, lw=1.0, alpha=1.0, dash=None, z=1):
        self._add(Path(points), "none", color, lw, alpha, dash, z)

    def polygon(self, points, fill="none", edge="none", lw=1.0, alpha=1.0, z=1):
        codes = [Path.MOVETO] + [Path.LINETO] * (len(points) - 1) + [Path.CLOSEPOLY]
        self._add(Path([*points, points[0]], codes), fill, edge, lw, alpha, None, z)

    def circle(self, x, y, r, fill="none", edge="none", lw=1.0, z=1):
        self._add(Path.circle((x, y), r), fill, edge, lw, 1.0, None, z)

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
        middle=True,
    ):
        """Text whose middle (or baseline) is at y."""
        self._texts.append(
            (x, y + (0.36 * size if middle else 0), str(words), size, color, ha, bold, mono, rotate)
        )

    def _add(self, path, fill, edge, lw, alpha, dash, z):
        self._paths.setdefault((z, fill, edge, lw, alpha, dash), []).append(path)

    def figure(self) -> Figure:
        figure = Figure(figsize=(self.width / 72, self.height / 72), dpi=72)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        for (z, fill, edge, lw, alpha, dash), paths in self._paths.items():
            patch = PathPatch(
                Path.make_compound_path(*paths),
                facecolor=fill,
                edgecolor=edge,
                linewidth=lw if edge != "none" else 0,
                alpha=None if alpha == 1 else alpha,
                linestyle=(0, dash) if dash else "-",
                zorder=z,
                clip_on=False,
                joinstyle="round",
            )
            axes.add_patch(patch)
        for x, y, words, size, color, ha, bold, mono, rotate in sorted(
            self._texts, key=lambda text: [repr(part) for part in text[3:]]
        ):
            axes.text(
                x,
                y,
                words.replace("$", r"\$"),
                fontsize=size,
                color=color,
                ha=ha,
                va="baseline" if not rotate else "center",
                weight="bold" if bold else "normal",
                family=list(style.MONO if mono else style.SANS),
                rotation=rotate,
                rotation_mode="anchor",
                zorder=5,
            )
        return figure


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
