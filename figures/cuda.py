"""CUDA as highlighted HTML: Pygments says what a word is, the page's theme what colour that has."""

from __future__ import annotations

import html

from pygments.lexers import CudaLexer
from pygments.token import Comment, Keyword, Literal, Name, Token

from figures import carried, style
from figures.drawing import Listing, plural
from figures.short import ELEMENTS

__all__ = ["cuda"]

# classes of a word, the most special token first: comments, directives, literals, keywords, names that CUDA gives
CLASSES = (
    (Comment.Preproc, "gl-p"),
    (Comment.PreprocFile, "gl-p"),
    (Comment, "gl-m"),
    (Literal, "gl-s"),
    (Keyword, "gl-k"),
    (Name.Builtin, "gl-k"),
)
COLORS = {
    "gl-k": ("#0b62a8", "#7cc4f5"),
    "gl-s": ("#8a4b00", "#f0b95c"),
    "gl-p": ("#8b3f7c", "#e3a2cf"),
}


def _words(name: str) -> str:
    """The CSS selector of a kind of words, also as a notebook stores them."""
    return f":is(.{name},.gl-listing {ELEMENTS[name[-1]]},.gl-code {ELEMENTS[name[-1]]})"


CSS = (
    "".join(f".gl {_words(name)}{{color:{light}}}" for name, (light, _) in COLORS.items())
    + ".gl :is(.gl-listing,.gl-code) :is(b,samp,em){font:inherit}"
    + f".gl {_words('gl-m')}{{color:var(--gl-muted);font-style:italic}}"
    + "".join(
        f"{mark} .gl {_words(name)}{{color:{dark}}}"
        for mark in style.DARK
        for name, (_, dark) in COLORS.items()
    )
)
_LISTING_CSS = (
    CSS
    + ".gl pre.gl-listing{margin:0;padding:0;border:0;background:none!important;color:var(--gl-ink);"
    "font:12.5px/1.5 " + style.MONO_CSS + ";overflow:visible;white-space:pre;box-shadow:none}"
)
carried.STYLES['class="gl-listing"'] = _LISTING_CSS


def _class(token) -> str:
    return next((name for kind, name in CLASSES if token in kind), "")


def highlighted(text: str) -> list[str]:
    """Each line of a CUDA text as HTML, in the classes that `CSS` colours; a comment over several lines is one in each."""
    lines, line = [], ""
    lexer = CudaLexer(stripnl=False, ensurenl=False)
    for token, words in lexer.get_tokens(text + "\n"):  # a last comment needs its end
        name = _class(token) if token not in Token.Text.Whitespace else ""
        for index, piece in enumerate(words.split("\n")):
            if index:
                lines.append(line)
                line = ""
            shown = html.escape(piece, quote=False)
            line += f'<span class="{name}">{shown}</span>' if name and piece else shown
    return lines


def cuda(text: str, title: str = "") -> Listing:
    """A CUDA source, highlighted, as a cell's result: `cuda(source("naive"))`.

    `facts` holds {"lines": how many}. ValueError for a text without any word.
    """
    text = text.strip("\n")
    if not text.strip():
        raise ValueError("there is no source to show")
    lines = highlighted(text.expandtabs(4))
    return Listing(
        title=title,
        alt=f"CUDA source, {plural(len(lines), 'line')}{f': {title}' if title else ''}.",
        facts={"lines": len(lines)},
        body=f'<pre class="gl-listing" tabindex="0"><code>{chr(10).join(lines)}</code></pre>',
        text=text,
    )
