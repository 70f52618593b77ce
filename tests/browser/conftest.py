"""The rendered book in a real browser. `make test-browser` runs these; `make test`, which needs no browser, does not."""

import os
import re
from dataclasses import dataclass, field

import pytest
from xdist.scheduler import LoadScopeScheduling

from book import browser
from tests.browser.visited import BELOW, SCREEN, SITE

if not os.environ.get("GEMM_BROWSER"):
    collect_ignore_glob = ["test_*.py"]


class ByPage(LoadScopeScheduling):
    """All tests of a page in one process, which loads it once; other tests by their module."""

    def _split_scope(self, nodeid: str) -> str:
        page = re.search(r"\[(\S+\.html)\]$", nodeid)
        return page[1] if page else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config, log):
    return ByPage(config, log)


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


@dataclass
class Opened:
    """A page that has loaded, what its console said and what it asked the network for."""

    name: str
    tab: object
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def reader(chromium):
    """One profile for all pages, whose style sheets and scripts it then has."""
    context = chromium.new_context(viewport=SCREEN, color_scheme="light")
    yield context
    context.close()


@pytest.fixture(scope="module")
def opened(reader, site, request):
    """The page that the test names, in the light theme, loaded once for all tests of it; nothing that it remembers stays."""
    page = Opened(request.param, tab := reader.new_page())
    tab.set_default_timeout(30_000)
    tab.on(
        "console", lambda m: page.said.append(m.text) if m.type in ("error", "warning") else None
    )
    tab.on("pageerror", lambda error: page.said.append(str(error)))
    tab.on("request", lambda request: page.asked.append(request.url))
    tab.goto(site + page.name, wait_until="load")
    yield page
    tab.evaluate("localStorage.clear()")
    tab.close()


@pytest.fixture
def tab(chromium):
    """A page with a profile of its own, on a desktop's screen, in the light theme."""
    context = chromium.new_context(viewport=SCREEN, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(30_000)
    yield page
    context.close()
