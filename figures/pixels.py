"""A drawing as pixels, for a README: the same shapes and words, drawn by Matplotlib, which is loaded here alone."""

from __future__ import annotations

import io

from figures import style
from figures.drawing import TEXT_Z, Canvas, Drawing, Shape

__all__ = ["png"]


def _path(shape: Shape):
    from matplotlib.path import Path

    if shape.radius:
        return Path.circle(shape.points[0], shape.radius)
    return Path(
        [*shape.points, shape.points[0]] if shape.closed else shape.points, closed=shape.closed
    )


def figure_of(canvas: Canvas):
    """The canvas as a Matplotlib figure of 72 dots per inch: one dot is one CSS pixel."""
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    figure = Figure(figsize=(canvas.width / 72, canvas.height / 72), dpi=72)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, canvas.width)
    axes.set_ylim(canvas.height, 0)
    for look, shapes in canvas.paths.items():
        patch = PathPatch(
            Path.make_compound_path(*map(_path, shapes)),
            facecolor=look.fill,
            edgecolor=look.edge,
            linewidth=look.lw if look.edge != "none" else 0,
            alpha=None if look.alpha == 1 else look.alpha,
            linestyle=(0, look.dash) if look.dash else "-",
            zorder=look.z,
            clip_on=False,
            joinstyle="round",
        )
        axes.add_patch(patch)
    for text in canvas.texts:
        axes.text(
            text.x,
            text.y,
            text.words.replace("$", r"\$"),
            fontsize=text.size,
            color=text.color,
            ha=text.ha,
            va="baseline" if not text.rotate else "center",
            weight="bold" if text.bold else "normal",
            family="DejaVu Sans Mono" if text.mono else "DejaVu Sans",
            rotation=text.rotate,
            rotation_mode="anchor",
            zorder=TEXT_Z,
        )
    return figure


def png(drawing: Drawing, scale: float = 2) -> bytes:
    """The drawing with its title on a light card as PNG bytes; the same drawing gives the same bytes."""
    figure, buffer = figure_of(drawing.figure), io.BytesIO()
    figure.text(
        0.02,
        1 + 0.18 * 72 / drawing.figure.height,
        drawing.title,
        fontsize=14,
        color=style.INK,
        weight="bold",
        wrap=False,
    )
    figure.savefig(
        buffer,
        format="png",
        dpi=72 * scale,
        facecolor=style.CARD,
        bbox_inches="tight",
        pad_inches=0.2,
        metadata={"Software": None},
    )
    return buffer.getvalue()
