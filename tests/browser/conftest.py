"""The rendered book in a real browser. `make test-browser` runs these; `make test`, which needs no browser, does not."""

import os

import pytest

from book import browser
from tests.browser.visited import BELOW, SCREEN, SITE

if not os.environ.get("GEMM_BROWSER"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def site():
    if not (SITE / "index.html").exists():
        pytest.fail("the book is not rendered: run `make book` first (`make test-browser` does)")
    with browser.served(SITE, BELOW) as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    with browser.launched() as launched:
        yield launched


@pytest.fixture
def tab(chromium):
    """A page with a profile of its own, on a desktop's screen, in the light theme."""
    context = chromium.new_context(viewport=SCREEN, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(30_000)
    yield page
    context.close()
