"""Sphinx extension: says in the page which cell is which, for the button that runs them (`_static/run.js`).

`run_files.js` says that there is nothing to run, until `book.page_python` puts Python into the site.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx


def number(app: Sphinx, doctree: nodes.document) -> None:
    for node in doctree.findall(nodes.container):
        if node.get("nb_element") == "cell_code":
            node["classes"].append(f"run-cell-{node['cell_index']}")


def nothing_to_run(app: Sphinx, problem: Exception | None) -> None:
    if problem is None and app.builder.name == "html":
        files = Path(app.outdir) / "_static" / "run_files.js"
        files.write_text("window.gemmRun = null;\n", encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.add_js_file("run.js", loading_method="defer")
    app.add_css_file("run.css")
    app.connect("doctree-read", number)
    app.connect("build-finished", nothing_to_run)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
