"""Draws the README's picture, `book/ladder.png`, from the recorded results: `python -m book.picture`."""

import sys
from pathlib import Path

import figures
from book.cells import timing

PICTURE = Path(__file__).with_name("ladder.png")


def main() -> int:
    drawing = timing.ladder()
    if drawing is None:
        return 1
    pages = getattr(drawing, "pages", None)  # of several GPUs: the one that the book's pages show
    if pages:
        drawing = next(iter(pages.values()))
    PICTURE.write_bytes(figures.png(drawing))
    print(PICTURE.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
