"""What every figure promises: a title, alt text, themes, the same output twice, and a small size."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pytest
from tensor_layouts import Layout
from tensor_layouts.atoms_nv import (
    SM70_8x8x4_F32F16F16F32_NT,
    SM80_16x8x8_F32TF32TF32F32_TN,
    SM80_16x8x16_F32F16F16F32_TN,
)

import figures
from figures import style

LANES = np.arange(32)
DRAWINGS = {
    "global_access": lambda: figures.global_access({"a": 16384 * LANES, "b": 4 * LANES}),
    "shared_banks": lambda: figures.shared_banks(128 * LANES),
    "ladder": lambda: figures.ladder(
        [{"rung": "naive", "tflops": 4.0}, {"rung": "x", "tflops": 7.0}], machine="H100"
    ),
    "roofline": lambda: figures.roofline({"naive": (0.5, 1.2)}, 3.35, {"FP32": 67}),
    "bars": lambda: figures.bars({"a $1$": 3.0, "b": 2.0}),
    "fragment": lambda: figures.fragment(SM80_16x8x16_F32F16F16F32_TN),
    "fragment of TF32": lambda: figures.fragment(SM80_16x8x8_F32TF32TF32F32_TN),
    "fragment of Volta": lambda: figures.fragment(SM70_8x8x4_F32F16F16F32_NT, lane=17),
    "layout_grid": lambda: figures.layout_grid(Layout((16, 32), (32, 1))),
    "tile_picture": lambda: figures.tile_picture({"BM": 64, "BN": 64, "BK": 8, "TM": 8, "TN": 4}),
    "thread_tiles": lambda: figures.thread_tiles([(1, 1), (4, 1), (4, 4)]),
    "swizzle_grid": lambda: figures.swizzle_grid(8, swizzled=(3, 3, 3)),
    "tensor_box": lambda: figures.tensor_box(swizzle=128),
    "tensor_box at an edge": lambda: figures.tensor_box((6, 10), (8, 4), (-2, 8)),
    "core_matrices": lambda: figures.core_matrices({"k = 0": {}, "k = 16": {"start": 32}}),
    "descriptor_fields": lambda: figures.descriptor_fields(0x4000, 8192, 1024, 128),
    "warpgroup_tiles": figures.warpgroup_tiles,
    "tensor_memory": lambda: figures.tensor_memory({"set 0": (0, 256), "set 1": (256, 256)}),
    "cta_pair": figures.cta_pair,
    "roles_timeline": figures.roles_timeline,
    "bit_fields": lambda: figures.bit_fields({"float32": (1, 8, 23), "TF32": (1, 8, 10, 13)}),
    "sector_copies": lambda: figures.sector_copies({"padded": lambda row, chunk: 5 * row + chunk}),
}
OTHERS = {
    "annotated_source": lambda: figures.annotated_source({1: {"warps": 3}}, "a < b;"),
    "diff_source": lambda: figures.diff_source("a", "b"),
    "BankExplorer": figures.BankExplorer,
    "CoalescingExplorer": figures.CoalescingExplorer,
    "TileExplorer": figures.TileExplorer,
    "FragmentExplorer": figures.FragmentExplorer,
    "SwizzleExplorer": figures.SwizzleExplorer,
    "PipelineExplorer": figures.PipelineExplorer,
    "OccupancyExplorer": figures.OccupancyExplorer,
    "TensorBoxExplorer": figures.TensorBoxExplorer,
    "CoreMatrixExplorer": figures.CoreMatrixExplorer,
    "BarrierExplorer": figures.BarrierExplorer,
    "SettingsExplorer": lambda: figures.SettingsExplorer(
        {"PAD": (0, 1)},
        {(0,): [("load shared", 1, 0, 32, 1)], (1,): [("load shared", 1, 0, 1, 1)]},
        (0,),
    ),
    "RolesExplorer": figures.RolesExplorer,
    "TensorMemoryExplorer": figures.TensorMemoryExplorer,
    "TcgenBitsExplorer": figures.TcgenBitsExplorer,
    "ScaleExplorer": figures.ScaleExplorer,
    "CtaPairExplorer": figures.CtaPairExplorer,
    "WaveExplorer": figures.WaveExplorer,
    "RasterExplorer": figures.RasterExplorer,
    "Choice": lambda: figures.Choice(
        {0: figures.bars({"a": 1}), 1: figures.bars({"b": 1})}, "n", "Two"
    ),
}
EVERYTHING = {**DRAWINGS, **OTHERS}


@cache
def made(name):
    return EVERYTHING[name]()


@cache
def html(name):
    return made(name).html()


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_figure_shows_itself_with_title_and_alt_text(name):
    shown = made(name)
    bundle = shown._repr_mimebundle_()
    assert len(shown.title) > 2 and len(shown.alt) > 15
    assert shown.title in bundle["text/plain"]
    assert 'aria-label="' in bundle["text/html"]
    assert "http://" not in bundle["text/html"].replace("http://www.w3.org/", "")
    assert "https://" not in bundle["text/html"], "a figure must not need the network"
    if name not in ("annotated_source", "diff_source"):
        assert shown.alt in bundle["text/plain"]


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_figure_is_the_same_each_time_and_small(name):
    first, second = html(name), EVERYTHING[name]().html()
    assert first == second
    assert len(first.encode()) < 110_000, f"{name}: {len(first.encode())} bytes"


@pytest.mark.parametrize("name", DRAWINGS)
def test_an_svg_follows_the_theme_and_nothing_leaves_it(name):
    drawing = made(name)
    svg = drawing.svg()
    root = ET.fromstring(svg.replace("var(--gl-mono)", "x"))
    assert root.get("role") == "img" and root.get("aria-label") == drawing.alt
    _, _, width, height = map(float, root.get("viewBox").split())
    assert "var(--gl-" in svg and style.INK not in svg.replace("," + style.INK, "")
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        if text.get("transform") is None:
            assert 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height + 1


def _boxes(figure):
    renderer = figure.canvas.get_renderer()
    for text in figure.axes[0].texts:
        yield text.get_text(), text.get_window_extent(renderer)


@pytest.mark.parametrize("name", DRAWINGS)
def test_no_two_words_overlap_and_none_is_cut_off(name):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from figures.pixels import figure_of

    figure = figure_of(made(name).figure)
    FigureCanvasAgg(figure)
    boxes = list(_boxes(figure))
    width, height = figure.get_size_inches() * 72
    for words, box in boxes:
        assert box.x0 > -1 and box.x1 < width + 1 and box.y0 > -2 and box.y1 < height + 2, words
    for i, (words, a) in enumerate(boxes):
        for others, b in boxes[i + 1 :]:
            if a.y1 <= b.y0 or b.y1 <= a.y0:
                continue
            deep = min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 2.5
            assert not deep, (words, others)


def test_a_drawing_as_png_for_a_readme():
    drawing = DRAWINGS["bars"]()
    png = figures.png(drawing)
    assert png.startswith(b"\x89PNG") and len(png) < 200_000
    assert figures.png(drawing) == png


def test_the_colours_can_be_told_apart():
    lanes = [style.lane_color(lane) for lane in range(32)]
    banks = [style.bank_color(bank) for bank in range(32)]
    assert len(set(lanes)) == 32 and len(set(banks)) == 32
    assert len({style.wavefront_color(n) for n in range(8)}) == 8
    for color in [*lanes, *banks]:
        assert _contrast(color, style.text_on(color)) > 4.4
    for theme in (0, 1):
        card = style.PAGE["card"][theme]
        assert _contrast(style.PAGE["ink"][theme], card) > 12
        assert _contrast(style.PAGE["muted"][theme], card) > 4.5
    light = [pair[0] for pair in style.PAGE.values()]
    assert len(set(light)) == len(light), (
        "the SVG writer tells page colours apart by their light value"
    )
    for bad in (
        lambda: style.lane_color(32),
        lambda: style.bank_color(-1),
        lambda: style.wavefront_color(-1),
    ):
        with pytest.raises(ValueError):
            bad()


def _contrast(one: str, other: str) -> float:
    def luminance(color):
        parts = [int(part, 16) / 255 for part in re.findall("..", color[1:])]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_drawing_needs_no_library():
    # In a browser's Python, Matplotlib and what it needs are more bytes than all the rest.
    said = (
        "import sys, figures; figures.bars({'a': 1.0}).html(); print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
