"""Sphinx extension: a `%%kernel` cell is CUDA, and is coloured as CUDA."""

from docutils import nodes
from sphinx.application import Sphinx

MAGIC = "%%kernel"


def colour(app: Sphinx, doctree: nodes.document) -> None:
    for block in doctree.findall(nodes.literal_block):
        if block.astext().startswith(MAGIC):
            block["language"] = "cuda"
            block["highlight_args"] = {"force": True}  # the magic's own line is no CUDA


def setup(app: Sphinx) -> dict:
    app.connect("doctree-read", colour)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
