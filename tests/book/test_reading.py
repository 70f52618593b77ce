"""Chapters are not too long, sections rest the eye, and takeaways are found."""

import re

import nbformat
import pytest

from book import chapters, reading


def notebook(*cells):
    made = nbformat.v4.new_notebook()
    for cell in cells:
        if isinstance(cell, str):
            made.cells.append(nbformat.v4.new_markdown_cell(cell))
        else:
            made.cells.append(nbformat.v4.new_code_cell("1", metadata={"tags": list(cell)}))
    return made


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Two words.", 2),
        ("It's 53.3<!--= tflops('x') --> TFLOP/s", 3),
        ("a [warp of threads](glossary.md#warp-of-all) {cite:p}`some-paper`", 4),
        (":::{admonition} Hint\n:class: dropdown\nthree more words\n:::", 3),
        ("Before:\n\n```cuda\nint none = 0;\n```\n\nand after.", 3),
    ],
)
def test_words_are_what_is_read(text, count):
    assert reading.words(text) == count


def test_time_is_words_and_cells_in_sight():
    prose = "word " * 400
    assert reading.minutes(notebook(prose)) == 2
    assert reading.minutes(notebook(prose, ())) == 2.5
    assert reading.minutes(notebook(prose, ["remove-cell"], ["remove-input"])) == 2
    listing = "\n\n```cuda\nint none = 0;\n```\n"
    assert reading.minutes(notebook(prose + listing)) == 2.5
    fold = f"\n\n<details><summary></summary>{listing}\n</details>"
    assert reading.minutes(notebook(prose + fold)) == 2


def test_a_long_stretch_is_found_and_a_cell_or_heading_ends_it():
    long, half = "word " * 301, "word " * 200
    assert [s.words for s in reading.too_long(notebook("## Why\n\n" + long))] == [301]
    assert [s.heading for s in reading.too_long(notebook("## Why\n\n" + half, half))] == ["Why"]
    assert not reading.too_long(notebook(half, (), half))
    assert not reading.too_long(notebook(half + "\n\n## Next\n\n" + half))
    assert not reading.too_long(notebook(half + "\n\n| a | b |\n|---|---|\n\n" + half))
    assert reading.too_long(notebook(half, ["remove-cell"], half))


def test_takeaways_are_what_stands_in_the_box():
    box = "Before.\n\n:::{admonition} Takeaways\n:class: takeaways\n* One.\n* Two.\n:::\n\nAfter."
    assert reading.takeaways(box) == "* One.\n* Two."
    assert reading.takeaways(box.replace("class: takeaways", "class: note")) is None


def test_no_chapter_takes_too_long(notebooks):
    times = {name: reading.minutes(notebook) for name, notebook in notebooks.items()}
    assert {n: t for n, t in times.items() if t > reading.LONGEST_CHAPTER} == {}


def test_no_section_goes_on_without_a_picture(notebooks):
    assert {n: found for n, nb in notebooks.items() if (found := reading.too_long(nb))} == {}


def test_every_chapter_says_how_long_it_takes(site):
    for path in chapters.paths():
        if path.name[:2].isdigit() and path.parent.name == "book":
            page = (site / "book" / f"{path.stem}.html").read_text(encoding="utf-8")
            time = reading.rounded(reading.minutes(chapters.read(path)))
            assert f"About {time} minutes to read" in page, path.name


def test_four_ways_are_each_a_part_of_the_book_and_take_the_time_they_say():
    book = chapters.ROOT / "book"
    text = "\n".join(cell.source for cell in chapters.read(book / "intro.ipynb").cells)
    table = text.split("Four ways are shorter than the whole:")[1].split("\n\n")[1]
    ways = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    assert len(ways) == 4
    for want, pages, hours in ways:
        paths = [book / link for link in re.findall(r"\]\(([^)]+)\)", pages)]
        prose = {path: prose_of(path) for path in paths}
        assert sum(reading.words(one) for one in prose.values()) <= 25_000, want
        minutes = sum(
            reading.minutes(chapters.read(path))
            if path.suffix == ".ipynb"
            else reading.words(prose[path]) / reading.WORDS_A_MINUTE
            for path in paths
        )
        assert abs(minutes / 60 - float(hours)) <= 0.5, (want, minutes / 60)


def test_the_front_page_says_how_long_the_whole_takes():
    intro = "\n".join(
        cell.source for cell in chapters.read(chapters.ROOT / "book/intro.ipynb").cells
    )
    (said,) = re.findall(r"forty numbered chapters take about (\d+) hours", intro)
    numbered = [
        path
        for path in chapters.paths()
        if re.match(r"\d+_", path.name) and path.parent.name == "book"
    ]
    assert len(numbered) == 40
    hours = sum(reading.minutes(chapters.read(path)) for path in numbered) / 60
    assert abs(hours - int(said)) <= 0.5, hours


def prose_of(path) -> str:
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = chapters.read(path).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
