"""Sphinx extension: what tells the answer to a prediction is folded until the reader has answered, or asks to be shown.

The rule: behind a form, from the first block that holds an answer (`book.telling`) or that moves, to the next form or the end of
the section. A fold is a `<details>`, which needs no script; `questions.js` opens it when its questions are answered.
"""

import html
import sys
import zlib
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from book import telling  # noqa: E402  (found by the line above)

FOLD = (
    '<details class="gl-after" data-after="{names}"><summary>What follows tells the answer: '
    "give yours above, or unfold it here</summary>"
)


def markup(block: nodes.Node) -> str:
    """What a block of the page shows, as HTML: its text and its outputs, without what the page folds."""
    if isinstance(block, nodes.comment) or type(block).__name__ == "HideCodeCellNode":
        return ""
    if isinstance(block, nodes.raw):
        return block.astext() if "html" in block.get("format", "") else ""
    if isinstance(block, nodes.Text):
        return html.escape(block.astext())
    if "dropdown" in getattr(block, "attributes", {}).get("classes", ()):
        return ""
    said = f'<i title="{html.escape(block["alt"])}">' if block.get("alt") else ""
    inside = "".join(markup(child) for child in block.children)
    return f"{said}{inside}" if isinstance(block, nodes.TextElement) else f"{said} {inside} "


def fold(section: nodes.Element, asked: dict[str, telling.Answer]) -> None:
    """Folds what tells the answers to `asked`, and to the predictions of this section, in its blocks and sections."""
    begun, told, folds = None, [], []
    for place, block in enumerate([*section.children, nodes.comment()]):
        shown = markup(block)
        names = telling.forms(shown)
        last = place == len(section.children)
        if begun is not None and (names or last):
            folds.append((begun, place, list(dict.fromkeys(told))))
            begun, told = None, []
        if names and isinstance(block, nodes.section):
            fold(block, asked)
            continue
        asked = asked | names
        if names or not asked or isinstance(block, nodes.title):
            continue
        moves = telling.EXPLORER in shown
        found = telling.told(telling.seen(shown), asked)
        if moves or found:
            begun = place if begun is None else begun
            told += found or asked
    for begin, end, names in reversed(folds):
        head = FOLD.format(names=html.escape(" ".join(names)))
        section.insert(end, nodes.raw("", "</details>", format="html"))
        section.insert(begin, nodes.raw("", head, format="html"))


def seal(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    for section in doctree.children:
        if isinstance(section, nodes.section):
            fold(section, {})


def setup(app: Sphinx) -> dict:
    app.connect("doctree-resolved", seal, priority=900)
    told = [Path(__file__), Path(telling.__file__)]
    mark = zlib.crc32(b"".join(path.read_bytes() for path in told)) + 1
    return {
        "version": "1",
        "env_version": mark,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
