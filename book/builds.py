"""Makes what `kernels.shipped` reads: for each page, the builds that its cells make on the emulator.

    python -m book.builds                  of the pages whose code, kernels or settings changed since
    python -m book.builds PAGE.ipynb ...   of these pages
    python -m book.builds --all            of every page

A page is run for it, and its file in `results/builds/` written; the page itself stays as it is.
"""

import argparse
import base64
import gzip
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from book import chapters
from kernels import RUNGS, shipped
from kernels.build import key
from kernels.rung import FOLDER
from kernels.settings import FILE

ON_EMULATOR = {"CUDA_VISIBLE_DEVICES": "", "GEMM_TIMES": "recorded"}


def file_of(page: Path) -> Path:
    return shipped.BUILDS / f"{page.stem}.json.xz"


def code_of(page: Path) -> str:
    """A hash of the page's code cells and of the settings that rungs run at: where they changed, the page may build
    something else.
    """
    cells = [c.source for c in chapters.read(page).cells if c.cell_type == "code"]
    return hashlib.sha256("\0".join([*cells, _settings()]).encode()).hexdigest()


@cache
def _settings() -> str:
    """What searches chose, without when and where."""
    chosen = ("rung", "types", "generation", "size_class", "macros")
    rows = json.loads(FILE.read_text(encoding="utf-8"))["settings"]
    return json.dumps([[row[name] for name in chosen] for row in rows], sort_keys=True)


def _keys_now(stored: dict) -> Iterable[str]:
    """The keys that a build of this name, with these macros, has now: of the file, and of a rung's file."""
    if not (FOLDER / stored["name"]).is_file():
        return
    yield key(Path(stored["name"]), stored["macros"], stored["arch"])
    for rung in RUNGS.values():
        if rung.file == stored["name"]:
            yield key(rung, stored["macros"], stored["arch"])


def problem(page: Path, there_are: Mapping[str, dict] | None = None) -> str | None:
    """Why the builds of a page have to be made anew; None where they are as the page needs them.

    `there_are`: the builds of all pages, where they were read already.
    """
    if not file_of(page).exists():
        return "there are none"
    there = shipped.read(file_of(page))
    if there["code"] != code_of(page):
        return "its code cells, or the settings of rungs, changed"
    every = shipped.of_folder(shipped.BUILDS) if there_are is None else there_are
    if missing := set(there["needs"]) - set(every):
        return f"{len(missing)} of its builds are no longer there"
    for name in there["files"]:
        stored = every[name]
        try:
            if name not in _keys_now(stored):
                return f"{stored['name']} changed"
        except ValueError as error:  # a macro that the rung no longer has
            return f"{stored['name']} changed: {error}"
    return None


def collect(page: Path) -> tuple[int, int]:
    """Runs a page and writes its file; returns how many builds it has, and how many bytes."""
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            chapters.read(page),
            timeout=900,
            extra_arguments=["--log-level=ERROR"],
            kernel_name="python3",
            resources={"metadata": {"path": str(page.parent)}},
        ).execute(env=os.environ | ON_EMULATOR | {"GEMM_BUILDS": folder})
        builds = _collected(Path(folder))
    files = [name for name, stored in builds.items() if name in _keys_now(stored)]
    shipped.write(file_of(page), code_of(page), builds, files, builds)
    return len(builds), file_of(page).stat().st_size


def share() -> None:
    """Leaves each build in the first page that has it; once more in a page that reads its machine code."""
    held: dict[str, dict] = {}
    for page in (page for page in chapters.paths() if file_of(page).exists()):
        there = shipped.read(file_of(page))
        own = {
            name: stored
            for name, stored in there["builds"].items()
            if name not in held or (stored["cubin"] and not held[name]["cubin"])
        }
        held |= own
        if own.keys() != there["builds"].keys():
            shipped.write(file_of(page), there["code"], there["needs"], there["files"], own)


def _collected(folder: Path) -> dict[str, dict]:
    """The builds in a folder of builds; with machine code those whose code was read."""
    read, builds = folder / shipped.READ, {}
    wanted = set(read.read_text(encoding="utf-8").split()) if read.exists() else set()
    for path in folder.glob("*.json.gz"):
        stored = json.loads(gzip.decompress(path.read_bytes()))
        cubin = stored.get("cubin", "")  # a source that the compiler refused has none
        stored["cubin"] = cubin if shipped.hash_of(base64.b64decode(cubin)) in wanted else ""
        stored["seconds"] = 0.0  # they differ each time
        builds[path.name.removesuffix(".json.gz")] = stored
    return builds


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m book.builds")
    parser.add_argument("pages", nargs="*", type=Path, help="default: those that need it")
    parser.add_argument("--all", action="store_true", help="every page")
    asked = parser.parse_args(arguments)
    pages = [page.resolve() for page in asked.pages] or chapters.paths()
    if not asked.pages and not asked.all:
        there_are = shipped.of_folder(shipped.BUILDS)
        pages = [page for page in pages if problem(page, there_are)]
    for old in set(shipped.BUILDS.glob("*.xz")) - {file_of(page) for page in chapters.paths()}:
        old.unlink()
    failed = 0
    for page in pages:
        start = time.monotonic()
        try:
            count, size = collect(page)
        except Exception as error:
            failed += 1
            print(f"{page.name}: failed\n{error}", file=sys.stderr, flush=True)
            continue
        print(
            f"{page.name}: {count} builds, {size / 1e3:.0f} kB, {time.monotonic() - start:.0f} s",
            flush=True,
        )
    share()
    every = [path.stat().st_size for path in shipped.BUILDS.glob("*.xz")]
    print(f"{len(every)} pages, {sum(every) / 1e6:.2f} MB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
