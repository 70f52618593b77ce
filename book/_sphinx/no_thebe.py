"""Sphinx extension: leaves out the scripts of Thebe, which this book does not use.

jupyter-book loads them even where `thebe: false` says no, and puts one of them into each page
twice, so that every page would begin with an error in the browser's console.
"""

from sphinx.application import Sphinx


def without_thebe(app: Sphinx, pagename, templatename, context: dict, doctree) -> None:
    def is_thebe(script) -> bool:
        body = getattr(script, "attributes", {}).get("body") or ""
        return "thebe" in f"{getattr(script, 'filename', script)} {body}".lower()

    scripts = context.get("script_files", [])
    context["script_files"] = [script for script in scripts if not is_thebe(script)]


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", without_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
