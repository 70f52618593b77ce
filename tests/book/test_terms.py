"""What a page shows of a term on hover is the glossary's definition."""

import importlib.util
import json
import re

import pytest

from book import chapters

SOURCE = chapters.ROOT / "book" / "_sphinx" / "terms.py"
spec = importlib.util.spec_from_file_location("terms", SOURCE)
terms = importlib.util.module_from_spec(spec)
spec.loader.exec_module(terms)


def test_a_definition_is_words_only():
    text = "A *thing* of a [warp](#warp) (`x`), see {cite:p}`guide`. 5<!--= ms() --> ms.\n\nMore."
    assert terms.plain(text) == "A thing of a warp (x), see. 5 ms."


def test_every_term_of_the_glossary_has_one():
    found = terms.definitions()
    assert len(found) > 50
    assert all(len(words) > 10 for _, words in found.values())
    assert found["mmasync"][0] == "mma.sync"


def test_a_page_has_the_definitions_that_it_links_to(site):
    page = (site / "book" / "02_one_thread_one_output.html").read_text(encoding="utf-8")
    linked = set(terms.LINK.findall(page))
    given = json.loads(re.search(r"window\.gemmTerms=(\{.*?\});</script>", page).group(1))
    assert linked and set(given) == linked
    assert given["sector"][1] == terms.definitions()["sector"][1]


@pytest.mark.parametrize("name", ["terms.js"])
def test_the_script_is_bundled(site, name):
    assert (site / "_static" / name).exists()
