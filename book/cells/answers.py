"""What a chapter asks its reader: a prediction before the result, an exercise with its answer out of sight.

    answers.predict("naive-sectors-a", "naive-sectors-b")   questions of book/answers/: answer, and only then see the count
    answers.compare({"naive-sectors-b": counted})           the counts of this run, beside what the reader said
    answers.check("ex-one-block16")                         an exercise: answer, be told, try again
    answers.settle("ex-one-block16", counted)               says nothing, and fails where the stored answer is not the count

Questions are data (`book.cells.questions`). What these show works in a rendered page, in JupyterLab and in Colab without a
kernel behind it, and is remembered on the reader's device; without JavaScript the answer is folded under its question.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from book.cells import questions
from book.cells.questions import REVEALS, TESTS, Answer, Question
from figures import carried
from figures.drawing import Shown, frame

_text = questions.text
ROUNDED = 0.015  # a count is exact; a ratio may be stored with two digits
_CSS = (
    ".gl-q{margin:.1em 0 .9em}.gl-q:last-of-type{margin-bottom:.2em}.gl-q p{margin:.25em 0}"
    ".gl-q form{display:flex;flex-wrap:wrap;gap:.5em;align-items:center;margin:.3em 0}.gl-q form[hidden]{display:none}"
    ".gl-q input,.gl-q button{font:inherit;color:var(--gl-ink);background:var(--gl-soft);border:1px solid var(--gl-muted);"
    "border-radius:6px;padding:.3em .7em;min-height:2.2em}"
    ".gl-q button{cursor:pointer}.gl-q button:hover{border-color:var(--gl-ink)}"
    ".gl-q button.gl-q-quiet{font-size:13px;padding:.15em .6em;min-height:1.9em}"
    ".gl-q input:focus-visible,.gl-q button:focus-visible{outline:2px solid #0072b2;outline-offset:2px}"
    ".gl-q-unit{color:var(--gl-muted)}"
    ".gl-q-answer:not(:empty){border-left:3px solid #9aa3ad;padding-left:.8em;margin:.4em 0}"
    ".gl-q[data-state=right] .gl-q-answer{border-color:#009e73}"
    ".gl-q[data-state=wrong] .gl-q-answer,.gl-q[data-state=trying] .gl-q-answer{border-color:#d55e00}"
)
_TABLE_CSS = (
    ".gl table.gl-said{border-collapse:collapse;margin:.2em 0!important}"
    ".gl table.gl-said :is(th,td){padding:.25em .9em .25em 0;text-align:right;border:0;border-bottom:1px solid var(--gl-line);"
    "color:var(--gl-ink)}.gl table.gl-said :is(th:first-child,td:last-child){text-align:left}"
    ".gl table.gl-said th[scope=row]{font-weight:400}"
    ".gl-said button{font:inherit;font-size:13px;color:var(--gl-ink);background:var(--gl-soft);"
    "border:1px solid var(--gl-muted);border-radius:6px;padding:.1em .6em;cursor:pointer}"
)


@cache
def script() -> str:
    """The JavaScript that asks, and puts a form into every element that waits for one."""
    path = Path(__file__).with_name("js") / "questions.js"
    return f"{path.read_text(encoding='utf-8')}\nquestions.mount();"


def _asking(html: str) -> str:
    return carried.element(script())


carried.STYLES |= {'class="gl-q"': _CSS, 'class="gl-said"': _CSS + _TABLE_CSS}
carried.SCRIPTS |= {'class="gl-q"': _asking, 'class="gl-said"': _asking}


def _question(question: Question, mode: str) -> str:
    name = html.escape(question.name)
    asked = f'<p class="gl-q-ask" id="ask-{name}">{questions.markup(question.ask)}</p>'
    why = f"<p>{questions.markup(question.why)}</p>" if question.why else ""
    return (
        f'<div class="gl-q" data-lm-suppress-shortcuts="true" data-name="{name}" '
        f'data-mode="{mode}" data-sealed="{question.sealed(mode)}">'
        f"{asked if question.ask else ''}<noscript><details><summary>The answer</summary>"
        f"<p>{html.escape(question.answer_text)}</p>{why}</details></noscript></div>"
    )


@dataclass(frozen=True, repr=False)
class Asked(Shown):
    """Questions to be answered in the page."""

    asked: tuple[Question, ...] = ()
    mode: str = REVEALS

    def bare(self) -> str:
        body = "".join(_question(question, self.mode) for question in self.asked)
        return frame(body, self.title, self.alt)

    def plain(self) -> str:
        lines = [questions.plain(q.ask) or f"Your answer to {q.name}?" for q in self.asked]
        return "\n".join([self.title, *lines])


def _ask(title: str, alt: str, mode: str, names: tuple[str, ...]) -> Asked:
    found = tuple(questions.find(name) for name in names)
    silent = [question.name for question in found if not question.ask and mode == REVEALS]
    if silent:
        raise ValueError(f"book/answers/ has no `ask` for {', '.join(silent)}")
    return Asked(title=title, alt=alt, asked=found, mode=mode)


def predict(*names: str) -> Asked:
    """Questions that show what is right as soon as the reader has said something: `predict("a", "b")`. KeyError for a name
    that `book/answers/` lacks.
    """
    return _ask("Predict, then see", "Predictions to make.", REVEALS, names)


def check(name: str) -> Asked:
    """An exercise to be answered in the page: `check("ex-one-block16")`."""
    return _ask("Your answer", "An exercise to answer.", TESTS, (name,))


def settle(name: str, counted: Answer) -> None:
    """Fails when the stored answer to a question is not what was counted. ValueError names both."""
    question = questions.find(name)
    if question.recorded:
        raise ValueError(f"{name} is recorded (`from`): there is nothing to settle by a run")
    counted = counted.item() if hasattr(counted, "item") else counted
    if isinstance(counted, float) and not counted.is_integer():
        right = abs(counted - question.answer) <= ROUNDED * abs(counted)
    else:
        right = counted == question.answer
    if not right:
        raise ValueError(
            f"{name}: this run says {counted}, book/answers/ says {question.answer}: mend the latter"
        )


@dataclass(frozen=True, repr=False)
class Beside(Shown):
    """What was counted, beside what the reader said."""

    rows: tuple[tuple[Question, Answer], ...] = ()

    def bare(self) -> str:
        head = "".join(
            f'<th scope="col">{name}</th>' if name else "<td></td>"
            for name in ("", "you said", "it is", "")
        )
        lines = "".join(_beside(question, counted) for question, counted in self.rows)
        body = (
            f'<table class="gl-said"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'
        )
        return frame(body, self.title, self.alt)

    def plain(self) -> str:
        width = max(len(_label(question)) for question, _ in self.rows)
        return "\n".join(f"{_label(q):{width}}  {_text(n, q.digits)}" for q, n in self.rows)


def _label(question: Question) -> str:
    return questions.plain(question.label or question.ask or question.name)


def _beside(question: Question, counted: Answer) -> str:
    label = questions.markup(question.label or question.ask or question.name)
    shown = html.escape(_text(counted, question.digits))
    return (
        f'<tr><th scope="row">{label}</th><td data-said="{html.escape(question.name)}" '
        f'data-sealed="{question.sealed(REVEALS)}">-</td><td data-counted><details>'
        f"<summary>Show me</summary>{shown}</details></td><td data-verdict></td></tr>"
    )


def compare(counted: Mapping[str, Answer]) -> Beside:
    """The counts of this run beside the reader's predictions: `compare({"naive-sectors-b": counted})`.

    ValueError when a count is not the stored answer, so that what a page tells its reader is what was counted.
    """
    rows = tuple((questions.find(name), value) for name, value in counted.items())
    for question, value in rows:
        if not question.recorded:
            settle(question.name, value)
    return Beside(title="Predicted and counted", alt="Counts beside predictions.", rows=rows)
