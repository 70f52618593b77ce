"""What a narrow screen gets: a drawing of its own, and listings that begin at the left."""

import re

import figures

ROWS = [
    {"rung": "naive", "tflops": 6.2, "inputs": "float32", "ratio_to_cublas": 0.12},
    {"rung": "wmma", "tflops": 110.0, "inputs": "float16", "ratio_to_cublas": 0.15},
]


def drawn_words(html: str, kind: str) -> str:
    part = html.split(f'class="gl-{kind}"')[1].split("</svg>")[0]
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", part))


def test_the_narrow_ladder_says_what_the_wide_one_says():
    html = figures.ladder(ROWS).html()
    for words in ("naive", "wmma", "6.2", "110", "12%", "15%"):
        assert words in drawn_words(html, "wide") and words in drawn_words(html, "narrow")


def test_bars_and_rooflines_have_a_narrow_drawing():
    bars = figures.bars({"post": 47.3, "fair": 0.2}).html()
    roofs = figures.roofline({"naive": (0.4, 6.2)}, bandwidth=3.35, peaks={"FP32": 66.9}).html()
    assert "post: 47.3 ms" in drawn_words(bars, "narrow")
    assert "naive" in drawn_words(roofs, "narrow") and "FP32" in drawn_words(roofs, "narrow")


def test_a_drawing_without_a_narrow_form_has_one_svg():
    assert figures.tile_picture({"BM": 32, "BN": 32, "BK": 32}).html().count("<svg") == 1


def code_cells(listing) -> list[str]:
    cells = re.findall(r'<td class="c">(.*?)</td>', listing.html())
    return [re.sub(r"<[^>]*>", "", cell) for cell in cells]


def test_a_listing_leaves_out_what_all_its_lines_are_indented_by():
    source = "        int a;\n#pragma unroll\n        for (;;)\n            a += 1;\n"
    listing = figures.annotated_source({1: {"warps": 1}, 4: {"warps": 2}}, source)
    assert code_cells(listing) == ["int a;", "#pragma unroll", "for (;;)", "    a += 1;"]
    assert "        int a;" in listing.plain()  # the text form keeps the source as it is


def test_old_and_new_lines_of_a_change_both_begin_at_the_left():
    listing = figures.diff_source("for (;;)\n    a();", "        for (;;)\n            b();")
    assert code_cells(listing) == ["for (;;)", "    a();", "for (;;)", "    b();"]
