"""Sphinx extension: what the build adds to chapters: the reading time, and the page of all takeaways.

`{all-takeaways}` stands where every chapter's takeaways box is to be repeated, under the chapter's title.

A table's empty corner is written as an ordinary cell: an empty heading is one that a screen reader announces, and does not say.

A figure that moves carries its script in its output, as it was when the cell ran. A page has each script once, as it is now.
"""

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

from book import chapters, reading  # noqa: E402  (found by the line above)
from book.cells import answers  # noqa: E402
from figures import widgets  # noqa: E402


def is_chapter(path: Path) -> bool:
    """Whether this page is read from its beginning to its end: not an exercise, not an appendix."""
    return path.parent == ROOT / "book" and path.name[:2].isdigit()


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
            body = "\n\n".join(text for text in texts if text)
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
    attributes = re.sub(r'\s*scope="[^"]*"', "", found[1])  # which only a heading may have
    return f"<td{attributes}>{found[2]}</td>"


# Scripts that the outputs of `figures.widgets` and `book.cells.answers` carry; the last line says what each mounts.
CARRIED = re.compile(
    r"<script>\(\(\) => \{\n(?:(?!</script>).)*?\n(?:mount\(\"(\w+)\", explorer\)|questions\.mount\(\));\n\}\)\(\);</script>",
    re.DOTALL,
)


def once(body: str) -> str:
    """The page with one copy of each script that its figures and questions carry, the present one, at its end."""
    kinds = dict.fromkeys(found[1] for found in CARRIED.finditer(body))  # None: the questions
    scripts = [answers._script() if kind is None else widgets.mounting(kind) for kind in kinds]
    return CARRIED.sub("", body) + "".join(scripts)


def after(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    if "body" in context:
        context["body"] = once(EMPTY_HEADING.sub(_corner, context["body"]))


def setup(app: Sphinx) -> dict:
    app.add_directive("all-takeaways", AllTakeaways)
    app.connect("doctree-read", state_the_time)
    app.connect("html-page-context", after)
    # Pages hold the scripts: when one changes, every page is written anew.
    texts = [path.read_bytes() for room in SCRIPTS for path in sorted(room.glob("*.js"))]
    mark = zlib.crc32(b"".join([Path(__file__).read_bytes(), *texts])) + 1
    return {
        "version": "1",
        "env_version": mark,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
