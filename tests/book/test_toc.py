"""`_toc.yml`, the files in `book/` and the shape that every chapter has."""

import re

import yaml

from book import chapters, markdown

BOOK = chapters.ROOT / "book"


def toc_files() -> list[str]:
    toc = yaml.safe_load((chapters.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"]] + [c["file"] for part in toc["parts"] for c in part["chapters"]]


def test_every_chapter_and_page_is_in_the_table_of_contents():
    found = [*BOOK.glob("*.ipynb"), *BOOK.glob("*.md"), *BOOK.glob("exercises/*.ipynb")]
    pages = {p.relative_to(chapters.ROOT).with_suffix("").as_posix() for p in found}
    assert pages == set(toc_files())


def test_every_entry_is_a_file():
    for name in toc_files():
        assert any((chapters.ROOT / f"{name}{end}").exists() for end in (".ipynb", ".md")), name


def test_chapters_lists_the_notebooks_in_reading_order():
    listed = [p.relative_to(chapters.ROOT).with_suffix("").as_posix() for p in chapters.paths()]
    assert listed == [f for f in toc_files() if (chapters.ROOT / f"{f}.ipynb").exists()]
    assert listed


def test_numbered_chapters_stand_in_the_order_of_their_numbers():
    numbers = [int(m.group(1)) for f in toc_files() if (m := re.fullmatch(r"book/(\d\d)_\w+", f))]
    assert numbers == sorted(numbers)
    assert len(numbers) == len(set(numbers))


def test_every_chapter_begins_with_one_title(notebooks):
    for name, notebook in notebooks.items():
        titles = [
            line
            for cell in notebook.cells
            if cell.cell_type == "markdown"
            for line in cell.source.splitlines()
            if re.match(r"# \S", line)
        ]
        assert len(titles) == 1, name
        assert notebook.cells[0].source.startswith("# "), name


def test_cells_are_short_and_were_run(notebooks):
    for name, notebook in notebooks.items():
        for cell in notebook.cells:
            if cell.cell_type != "code":
                continue
            assert cell.source.strip(), f"{name}: an empty cell"
            if not cell.source.startswith("%%kernel"):  # a kernel is as long as it is
                assert len(cell.source.splitlines()) <= 20, f"{name}: {cell.source[:60]!r} is long"
            assert cell.execution_count, f"{name}: {cell.source[:60]!r} was not run"
            for output in cell.outputs:
                assert output.output_type != "error" or chapters.has_tag(cell, "raises-exception")
                assert output.get("name") != "stderr", f"{name}: {output.text[:80]}"


def test_chapters_have_their_rhythm(notebooks):
    for name, notebook in notebooks.items():
        if not re.match(r"\d\d_", name) or not (BOOK / f"{name}.ipynb").exists():
            continue
        text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
        exercises = re.findall(r"^<strong id=\"ex-", text, re.MULTILINE)
        assert 2 <= len(exercises) <= 4, f"{name}: {len(exercises)} exercises"
        assert len(re.findall(r"^<details id=\"solution-ex-", text, re.MULTILINE)) == len(
            exercises
        ), name
        assert "glossary.md#" in text, f"{name}: no term is linked to the glossary"
        assert markdown.CITATION.search(text), f"{name}: no reference is cited"


def test_every_fold_is_closed_in_its_cell(notebooks):
    for name, notebook in notebooks.items():
        for place, cell in enumerate(notebook.cells):
            if cell.cell_type == "markdown":
                opened, closed = cell.source.count("<details"), cell.source.count("</details>")
                assert opened == closed, f"{name}, cell {place}"
