"""Whether a text tells the answer to a question: the number in digits or in words, or the choice.

A prediction is worth making only while its answer is out of sight. The build folds what tells it
(`book/_sphinx/after_answers.py`), and the browser's tests ask every page.
"""

import base64
import html
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache

_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_PARTS = {0.5: "half", 0.25: "quarter", 0.75: "three quarters", 0.125: "eighth", 0.0625: "sixteenth"}  # fmt: skip
_OTHERS = {1: ("once", "single"), 2: ("twice", "pair"), 100: ("all", "hundred")}

# What no reader sees, and what a reader unfolds: neither tells.
_UNSEEN = re.compile(r"(?s)<(script|style|details|noscript|template)\b.*?</\1>")
_SAID = re.compile(r'\b(?:aria-label|alt|title)="([^"]*)"')
FORM = re.compile(
    r'class="gl-q"[^>]*?data-name="([^"]+)"[^>]*?data-mode="predict"[^>]*?data-sealed="([^"]+)"'
)
HEADING = re.compile(r"(?m)^(#{1,6}) ")
EXPLORER = 'class="gl-explorer"'


def in_words(number: int) -> str:
    """ "sixty-four"; "" for what nobody spells out."""
    if 0 <= number < len(_UNITS):
        return _UNITS[number]
    if 20 <= number < 100:
        tens, one = _TENS[number // 10 - 2], number % 10
        return f"{tens}-{_UNITS[one]}" if one else tens
    return ""


def _numerals(number: float) -> set[str]:
    """How a page prints this number: 16,384 and 16384; 5 and 5.0; 1.305, 1.3 and 1.30; 0.644, 64.4% and 64%."""
    if float(number).is_integer():
        return {f"{int(number):,}", f"{int(number)}", f"{int(number)}.0"}
    printed = {f"{number:,.{digits}f}" for digits in (1, 2, 3, 4)}
    rounded = printed | {text.rstrip("0").rstrip(".") for text in printed}
    near = {text for text in rounded if abs(float(text.replace(",", "")) - number) < 0.03 * number}
    parts = {f"{100 * number:.{n}g}%" for n in (2, 3)} if 0 < number < 1 else set()
    whole = {f"{number:,.0f}"} if number > 10 else set()
    return near | parts | whole


Answer = int | float | str


def forms(markup: str) -> dict[str, Answer]:
    """{prediction: its answer} of the forms in this HTML."""
    known = FORM.findall(markup)
    return {name: json.loads(base64.b64decode(sealed))["answer"] for name, sealed in known}


@cache
def pattern(answer: Answer) -> re.Pattern:
    """What finds this answer in a text."""
    if isinstance(answer, str):
        return re.compile(rf"(?i)(?<!\w){re.escape(answer)}(?!\w)")
    digits = "|".join(re.escape(numeral) for numeral in sorted(_numerals(answer), key=len))
    found = [rf"(?<![\w.,])(?:{digits})(?=x\b|(?!\w|[.,]\d))"]
    words = [in_words(int(answer))] if float(answer).is_integer() else []
    words += [word for part, word in _PARTS.items() if part == answer]
    words += _OTHERS.get(answer, ())
    found += [rf"\b{word}\b" for word in words if word]
    return re.compile("(?i)" + "|".join(found))


def seen(markup: str) -> str:
    """What a reader of this HTML sees or is read aloud, where nothing is unfolded."""
    shown = _UNSEEN.sub(" ", markup)
    return html.unescape(" ".join([re.sub(r"<[^>]+>", " ", shown), *_SAID.findall(shown)]))


def told(text: str, asked: Mapping[str, Answer]) -> list[str]:
    """Those of the predictions, {name: answer}, whose answer stands in the text."""
    plain = " ".join(text.split())
    return [name for name, answer in asked.items() if pattern(answer).search(plain)]


def shown(cell) -> str:
    """What a notebook's cell shows, as HTML: its Markdown, or its outputs."""
    if cell.cell_type == "markdown":
        return cell.source
    said = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        said.append(data.get("text/html") or html.escape(data.get("text/plain", "")))
        said.append(html.escape(output.get("text", "")))
    return " ".join(said)


def parts(notebook) -> Iterator[tuple[int, int | None, dict[str, Answer]]]:
    """(place, end, predictions asked) of each cell that stands behind a form in its section; a form's own cell does not.

    end: where the section ends in this cell's text, None where it does not.
    """
    level, asked = 0, {}
    for place, cell in enumerate(notebook.cells):
        found = forms(shown(cell)) if cell.cell_type == "code" else {}
        headings = list(HEADING.finditer(cell.source)) if cell.cell_type == "markdown" else []
        ends = [heading.start() for heading in headings if len(heading[1]) <= level]
        if ends and asked:
            yield place, ends[0], asked
        if ends:
            asked = {}
        if headings and not asked:
            level = len(headings[-1][1])
        if found:
            asked = asked | found
        elif asked:
            yield place, None, asked


def behind(notebook) -> Iterator[tuple[int, dict[str, Answer]]]:
    """(place, predictions asked) of each cell that stands as a whole behind a form in its section."""
    return ((place, asked) for place, end, asked in parts(notebook) if end is None)


def unparted(notebook) -> list[tuple[int, int]]:
    """(place, end) of each cell whose text up to `end`, where the next section begins, tells an answer."""
    return [
        (place, end)
        for place, end, asked in parts(notebook)
        if end and told(seen(notebook.cells[place].source[:end]), asked)
    ]


def tells(cell, asked: Mapping[str, Answer]) -> bool:
    """Whether this cell's text or outputs tell the answer to one of these predictions, or hold what moves."""
    markup = shown(cell)
    return EXPLORER in markup or bool(told(seen(markup), asked))
