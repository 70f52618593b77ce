"""The style sheets and scripts that a figure's HTML needs beside itself, by what stands in it.

A figure that a cell shows carries them, because in Colab each output is a document of its own. Stored notebooks do not: there
they would be nine tenths of the text. Whoever shows a stored output adds them: the book's build once per page
(`book/_sphinx/furniture.py`), JupyterLab once per window (`book/_lab`), and `book.publish` in each output of a notebook that
leaves the book.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from figures.short import shortened

STYLES: dict[
    str, str
] = {}  # what stands in a figure that needs it -> CSS, in the order of the cascade
SCRIPTS: dict[str, Callable[[str], str]] = {}  # the same -> JavaScript of this HTML

FIGURE = '<figure class="gl"'
_STYLE = re.compile(r"<style>\.gl\{.*?</style>", re.DOTALL)
_SCRIPT = re.compile(r"<script>\(\(\) => \{\n.*?\n\}\)\(\);</script>", re.DOTALL)


def styles(html: str) -> str:
    """The CSS that this HTML needs; "" where no figure stands in it."""
    return "".join(css for mark, css in STYLES.items() if mark in html)


def scripts(html: str) -> str:
    """The script elements that this HTML needs, each once."""
    return "".join(dict.fromkeys(make(html) for mark, make in SCRIPTS.items() if mark in html))


def element(script: str) -> str:
    """A script as an element whose names are its own."""
    return f"<script>(() => {{\n{script}\n}})();</script>"


def whole(bare: str) -> str:
    """A figure's HTML with all that it needs; what is none, or is whole already, stays as it is."""
    begins = bare.find(FIGURE)
    if begins < 0 or _STYLE.search(bare):
        return bare
    head, end = bare.index(">", begins) + 1, bare.rindex("</figure>")
    style = f"<style>{styles(bare)}</style>"
    return bare[:head] + style + bare[head:end] + scripts(bare) + bare[end:]


def bare(html: str) -> str:
    """A figure's HTML without what `whole` adds: as a notebook is stored."""
    return shortened(_SCRIPT.sub("", _STYLE.sub("", html))) if FIGURE in html else html
