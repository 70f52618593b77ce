"""Questions of the chapters as data: `book/answers/<chapter>.toml`, where no reader of a page sees the answers.

    [naive-sectors-b]                  a name that no other chapter uses; an exercise's is its label
    ask = "How many sectors does one request for `B` touch?"    left out where the page has just asked
    label = "naive: B"                 what stands in the table that compares (else the question)
    unit = "sectors per request"
    answer = 4                         a number, or one of `choices`; or `from` below
    choices = ["row 0", "row 1"]       to pick from, instead of typing
    within = 0.05                      relative error that is still right; 0.05 for a prediction, 0 for an exercise
    places = true                      the number is a place or a name: right or wrong, never too many
    wrong = { 32 = "That is ..." }     typical wrong answers, explained
    why = "..."                        shown with the answer
    from = 'limits("naive", "L2")'     the answer is recorded: an expression over `book.facts`
    digits = 3                         how many of its digits are shown

Texts are one line of Markdown: `code`, *emphasis*, **bold** and [links](page.html).
"""

from __future__ import annotations

import base64
import html
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from book.bound_numbers import evaluate

Answer = int | float | str
FOLDER = Path(__file__).resolve().parents[1] / "answers"
REVEALS, TESTS = "predict", "check"
PREDICTED_WITHIN = 0.05


@dataclass(frozen=True)
class Question:
    """One question. `within` None: 0.05 for a prediction, exact for an exercise."""

    name: str
    answer: Answer
    ask: str = ""
    label: str = ""
    unit: str = ""
    choices: tuple[str, ...] = ()
    within: float | None = None
    places: bool = False
    wrong: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    recorded: bool = False
    digits: int = 3

    def tolerance(self, mode: str) -> float:
        """The relative error that is still right."""
        if self.places or self.choices:
            return 0.0
        if self.within is not None:
            return self.within
        return PREDICTED_WITHIN if mode == REVEALS else 0.0

    @property
    def answer_text(self) -> str:
        """ "1,024 sectors"."""
        return f"{text(self.answer, self.digits)} {unit(self.unit, self.answer)}".strip()

    def sealed(self, mode: str) -> str:
        """What the page's script needs to judge, in base64: not to be read by accident."""
        known = {
            "answer": self.answer,
            "text": self.answer_text,
            "unit": self.unit,
            "choices": list(self.choices),
            "within": self.tolerance(mode),
            "places": self.places,
            "wrong": {said: markup(words) for said, words in self.wrong.items()},
            "why": markup(self.why),
        }
        return base64.b64encode(json.dumps(known, ensure_ascii=False).encode()).decode()


KEYS = {"from", *Question.__dataclass_fields__} - {"name", "recorded"}


def text(value: Answer | None, digits: int = 3) -> str:
    """1,024; 0.334; "-" for nothing."""
    if value is None or isinstance(value, str):
        return "-" if value is None else value
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def unit(words: str, value: Answer) -> str:
    """A unit behind a value: "sectors per request", but "sector per request" behind 1."""
    first, space, rest = words.partition(" ")
    return first.removesuffix("s") + space + rest if value == 1 else words


def markup(words: str) -> str:
    """One line of Markdown as HTML."""
    escaped = html.escape(words)
    pieces = re.split(r"`([^`]+)`", escaped)
    for i in range(0, len(pieces), 2):
        pieces[i] = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r'<a href="\2">\1</a>', pieces[i])
        pieces[i] = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", pieces[i])
        pieces[i] = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", pieces[i])
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))


def plain(words: str) -> str:
    """One line of Markdown without its marks."""
    return re.sub(r"[`*]|\[([^\]]+)\]\([^)\s]+\)", r"\1", words)


def is_right(question: Question, said: Answer, mode: str) -> bool:
    """Whether an answer is right; the page's script judges by the same rule."""
    if isinstance(question.answer, str):
        return said == question.answer
    if isinstance(said, str):
        return False
    return abs(said - question.answer) <= question.tolerance(mode) * abs(question.answer)


def _number(words: str) -> float | None:
    try:
        return float(words.replace(",", ""))
    except ValueError:
        return None


def read(path: Path) -> dict[str, Question]:
    """The questions of one file. ValueError names what is wrong in it."""
    found = {}
    for name, given in tomllib.loads(path.read_text(encoding="utf-8")).items():
        where = f"{path.name}, [{name}]"
        if unknown := set(given) - KEYS:
            raise ValueError(f"{where}: no key {', '.join(sorted(unknown))}; there are {KEYS}")
        if ("answer" in given) == ("from" in given):
            raise ValueError(f"{where}: give `answer`, or `from` where it is recorded")
        source = given.pop("from", None)
        if source is not None:
            given["answer"] = evaluate(source)
        given["choices"] = tuple(given.get("choices", ()))
        question = Question(name=name, recorded=source is not None, **given)
        if question.choices and question.answer not in question.choices:
            raise ValueError(f"{where}: {question.answer!r} is not among the choices")
        if not question.choices and isinstance(question.answer, str):
            raise ValueError(f"{where}: an answer in words needs `choices`")
        for said in question.wrong:
            value = said if question.choices else _number(said)
            if value is None or (question.choices and said not in question.choices):
                raise ValueError(f"{where}: nobody can answer {said!r}")
            if is_right(question, value, TESTS):
                raise ValueError(f"{where}: {said} is explained as wrong, and is right")
        found[name] = question
    return found


@cache
def everything() -> dict[str, Question]:
    """All questions of the book, by name. ValueError when two have one name."""
    found: dict[str, Question] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        for name, question in read(path).items():
            if name in found:
                raise ValueError(f"{path.name}: another chapter has a question {name!r} already")
            found[name] = question
    return found


def find(name: str) -> Question:
    """One question. KeyError lists names that are like it."""
    known = everything()
    if name not in known:
        near = get_close_matches(name, known, 5, 0.4) or list(known)[:5]
        raise KeyError(f"no question {name!r} in book/answers/; there are {', '.join(near)}")
    return known[name]
