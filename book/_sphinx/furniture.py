"""Sphinx extension: what the build adds to chapters: the reading time, the lines that build its kernels alone, and the page of
all takeaways.

`{all-takeaways}` stands where every chapter's takeaways box is to be repeated, under the chapter's title.

A table's empty corner is written as an ordinary cell: an empty heading is one that a screen reader announces, and does not say.

Notebooks hold plain Markdown, and figures without what they need to look and to move (`book.markdown`, `figures.carried`): the
build makes directives of the former, and gives each page the style sheet and the scripts that it needs, once, as they are now.
In outputs, messages of the emulator and of the checker lead to their entries in the page of symptoms.
"""

import html
import json
import re
import sys
import zlib
from functools import cache
from itertools import count
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from book import chapters, markdown, reading, symptoms  # noqa: E402  (found by the line above)
from book.cells import answers  # noqa: E402, F401  (its questions need a script)
from figures import carried  # noqa: E402
from kernels import find  # noqa: E402
from kernels.alone import line  # noqa: E402


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
STRIP = re.compile(r"\bsteps\.strip\(([^)]*)\)")
EMPTY_HEADING = re.compile(r"<th([^>]*)>(\s*(?:<p>\s*</p>)?\s*)</th>")


def _corner(found: re.Match) -> str:
    attributes = re.sub(r'\s*scope=(?:"[^"]*"|\w+)', "", found[1])  # which only a heading may have
    return f"<td{attributes}>{found[2]}</td>"


TITLED = re.compile(
    r'<figure class="gl"([^>]*)><p class="gl-title">(.*?)</p>(?!<div class="gl-scroll"><div class="gl-q")'
)


def linked(body: str) -> str:
    """The page's figures with an id, made of their titles, and a link to it that shows as the theme's do."""
    taken: set[str] = set()

    def name(found: re.Match) -> str:
        words = re.findall(r"[a-z0-9]+", re.sub(r"<[^>]+>|&\w+;", " ", found[2]).lower())
        stem = "fig-" + "-".join(words[:8])
        here = next(n for i in count(1) if (n := f"{stem}-{i}" if i > 1 else stem) not in taken)
        taken.add(here)
        link = f'<a class="headerlink" href="#{here}" title="Link to this figure">#</a>'
        return f'<figure class="gl" id="{here}"{found[1]}><p class="gl-title">{found[2]}{link}</p>'

    return TITLED.sub(name, body)


def once(body: str) -> str:
    """The page with the style sheet and one copy of each script that its figures and questions need."""
    body = carried.bare(body)
    style = carried.styles(body)
    body = linked(body)
    return f"<style>{style}</style>{body}{carried.scripts(body)}" if style else body


def rungs_of(path: Path, shown: set[str]) -> list[str]:
    """The CUDA rungs in a chapter's ladder in miniature that are not among those `shown` before, which they join."""
    text = "\n".join(cell.source for cell in chapters.read(path).cells if cell.cell_type == "code")
    names = [name for call in STRIP.findall(text) for name in re.findall(r"\w+", call)]
    new = [name for name in names if name not in shown and find(name).path]
    shown.update(new)
    return new


@cache
def leaving() -> dict[str, list[str]]:
    """{page: the lines by which nvcc builds the rungs that appear there for the first time, as the book times them}."""
    lines, shown = {}, set()
    for path in filter(is_chapter, chapters.paths()):
        page = path.relative_to(ROOT).with_suffix("").as_posix()
        for rung in map(find, rungs_of(path, shown)):
            lines.setdefault(page, []).append(line(rung))
    return lines


ALONE = """\
<div class="gl-alone"><p><strong>Leave with the kernel.</strong> CUDA's nvcc needs nothing else of this book. {what}: random
inputs, a check of every element, and a time. From the repository's folder:</p>
<div class="highlight"><pre tabindex="0">{lines}</pre></div></div>
"""


def leave(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """At the end of a chapter, how to build and run its kernels without the book."""
    lines = leaving().get(page)
    if lines and "body" in context:
        what = (
            "This builds the kernel and runs it"
            if len(lines) == 1
            else "These build the kernels and run them"
        )
        context["body"] += ALONE.format(what=what, lines=html.escape("\n".join(lines), quote=False))


def after(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    if "body" in context:
        body = EMPTY_HEADING.sub(_corner, context["body"])
        if symptoms.NAME in app.env.found_docs:
            body = symptoms.linked(body, context["pathto"](symptoms.NAME))
        # Its name is what stands in it: "Show the code".
        context["body"] = once(body.replace(' aria-label="Toggle hidden content"', ""))


def setup(app: Sphinx) -> dict:
    app.add_directive("all-takeaways", AllTakeaways)
    app.connect("source-read", directives)
    app.connect("doctree-read", state_the_time)
    app.connect("html-page-context", leave)
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
