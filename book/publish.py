"""What a publication consists of, beside the pages.

    python -m book.publish colab          the branch `colab`: this commit, its notebooks told the repository's address
    python -m book.publish site           the rendered pages as a zip that needs no network
    python -m book.publish wheel          the emulator, as `pip install` takes it
    python -m book.publish pdf            the book as one PDF with bookmarks; needs a browser

All but the branch go into `_build/release/`. `make release` and `make colab-branch` call these.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import yaml

from book import address, browser, chapters, edition

ROOT = chapters.ROOT
PAGES = ROOT / "_build" / "html"
RELEASE = ROOT / "_build" / "release"
FOR_SERVERS = {"404.html", "sitemap.xml", ".nojekyll", ".buildinfo"}  # of no use in a folder
EPOCH = (1980, 1, 1, 0, 0, 0)  # zip's first day: the same pages give the same bytes
PAGE = {"format": "A4", "margin": dict.fromkeys(("top", "bottom", "left", "right"), "15mm")}


def _git(*arguments: str, index: str | None = None, text: str | None = None) -> str:
    environment = os.environ | ({"GIT_INDEX_FILE": index} if index else {})
    told = subprocess.run(
        ["git", *arguments],
        cwd=ROOT,
        env=environment,
        input=text.encode() if text is not None else None,
        capture_output=True,
    )
    if told.returncode:
        raise RuntimeError(f"git {arguments[0]}: {told.stderr.decode().strip()}")
    return told.stdout.decode()


def colab_branch() -> str:
    """Points the branch `colab` to a commit on top of this one, whose notebooks know the address; returns its id.

    Neither the index nor the files of this clone change. ValueError where no address is known.
    """
    where = address.known()
    if where is None:
        raise ValueError("the branch needs an address: set GEMM_REPOSITORY to owner/name")
    with tempfile.TemporaryDirectory() as folder:
        index = f"{folder}/index"
        _git("read-tree", "HEAD", index=index)
        for name in _git("ls-files", "book/*.ipynb", index=index).splitlines():
            text = _git("show", f"HEAD:{name}")
            told = published(text, where.repository)
            blob = _git("hash-object", "-w", "--stdin", text=told).strip()
            _git("update-index", "--cacheinfo", f"100644,{blob},{name}", index=index)
        tree = _git("write-tree", index=index).strip()
    commit = _git("commit-tree", tree, "-p", "HEAD", "-m", "Notebooks know their book's address")
    _git("update-ref", f"refs/heads/{address.COLAB_BRANCH}", commit.strip())
    return commit.strip()


def published(text: str, repository: str = "") -> str:
    """The text of a notebook file as it leaves the book.

    Its set-up cell is told the repository's address (https://host/owner/name), and fetches the book in Colab. Its figures carry
    what they need: Colab shows each output in a frame of its own, which no script of another one reaches.
    """
    import json

    import nbformat

    from book.cells import answers  # noqa: F401  (registers what questions need)
    from figures import carried

    notebook = nbformat.reads(text, as_version=4)
    known = chapters.NO_ADDRESS.removesuffix('""') + json.dumps(repository)
    for cell in notebook.cells:
        if chapters.has_tag(cell, chapters.SETUP_TAG):
            cell.source = cell.source.replace(chapters.NO_ADDRESS, known)
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = carried.whole(output.data["text/html"])
    return chapters.written(notebook)


def _rendered() -> Path:
    if not (PAGES / "index.html").exists():
        raise ValueError("the book is not rendered: run `make book` first")
    return PAGES


def site() -> Path:
    """The pages as `gemm-ladder-VERSION.zip`, in one folder."""
    pages, name = _rendered(), f"gemm-ladder-{edition.version()}"
    made = RELEASE / f"{name}.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(p for p in pages.rglob("*") if p.is_file()):
            if path.name not in FOR_SERVERS:
                entry = zipfile.ZipInfo(f"{name}/{path.relative_to(pages).as_posix()}", EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes())
    return made


def wheel() -> Path:
    """The emulator's wheel."""
    for old in RELEASE.glob("*.whl"):
        old.unlink()
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", RELEASE, ROOT],
        check=True,
    )
    (made,) = RELEASE.glob("*.whl")
    return made


def contents() -> list[tuple[str, list[str]]]:
    """[(part's caption, [document])] in reading order; the first part holds the book's first page."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    parts = [(part["caption"], [c["file"] for c in part["chapters"]]) for part in toc["parts"]]
    return [("", [toc["root"]]), *parts]


def pdf() -> Path:
    """Every page printed by a browser, in reading order, bookmarked by part, page and section."""
    from pypdf import PdfReader, PdfWriter

    pages, writer = _rendered(), PdfWriter()
    with (
        tempfile.TemporaryDirectory() as folder,
        browser.served(pages) as url,
        browser.launched() as chromium,
    ):
        tab = chromium.new_page(color_scheme="light")
        tab.add_init_script("localStorage.setItem('mode', 'light')")
        for caption, documents in contents():
            above = None
            for number, document in enumerate(documents):
                tab.goto(f"{url}{document}.html", wait_until="load")
                title, *headings = (
                    re.sub(r"\s*#?$", "", heading)
                    for heading in tab.locator("article h1, article h2").all_inner_texts()
                )
                printed = Path(folder) / "page.pdf"
                tab.pdf(path=printed, outline=True, tagged=True, print_background=True, **PAGE)
                begins = len(writer.pages)
                writer.append(PdfReader(printed), import_outline=False)
                if caption and number == 0:
                    above = writer.add_outline_item(title=caption, page_number=begins)
                entry = writer.add_outline_item(title=title, page_number=begins, parent=above)
                _sections(PdfReader(printed), writer, begins, entry, headings)
    writer.add_metadata({"/Title": "The GEMM Ladder", "/Subject": f"Version {edition.version()}"})
    writer.compress_identical_objects()
    made = RELEASE / f"gemm-ladder-{edition.version()}.pdf"
    writer.write(made)
    return made


def _flat(items):
    for item in items:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item


def _sections(printed, writer, begins: int, parent, headings: list[str]) -> None:
    """Bookmarks for the page's sections, below the page's own.

    The browser knows on which sheet each heading came to stand, but repeats words of headings that it had to move.
    """
    wanted = {"".join(heading.split()): heading for heading in headings}
    for item in _flat(printed.outline):
        found = "".join(item.title.split()).rstrip("#")
        half = found[: len(found) // 2]
        if heading := wanted.pop(found, None) or (found == half * 2 and wanted.pop(half, None)):
            sheet = printed.get_destination_page_number(item)
            writer.add_outline_item(title=heading, page_number=begins + sheet, parent=parent)


MAKES = {"colab": colab_branch, "site": site, "wheel": wheel, "pdf": pdf}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m book.publish")
    parser.add_argument("what", nargs="+", choices=list(MAKES))
    asked = parser.parse_args(arguments)
    RELEASE.mkdir(parents=True, exist_ok=True)
    for what in asked.what:
        try:
            made = MAKES[what]()
        except (ValueError, RuntimeError) as problem:
            print(f"book.publish {what}: {problem}", file=sys.stderr)
            return 1
        if isinstance(made, Path):
            print(f"{made.relative_to(ROOT)}: {made.stat().st_size / 1e6:.1f} MB")
        else:
            print(f"branch {address.COLAB_BRANCH}: {made[:12]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
