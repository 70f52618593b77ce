"""What a publication consists of, beside the pages.

    python -m book.publish colab          the branch `colab`: this commit, its notebooks told the repository's address
    python -m book.publish site           the rendered pages as a zip that needs no network
    python -m book.publish wheel          the emulator, as `pip install` takes it
    python -m book.publish pdf            the book as one PDF with bookmarks; needs a browser

All but the branch go into `_build/release/`. `make release` and `make colab-branch` call these.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from urllib.parse import urljoin

import yaml

from book import address, chapters, edition, page_python, printed

ROOT = chapters.ROOT
PAGES = ROOT / "_build" / "html"
RELEASE = ROOT / "_build" / "release"
FOR_SERVERS = {"404.html", "sitemap.xml", ".nojekyll", ".buildinfo"}  # of no use in a folder
EPOCH = (1980, 1, 1, 0, 0, 0)  # zip's first day: the same pages give the same bytes


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
    """Points the branch `colab` to a commit on top of this one, whose notebooks and README know the address; returns its id.

    Neither the index nor the files of this clone change. ValueError where no address is known.
    """
    where = address.known()
    if where is None:
        raise ValueError("the branch needs an address: set GEMM_REPOSITORY to owner/name")
    with tempfile.TemporaryDirectory() as folder:
        index = f"{folder}/index"
        _git("read-tree", "HEAD", index=index)
        for name in _git("ls-files", "book/*.ipynb", "README.md", index=index).splitlines():
            text = _git("show", f"HEAD:{name}")
            if name == "README.md":
                told = addressed(text, where)
            else:
                told = published(text, where.repository, where.site and urljoin(where.site, name))
            blob = _git("hash-object", "-w", "--stdin", text=told).strip()
            _git("update-index", "--cacheinfo", f"100644,{blob},{name}", index=index)
        tree = _git("write-tree", index=index).strip()
    commit = _git("commit-tree", tree, "-p", "HEAD", "-m", "Notebooks know their book's address")
    _git("update-ref", f"refs/heads/{address.COLAB_BRANCH}", commit.strip())
    return commit.strip()


DOORS = re.compile(r"(?m)^\*\*Read it \[.*?\]\(.*?\)\*\*")


def addressed(readme: str, where: address.Address) -> str:
    """The README with the way into the book: its pages' address, and a badge that opens the first chapter in Colab.

    ValueError where it has no line that begins with **Read it [**.
    """
    badge = "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
    doors = f"**[Read the book]({where.site})** {badge}({where.colab('book/01_start_here.ipynb')})"
    told, found = DOORS.subn(doors, readme)
    if not found:
        raise ValueError("README.md has no line that begins with **Read it [")
    return told


PAGE = re.compile(r"\]\(((?:\.\./)*[\w/]+)\.md(#[\w-]+)?\)")  # a link to a page that is no notebook


def published(text: str, repository: str = "", page: str = "") -> str:
    """The text of a notebook file as it leaves the book.

    Its set-up cell is told the repository's address (https://host/owner/name), and fetches the book in Colab. Its links to the
    glossary, and to other pages that Colab cannot open, lead to the published ones, where the notebook's own address among
    them, `page`, is known. Its figures carry what they need: Colab shows each output in a frame of its own, which no script of
    another one reaches. Text that tells the answer to a prediction above it is folded, as pages fold it.
    """
    import json

    import nbformat

    from book import telling
    from book.cells import answers  # noqa: F401  (registers what questions need)
    from figures import carried

    notebook = nbformat.reads(text, as_version=4)
    for place, asked in telling.behind(notebook):
        cell = notebook.cells[place]
        if cell.cell_type == "markdown" and telling.tells(cell, asked):
            cell.source = _folded(cell.source)
            cell.metadata.pop("jupyter", None)
    known = chapters.NO_ADDRESS.removesuffix('""') + json.dumps(repository)
    for cell in notebook.cells:
        if page and cell.cell_type == "markdown":
            cell.source = PAGE.sub(
                lambda link: f"]({urljoin(page, link[1])}.html{link[2] or ''})", cell.source
            )
        if chapters.has_tag(cell, chapters.SETUP_TAG):
            cell.source = cell.source.replace(chapters.NO_ADDRESS, known)
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = carried.whole(output.data["text/html"])
    return chapters.written(notebook)


def _folded(text: str) -> str:
    """Markdown in a fold, but for its headings, which a notebook's list of contents needs."""
    parts = re.split(r"(?m)^(#{1,6} .*\n?)", text)
    head = "<details><summary>This tells the answer: give yours above, or unfold it</summary>"
    return "".join(
        part if place % 2 or not part.strip() else f"{head}\n\n{part.strip()}\n\n</details>\n\n"
        for place, part in enumerate(parts)
    ).rstrip("\n")


def _rendered() -> Path:
    if not (PAGES / "index.html").exists():
        raise ValueError("the book is not rendered: run `make book` first")
    return PAGES


def site() -> Path:
    """The pages as `gemm-ladder-VERSION.zip`, in one folder."""
    pages, name = _rendered(), f"gemm-ladder-{edition.version()}"
    if page_python.marked_stand_in(pages):
        raise ValueError("these pages have a NumPy for tests: run `make page`")
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
    """Every page printed by a browser, in reading order (`book.printed`)."""
    return printed.pdf(_rendered(), contents(), RELEASE / edition.files()[1])


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
