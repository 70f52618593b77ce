"""The page that runs: its cells in Pyodide, in Node and in a browser. `make test-page` puts Python into the rendered
pages and runs these; what needs neither is in `make test` as well. The browser is what GEMM_PAGE names.
"""

import os

import pytest

from book import browser, page_python
from tests.browser.visited import BELOW, SCREEN, SITE

if not os.environ.get("GEMM_PAGE"):
    collect_ignore_glob = ["test_node.py", "test_button.py"]


@pytest.fixture(scope="session")
def place():
    """The folder of the rendered pages that holds Python."""
    if not (SITE / page_python.PLACE / "numpy.zip").exists():
        pytest.fail("the rendered pages have no Python: run `make page` (`make test-page` does)")
    return SITE / page_python.PLACE


@pytest.fixture(scope="session")
def site(place):
    with browser.served(SITE, BELOW) as address:
        yield address


@pytest.fixture(scope="session")
def opened():
    with browser.launched(os.environ["GEMM_PAGE"]) as launched:
        yield launched


@pytest.fixture
def tab(opened):
    context = opened.new_context(viewport=SCREEN, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(30_000)
    yield page
    context.close()
