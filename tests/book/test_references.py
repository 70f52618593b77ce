"""Sources: each is cited, and has an address that the page of references shows."""

import re

import pytest

from book import chapters, markdown

BOOK = chapters.ROOT / "book"
CITE = re.compile(r"\{cite:\w+\}`([^`]+)`")
# Styles print `url` and `doi` of every kind of entry; `howpublished` of @misc alone.
SHOWN = re.compile(r"^\s*(?:url|doi)\s*=", re.MULTILINE)


def entries(text: str) -> dict[str, str]:
    """`{key: entry}` of a BibTeX file."""
    parts = re.split(r"^(?=@)", text, flags=re.MULTILINE)[1:]
    return {re.match(r"@\w+\{([^,]+),", part)[1]: part for part in parts}


def has_address(entry: str) -> bool:
    return bool(SHOWN.search(entry)) or (entry.startswith("@misc") and r"\url{" in entry)


def cited(text: str) -> set[str]:
    return {key.strip() for keys in CITE.findall(markdown.myst(text)) for key in keys.split(",")}


@pytest.fixture(scope="module")
def sources():
    return entries((BOOK / "references.bib").read_text(encoding="utf-8"))


def test_a_source_without_an_address_is_noticed():
    assert has_address("@misc{a,\n  howpublished = {\\url{https://a.b}}\n}")
    assert not has_address("@manual{a,\n  howpublished = {\\url{https://a.b}}\n}")
    assert not has_address("@misc{a,\n  howpublished = {Web post}\n}")


def test_every_source_has_an_address(sources):
    assert [key for key, entry in sources.items() if not has_address(entry)] == []


def test_what_is_cited_is_there_and_what_is_there_is_cited(sources, notebooks):
    texts = [page.read_text(encoding="utf-8") for page in BOOK.glob("*.md")]
    for notebook in notebooks.values():
        texts += [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert cited("\n".join(texts)) == set(sources)
