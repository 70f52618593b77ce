"""The commands of the Makefile that readers use, for where there is no `make`, such as Windows.

    python -m book make book      render the book from its recorded outputs
    python -m book make serve     show it on http://localhost:8000 (--port 8000)
    python -m book make lab       open the chapters in JupyterLab
    python -m book make pages     run every page again, and compare its outputs with the stored ones
    python -m book make test      check everything that this machine can

They run in the Python that runs this; `pip install -r requirements.txt` fills it. The Makefile calls the same functions.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
# Notebooks are tested on the emulator everywhere, so that outputs do not hang on a GPU being there.
# BLAS on one thread: two processes with two threads each on two cores compute a fifth longer, waiting for each other.
ON_EMULATOR = {"CUDA_VISIBLE_DEVICES": "", "OPENBLAS_NUM_THREADS": "1"}
LAB = "jupyterlab>=4,<5"
# A process that ends is not replaced: its test would be run again, and wait again, eight times over.
TWO_PROCESSES = ["-n", "2", "--dist", "loadscope", "--max-worker-restart", "0"]
NOTEBOOKS = [
    *("--nbval", "--nbval-current-env", "-p", "tests.processor_limit"),
    *("--nbval-sanitize-with", "tests/nbval_sanitize.cfg"),
]


def _run(*arguments: str, **environment: str) -> None:
    """Runs `python arguments` in the repository's root; SystemExit with its status when it fails."""
    try:
        done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=os.environ | environment)
    except KeyboardInterrupt:  # how one ends a server
        raise SystemExit(0) from None
    if done.returncode:
        raise SystemExit(done.returncode)


def book(port: int = 0) -> None:
    build = "from jupyter_book.cli.main import main; main()"
    # Windows' consoles have code pages of their own; the book's text is UTF-8.
    _run("-c", build, "build", ".", "--quiet", "-W", "--keep-going", PYTHONUTF8="1")
    print(f"The book is in {SITE.relative_to(ROOT) / 'index.html'}. Open it with:")
    print(f"  {Path(sys.executable).name} -m webbrowser {(SITE / 'index.html').as_uri()}")


def serve(port: int) -> None:
    book()
    print(f"The book is on http://localhost:{port}/ (end with Ctrl-C)", flush=True)
    _run("-m", "http.server", "--bind", "127.0.0.1", "--directory", str(SITE), str(port))


def trust() -> int:
    """Signs this clone's chapters for JupyterLab, which shows no moving figure of a notebook that is not; returns how many.

    Only the chapters of this folder: their code is the book's, which running them would run too.
    """
    import nbformat
    from nbformat.sign import NotebookNotary

    from book import chapters

    notary, paths = NotebookNotary(), chapters.paths()
    for path in paths:
        notary.sign(nbformat.read(path, as_version=4))
    return len(paths)


def lab(port: int = 0) -> None:
    if importlib.util.find_spec("jupyterlab") is None:
        _run("-m", "pip", "install", "--quiet", LAB)
    print(f"{trust()} chapters of this clone are trusted: their figures move.", flush=True)
    from book import lab

    folder = lab.extension(ROOT / "_build" / "lab")
    _run(
        "-m", "jupyterlab", "book/01_start_here.ipynb",
        f"--LabServerApp.extra_labextensions_path={folder}",
        f"--ContentsManager.hide_globs={list(lab.HIDDEN)}",
    )  # fmt: skip


def pages(port: int = 0) -> None:
    _run("-m", "pytest", "book", *TWO_PROCESSES, *NOTEBOOKS, **ON_EMULATOR)


def test(port: int = 0) -> None:
    with ThreadPoolExecutor(1) as beside:  # a build keeps one core busy
        rendered = beside.submit(book)
        _run(
            *("-m", "pytest", "tests", "book", "-m", "not site"),
            *(*TWO_PROCESSES, *NOTEBOOKS),
            **ON_EMULATOR,
        )
        rendered.result()
    _run("-m", "pytest", "tests/book", "-m", "site")


MAKES = {"book": book, "serve": serve, "lab": lab, "pages": pages, "test": test}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m book", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("do", choices=["make"])
    parser.add_argument("what", choices=list(MAKES))
    parser.add_argument("--port", type=int, default=8000)
    asked = parser.parse_args(arguments)
    MAKES[asked.what](asked.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
