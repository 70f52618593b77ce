"""The rendered book: it works with no network, and its pages are whole."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote, urlparse

import pytest
import yaml

from book import address, chapters, edition
from kernels import RUNGS
from kernels.alone import line

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


def toc_files() -> list[str]:
    toc = yaml.safe_load((chapters.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"]] + [c["file"] for part in toc["parts"] for c in part["chapters"]]


def test_every_page_of_the_table_of_contents_is_there(pages):
    assert {f"{name}.html" for name in toc_files()} <= set(pages)


def test_one_chapter_says_how_each_rung_is_built_alone(site):
    texts = [
        unescape(path.read_text(encoding="utf-8")) for path in sorted(site.glob("book/*.html"))
    ]
    for rung in (rung for rung in RUNGS.values() if rung.path):
        assert sum(line(rung) in text for text in texts) == 1, rung.name


def test_links_inside_the_book_lead_somewhere(pages, site):
    broken, published = [], address.known()
    for name, page in pages.items():
        for link in page.links:
            where = urlparse(link)
            if where.scheme or where.netloc or not (where.path or where.fragment):
                continue
            path = (site / name).parent / unquote(where.path) if where.path else site / name
            if where.path.startswith("/"):  # 404.html alone, shown at any depth
                assert name == "404.html", link
                path = site / unquote(where.path).removeprefix(urlparse(published.site).path)
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


def test_a_page_links_to_the_repository_that_its_build_was_told_of_and_to_no_other(pages):
    where = address.known()
    ours = re.compile(
        r"colab\.research\.google|mybinder\.org|/edit/main/|github\.dev|/issues/new|/releases/"
    )
    for path in chapters.paths():
        name = path.relative_to(chapters.ROOT).as_posix()
        page = pages[name.replace(".ipynb", ".html")]
        found = {link for link in page.links if ours.search(link)}
        if where is None or not where.on_github:
            assert found == set(), name
            continue
        wanted = {
            where.colab(name),
            where.binder(name),
            f"{where.repository.replace(address.GITHUB, address.EDITOR)}/blob/main/{name}",
            *(f"{where.repository}/releases/latest/download/{file}" for file in edition.files()),
        }
        assert wanted < found, name
        assert all(where.name in link for link in found), name


def test_a_downloaded_notebook_knows_the_address(site):
    where = address.known()
    line = json.dumps(json.dumps(where.repository if where else ""))[1:-1]
    for path in chapters.paths():
        copy = site / "_sources" / path.relative_to(chapters.ROOT)
        assert f'get(\\"GEMM_REPOSITORY\\") or {line}' in copy.read_text(encoding="utf-8"), (
            path.name
        )


def test_every_page_describes_itself_and_says_which_edition_it_is(pages, site):
    seen = set()
    for name in (f"{n}.html" for n in toc_files()):
        text = (site / name).read_text(encoding="utf-8")
        (described,) = re.findall(r'<meta name="description" content="([^"]{40,})"', text)
        assert f"Version {edition.version()}, {edition.date()}." in text, name
        assert 'rel="icon"' in text, name
        seen.add(described)
    assert len(seen) > len(toc_files()) / 2  # each its own, where it has a paragraph


def test_the_pages_for_machines_follow_the_address(site):
    where, missing = address.known(), (site / "404.html").read_text(encoding="utf-8")
    base = urlparse(where.site).path if where and where.site else "./"
    assert f'href="{base}index.html"' in missing
    sitemap = site / "sitemap.xml"
    assert sitemap.exists() == bool(where and where.site)
    if sitemap.exists():
        listed = re.findall(r"<loc>([^<]+)</loc>", sitemap.read_text(encoding="utf-8"))
        assert all((site / link.removeprefix(where.site)).exists() for link in listed)
        assert len(listed) > len(chapters.paths())
