"""Sphinx extension: how a page is reached, shared and found again.

The links to the repository and to Colab and Binder, from the address that the build was given (`book/address.py`; none
without one); the edition in the footer; the description and picture that other sites show; the list of pages for search
engines; the page for an address that does not exist; and that what scrolls can be scrolled without a mouse.
"""

import html
import shutil
import sys
from pathlib import Path
from urllib.parse import urljoin, urlparse

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from book import address, edition, publish  # noqa: E402  (found by the line above)

PICTURE = "ladder.png"
DESCRIPTION = (
    "From a naive CUDA matrix product to kernels that pass cuBLAS: an executable book whose kernels also run on an "
    "emulator in NumPy."
)
DESCRIPTION_LENGTH = 200  # characters; search engines and messengers cut off what is longer


def configure(app: Sphinx, config: Config) -> None:
    """Gives the theme the repository's address, before the theme looks for it."""
    options = config.html_theme_options
    options["extra_footer"] = options.get("extra_footer", "") + (
        f"<p>Version {edition.version()}, {edition.date()}.</p>"
    )
    if where := address.known():
        config.html_baseurl = where.site
        if where.on_github:
            pages, paper = (
                f"{where.repository}/releases/latest/download/{file}" for file in edition.files()
            )
            options["extra_footer"] += (
                f'<p>To keep: <a href="{pages}">the pages as a zip</a> that needs no network, '
                f'<a href="{paper}">the book as a PDF</a>.</p>'
            )
            options |= {
                "repository_url": where.repository,
                "repository_branch": address.BRANCH,
                "path_to_docs": "",
                "use_repository_button": True,
                "use_edit_page_button": True,
                "use_issues_button": True,
            }


def launch(app: Sphinx, pagename, templatename, context: dict, doctree) -> None:
    """The rocket: opens this page's notebook where it runs."""
    where, notebook = address.known(), f"{pagename}.ipynb"
    if where is None or not where.on_github or not (ROOT / notebook).exists():
        return
    targets = (
        ("Colab", where.colab(notebook), "_static/images/logo_colab.png"),
        ("Binder", where.binder(notebook), "_static/images/logo_binder.svg"),
    )
    buttons = [
        {"type": "link", "text": name, "tooltip": f"Open in {name}", "icon": icon, "url": url}
        for name, url, icon in targets
    ]
    context["header_buttons"].append(
        {
            "type": "group",
            "tooltip": "Run this page",
            "icon": "fas fa-rocket",
            "buttons": buttons,
            "label": "launch-buttons",
        }
    )


def editable(app: Sphinx, pagename, templatename, context: dict, doctree) -> None:
    """*Suggest edit* of a notebook opens it as a notebook, in GitHub's own editor, not as the text of its file."""
    where = address.known()
    if where is None or not where.on_github:
        return

    def mend(buttons: list[dict]) -> None:
        for button in buttons:
            mend(button.get("buttons", []))
            url = button.get("url") or ""
            if "/edit/" in url and url.endswith(".ipynb"):
                button["url"] = url.replace(address.GITHUB, address.EDITOR).replace(
                    "/edit/", "/blob/"
                )

    mend(context.get("header_buttons", []))


CITE = """\
<details class="gl-cite"><summary>Cite this page</summary>
<div class="highlight"><pre>@misc{{gemm-ladder-{key},
  title  = {{{title}}},
  author = {{{{The authors of The GEMM Ladder}}}},
  note   = {{In: The GEMM Ladder, version {version}}},
  year   = {{{year}}},{url}
}}</pre></div></details>
"""


def cite(app: Sphinx, pagename, templatename, context: dict, doctree) -> None:
    """At the end of each page, how to cite it."""
    if doctree is None or "body" not in context:
        return
    where, date = address.known(), edition.date()
    site = where.site if where else ""
    title = html.escape(doctree.next_node(nodes.title).astext())
    context["body"] += CITE.format(
        key=Path(pagename).name.replace("_", "-"),
        title=title,
        version=edition.version(),
        year=date[:4],
        url=f"\n  url    = {{{urljoin(site, pagename)}.html}}," if site else "",
    )


def description(doctree: nodes.document | None) -> str:
    """The page's first paragraph of the reader's text, cut at a word; the book's own where there is none."""
    for paragraph in doctree.findall(nodes.paragraph) if doctree is not None else ():
        words = paragraph.astext().split()
        plain = isinstance(paragraph.parent, nodes.section) and not paragraph["classes"]
        if plain and len(words) > 8 and not any(paragraph.findall(nodes.math)):
            text = " ".join(words)
            if len(text) <= DESCRIPTION_LENGTH:
                return text
            return text[: DESCRIPTION_LENGTH - 2].rsplit(" ", 1)[0] + " …"
    return DESCRIPTION


def describe(app: Sphinx, pagename, templatename, context: dict, doctree) -> None:
    where = address.known()
    title = nodes.document.astext(doctree.next_node(nodes.title)) if doctree else ""
    said = {
        "og:title": title or app.config.html_title,
        "og:site_name": app.config.html_title,
        "og:type": "article",
        "og:description": description(doctree),
    }
    if where and where.site:  # these two have to be whole addresses
        said["og:url"] = urljoin(where.site, f"{pagename}.html")
        said["og:image"] = urljoin(where.site, f"_static/{PICTURE}")
        said["og:image:alt"] = "One bar for each kernel of the book, beside cuBLAS's speed."
    tags = [f'<meta name="description" content="{html.escape(said["og:description"])}" />']
    tags += [
        f'<meta property="{key}" content="{html.escape(text)}" />' for key, text in said.items()
    ]
    tags.append('<meta name="twitter:card" content="summary_large_image" />')
    context["metatags"] = context.get("metatags", "") + "\n" + "\n".join(tags)


# docutils gives the list of references roles that ARIA 1.3 has withdrawn, and entries that no list may have.
OLD_ROLES = (' role="doc-biblioentry"', ' role="list"')


def mend(app: Sphinx, pagename, templatename, context: dict, doctree) -> None:
    for role in OLD_ROLES:
        if "body" in context:
            context["body"] = context["body"].replace(role, "")


NOT_FOUND = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<title>Not found · {title}</title>
<link rel="icon" href="{base}_static/favicon.svg" />
<style>
html {{ color-scheme: light dark; background: #fff; color: #222; }}
body {{ font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 15vh auto; padding: 0 1rem; }}
a {{ color: #0a5c91; }}
@media (prefers-color-scheme: dark) {{ html {{ background: #14181e; color: #ddd; }} a {{ color: #8cc4ee; }} }}
</style>
</head>
<body>
<main>
<h1>There is no such page</h1>
<p>{title} has no page at this address. Its chapters may have moved: the book begins at
<a href="{base}index.html">its first page</a>, and <a href="{base}search.html">its search</a> finds the rest.</p>
</main>
</body>
</html>
"""


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Files beside the pages."""
    if exception is not None or app.builder.name != "html":
        return
    place, where = Path(app.outdir), address.known()
    site = where.site if where else ""
    shutil.copyfile(ROOT / "book" / PICTURE, place / "_static" / PICTURE)
    # A missing page is answered at any depth, so its links begin at the site's own root.
    base = urlparse(site).path or "./"
    page = NOT_FOUND.format(title=app.config.html_title, base=base)
    (place / "404.html").write_text(page, encoding="utf-8")
    (place / ".nojekyll").touch()  # or GitHub Pages would leave out the folders that begin with _
    sitemap = place / "sitemap.xml"
    sitemap.unlink(missing_ok=True)
    if site:
        names = ["index", *sorted(app.env.found_docs)]
        rows = "".join(f"<url><loc>{urljoin(site, name)}.html</loc></url>\n" for name in names)
        sitemap.write_text(
            '<?xml version="1.0" encoding="utf-8"?>\n'
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}</urlset>\n',
            encoding="utf-8",
        )
    for notebook in (place / "_sources").rglob("*.ipynb"):  # what the download button gives
        text = notebook.read_text(encoding="utf-8")
        page = site and urljoin(site, notebook.relative_to(place / "_sources").as_posix())
        told = publish.published(text, where.repository if where else "", page)
        notebook.write_text(told, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.add_js_file("reach.js", loading_method="defer")
    app.connect("config-inited", configure)
    app.connect("html-page-context", launch, priority=502)  # after the theme's own buttons
    app.connect("html-page-context", editable, priority=503)
    app.connect("html-page-context", cite, priority=901)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", mend)
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
