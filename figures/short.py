"""A figure's HTML in fewer characters: what a browser draws is the same.

Notebooks store figures like this. A rectangle takes half the characters in SVG's relative commands, letters in a row
share one element, names need no quotes, which a notebook would escape, and cells of a table no end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PATH = re.compile(r'(?<= d=")M[^"]*(?=")')
_PIECE = re.compile(r"M([^A-Za-z]*)((?:[LCa][^A-Za-z]*)*)(z)?\s*")
_STEP = re.compile(r"([LC])([^LC]*)")
_WORD = r'<text x="([\d.]+)" y="([\d.]+)">([^<&])</text>'  # of one character
_WORDS = re.compile(rf"{_WORD}(?:<text x=\"[\d.]+\" y=\"\2\">[^<&]</text>)+")
_TOKEN = re.compile(r'<span class="gl-([kmps])">([^<]*)</span>')
ELEMENTS = {"k": "b", "m": "i", "s": "samp", "p": "em"}  # which the style sheet of listings colours
_END = re.compile(r"</td>(?=</?t[dr])|</tr>(?=<tr|</tbody)")  # which HTML leaves to the reader
_TAG = re.compile(r"<(?:text|g|path|rect|line|td|th|tr|span|option)\b[^>]*>")
_ATTRIBUTE = re.compile(r'( (?!id\b|aria-|data-|style\b)[\w-]+)="([\w.#-]+)"(?=[ >])')
Point = tuple[int, int]  # in tenths of a pixel


def shortened(html: str) -> str:
    """The HTML of figures, written shorter; what is short already stays as it is."""
    html = html.replace('<svg xmlns="http://www.w3.org/2000/svg" ', "<svg ")  # HTML knows it
    html = _PATH.sub(lambda found: _short(found.group()), html)
    html = _WORDS.sub(_row, html)
    html = _TOKEN.sub(lambda word: "<{0}>{1}</{0}>".format(ELEMENTS[word[1]], word[2]), html)
    return _TAG.sub(_unquoted, _END.sub("", html))


def _unquoted(tag: re.Match) -> str:
    words = _ATTRIBUTE.sub(r"\1=\2", tag.group())
    drawn = tag.group().startswith(("<text", "<g", "<path", "<rect", "<line"))
    return words.replace('"', "'") if drawn and "'" not in words else words


def _row(found: re.Match) -> str:
    """Characters at one height, each at its own place: SVG takes a list of these."""
    words = re.findall(_WORD, found.group())
    places, letters = " ".join(x for x, _, _ in words), "".join(letter for *_, letter in words)
    return f'<text x="{places}" y="{found[2]}">{letters}</text>'


def _short(path: str) -> str:
    pieces = list(_PIECE.finditer(path))
    if "".join(piece.group() for piece in pieces) != path:
        return path
    words, at = "", None
    for piece in pieces:
        start = _points(piece[1])[0]
        begins = f"M{_pair(*start)}"
        if at is not None:
            nearer = f"m{_pair(start[0] - at[0], start[1] - at[1])}"
            begins = min(begins, nearer, key=len)
        body, at = _piece(piece, start)
        words += begins + body
    return words


def _piece(piece: re.Match, start: Point) -> tuple[str, Point | None]:
    """What follows a path's move to `start`, and where it ends; None where that is not told."""
    steps = [(step[1], _points(step[2])) for step in _STEP.finditer(piece[2])]
    kinds, closed = "".join(kind for kind, _ in steps), bool(piece[3])
    if not set(kinds) <= {"L"} or "a" in piece[2]:
        words = re.sub(r" ?([LCaz]) ?", r"\1", piece[2] + (piece[3] or "")).strip()
        return words, start if closed else None
    ends = [points[0] for _, points in steps]
    if closed and ends and ends[-1] == start:
        ends.pop()  # the closing line draws it
    return _lines(start, ends) + "z" * closed, start if closed else [start, *ends][-1]


def _lines(at: Point, ends: Sequence[Point]) -> str:
    words = ""
    for end in ends:
        dx, dy = end[0] - at[0], end[1] - at[1]
        words += f"v{_n(dy)}" if not dx else f"h{_n(dx)}" if not dy else f"l{_pair(dx, dy)}"
        at = end
    return words


def _points(words: str) -> list[Point]:
    numbers = [round(10 * float(word)) for word in words.split()]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _n(tenths: float) -> str:
    """A number of pixels: 5, .5, -12.3"""
    words = f"{tenths / 10:.2f}".rstrip("0").rstrip(".")
    return words.replace("0.", ".", 1) if words.lstrip("-").startswith("0.") else words


def _pair(x: float, y: float) -> str:
    second = _n(y)
    return _n(x) + (second if second.startswith("-") else f" {second}")
