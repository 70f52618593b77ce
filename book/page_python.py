"""Python for the rendered pages: what `Run` loads, from the site itself.

    python -m book.page_python fetch       Pyodide's core from npm, NumPy's wheel from its release, checked against hashes
    python -m book.page_python add         put these, the book's Python and the builds into the rendered pages
    python -m book.page_python table       what a reader loads, in bytes

`make page` does the first two. `fetch --or-stand-in`, for tests, takes a wheel of the same ABI where the release cannot be
reached: from the folder $GEMM_PYODIDE_WHEEL, or from `shared/pyodide` beside the repository or further up. It says so, pages
made so say it too, and `book.publish` refuses them. A site to which nothing was added has no button.
"""

import argparse
import gzip
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

from book import chapters
from kernels import shipped

ROOT = chapters.ROOT
VERSION = "0.29.5"
SITE = ROOT / "_build" / "html"
CACHE = ROOT / ".cache" / f"pyodide-{VERSION}"
CORE = (
    "pyodide.js",
    "pyodide.asm.js",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
CORE_HASH = "fc96391598ca80da838a60e176087fe2a6fa2927a60ce9416bda28993dcd81cd"  # of these, one after the other
PLACE = Path("_static") / "run"  # in the site
MANIFEST = Path("_static") / "run_files.js"
SERVE = "python -m http.server --bind 127.0.0.1"  # one command, wherever the pages lie
UNREACHABLE = 3  # the exit status that says so
EPOCH = (1980, 1, 1, 0, 0, 0)
ROOMS = ("emulator", "figures", "kernels", "measure", "book")
KINDS = {".py", ".cu", ".cuh", ".c", ".ptx", ".js", ".toml", ".json", ".md", ".csv", ".css"}
# Pure Python that drawings need, as it is installed here. Of Pygments, what colours CUDA.
PYGMENTS = (
    "__init__ filter filters/__init__ lexer lexers/__init__ lexers/_mapping lexers/_mql_builtins lexers/c_cpp lexers/c_like"
    " modeline plugin regexopt token util"
)


class Unreachable(RuntimeError):
    """Neither npm nor the release answers, and there is no stand-in."""


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def fetch(or_stand_in: bool = False) -> None:
    """Fills the cache, unless it is full. RuntimeError where a file is not the one that its hash names, Unreachable where
    there is nothing to take it from.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    core = CACHE / "node_modules" / "pyodide"
    if not all((core / name).exists() for name in CORE):
        npm = ["npm", "install", "--silent", "--no-save", "--no-package-lock"]
        try:
            subprocess.run([*npm, "--prefix", str(CACHE), f"pyodide@{VERSION}"], check=True)
        except (OSError, subprocess.CalledProcessError) as problem:
            raise Unreachable(f"pyodide@{VERSION} from npm: {problem}") from None
    if _digest(*(core / name for name in CORE)) != CORE_HASH:
        raise RuntimeError(f"{core} does not hold the files of pyodide@{VERSION}")
    for name in CORE:
        shutil.copyfile(core / name, CACHE / name)
    if wheel() is not None and not is_stand_in():
        return
    try:
        name, content = _released(core)
    except OSError as problem:
        if not or_stand_in:
            raise Unreachable(f"NumPy's wheel: {problem}") from None
        found = _stand_in()
        name, content = found.name, found.read_bytes()
        print(f"The release cannot be reached ({problem}).")
        print(f"NumPy is a stand-in, {found}: these pages are for tests only.")
    for old in CACHE.glob("*.whl"):
        old.unlink()
    (CACHE / name).write_bytes(content)


def _lock() -> dict:
    return json.loads((CACHE / "pyodide-lock.json").read_text(encoding="utf-8"))


def _released(core: Path) -> tuple[str, bytes]:
    """NumPy's wheel as the release has it. OSError where it cannot be reached."""
    text = (core / "pyodide.mjs").read_text(encoding="utf-8")
    base = re.search(r'https://[^"`$]+/pyodide/(?=v)', text)
    if base is None:
        raise RuntimeError("pyodide.mjs does not name its release")
    named = _lock()["packages"]["numpy"]
    address = f"{base[0]}v{VERSION}/full/{named['file_name']}"
    with urllib.request.urlopen(address, timeout=30) as answer:
        content = answer.read()
    if hashlib.sha256(content).hexdigest() != named["sha256"]:
        raise RuntimeError(f"{named['file_name']} is not the file that the lock names")
    return named["file_name"], content


def _stand_in() -> Path:
    named = os.environ.get("GEMM_PYODIDE_WHEEL")
    folders = [Path(named)] if named else [up / "shared" / "pyodide" for up in ROOT.parents]
    for folder in folders:
        if found := sorted(folder.glob("numpy-*wasm32.whl")):
            return found[-1]
    raise Unreachable(
        "NumPy's wheel: neither the release nor a stand-in; put a wheel of Pyodide's ABI into a folder,"
        " and name it in GEMM_PYODIDE_WHEEL"
    )


def wheel() -> Path | None:
    """NumPy's wheel in the cache; None where there is none."""
    return next(iter(sorted(CACHE.glob("numpy-*.whl"))), None)


def is_stand_in() -> bool:
    """Whether the cache's wheel is not the one that `pyodide-lock.json` names."""
    return _digest(wheel()) != _lock()["packages"]["numpy"]["sha256"]


def marked_stand_in(site: Path) -> bool:
    """Whether rendered pages say that their NumPy is a stand-in."""
    files = site / MANIFEST
    return files.exists() and '"standIn": true' in files.read_text(encoding="utf-8")


def _book() -> bytes:
    """The book's Python, its kernels and its recordings, and what drawings import, as a zip."""
    files = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            inside = path.relative_to(ROOT)
            hidden = any(part[0] in "_." for part in inside.parts if part != "__init__.py")
            if path.is_file() and path.suffix in KINDS and not hidden:
                files[inside.as_posix()] = path
    for folder in ("results", "results/accesses"):
        for path in sorted((ROOT / folder).glob("*.json")):
            files[f"{folder}/{path.name}"] = path
    layouts = Path(importlib.util.find_spec("tensor_layouts").origin).parent
    for path in sorted(layouts.rglob("*.py")):
        files[f"tensor_layouts/{path.relative_to(layouts).as_posix()}"] = path
    for path in sorted(layouts.parent.glob("tensor_layouts-*.dist-info/*")):
        if path.name in ("METADATA", "LICENSE"):
            files[f"{path.parent.name}/{path.name}"] = path
    pygments = Path(importlib.util.find_spec("pygments").origin).parent
    for name in PYGMENTS.split():
        files[f"pygments/{name}.py"] = pygments / f"{name}.py"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, path in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return made.getvalue()


def name_of(page: Path) -> str:
    """What a page's files are called: book/exercises/1_memory.ipynb -> book-exercises-1_memory."""
    return "-".join(page.relative_to(ROOT).with_suffix("").parts)


def add(site: Path = SITE) -> None:
    """Puts everything into the rendered pages. ValueError where nothing was fetched, or no page is there."""
    if wheel() is None:
        raise ValueError("nothing was fetched: python -m book.page_python fetch")
    if not (site / "index.html").exists():
        raise ValueError("the book is not rendered: run `make book` first")
    place = site / PLACE
    shutil.rmtree(place, ignore_errors=True)
    (place / "pages").mkdir(parents=True)
    for name in CORE:
        content = (CACHE / name).read_bytes()
        if name.endswith(".wasm"):  # so that it is small on a server that does not compress
            (place / f"{name}.packed").write_bytes(gzip.compress(content, 9, mtime=0))
        else:
            (place / name).write_bytes(content)
    shutil.copy(wheel(), place / "numpy.zip")
    (place / "book.zip").write_bytes(_book())
    every, at = shipped.of_folder(shipped.BUILDS), {}
    for page in chapters.paths():
        cells = [
            {"index": index, "source": cell.source, "tags": cell.metadata.get("tags", [])}
            for index, cell in enumerate(chapters.read(page).cells)
            if cell.cell_type == "code"
        ]
        stored = shipped.BUILDS / f"{page.stem}.json.xz"
        needs = shipped.read(stored)["needs"] if stored.exists() else []
        own = {key: every[key] for key in needs if key in every}
        for key in own:
            at.setdefault(key, name_of(page))
        packed = json.dumps({"builds": own}, separators=(",", ":")).encode()
        text = json.dumps({"cells": cells}, ensure_ascii=False)
        (place / "pages" / f"{name_of(page)}.json").write_text(text, encoding="utf-8")
        (place / "pages" / f"{name_of(page)}.builds.packed").write_bytes(
            gzip.compress(packed, 9, mtime=0)
        )
    (place / "builds.json").write_text(json.dumps(at, separators=(",", ":")), encoding="utf-8")
    about = {
        "version": VERSION,
        "standIn": is_stand_in(),
        "bytes": sum(size for _, size in loaded(site)),
        "mark": hashlib.sha256((place / "book.zip").read_bytes()).hexdigest()[:12],
    }
    (site / MANIFEST).write_text(f"window.gemmRun = {json.dumps(about)};\n", encoding="utf-8")


def loaded(site: Path = SITE) -> list[tuple[str, int]]:
    """[(file, bytes)] that the button loads, the page with the largest builds taken."""
    place = site / PLACE
    names = [f"{n}.packed" if n.endswith(".wasm") else n for n in CORE]
    files = [
        (name, (place / name).stat().st_size)
        for name in (*names, "numpy.zip", "book.zip", "builds.json")
    ]
    builds = max(place.glob("pages/*.builds.packed"), key=lambda path: path.stat().st_size)
    return [*files, (f"pages/{builds.name}", builds.stat().st_size)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m book.page_python")
    parser.add_argument("do", choices=["fetch", "add", "table"])
    parser.add_argument("--or-stand-in", action="store_true", help="for tests: see above")
    asked = parser.parse_args(arguments)
    try:
        if asked.do == "fetch":
            fetch(asked.or_stand_in)
        elif asked.do == "add":
            add()
            print("The pages run in a browser, from any web server:")
            print(f"  {SERVE} --directory {SITE.relative_to(ROOT)}")
        else:
            rows = loaded()
            for name, size in [*rows, ("together", sum(size for _, size in rows))]:
                print(f"{name:50} {size / 1e6:6.2f} MB")
    except Unreachable as problem:
        print(f"book.page_python {asked.do}: {problem}", file=sys.stderr)
        return UNREACHABLE
    except (ValueError, RuntimeError, OSError) as problem:
        print(f"book.page_python {asked.do}: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
