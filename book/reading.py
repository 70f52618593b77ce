"""How long a chapter takes to read, and which of its sections go on for too long without a picture.

python -m book.reading [PAGE ...]      minutes of each chapter, and its long sections
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from book import chapters, markdown

WORDS_A_MINUTE = 200
MINUTES_A_CELL = 0.5  # code to read, in a cell or in the text, or a figure, a table or a form
LONGEST_CHAPTER = 40  # minutes
LONGEST_STRETCH = 300  # words
OUT_OF_SIGHT = ("remove-cell", "hide-cell")

WORD = re.compile(r"[^\W_][\w'’.,/%-]*")
LISTING = r"(?ms)^`{3,}[^\n]*\n.*?^`{3,}[ \t]*$"
FOLD = r"(?s)<details.*?</details>"
NOT_PROSE = (
    LISTING,
    r"(?s)<!--.*?-->",
    r"</?[a-z][^>\n]*>",
    r"(?m)^:{3,}.*$|^:[\w-]+:.*$",  # directives' heads, ends and options
    r"\]\([^)\n]*\)",
    r"\{[\w:]+\}`[^`]*`",
)
# What rests the eye, besides a cell: a picture, a row of a table, a code block.
STOP = re.compile(r"(?m)^(?:#{1,6} .*|\s*!\[.*|\s*\|.*\||`{3,}[\s\S]*?^`{3,}|:::\{figure\}.*)$")


@dataclass(frozen=True)
class Stretch:
    """Words of prose between two stops, under the heading that stands above them."""

    heading: str
    words: int


def words(text: str) -> int:
    """Words of prose: code, comments, citations, targets of links and names of boxes are none."""
    text = markdown.myst(text)
    for pattern in NOT_PROSE:
        text = re.sub(pattern, " ", text)
    return len(WORD.findall(text))


def is_seen(cell) -> bool:
    """Whether a page shows something of this code cell."""
    if any(chapters.has_tag(cell, tag) for tag in OUT_OF_SIGHT):
        return False
    hidden = chapters.has_tag(cell, "remove-input") or chapters.has_tag(cell, "hide-input")
    return bool(cell.get("outputs")) or not hidden


def minutes(notebook) -> float:
    """Reading time: words at `WORDS_A_MINUTE`, and `MINUTES_A_CELL` for each cell and each listing in sight."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    seen = sum(cell.cell_type == "code" and is_seen(cell) for cell in notebook.cells)
    seen += sum(len(re.findall(LISTING, re.sub(FOLD, "", text))) for text in texts)
    return sum(map(words, texts)) / WORDS_A_MINUTE + seen * MINUTES_A_CELL


def rounded(time: float) -> int:
    """Minutes as a page states them: to five, and never less than five."""
    return max(5, 5 * round(time / 5))


def stretches(notebook) -> Iterator[Stretch]:
    """The prose of a chapter, cut at headings, cells, pictures, tables and code blocks."""
    heading, count = "", 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if is_seen(cell):
                yield Stretch(heading, count)
                count = 0
            continue
        end = 0
        text = markdown.myst(cell.source)
        for stop in STOP.finditer(text):
            yield Stretch(heading, count + words(text[end : stop.start()]))
            count, end = 0, stop.end()
            if stop.group().startswith("#"):
                heading = stop.group().lstrip("# ")
        count += words(text[end:])
    yield Stretch(heading, count)


def too_long(notebook) -> list[Stretch]:
    return [stretch for stretch in stretches(notebook) if stretch.words > LONGEST_STRETCH]


def takeaways(text: str) -> str | None:
    """What stands in the box of takeaways, as Markdown; None where there is none."""
    found = re.search(
        r"(?ms)^(?P<fence>:{3,})\{admonition\}[^\n]*\n:class: takeaways\n(?P<body>.*?)^(?P=fence)\s*$",
        markdown.myst(text),
    )
    return found["body"].strip() if found else None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m book.reading", description=__doc__.split("\n")[0]
    )
    parser.add_argument("pages", nargs="*", type=Path, help="default: every chapter")
    wrong = 0
    for path in parser.parse_args(arguments).pages or chapters.paths():
        notebook = chapters.read(path)
        time, stretched = minutes(notebook), too_long(notebook)
        print(f"{path.stem:34} {time:4.0f} minutes")
        for stretch in stretched:
            print(f"    {stretch.words} words on end under {stretch.heading!r}")
        wrong += bool(stretched) or time > LONGEST_CHAPTER
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
