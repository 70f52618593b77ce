"""Every page: nothing in its console, nothing from another host, no dead link, nothing that axe-core finds."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlparse

import axe_playwright_python
import pytest

from tests.browser.visited import BELOW, PHONE, SCREEN, SITE, documents

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
# A page's structure is the same in both themes, and its colours are the same at both widths: what cannot differ is not
# looked at twice.
RUN_AXE = """async (kind) => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const found = await axe.run(document, {
    resultTypes: ["violations"],
    preload: false, // it would ask for style sheets once more
    ...(kind === "dark"
      ? { runOnly: { type: "rule", values: ["color-contrast"] } }
      : { runOnly: tags, rules: { "color-contrast": { enabled: kind === "light" } } }),
  });
  return found.violations.map((v) => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 200), v.nodes[0].target.join(" ")]);
}"""
THEME = "(theme) => Object.assign(document.documentElement.dataset, { mode: theme, theme })"
STILL = "*, *::before, *::after { transition: none !important; animation: none !important; }"


@cache
def ids(name: str) -> frozenset:
    """What a link to this page may have behind its `#`."""
    text = (SITE / name).read_text(encoding="utf-8")
    return frozenset(re.findall(r'\bid="([^"]+)"', text))


def dead(tab, name: str) -> list[str]:
    """Links of the page, as it stands after its scripts ran, that lead nowhere within the book."""
    here = urlparse(tab.url)
    found = []
    for link in tab.eval_on_selector_all("a[href]", "all => all.map((a) => a.href)"):
        where = urlparse(link)
        if where.netloc != here.netloc:
            continue
        target = unquote(where.path).removeprefix(BELOW)
        anchor = unquote(where.fragment)
        if not where.path.startswith(BELOW) or not (SITE / target).exists():
            found.append(link)
        elif anchor and target == name:
            if tab.evaluate("(id) => !document.getElementById(id)", anchor):
                found.append(link)
        elif anchor and target.endswith(".html") and anchor not in ids(target):
            found.append(link)
    return found


@pytest.mark.parametrize("name", documents())
def test_a_page_is_whole_and_reachable_in_light_dark_and_on_a_phone(tab, site, name):
    said, asked = [], []
    tab.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda r: asked.append(r.url))
    tab.goto(site + name, wait_until="load")
    tab.add_style_tag(content=STILL)
    host = urlparse(site).netloc
    strangers = [
        u for u in asked if urlparse(u).scheme.startswith("http") and urlparse(u).netloc != host
    ]
    assert said == [], "the page's console"
    assert strangers == [], "asked of another host"
    assert dead(tab, name) == []

    tab.evaluate(AXE)
    found = {}
    for kind, theme, size in (
        ("light", "light", SCREEN),
        ("dark", "dark", SCREEN),
        ("phone", "light", PHONE),
    ):
        tab.set_viewport_size(size)
        tab.emulate_media(color_scheme=theme)
        tab.evaluate(THEME, theme)
        tab.wait_for_timeout(100)  # scripts that look at the page's width
        if problems := tab.evaluate(RUN_AXE, kind):
            found[kind] = problems
        wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 1, f"{kind}: the page is {wide} pixels wider than its window"
    assert found == {}, "\n".join(f"{k}: {p}" for k, all_ in found.items() for p in all_)
