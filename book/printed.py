"""The book on paper: all pages as one document, which the browser prints with tags, bookmarks and links that lead within it.

Each page is opened as a reader sees it, and taken out of its frame: what asks to be clicked is left out, what a reader would
unfold is unfolded, and solutions stand at the end of their page. An explorer is printed as it opens.
"""

import html
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

from book import browser, edition

TITLE = "The GEMM Ladder"
MARGINS = {"top": "12mm", "bottom": "14mm", "left": "15mm", "right": "15mm"}
SCALE = 0.78  # of a page as a browser shows it
FOOTER = (
    '<div style="width:100%;font:8px sans-serif;color:#666;text-align:center">'
    '<span class="pageNumber"></span></div>'
)

# Gives the page's article as HTML that needs no script. `here`: the page's name; anchors get it in front of theirs.
TAKE = """(here) => {
  const article = document.querySelector("article");
  const drop = (what) => article.querySelectorAll(what).forEach((element) => element.remove());
  for (const host of article.querySelectorAll(".gl-explorer")) {
    const root = host.shadowRoot;
    if (!root) continue;
    const set = [...root.querySelectorAll(".controls label")].filter((label) => label.style.display !== "none").map((label) => {
      const chosen = label.querySelector("select")?.selectedOptions[0]?.textContent ?? label.querySelector("[type=text]")?.value;
      return label.querySelector(".name").textContent + (chosen === undefined ? "" : ` ${chosen}`);
    });
    root.querySelector(".controls").textContent = set.join(" · ");
    root.querySelector(".tools").remove();
    const still = document.createElement("div");
    still.innerHTML = "<template></template>";
    still.firstChild.setAttribute("shadowrootmode", "open");
    still.firstChild.innerHTML = root.innerHTML;
    host.replaceWith(still);
  }
  for (const counted of article.querySelectorAll("td[data-counted]")) counted.innerHTML = counted.dataset.counted;
  for (const row of article.querySelectorAll("table.gl-said tr")) [3, 1].forEach((column) => row.children[column]?.remove());
  for (const form of article.querySelectorAll(".gl-q[data-mode=check]")) form.closest("div.cell, figure").remove();
  for (const fold of article.querySelectorAll("details.gl-after")) {
    fold.querySelector("summary").remove();
    fold.replaceWith(...fold.childNodes);
  }
  drop("script, noscript, form, button, details, a.headerlink, .copybtn, .toggle-details__summary, .gl-narrow, .prev-next-area");
  for (const folded of article.querySelectorAll(".toggle-hidden, .toggle")) folded.classList.remove("toggle-hidden", "toggle");
  for (const chosen of article.querySelectorAll("select")) chosen.replaceWith(chosen.selectedOptions[0]?.textContent ?? "");
  drop("input");
  const solutions = [...article.querySelectorAll("div.solution")];
  if (solutions.length) {
    const end = document.createElement("section");
    end.innerHTML = "<h2>Solutions</h2>";
    end.append(...solutions);
    const alone = article.querySelector(".gl-alone");
    if (alone) article.querySelector("section").append(alone);
    article.querySelector("section").append(end);
  }
  for (const cell of article.querySelectorAll("div.cell, div.cell_output, div.cell_input"))
    if (!cell.textContent.trim() && !cell.querySelector("svg, img, template")) cell.remove();

  const root = document.documentElement.dataset.content_root;
  const site = new URL(root, location.href).href;
  const anchor = (hash) => (hash ? `--${hash}` : "");
  for (const link of article.querySelectorAll("a[href]")) {
    if (!link.href.startsWith(site)) continue;
    const [page, hash] = link.href.slice(site.length).split("#");
    if (/\\.html$/.test(page)) link.setAttribute("href", `#${page.replace(/\\.html$/, "")}${anchor(hash)}`);
    else link.replaceWith(...link.childNodes);
  }
  for (const image of article.querySelectorAll("img")) image.setAttribute("src", image.src);
  for (const name of ["id", "for", "aria-labelledby", "aria-describedby"])
    for (const element of article.querySelectorAll(`[${name}]`))
      if (!element.closest("svg")) element.setAttribute(name, `${here}--${element.getAttribute(name)}`);
  for (const level of [5, 4, 3, 2, 1])
    for (const heading of article.querySelectorAll(`h${level}`)) {
      const lower = document.createElement(`h${level + 1}`);
      lower.append(...heading.childNodes);
      lower.className = `was-h${level}`;
      heading.replaceWith(lower);
    }
  const styles = [...document.querySelectorAll("article style")].map((style) => style.textContent);
  drop("style");
  return [article.innerHTML, styles];
}"""

CSS = """
html { font-size: 13px; background: #fff; }
body { margin: 0; }
main, article { max-width: none !important; width: auto !important; padding: 0 !important; margin: 0 !important; display: block; }
.part { break-before: page; font-size: 2.6em; margin: 0 0 1em; color: #555; }
.page { break-before: page; } .part + .page { break-before: auto; }
.was-h1 { font-size: 2.1em; margin: 0 0 0.4em; } .was-h2 { font-size: 1.6em; margin: 1.2em 0 0.4em; }
.was-h3 { font-size: 1.25em; margin: 1em 0 0.3em; } .was-h4 { font-size: 1.1em; margin: 0.8em 0 0.3em; }
h1, h2, h3, h4, h5, .gl-title, .gl-legend, .admonition-title, p:has(> strong:only-child) { break-after: avoid; }
figure, table, .admonition, .solution, .takeaways-of, svg { break-inside: avoid; }
div.cell_output, div.cell_input, div.highlight, pre { break-inside: avoid; }
.gl table:not(.gl-code) :is(th, td) { white-space: normal !important; overflow-wrap: anywhere; }
.gl table:not(.gl-code) thead th { overflow-wrap: break-word; }
p, li { orphans: 3; widows: 3; }
pre, pre.gl-listing { white-space: pre-wrap !important; overflow: visible !important; font-size: 10.5px !important; }
pre { box-decoration-break: clone; }
.gl-scroll, .cell_output, .pst-scrollable-table-container { overflow: visible !important; background: none !important; }
.gl svg { min-width: 0 !important; max-height: 240mm; } table { font-size: 0.85em !important; max-width: 100%; }
.gl-code { font-size: 10px !important; } .gl-code td.c { white-space: pre-wrap !important; overflow-wrap: anywhere; }
.gl { padding: 0.5em 0.8em !important; margin: 0.3em 0 !important; }
"""


def _document(taken: Iterable[tuple[str, str, str]], styles: Iterable[str], head: str) -> str:
    """One HTML document of [(part's caption or "", page's name, its article)]."""
    body = []
    for caption, name, article in taken:
        if caption:
            body.append(f'<h1 class="part">{html.escape(caption)}</h1>')
        body.append(f'<section class="page" id="{name}">{article}</section>')
    sheets = "".join(f"<style>{css}</style>" for css in dict.fromkeys(styles))
    return (
        f'<!DOCTYPE html><html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">'
        f"<title>{TITLE}</title>{head}{sheets}<style>{CSS}</style></head>"
        f'<body><main class="bd-content"><article class="bd-article">{"".join(body)}</article></main></body></html>'
    )


def pdf(pages: Path, contents: list[tuple[str, list[str]]], made: Path, chromium=None) -> Path:
    """Prints pages, [(part's caption, [page])], that are rendered below `pages`, into the file `made`; returns that.
    chromium: a browser that runs already, None to start one.

    ValueError for a page that is not there.
    """
    taken, styles = [], []
    running = nullcontext(chromium) if chromium else browser.launched()
    with browser.served(pages) as url, running as started:
        tab = started.new_page(color_scheme="light", viewport={"width": 1000, "height": 1400})
        tab.add_init_script("localStorage.setItem('mode', 'light')")
        for caption, names in contents:
            for name in names:
                answer = tab.goto(f"{url}{name}.html", wait_until="load")
                if not answer.ok:
                    raise ValueError(f"{name} is not rendered: run `make book` first")
                article, own = tab.evaluate(TAKE, name)
                taken.append((caption if name == names[0] else "", name, article))
                styles += own
        hrefs = "all => all.map((link) => link.href)"
        links = tab.eval_on_selector_all('link[rel="stylesheet"]', hrefs)
        head = "".join(f'<link rel="stylesheet" href="{link}">' for link in links)
        whole = _document(taken, styles, head)
        tab.route(
            "**/printed.html", lambda route: route.fulfill(body=whole, content_type="text/html")
        )
        tab.set_default_timeout(300_000)
        tab.goto(f"{url}printed.html", wait_until="load", timeout=300_000)
        tab.pdf(
            path=made,
            format="A4",
            margin=MARGINS,
            scale=SCALE,
            tagged=True,
            outline=True,
            print_background=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOTER,
        )
        tab.close()
    _finish(made)
    return made


def _finish(made: Path) -> None:
    """Says what the file is, and mends bookmarks: the browser repeats the words of a heading that it had to move."""
    from pypdf import PdfWriter
    from pypdf.generic import TextStringObject

    writer = PdfWriter(clone_from=made)
    item = writer._root_object.get("/Outlines")
    waiting = [item.get_object()] if item else []
    while waiting:
        entry = waiting.pop()
        if title := entry.get("/Title"):
            words = str(title).strip()
            half = len(words) // 2
            if half and words[:half].strip() == words[-half:].strip():
                words = words[:half].strip()
            entry[TextStringObject("/Title")] = TextStringObject(words)
        for key in ("/First", "/Next"):
            if key in entry:
                waiting.append(entry[key].get_object())
    writer.compress_identical_objects()
    writer.add_metadata({"/Title": TITLE, "/Subject": f"Version {edition.version()}"})
    writer.write(made)
