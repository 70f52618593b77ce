"""Every page: nothing in its console, nothing from another host, no dead link, nothing that axe-core finds; its explorers
move by keyboard, its questions answer. The tests of one page share it, loaded once (`opened`)."""

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
# Words of drawings and explorers that are smaller than ten pixels as they are shown; the layout explorer draws as many
# cells as the reader asks for, and makes their words fit.
SMALL = """() => {
  const hosts = [...document.querySelectorAll(".gl-explorer:not([data-kind=layouts])")];
  const roots = [document, ...hosts.map((host) => host.shadowRoot)];
  const words = roots.flatMap((root) => [...root.querySelectorAll("svg text")]);
  return words.filter((text) => text.getBoundingClientRect().width).flatMap((text) => {
    const scale = text.getScreenCTM();
    const size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(scale.a, scale.b);
    return size < 9.9 ? [`${text.textContent}: ${size.toFixed(1)} pixels`] : [];
  }).slice(0, 5);
}"""
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


def each(names: list[str]):
    """A test of each of these pages. Those of one page come one after another, in one of the processes that test."""
    alone = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]
    return pytest.mark.parametrize("opened", alone, indirect=True, scope="module", ids=names)


def pages_with(what: str) -> list[str]:
    return [n for n in documents() if (SITE / n).exists() and what in (SITE / n).read_text("utf-8")]


def calm(opened) -> None:
    """Nothing was said in the page's console, nothing asked of another host."""
    host = urlparse(opened.tab.url).netloc
    web = (urlparse(url) for url in opened.asked)
    strangers = [u.geturl() for u in web if u.scheme.startswith("http") and u.netloc != host]
    assert opened.said == [], "the page's console"
    assert strangers == [], "asked of another host"


@each(documents())
def test_a_page_is_whole_and_reachable_in_light_dark_and_on_a_phone(opened):
    tab = opened.tab
    tab.add_style_tag(content=STILL)
    calm(opened)
    assert dead(tab, opened.name) == []

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
    assert tab.evaluate(SMALL) == [], "on a phone"
    assert found == {}, "\n".join(f"{k}: {p}" for k, all_ in found.items() for p in all_)


@each(pages_with('class="gl-explorer"'))
def test_an_explorer_moves_by_keyboard_and_says_its_state(opened):
    tab = opened.tab
    tab.set_viewport_size(SCREEN)
    for host in tab.locator(".gl-explorer").all():
        controls = host.locator(".controls input:visible, .controls select:visible")
        if not controls.count():  # tabs of drawings
            continue
        live = host.locator(".finding")
        assert live.get_attribute("aria-live") == "polite"
        for control in controls.all():
            assert control.evaluate("(e) => e.labels[0].textContent.trim().length") > 0
        assert host.locator("svg[role=img]").first.get_attribute("aria-label")
        before, seen = live.inner_text() + host.locator(".picture").inner_html(), False
        for control in controls.all():
            control.focus()
            assert control.evaluate("(e) => getComputedStyle(e).outlineStyle") != "none"
            if control.get_attribute("type") == "text":
                continue
            for key in ("ArrowRight", "ArrowLeft", "ArrowLeft"):
                control.press(key)
                seen |= live.inner_text() + host.locator(".picture").inner_html() != before
        assert seen, f"{opened.name}: no key changed anything"
    calm(opened)


@each(pages_with("<td data-counted"))
def test_a_count_is_out_of_sight_until_the_reader_has_answered_or_asks(opened):
    cells = opened.tab.locator("td[data-counted]")
    assert cells.count()
    assert set(cells.all_inner_texts()) == {"Show me"}
    cells.first.locator("button").click()
    assert cells.first.inner_text() not in ("", "Show me")


@each(pages_with('class="gl-q"'))
def test_a_question_answers(opened):
    tab = opened.tab
    tab.set_viewport_size(SCREEN)
    for form in tab.locator(".gl-q").all():
        box = form.locator("input[type=text], input:not([type])")
        if box.count():
            box.first.fill("123456")
            box.first.press("Enter")
        else:
            form.locator("input[type=radio], button").first.click()
        assert form.get_attribute("data-state") not in (None, "", "open"), form.inner_text()
    calm(opened)
