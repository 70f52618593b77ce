"""The book on paper: one chapter, printed as `make release` prints all of them."""

import re

import pytest
from pypdf import PdfReader

from book import chapters, printed
from tests.browser.visited import SITE

PAGE = "book/04_tiles_in_shared_memory"


@pytest.fixture(scope="module")
def paper(tmp_path_factory, chromium):
    made = tmp_path_factory.mktemp("print") / "chapter.pdf"
    return PdfReader(printed.pdf(SITE, [("I · CUDA cores", [PAGE])], made, chromium))


@pytest.fixture(scope="module")
def sheets(paper):
    return [" ".join(sheet.extract_text().split()) for sheet in paper.pages]


def flat(items):
    return [one for item in items for one in (flat(item) if isinstance(item, list) else [item])]


def test_it_is_tagged_and_its_bookmarks_are_the_headings_with_their_numbers(paper):
    catalogue = paper.trailer["/Root"]
    assert catalogue["/MarkInfo"]["/Marked"]
    assert catalogue["/StructTreeRoot"]["/K"]
    assert catalogue["/Lang"]
    titles = [item.title for item in flat(paper.outline)]
    cells = chapters.read(chapters.ROOT / f"{PAGE}.ipynb").cells
    source = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    headings = re.findall(r"(?m)^#{2,3} (.*)$", source)
    assert titles[:2] == ["I · CUDA cores", "4. Tiles in shared memory"]
    assert titles[2:] == [*headings, "Solutions"]


def test_nothing_asks_to_be_clicked(sheets):
    said = " ".join(sheets)
    for dead in ("Commit, and see", "Show the code", "Show me", "Check", "unfold", "What the columns mean", "Reset"):  # fmt: skip
        assert not re.search(rf"\b{dead}\b", said), dead


def test_solutions_stand_behind_all_tasks(sheets):
    said = " ".join(sheets)
    last = max(
        found.start() for found in re.finditer(r"Exercise 4\.\d", said.split("Solution to")[0])
    )
    assert 0 < last < said.index("Solution to Exercise 4.1")
    assert said.count("Solution to Exercise 4.") == said.split("Solution to")[0].count(
        "Exercise 4."
    )


def test_no_title_is_torn_from_its_figure(sheets):
    page = (SITE / f"{PAGE}.html").read_text(encoding="utf-8")
    heads = re.findall(
        r'class="gl-title">(.*?)</p>|<i style="background[^>]*></i>([^<]+)</span>', page
    )
    titles = {re.sub(r"<[^>]+>", "", title or key).rstrip("#") for title, key in heads}
    assert len(titles) > 10
    ends = [re.sub(r" \d+$", "", sheet)[-60:] for sheet in sheets]
    assert [t for t in titles for end in ends if end.endswith(" ".join(t.split())[-60:])] == []


def test_links_lead_within_the_document_or_to_the_world(paper):
    notes = [note.get_object() for sheet in paper.pages for note in sheet.get("/Annots", [])]
    actions = [note["/A"]["/URI"] for note in notes if "/URI" in note.get("/A", {})]
    assert notes
    assert [uri for uri in actions if "127.0.0.1" in uri] == []


@pytest.mark.parametrize("format", ["A4", "Letter"])
def test_the_sheet_is_two_pages(site, chromium, tmp_path, format):
    tab = chromium.new_page()
    tab.goto(f"{site}book/sheet.html", wait_until="load")
    margins = dict.fromkeys(("top", "bottom", "left", "right"), "10mm")
    tab.pdf(path=tmp_path / "sheet.pdf", format=format, margin=margins)
    tab.close()
    assert len(PdfReader(tmp_path / "sheet.pdf").pages) == 2
