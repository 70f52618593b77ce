"""Sphinx extension: a page loads what it shows, and a search finds a term's own chapter first.

The theme draws a dozen icons by a script of all two thousand, and loads the search's index on every page. Here the icons
are a font of those that some page shows, and only the search page has the index.
"""

import json
import logging
import re
from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx

FONTS = Path(pydata_sphinx_theme.__file__).parent.joinpath(
    *["theme", "pydata_sphinx_theme", "static", "vendor", "fontawesome", "webfonts"]
)
ICONS = re.compile(
    r"\s*<!-- So that users can add custom icons -->|\s*<script[^>]*/fontawesome\.js[^>]*></script>"
)
# Its name is what stands in it: "Search", and the key that opens it.
NAMED = re.compile(r'(<button class="btn search-button-field[^>]*?) aria-label="Search"')
SEARCH = re.compile(r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>')  # fmt: skip
CODE = re.compile(r'"(?:\\([ef][0-9a-f]{3})|([\ue000-\uf8ff]))"')  # as style sheets write an icon


def slim(pages: Path) -> None:
    """Takes out of each page what it does not need, and keeps the icons that one shows."""
    names: set[str] = set()
    for page in sorted(pages.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        names |= set(re.findall(r"\bfa-([a-z][\w-]*)", text))
        less = ICONS.sub("", text)
        less = NAMED.sub(r"\1", less)
        less = less if page.name == "search.html" else SEARCH.sub("", less)
        if less != text:
            page.write_text(less, encoding="utf-8")
    sheets = sorted((pages / "_static").rglob("*.css"))
    rules = "".join(path.read_text(encoding="utf-8") for path in sheets)
    codes = set()
    for selector, body in re.findall(r"([^{}]*)\{([^{}]*)\}", rules):
        asked = set(re.findall(r"\.fa-([a-z][\w-]*)::?before", selector))
        if not asked or asked & names:  # an icon of a page, or one that the theme draws by itself
            codes |= {int(code, 16) if code else ord(drawn) for code, drawn in CODE.findall(body)}
    for font in sorted(FONTS.glob("*.ttf")):
        _icons(font, codes, pages)
    sheet = pages / "_static" / "styles" / "pydata-sphinx-theme.css"
    sheet.write_text(
        re.sub(
            r'url\((\S+?)\.woff2\) format\("woff2"\),url\(\S+?\.ttf\) format\("truetype"\)',
            r'url(\1.woff) format("woff")',
            sheet.read_text(encoding="utf-8"),
        ),
        encoding="utf-8",
    )
    for useless in ("scripts/fontawesome.js", "scripts/fontawesome.js.map"):
        (pages / "_static" / useless).unlink(missing_ok=True)


def _icons(font: Path, codes: set[int], pages: Path) -> None:
    """Writes the part of a font that draws these codes."""
    place = pages.joinpath(*["_static", "vendor", "fontawesome", "webfonts"])
    logging.getLogger("fontTools.subset").setLevel(
        logging.WARNING
    )  # Sphinx has all of its lines shown
    made = TTFont(font, recalcTimestamp=False)
    options = subset.Options(flavor="woff", layout_features=[], hinting=False, notdef_outline=True)
    maker = subset.Subsetter(options)
    maker.populate(unicodes=codes)
    maker.subset(made)
    made.flavor = "woff"
    made.save(place / f"{font.stem}.woff")
    for whole in ("ttf", "woff2"):
        (place / f"{font.stem}.{whole}").unlink(missing_ok=True)


def stem(words: str) -> str:
    """As `scorer.js` does it: "Bank conflicts" -> "bank conflict"."""
    parts = re.findall(r"[a-z0-9]+", words.lower())
    return " ".join(re.sub(r"(ing|ed|es|e|s)$", "", part) for part in parts)


def own_chapters(app: Sphinx) -> dict[str, str]:
    """{what a reader may search for: the page that is about it}.

    A term belongs to the first chapter, in reading order, that has it in its title, else in a heading, else as a link to the
    glossary.
    """
    from book import chapters

    names = [f"book/{path.stem}" for path in chapters.paths() if path.parent.name == "book"]
    titles = {name: stem(app.env.titles[name].astext()) for name in names if name in app.env.titles}
    first: dict[str, str] = {}
    headed: list[tuple[str, str]] = []
    for path in chapters.paths():
        if path.stem[:2].isdigit() and path.parent.name == "book":
            text = path.read_text(encoding="utf-8")
            headings = re.findall(r'^ "#{2,3} (.*?)(?:\\n)?",?$', text, re.MULTILINE)
            headed += [(f"book/{path.stem}", f" {stem(heading)} ") for heading in headings]
            for anchor in re.findall(r"glossary\.md#([\w-]+)", text):
                first.setdefault(anchor, f"book/{path.stem}")
    from terms import definitions

    found = {title: name for name, title in titles.items()}
    for anchor, (term, _) in definitions().items():
        key = stem(term)
        places = [*titles.items(), *headed]
        titled = next((name for name, words in places if f" {key} " in f" {words} "), None)
        if owner := titled or first.get(anchor):
            found.setdefault(key, owner)
    return found


def known(app: Sphinx, pagename, templatename, context: dict, doctree) -> None:
    if pagename == "search":
        words = json.dumps(own_chapters(app)).replace("</", "<\\/")
        app.add_js_file(None, body=f"window.gemmChapters={words};", priority=300)


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        slim(Path(app.outdir))


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", known)
    app.connect("build-finished", finish, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
