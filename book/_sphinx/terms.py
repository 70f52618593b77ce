"""Sphinx extension: puts the definitions of the glossary's terms that a page links to into the page.

`terms.js` shows them on hover and on keyboard focus. Nothing is loaded from elsewhere, so it works from a file too.
"""

import json
import re
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx

GLOSSARY = Path(__file__).resolve().parents[1] / "glossary.md"
ENTRY = re.compile(r"(?ms)^### (?P<term>[^\n]+)\n(?P<text>.*?)(?=^#{1,3} |\Z)")
LINK = re.compile(r'href="[^"]*glossary\.html#([\w-]+)"')


def anchor(heading: str) -> str:
    """The anchor that MyST gives a heading: `mma.sync` -> "mmasync"."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def plain(markdown: str) -> str:
    """The first paragraph of a definition, without marks, links, citations and comments."""
    text = re.sub(r"(?s)<!--.*?-->", "", markdown).strip().split("\n\n")[0]
    text = re.sub(r"\s*\(?\{[\w:]+\}`[^`]*`\)?", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\s+", " ", re.sub(r"[*`$]", "", text)).strip()


@cache
def definitions() -> dict[str, tuple[str, str]]:
    """{anchor: (term, definition)} of every entry of `glossary.md`."""
    found = ENTRY.finditer(GLOSSARY.read_text(encoding="utf-8"))
    return {anchor(one["term"]): (one["term"].strip(), plain(one["text"])) for one in found}


def define(app: Sphinx, pagename, templatename, context: dict, doctree) -> None:
    linked = sorted(set(LINK.findall(context.get("body") or "")) & set(definitions()))
    if linked and not pagename.endswith("glossary"):
        terms = json.dumps({name: definitions()[name] for name in linked}, ensure_ascii=False)
        terms = terms.replace("</", "<\\/")  # inside a script element
        app.add_js_file(None, body=f"window.gemmTerms={terms};", priority=400)


def setup(app: Sphinx) -> dict:
    app.add_js_file("terms.js", loading_method="defer")
    app.connect("html-page-context", define)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
