"""The visual language: what a colour means is the same on every page.

* **lane**: four hues, one for each group of eight lanes (the groups that 16-byte accesses and `ldmatrix` are
  served in), and eight tints of it, darker with the lane's number;
* **bank**: a perceptually even sequence from blue to yellow (viridis, lightened), bank 0 to bank 31;
* **wavefront**: the Okabe-Ito categories in a fixed order; the number always stands beside the colour;
* **kind**: memory, compute, waiting, and the input types of a kernel, each one Okabe-Ito colour.

The hues are Okabe and Ito's (2008), which readers with any common colour-vision deficiency can tell apart. Data colours
are the same on light and dark pages and carry their own text colour. The *page* colours (ink, muted, line, soft, card)
change with the page's theme: an SVG names them by CSS variable.
"""

from __future__ import annotations

BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#e69f00", "#009e73", "#cc79a7"
SKY, VERMILION, YELLOW, GREY = "#56b4e9", "#d55e00", "#f0e442", "#9aa3ad"

# page colours: name -> (light, dark). The light value is what a figure is drawn with; it must stay unique, since the
# SVG writer recognises it and puts the CSS variable in its place.
PAGE = {
    "ink": ("#1b1f24", "#e6e9ed"),
    "muted": ("#57606b", "#a3adb8"),
    "line": ("#c6ccd3", "#454d57"),
    "soft": ("#e9edf1", "#2a3038"),
    "card": ("#fdfdfe", "#171b21"),
}
INK, MUTED, LINE, SOFT, CARD = (light for light, _ in PAGE.values())
INK_VAR = "var(--gl-ink)"  # for HTML, where the page's ink is wanted

KIND = {
    "float32": BLUE,
    "tf32": GREEN,
    "float16": ORANGE,
    "bfloat16": PURPLE,
    "float8_e4m3fn": VERMILION,
    "int8": YELLOW,
    "mxfp8": VERMILION,
    "nvfp4": SKY,
    "load": SKY,
    "store": PURPLE,
    "compute": ORANGE,
    "wait": GREY,
    "barrier": VERMILION,
    "good": GREEN,
    "bad": VERMILION,
}

# What marks a dark page: the book's theme, JupyterLab, Colab and VS Code.
DARK = (
    "html[data-theme=dark]",
    'body[data-jp-theme-light="false"]',
    "html[theme=dark]",
    "body.vscode-dark",
)

SANS_CSS = '"DejaVu Sans",Verdana,system-ui,sans-serif'
MONO_CSS = '"DejaVu Sans Mono",Menlo,Consolas,monospace'

# Matplotlib's viridis (Smith and van der Walt, CC0) at 32 places; between two, the mix is off by less than three of 255.
_VIRIDIS = bytes.fromhex(
    "440154470d6048186a482374472e7c4538824241863e4a893a548c365d8d32658e2e6d8e2b758e287d8e25848e228c8d"
    "1f948c1e9c8920a38625ab822eb37c3aba7648c16e58c7656ccd5a7fd34e93d741a8db34c0df25d5e21aeae51afde725"
)

_LANE_HUES = (BLUE, ORANGE, GREEN, PURPLE)
_WAVEFRONTS = (SKY, ORANGE, GREEN, PURPLE, YELLOW, BLUE, VERMILION, GREY)


def _rgb(color: str) -> tuple[float, ...]:
    """Red, green and blue of "#rrggbb", 0 to 1."""
    return tuple(int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))


def _hex(rgb) -> str:
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in rgb)


def tint(color: str, strength: float) -> str:
    """`color` mixed with white; strength 1 is the colour itself, 0 is white."""
    return _hex(1 - strength * (1 - channel) for channel in _rgb(color))


def viridis(share: float) -> str:
    """The colour at 0 (blue) to 1 (yellow) of a perceptually even sequence."""
    colors = [_VIRIDIS[at : at + 3] for at in range(0, len(_VIRIDIS), 3)]
    place = min(max(share, 0.0), 1.0) * (len(colors) - 1)
    below = min(int(place), len(colors) - 2)
    ends = zip(colors[below], colors[below + 1], strict=True)
    return _hex((low + (place - below) * (high - low)) / 255 for low, high in ends)


def lane_color(lane: int) -> str:
    """The colour of lane 0..31 of a warp."""
    if not 0 <= lane < 32:
        raise ValueError(f"a warp has lanes 0..31, not {lane}")
    return tint(_LANE_HUES[lane // 8], 0.32 + 0.068 * (lane % 8))


def bank_color(bank: int) -> str:
    """The colour of shared-memory bank 0..31."""
    if not 0 <= bank < 32:
        raise ValueError(f"shared memory has banks 0..31, not {bank}")
    return tint(viridis(0.12 + 0.88 * bank / 31), 0.85)


def wavefront_color(wavefront: int) -> str:
    """The colour of the n-th wavefront of a request, from 0; colours repeat after eight, so show the number too."""
    if wavefront < 0:
        raise ValueError(f"wavefronts are counted from 0, not {wavefront}")
    return tint(_WAVEFRONTS[wavefront % 8], 0.85)


def text_on(color: str) -> str:
    """Black or white, whichever contrasts more with `color` (WCAG relative luminance)."""
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _rgb(color)]
    luminance = 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]
    return "#111111" if (luminance + 0.05) / 0.0555 > 1.05 / (luminance + 0.05) else "#ffffff"


def css() -> str:
    """CSS that defines the page colours as variables of figures, for every page one is shown on.

    Dark is recognised as the book's theme, JupyterLab, Colab and VS Code mark it.
    """
    light = ";".join(f"--gl-{name}:{pair[0]}" for name, pair in PAGE.items())
    dark = ";".join(f"--gl-{name}:{pair[1]}" for name, pair in PAGE.items())
    return (
        f".gl{{{light};color-scheme:light}}"
        f"{','.join(f'{mark} .gl' for mark in DARK)}{{{dark};color-scheme:dark}}"
    )
