"""Every page: nothing in its console, nothing from another host, no dead link, nothing that axe-core finds; its explorers
move by keyboard, its questions answer. The tests of one page share it, loaded once (`opened`)."""

import gzip
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlparse

import axe_playwright_python
import pytest
from fontTools.ttLib import TTFont

from book import telling
from book.cells import questions
from tests.browser.visited import BELOW, PHONE, SCREEN, SITE, documents

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
# A page's structure is the same in both themes, and its colours are the same at both widths: what cannot differ is not
# looked at twice. At a phone's width the places differ, and the frame around the text, which all pages share. Contrast takes
# axe as long as all other rules together, so it is asked of one element of each look: words of one colour, size and weight
# on one ground, of which a page has some dozens.
RUN_AXE = """async ([kind, whole]) => {
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))); // in its theme, at its width
  const NAMED = "label-content-name-mismatch"; // an experiment of axe until 4.14, which has it among its rules
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const CONTRAST = "color-contrast";
  const quiet = { resultTypes: ["violations"], preload: false }; // preloading would ask for style sheets once more
  const found = [];
  if (kind === "phone" && !whole) {
    const values = ["target-size", "scrollable-region-focusable"];
    found.push(...(await axe.run(document, { ...quiet, runOnly: { type: "rule", values } })).violations);
  } else if (kind !== "dark") {
    const links = { enabled: kind === "light" }; // told from the words around them by their colour
    const rules = { [CONTRAST]: { enabled: false }, [NAMED]: { enabled: true }, "link-in-text-block": links };
    found.push(...(await axe.run(document, { ...quiet, runOnly: tags, rules })).violations);
  }
  if (kind !== "phone") {
    const include = [...looks().values()];
    found.push(...(await axe.run({ include }, { ...quiet, runOnly: { type: "rule", values: [CONTRAST] } })).violations);
  }
  const first = ({ html, target, failureSummary }) => [html.slice(0, 200), target.join(" "), failureSummary];
  return found.map((v) => [v.id, v.nodes.length, ...first(v.nodes[0])]);

  function looks() {
    const hosts = [...document.querySelectorAll("*")].filter((element) => element.shadowRoot);
    const roots = [document.body, ...hosts.map((host) => host.shadowRoot)];
    const found = new Map();
    for (const element of roots.flatMap((root) => [...root.querySelectorAll("*:not(script, style)")])) {
      const words = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
      if (!words || !element.checkVisibility({ visibilityProperty: true })) continue;
      const { color, fontSize, fontWeight } = getComputedStyle(element);
      const look = [color, fontSize, fontWeight, element.ariaDisabled, ...ground(element)].join(" ");
      if (!found.has(look)) found.set(look, element);
    }
    return found;
  }
  function ground(element) {
    const under = [];
    for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(at);
      under.push(backgroundImage, opacity);
      if (backgroundColor !== "rgba(0, 0, 0, 0)") under.push(backgroundColor);
      if (/^rgb\\(/.test(backgroundColor)) break;
    }
    return under.filter((one) => one !== "none" && one !== "1");
  }
}"""


def by_axe(tab, whole=True):
    """(look, what axe-core finds) in light, in the dark and at a phone's width; the tab has that look meanwhile. whole: all
    rules at a phone's width, too.
    """
    tab.evaluate(AXE)
    for kind, theme, size in (
        ("light", "light", SCREEN),
        ("dark", "dark", SCREEN),
        ("phone", "light", PHONE),
    ):
        tab.set_viewport_size(size)
        tab.emulate_media(color_scheme=theme)
        tab.evaluate(THEME, theme)
        tab.wait_for_timeout(100)  # scripts that look at the page's width
        yield kind, tab.evaluate(RUN_AXE, [kind, whole])


# One page of each frame: a chapter, the front page and those that the build adds.
FRAMES = {"book/01_start_here.html", *documents()[:1], *documents()[-3:]}
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
# What a reader sees, or is read aloud, between each prediction's form and the end of its section; and the contents.
IN_SIGHT = """() => {
  const seen = (element) => element.checkVisibility({ visibilityProperty: true });
  const walk = (node) => {
    if (node.nodeType === 3) return [node.data];
    if (node.nodeType !== 1 || node.matches("script, style, noscript, .gl-q") || !seen(node)) return [];
    const said = [node.getAttribute("aria-label"), node.getAttribute("alt")].filter(Boolean);
    return [...said, ...[...node.childNodes, ...(node.shadowRoot?.childNodes ?? [])].flatMap(walk)];
  };
  const behind = (form) => {
    const said = [];
    for (let at = form; at !== form.closest("section"); at = at.parentElement)
      for (let next = at.nextSibling; next; next = next.nextSibling) said.push(...walk(next));
    return said.join(" ");
  };
  const forms = [...document.querySelectorAll(".gl-q[data-mode=predict]")];
  const headings = document.querySelectorAll("article :is(h1, h2, h3, h4), .bd-toc-nav a, .bd-links a");
  return [forms.map((form) => [form.dataset.name, behind(form)]), [...headings].map((heading) => heading.textContent.trim())];
}"""
FOLDS = (
    "(open) => document.querySelectorAll('details.gl-after').forEach((fold) => (fold.open = open))"
)
# Words of drawings that lie over others, or reach beyond their drawing's edge. (A text with many x holds one word per x.)
LABELS = """() => {
  const roots = [document, ...[...document.querySelectorAll(".gl-explorer")].map((host) => host.shadowRoot).filter(Boolean)];
  const drawings = roots.flatMap((root) => [...root.querySelectorAll(".gl svg[viewBox], .picture svg[viewBox]")]);
  const found = [];
  for (const drawing of drawings) {
    if (!drawing.checkVisibility()) continue;
    const edge = drawing.getBoundingClientRect();
    const boxes = [...drawing.querySelectorAll("text:not([x*=' '])")].map((text) => {
      const { left, right, top, bottom } = text.getBoundingClientRect();
      const spare = 0.2 * (bottom - top);
      return { words: text.textContent, left, right, top: top + spare, bottom: bottom - spare };
    }).filter((box) => box.words.trim() && box.right > box.left).sort((a, b) => a.top - b.top);
    boxes.forEach((one, i) => {
      if (one.left < edge.left - 2 || one.right > edge.right + 2 || one.top < edge.top - 2 || one.bottom > edge.bottom + 2)
        found.push(`cut: ${one.words}`);
      for (let j = i + 1; j < boxes.length && boxes[j].top < one.bottom; j++) {
        const other = boxes[j];
        const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const high = Math.min(one.bottom, other.bottom) - other.top;
        if (wide > 2 && high > 2) found.push(`overlap: ${one.words} / ${other.words}`);
      }
    });
  }
  return found;
}"""
# Words of a figure, such as its caption, that run out of its card.
OUTSIDE = """() => [...document.querySelectorAll(".gl > :not(.gl-scroll)")]
  .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent.slice(0, 60))"""
# Lines of a listing that begin before their own column, on the sign or the number beside them.
BEFORE = """() => [...document.querySelectorAll(".gl-code td.c")].filter((cell) => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  const shown = cell.clientWidth && cell.textContent.trim();
  return shown && text.getBoundingClientRect().left < cell.getBoundingClientRect().left - 1;
}).map((cell) => cell.textContent.slice(0, 60))"""
# What a reader of a desktop would have to scroll sideways.
SIDEWAYS = """() => {
  const roots = [document, ...[...document.querySelectorAll(".gl-explorer")].map((host) => host.shadowRoot)].filter(Boolean);
  const all = roots.flatMap((root) => [...root.querySelectorAll(root === document ? "article *" : "*")]);
  return all.filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1)
    .filter((e) => /auto|scroll/.test(getComputedStyle(e).overflowX))
    .filter((e) => e.checkVisibility({ visibilityProperty: true }))
    .map((e) => `${e.scrollWidth - e.clientWidth} pixels: ${e.textContent.trim().slice(0, 60)}`);
}"""
# The characters of an icon's font that stand before or behind what the page shows.
ICONS = """() => {
  const shown = [...document.querySelectorAll("body *:not(svg *)")];
  const words = shown.flatMap((e) => ["::before", "::after"].map((part) => getComputedStyle(e, part).content)).join("");
  return [...new Set(words.match(/[\\ue000-\\uf8ff]/g))];
}"""
STILL = "*, *::before, *::after { transition: none !important; animation: none !important; }"


@cache
def ids(name: str) -> frozenset:
    """What a link to this page may have behind its `#`."""
    text = (SITE / name).read_text(encoding="utf-8")
    return frozenset(re.findall(r'\bid="([^"]+)"', text))


@cache
def drawn() -> frozenset:
    """The characters for which the book's icons have a picture."""
    fonts = (SITE / "_static").rglob("*.woff")
    return frozenset(chr(code) for font in fonts for code in TTFont(font).getBestCmap())


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
    return pytest.mark.parametrize("opened", names, indirect=True, scope="module")


def pages_with(what: str) -> list[str]:
    return [n for n in documents() if (SITE / n).exists() and what in (SITE / n).read_text("utf-8")]


def calm(opened) -> None:
    """Nothing was said in the page's console, nothing asked of another host."""
    host = urlparse(opened.tab.url).netloc
    web = (urlparse(url) for url in opened.asked)
    strangers = [u.geturl() for u in web if u.scheme.startswith("http") and u.netloc != host]
    assert opened.said == [], "the page's console"
    assert strangers == [], "asked of another host"


@pytest.mark.parametrize(
    ("asked", "page"),
    [
        ("license", "Questions that people ask"),
        ("cite", "Questions that people ask"),
        ("batched gemm", "Questions that people ask"),
        ("bank conflict", "Bank conflicts"),
        ("swizzle", "Swizzles"),
        ("coalescing", "One thread, one output"),
        ("split-k", "Shapes that are not square"),
    ],
)
def test_a_search_finds_a_terms_own_chapter_first(reader, site, asked, page):
    tab = reader.new_page()
    tab.goto(f"{site}search.html?q={asked.replace(' ', '+')}")
    first = tab.locator("#search-results ul.search li > a").first
    first.wait_for()
    assert page in first.inner_text()
    tab.close()


FIRST_LOAD = 450_000  # bytes, compressed as GitHub Pages does it


def test_a_first_visit_of_the_heaviest_page_is_light(tab, site):
    heaviest = max(documents(), key=lambda name: (SITE / name).stat().st_size)
    asked = []
    tab.on("response", lambda response: asked.append(unquote(urlparse(response.url).path)))
    tab.goto(site + heaviest, wait_until="networkidle")
    files = [SITE / path.removeprefix(BELOW) for path in asked if path.startswith(BELOW)]
    assert len(files) > 10
    loaded = sum(len(gzip.compress(file.read_bytes())) for file in files)
    assert loaded < FIRST_LOAD, sorted((file.stat().st_size, file.name) for file in files)[-5:]
    icon = tab.locator(".theme-switch-button .theme-switch:visible").first
    assert icon.evaluate(
        "(e) => document.fonts.check('900 16px \"Font Awesome 6 Free\"', getComputedStyle(e, '::before').content)"
    )


@each(pages_with('data-mode="predict"'))
def test_no_answer_is_in_sight_before_the_reader_has_answered(opened):
    forms, headings = opened.tab.evaluate(IN_SIGHT)
    assert forms
    asked = {name: questions.find(name) for name, _ in forms}
    told = [name for name, behind in forms if telling.told(behind, {name: asked[name].answer})]
    assert told == [], "their answers stand in sight behind their forms"
    telltale = [
        (heading, name)
        for heading in headings
        for name, question in asked.items()
        if question.unit and question.unit.split(" ")[0] in heading
        if telling.told(heading, {name: question.answer})
    ]
    assert telltale == []
    opened.tab.evaluate(FOLDS, True)  # the tests below look at the whole page


@each(documents())
def test_a_page_is_whole_and_reachable_in_light_dark_and_on_a_phone(opened):
    tab = opened.tab
    unfold(tab)
    calm(opened)
    assert dead(tab, opened.name) == []
    icons = set(tab.evaluate(ICONS))
    assert icons <= drawn(), f"shown as empty boxes: {icons - drawn()}"
    found = looked_at(opened)
    if any(rule == "color-contrast" for problems in found.values() for rule, *_ in problems):
        # On a busy machine about one load in 500 has one that the next has not, of unknown cause; a mistake has it always.
        tab.reload(wait_until="load")
        unfold(tab)
        found = looked_at(opened)
    assert found == {}, "\n".join(f"{k}: {p}" for k, all_ in found.items() for p in all_)


def unfold(tab) -> None:
    """Nothing moves, and nothing is folded."""
    tab.add_style_tag(content=STILL)
    tab.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")


def looked_at(opened) -> dict[str, list]:
    """{look: what axe-core finds}, of looks in which nothing is too wide, too small or over something else."""
    tab, found = opened.tab, {}
    for kind, problems in by_axe(tab, whole=opened.name in FRAMES):
        if problems:
            found[kind] = problems
        wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 1, f"{kind}: the page is {wide} pixels wider than its window"
        assert kind == "dark" or tab.evaluate(LABELS) == [], kind
        assert kind != "light" or tab.evaluate(SIDEWAYS) == []
        assert tab.evaluate(BEFORE) == [], kind
        assert kind != "phone" or tab.evaluate(OUTSIDE) == []
    assert tab.evaluate(SMALL) == [], "on a phone"
    return found


# Sets each explorer's controls to each value that one control may have, and to some drawn by chance: what it then shows is
# never blank, and never a number that is none.
SETTINGS = """(chances) => {
  let state = 1;
  const chance = (n) => (state = (state * 48271) % 2147483647) % n;
  const wrong = [];
  let tried = 0;
  for (const host of document.querySelectorAll(".gl-explorer")) {
    const root = host.shadowRoot;
    const inputs = [...root.querySelectorAll(".controls input[type=range], .controls select")];
    const start = inputs.map((input) => input.value);
    const values = (input) => input.options ? [...input.options].map((option) => option.value)
      : Array.from({ length: Math.floor((input.max - input.min) / (input.step || 1)) + 1 },
          (_, i) => String(+input.min + i * (input.step || 1)));
    const put = (setting) => {
      setting.forEach((value, i) => {
        if (inputs[i].value === value) return;
        inputs[i].value = value;
        inputs[i].dispatchEvent(new Event("input", { bubbles: true }));
      });
      tried += 1;
      const said = root.querySelector(".finding").textContent + root.querySelector(".picture").textContent;
      const drawn = root.querySelectorAll(".picture svg :is(rect, path, line, circle, text), .picture :is(td, pre)").length;
      if (drawn < 2 || /NaN|undefined|Infinity/.test(said + root.querySelector(".picture").innerHTML.slice(0, 20000)))
        wrong.push(`${host.dataset.kind} at ${setting.join(", ")}: ${drawn} shapes, "${said.slice(0, 60)}"`);
    };
    inputs.forEach((input, i) => {
      for (const value of values(input)) put(start.map((begun, j) => (i === j ? value : begun)));
      put(start);
    });
    for (let i = 0; i < chances; i += 1) put(inputs.map((input) => values(input)[chance(values(input).length)]));
    put(start);
  }
  return [tried, wrong.slice(0, 5)];
}"""


@each(pages_with('class="gl-explorer"'))
def test_an_explorer_is_never_blank_and_never_throws(opened):
    tried, wrong = opened.tab.evaluate(SETTINGS, 25)
    assert tried
    assert wrong == []
    calm(opened)


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
                # the words of a picture are long: not asked for once something has moved
                seen = seen or live.inner_text() + host.locator(".picture").inner_html() != before
        assert seen, f"{opened.name}: no key changed anything"
    calm(opened)


@each(pages_with("<td data-counted"))
def test_a_count_is_out_of_sight_until_the_reader_has_answered_or_asks(opened):
    cells = opened.tab.locator("td[data-counted]")
    assert cells.count()
    assert set(cells.all_inner_texts()) <= {"", "Show me"}  # "": within a closed fold
    opened.tab.eval_on_selector_all("details", "all => all.forEach((fold) => (fold.open = true))")
    assert set(cells.all_inner_texts()) == {"Show me"}
    cells.first.locator("button").click()
    assert cells.first.inner_text() not in ("", "Show me")


@each(pages_with('class="gl-q"'))
def test_a_question_answers(opened):
    tab = opened.tab
    tab.set_viewport_size(SCREEN)
    tab.evaluate(FOLDS, False)
    for form in tab.locator(".gl-q:visible").all():
        box = form.locator("input[type=text], input:not([type])")
        if box.count():
            box.first.fill("123456")
            box.first.press("Enter")
        else:
            form.locator("input[type=radio], button").first.click()
        assert form.get_attribute("data-state") not in (None, "", "open"), form.inner_text()
    assert tab.locator("details.gl-after:not([open])").count() == 0
    if tab.locator(".reading-time").count():
        told = tab.locator(".gl-given").inner_text()
        given, asked = map(int, re.findall(r"\d+", told))
        assert 0 < given <= asked == tab.locator(".gl-q").count(), told
    calm(opened)
