"""What JupyterLab shows of the book beyond Markdown and outputs: `make lab` and Binder hand it this extension.

    python -m book.lab FOLDER      writes the extension into a folder of extensions

It colours `%%kernel` cells, and holds the style sheet and scripts that stored figures are without, so that they move before a
cell is run.
"""

import json
import shutil
import sys
from pathlib import Path

from book.chapters import ROOT

NAME = "gemm-ladder-cuda"
# What a reader looks for in the list of files are chapters.
HIDDEN = ("_*", "*.py", "*.toml", "*.bib", "*.png", "*.md", "answers", "cells", "samples", "cuda")
# JupyterLab shows the first line of what it folds, which may tell the answer that the fold is there for; of a cell whose source
# is folded too, it shows no line of the output at all.
FOLDED = (
    ":is(.jp-MarkdownCell,.jp-OutputPlaceholder) .jp-PlaceholderText{display:none}"
    ":is(.jp-MarkdownCell,.jp-OutputPlaceholder) .jp-Placeholder-contentContainer::before"
    '{content:"This tells the answer: give yours above, or unfold it"}'
    ".jp-CodeCell .jp-Cell-outputWrapper.lm-mod-hidden:has(>.jp-OutputPlaceholder){display:flex!important}"
)
_BEGIN = """(() => {
  const mounts = [];
  const style = document.createElement("style");
  style.textContent = %s;
  document.head.append(style);
"""
_END = """
  let waiting = 0;
  new MutationObserver(() => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => mounts.forEach((again) => again()));
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
"""


def script() -> str:
    """The JavaScript that gives every figure of a window its style, and moves those that move."""
    from book.cells import answers
    from figures import carried, widgets

    folder = ROOT / "figures" / "js"
    kinds = sorted({path.stem for path in folder.glob("*.js")} - {"common", "choice"})
    parts = [_BEGIN % json.dumps("".join([*carried.STYLES.values(), FOLDED]))]
    for kind in kinds:
        mount = f'mounts.push(() => mount("{kind}", explorer));'
        parts.append(f"(() => {{\n{widgets.mounting(kind)}\n{mount}\n}})();\n")
    parts.append(f"(() => {{\n{answers.script()}\nmounts.push(() => questions.mount());\n}})();\n")
    choice = (folder / "choice.js").read_text(encoding="utf-8")
    return "".join([*parts, f"mounts.push(() => {{\n{choice}\n}});\n", _END])


def extension(folder: Path) -> Path:
    """Writes the extension below `folder`, and returns that."""
    made = folder / NAME
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(ROOT / "book" / "_lab" / NAME, made)
    file = made / "static" / "cuda_cells.js"
    file.write_text(file.read_text(encoding="utf-8") + script(), encoding="utf-8")
    return folder


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python -m book.lab FOLDER: name the folder of JupyterLab's extensions")
    extension(Path(sys.argv[1]))
