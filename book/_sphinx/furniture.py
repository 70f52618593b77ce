"""Sphinx extension: what the build adds to chapters: the reading time, and the page of all takeaways.

`{all-takeaways}` stands where every chapter's takeaways box is to be repeated, under the chapter's title.

A table's empty corner is written as an ordinary cell: an empty heading is one that a screen reader announces, and does not say.

Notebooks hold plain Markdown, and figures without what they need to look and to move (`book.markdown`, `figures.carried`): the
build makes directives of the former, and gives each page the style sheet and the scripts that it needs, once, as they are now.
"""

import json
import re
import sys
import zlib
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from book import chapters, markdown, reading  # noqa: E402  (found by the line above)
from book.cells import answers  # noqa: E402, F401  (its questions need a script)
from figures import carried  # noqa: E402


def is_chapter(path: Path) -> bool:
    """Whether this page is read from its beginning to its end: not an exercise, not an appendix."""
    return path.parent == ROOT / "book" and path.name[:2].isdigit()


def directives(app: Sphinx, docname: str, source: list[str]) -> None:
    """A notebook's Markdown as Sphinx reads it."""
    if not app.env.doc2path(docname).endswith(".ipynb"):
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = markdown.myst("".join(cell["source"]))
    source[0] = json.dumps(notebook)


def state_the_time(app: Sphinx, doctree: nodes.document) -> None:
    path = Path(app.env.doc2path(app.env.docname))
    title = next(iter(doctree.findall(nodes.title)), None)
    if title is None or path.suffix != ".ipynb" or not is_chapter(path):
        return
    time = reading.rounded(reading.minutes(chapters.read(path)))
    words = f"About {time} minutes to read; longer if you run it and answer its questions."
    place = title.parent.index(title) + 1
    title.parent.insert(place, nodes.paragraph(words, words, classes=["reading-time"]))


class AllTakeaways(Directive):
    """`{all-takeaways}`: each chapter's takeaways, in reading order."""

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        env = self.state.document.settings.env
        for path in filter(is_chapter, chapters.paths()):
            cells = chapters.read(path).cells
            env.note_dependency(str(path))
            texts = [
                reading.takeaways(cell.source) for cell in cells if cell.cell_type == "markdown"
            ]
            body = markdown.myst("\n\n".join(text for text in texts if text))
            if not body:
                continue
            link = f"**[]({path.name})**"
            box = nodes.container(classes=["takeaways-of"])
            lines = [link, "", *body.splitlines()]
            self.state.nested_parse(StringList(lines, str(path)), self.content_offset, box)
            found.append(box)
        if not found:
            found = [nodes.paragraph(text="No chapter has its takeaways yet.")]
        return found


SCRIPTS = (ROOT / "figures" / "js", ROOT / "book" / "cells" / "js")
EMPTY_HEADING = re.compile(r"<th([^>]*)>(\s*(?:<p>\s*</p>)?\s*)</th>")


def _corner(found: re.Match) -> str:
    attributes = re.sub(r'\s*scope=(?:"[^"]*"|\w+)', "", found[1])  # which only a heading may have
    return f"<td{attributes}>{found[2]}</td>"


def once(body: str) -> str:
    """The page with the style sheet and one copy of each script that its figures and questions need."""
    body = carried.bare(body)
    style = carried.styles(body)
    return f"<style>{style}</style>{body}{carried.scripts(body)}" if style else body


def after(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    if "body" in context:
        body = EMPTY_HEADING.sub(_corner, context["body"])
        # Its name is what stands in it: "Show the code".
        context["body"] = once(body.replace(' aria-label="Toggle hidden content"', ""))


def setup(app: Sphinx) -> dict:
    app.add_directive("all-takeaways", AllTakeaways)
    app.connect("source-read", directives)
    app.connect("doctree-read", state_the_time)
    app.connect("html-page-context", after)
    # Pages hold the scripts: when one changes, every page is written anew.
    texts = [path.read_bytes() for room in SCRIPTS for path in sorted(room.glob("*.js"))]
    texts += ["".join(carried.STYLES.values()).encode(), Path(markdown.__file__).read_bytes()]
    mark = zlib.crc32(b"".join([Path(__file__).read_bytes(), *texts])) + 1
    return {
        "version": "1",
        "env_version": mark,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
