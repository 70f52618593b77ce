"""Every link into the glossary must lead to a term that is there."""

import re
from pathlib import Path

import pytest

from book import chapters

BOOK = Path(chapters.ROOT) / "book"
LINK = re.compile(r"glossary\.md#([\w-]+)")


def anchor(heading: str) -> str:
    """The anchor that Sphinx gives a heading, as MyST does: `mma.sync` -> "mmasync"."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def anchors(text: str) -> list[str]:
    return [anchor(heading) for heading in re.findall(r"^#{1,3} (.+)$", text, re.MULTILINE)]


def dangling(text: str, known) -> list[str]:
    """Anchors that this text links to and the glossary lacks."""
    return sorted(set(LINK.findall(text)) - set(known))


@pytest.fixture(scope="module")
def known():
    return anchors((BOOK / "glossary.md").read_text(encoding="utf-8"))


def test_an_unknown_term_is_noticed(known):
    assert dangling("a [warp](glossary.md#warp) and [it](glossary.md#mma-sync)", known) == [
        "mma-sync"
    ]
    assert dangling("[it](../glossary.md#mmasync)", known) == []


def test_terms_are_unique(known):
    assert len(known) == len(set(known)) > 50


def test_links_into_the_glossary_lead_to_terms(notebooks, known):
    linking = 0
    for name, notebook in notebooks.items():
        text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
        linking += bool(LINK.search(text))
        assert dangling(text, known) == [], name
    assert linking > len(notebooks) / 2


def test_links_of_pages_and_of_the_glossary_itself(known):
    for page in BOOK.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert dangling(text, known) == [], page.name
    inside = set(re.findall(r"\]\(#([\w-]+)\)", (BOOK / "glossary.md").read_text(encoding="utf-8")))
    assert inside <= set(known)
