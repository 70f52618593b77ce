"""CUDA is coloured as CUDA, and stays the text that it was."""

import html
import re

import pytest

import figures
import kernels
from figures.cuda import highlighted
from kernels.source import source


def bare(line: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", line))


@pytest.mark.parametrize(
    ("code", "word", "kind"),
    [
        ("__shared__ float4 s[32];", "__shared__", "gl-k"),
        ("int i = threadIdx.x;", "threadIdx", "gl-k"),
        ("i = 32; // a comment", "// a comment", "gl-m"),
        ('asm("mma");', "mma", "gl-s"),
        ("    #pragma unroll", "pragma", "gl-p"),
    ],
)
def test_words_have_the_colour_of_what_they_are(code, word, kind):
    (line,) = highlighted(code)
    assert re.search(rf'<span class="{kind}">[^<]*{re.escape(word)}[^<]*</span>', line), line


def test_a_comment_over_several_lines_is_one_in_each():
    assert [line.count("gl-m") for line in highlighted("/* a\n   b */\nint i;")] == [1, 1, 0]


@pytest.mark.parametrize("rung", [name for name, rung in kernels.RUNGS.items() if rung.path])
def test_no_source_changes_by_being_coloured(rung):
    if kernels.find(rung).path.suffix != ".cu":
        pytest.skip("not written in CUDA")
    text = source(rung)
    assert [bare(line) for line in highlighted(text)] == text.split("\n")


def test_a_listing_is_its_text():
    shown = figures.cuda("int i;\n\nfloat f = a < b;\n")
    assert shown.plain() == "int i;\n\nfloat f = a < b;"
    assert "a &lt; b" in shown.html() and shown.facts == {"lines": 3}
    with pytest.raises(ValueError, match="no source"):
        figures.cuda("\n")
