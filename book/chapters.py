"""The chapters as files: which they are, the cell that each begins with, and running them in place.

    python -m book.chapters run [CHAPTER ...]      run chapters on this machine, store their outputs
    python -m book.chapters setup [CHAPTER ...]    put the current set-up cell into chapters
    python -m book.chapters from-markdown DRAFT ...  make or update chapters written as MyST Markdown

The machine is a GPU where there is one, else the emulator. Editing is described in CONTRIBUTING.md.
"""

import argparse
import copy
import os
import re
import sys
import time
from pathlib import Path

from book import markdown, plumbing

ROOT = Path(__file__).resolve().parent.parent
SETUP_TAG = "setup"
# As Colab writes it: without `accelerator` it opens a machine without a GPU.
METADATA = {
    "accelerator": "GPU",
    "colab": {"gpuType": "T4", "provenance": []},
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}

# In Colab the repository is not there yet, so this cell can import nothing of it. Its notebook cannot know the
# repository's address: the build writes it into published and downloaded notebooks (`publish.published`).
NO_ADDRESS = 'os.environ.get("GEMM_REPOSITORY") or ""'
SETUP_CELL = f"""\
# Set-up, the same in every chapter: it finds the book or, in Colab, fetches it.
import os
import sys
from pathlib import Path

address = {NO_ADDRESS}
places = [Path.cwd(), *Path.cwd().parents, Path.cwd() / "gemm-ladder"]
root = next((p for p in places if (p / "book/chapters.py").exists()), None)
if root is None and address and "google.colab" in sys.modules:
    root = places[-1]
    !git clone --quiet --depth 1 {{address}} {{root}}
    !pip install --quiet -r {{root}}/requirements-colab.txt
if root is None or not root.exists():
    clone = f"git clone {{address}}" if address else "clone its repository"
    error = Exception(f"This notebook runs inside its book: {{clone}}, then make lab.")
    error._render_traceback_ = lambda: [str(error)]  # one line, no traceback
    raise error
sys.path.insert(0, str(root))
print(__import__("book.cells.this_machine", fromlist=["said"]).said())\
"""


def paths() -> list[Path]:
    """Every notebook of the book, in reading order, as `_toc.yml` lists them."""
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    files = re.findall(r"^\s*-?\s*(?:root|file):\s*(\S+)", toc, re.MULTILINE)
    return [path for name in files if (path := ROOT / f"{name}.ipynb").exists()]


def has_tag(cell, tag: str) -> bool:
    return tag in cell.get("metadata", {}).get("tags", [])


def write_setup_cell(notebook) -> None:
    """Makes the notebook's first code cell the set-up cell, replacing an older one."""
    import nbformat

    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if code and (has_tag(code[0], SETUP_TAG) or "sys.path.insert(0, str(root))" in code[0].source):
        cell = code[0]
    else:
        cell = nbformat.v4.new_code_cell()
        notebook.cells.insert(1, cell)
    cell.source = SETUP_CELL
    cell.metadata.tags = [SETUP_TAG, "remove-cell", "nbval-ignore-output"]  # of this machine only


def read(path: Path):
    import nbformat

    return nbformat.read(path, as_version=4)


def write(notebook, path: Path) -> None:
    """Writes a notebook as every machine writes it: plain Markdown, plumbing folded, figures without what they carry.

    No timings, versions or random cell names; Markdown as `book.markdown` describes, outputs as `figures.carried`.
    """
    import nbformat

    from figures import carried

    plumbing.tag(notebook)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02d}"
        cell.metadata.pop("execution", None)
        if cell.cell_type == "markdown":
            cell.source = markdown.plain(cell.source)
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = carried.bare(output.data["text/html"])
        if has_tag(cell, SETUP_TAG):
            cell.outputs = []  # it says what this machine has
    notebook.metadata = copy.deepcopy(METADATA)
    notebook.nbformat_minor = 5
    nbformat.validate(notebook)
    path.write_text(written(notebook), encoding="utf-8")


def written(notebook) -> str:
    """A notebook's file: as Jupyter writes it, but each output, and what is said of a cell, on one line.

    So a diff shows the lines of sources, and one line for each output that changed.
    """
    import json

    def line(thing) -> str:
        return json.dumps(thing, ensure_ascii=False, sort_keys=True)

    def lines(items: list[str]) -> str:
        return "[\n " + ",\n ".join(items) + "\n]" if items else "[]"

    cells = []
    for cell in notebook.cells:
        fields = {key: line(value) for key, value in cell.items()}
        fields["source"] = lines([line(part) for part in cell.source.splitlines(True)])
        if cell.cell_type == "code":
            fields["outputs"] = lines([line(output) for output in cell.outputs])
        inside = ",\n".join(f'"{key}": {fields[key]}' for key in sorted(fields))
        cells.append(f"{{\n{inside}\n}}")
    rest = {key: value for key, value in notebook.items() if key != "cells"}
    tail = json.dumps(rest, ensure_ascii=False, sort_keys=True, indent=1)
    return f'{{\n "cells": {lines(cells)},{tail[1:]}\n'


def computed(pid: int) -> float:
    """Seconds of processor that a process and its living children have computed; 0 when it has ended."""
    import psutil

    seconds = 0.0
    try:
        process = psutil.Process(pid)
        for one in [process, *process.children(recursive=True)]:
            times = one.cpu_times()
            seconds += times.user + times.system
            seconds += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    except psutil.NoSuchProcess:
        pass
    return seconds


LOOK_SECONDS = 10  # of a clock, between two looks at what a cell has computed


def _patient_client(notebook, cell_seconds: float, clock_seconds: float = 1200, **how):
    """An nbclient whose limit on a cell is in seconds of processor: beside other work a right cell takes long."""
    from nbclient import NotebookClient

    class Client(NotebookClient):
        async def _async_handle_timeout(self, timeout, cell=None):
            if computed(self.km.provisioner.pid) - began[0] >= cell_seconds:
                return await super()._async_handle_timeout(round(cell_seconds), cell)
            if time.monotonic() - began[1] >= clock_seconds:
                return await super()._async_handle_timeout(round(clock_seconds), cell)
            return None  # it waits on

    def note(cell, cell_index):
        began[:] = computed(client.km.provisioner.pid), time.monotonic()

    began = [0.0, 0.0]
    look = min(LOOK_SECONDS, cell_seconds)
    client = Client(notebook, timeout=look, on_cell_execute=note, **how)
    return client


def run(path: Path, cell_seconds: float = 300) -> float:
    """Runs one chapter where it lies and stores its outputs; returns the seconds it took.

    cell_seconds: of the processor, that a cell may take.

    Raises `nbclient.exceptions.CellExecutionError`, and leaves the file as it was, when a cell
    fails that is not tagged `raises-exception`.
    """
    notebook = read(path)
    start = time.monotonic()
    _patient_client(
        notebook,
        cell_seconds,
        extra_arguments=["--log-level=ERROR"],
        kernel_name="python3",
        coalesce_streams=True,  # one block of text a cell, however it was flushed
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    write(notebook, path)
    return time.monotonic() - start


def from_markdown(draft: Path) -> Path:
    """Makes or updates the chapter beside `book/` that a MyST Markdown draft describes.

    Outputs of cells whose source did not change are kept; run the chapter to store new ones.
    """
    import jupytext

    path = ROOT / "book" / f"{draft.stem}.ipynb"
    notebook = jupytext.read(draft, fmt="md:myst")
    write_setup_cell(notebook)
    keep_outputs(notebook, path)
    write(notebook, path)
    return path


def keep_outputs(notebook, path: Path) -> None:
    """Takes over what the notebook of this path has stored, for cells whose source is the same."""
    if not path.exists():
        return
    kept = {c.source: c for c in read(path).cells if c.cell_type == "code"}
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source in kept:
            cell.outputs = kept[cell.source].outputs
            cell.execution_count = kept[cell.source].execution_count


def _problem(do: str, files: list[Path]) -> str | None:
    """What is wrong with the files named, in words: nothing is written while anything is."""
    drafts = do == "from-markdown"
    if drafts and not files:
        return "name the drafts to make chapters of"
    kind = ".md" if drafts else ".ipynb"
    for path in files:
        if path.suffix != kind:
            return f"{path.name} is not a {kind} file"
        if not path.is_file():
            return f"there is no {path.name} in {path.parent}"
        if not drafts and not path.is_relative_to(ROOT):
            return f"{path.name} is not in this repository"
    return None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m book.chapters", description=__doc__.split("\n")[0]
    )
    parser.add_argument("do", choices=["run", "setup", "from-markdown"])
    parser.add_argument("files", nargs="*", type=Path, help="default: every chapter in _toc.yml")
    asked = parser.parse_args(arguments)
    if problem := _problem(asked.do, [file.resolve() for file in asked.files]):
        print(f"book.chapters {asked.do}: {problem}", file=sys.stderr)
        return 1
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    failed = 0
    for path in [file.resolve() for file in asked.files] or paths():
        if asked.do == "from-markdown":
            print(f"{path.name} -> {from_markdown(path).relative_to(ROOT)}")
        elif asked.do == "setup":
            notebook = read(path)
            write_setup_cell(notebook)
            write(notebook, path)
        else:
            print(f"{path.relative_to(ROOT)} ...", end=" ", flush=True)
            try:
                print(f"{run(path):.0f} s", flush=True)
            except Exception as error:
                failed += 1
                print(f"failed\n{error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
