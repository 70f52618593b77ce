"""The rendered book: it works with no network, and its pages are whole."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlparse

import pytest
import yaml

from book import chapters

LOADS = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
    ("audio", "src"),
    ("object", "data"),
    ("embed", "src"),
    ("image", "href"),
    ("use", "href"),
}
EXTERNAL = re.compile(r"^(https?:)?//")
CSS_LOAD = re.compile(
    r"""url\(\s*['"]?((?:https?:)?//[^'")]+)|@import\s+['"]((?:https?:)?//[^'"]+)"""
)
SCRIPT_LOAD = re.compile(
    r"""\b(?:import|importScripts|fetch)\s*\(?\s*['"`]((?:https?:)?//[^'"`]+)"""
)


class Page(HTMLParser):
    """What one page loads, links to and contains."""

    def __init__(self, text: str):
        super().__init__()
        self.loads, self.links, self.ids, self.images, self._inside = [], [], set(), [], ""
        self.styles, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self._inside = tag
        if "id" in values:
            self.ids.add(values["id"])
        for name, value in attributes:
            name = name.removeprefix("xlink:")
            if (tag, name) in LOADS and not (tag == "link" and values.get("rel") == "canonical"):
                self.loads.append(value or "")
        if "style" in values:
            self.styles.append(values["style"] or "")
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag == "img":
            self.images.append(values)

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "style":
            self.styles.append(data)
        if self._inside == "script":
            self.scripts.append(data)


@pytest.fixture(scope="session")
def pages(site) -> dict[str, Page]:
    return {
        path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }


def external(page: Page) -> list[str]:
    css = [a or b for style in page.styles for a, b in CSS_LOAD.findall(style)]
    code = [url for script in page.scripts for url in SCRIPT_LOAD.findall(script)]
    return [url for url in page.loads if EXTERNAL.match(url)] + css + code


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//cdn.example/x.css">',
        '<img src="http://cdn.example/x.png">',
        "<style>@import 'https://cdn.example/x.css';</style>",
        "<p style=\"background:url('https://cdn.example/x.png')\">",
        "<script>import('https://cdn.example/x.js')</script>",
    ],
)
def test_the_test_sees_what_another_host_would_serve(text):
    assert external(Page(text))


def test_links_are_not_taken_for_loads():
    assert not external(Page('<a href="https://docs.nvidia.com">docs</a><img src="x.png">'))


def test_pages_load_nothing_from_another_host(pages):
    assert {name: found for name, page in pages.items() if (found := external(page))} == {}


def test_style_sheets_load_nothing_from_another_host(site):
    found = {}
    for path in site.rglob("*.css"):
        urls = [a or b for a, b in CSS_LOAD.findall(path.read_text(encoding="utf-8"))]
        if urls:
            found[path.name] = urls
    assert found == {}


def test_every_page_of_the_table_of_contents_is_there(pages):
    toc = yaml.safe_load((chapters.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [toc["root"]] + [c["file"] for part in toc["parts"] for c in part["chapters"]]
    assert {f"{name}.html" for name in files} <= set(pages)


def test_links_inside_the_book_lead_somewhere(pages, site):
    broken = []
    for name, page in pages.items():
        for link in page.links:
            where = urlparse(link)
            if where.scheme or where.netloc or not (where.path or where.fragment):
                continue
            path = (site / name).parent / unquote(where.path) if where.path else site / name
            target = path.resolve()
            if not target.exists():
                broken.append((name, link))
            elif where.fragment and target.suffix == ".html":
                other = pages.get(target.relative_to(site).as_posix())
                if other and unquote(where.fragment) not in other.ids:
                    broken.append((name, link))
    assert broken == []


def test_every_image_has_an_alternative_text(pages):
    bare = [
        (name, image.get("src", "")[:60])
        for name, page in pages.items()
        for image in page.images
        if not image.get("alt") or re.fullmatch(r"(\.\./)*_images/\S+", image["alt"])
    ]
    assert bare == []


def test_chapters_can_be_opened_in_colab(pages):
    url = chapters.repository_url().replace("https://github.com", "github")
    for path in chapters.paths():
        name = path.relative_to(chapters.ROOT).as_posix()
        page = pages[name.replace(".ipynb", ".html")]
        wanted = f"https://colab.research.google.com/{url}/blob/main/{name}"
        assert wanted in page.links, name
