"""Each exercise: what is given fails, the solution passes, other right ways pass, and mistakes are told by their cause.

What is tried, and what must be said of it, stands in `mistakes.toml` of each exercise's folder.
"""

import re
import tomllib

import nbformat
import numpy as np
import pytest

from book.cells import questions
from book.exercises import EXERCISES, find, judge, notebooks, twins
from book.exercises.cell import judge_answer
from book.exercises.diagnose import findings
from book.exercises.exercise import FOLDER, only_piece
from book.exercises.finding import explained
from book.exercises.verdict import Verdict
from book.exercises.words import words as in_words
from emulator import TensorMap

TABLES = {
    e.name: tomllib.loads((e.folder / "mistakes.toml").read_text(encoding="utf-8"))
    for e in EXERCISES
}
KERNELS = [e.name for e in EXERCISES if e.is_kernel]
ROWS = {
    kind: [(name, what) for name, table in TABLES.items() for what in table.get(kind, ())]
    for kind in ("wrong", "right")
}


def plain(verdict):
    """Without the line ends that fold it to a page."""
    return " ".join(str(verdict).split())


def edited(text, edits):
    for old, new in edits:
        assert old in text, f"the solution has no {old!r}"
        text = text.replace(old, new)
    return text


def of_row(name, row, seed=None):
    """The verdict on a row of the tables."""
    exercise = find(name)
    if exercise.is_kernel:
        source = row.get("source") or edited(exercise.solution, row["edits"])
        return judge(exercise, source, np.random.default_rng(seed))
    return judge_answer(name, python_answer(exercise, row["answer"]))


def python_answer(exercise, text):
    """An expression, which may name the right answer; or what a cell defines."""
    names = {"np": np, "TensorMap": TensorMap}
    exec(exercise.answer, names)
    names["right"] = eval(exercise.variable, names)
    if not re.search(r"(?m)^(def |[\w, ]+ = )", text):
        return eval(text, names)
    exec(text, names)
    return eval(exercise.variable, names)


def says(row):
    return [row["says"]] if isinstance(row["says"], str) else row["says"]


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_given_fails_whatever_the_numbers_are(name):
    verdicts = [
        judge(find(name), find(name).skeleton, np.random.default_rng(seed)) for seed in (1, 2)
    ]
    assert not any(verdicts)
    assert TABLES[name]["given"] in plain(verdicts[0]), str(verdicts[0])
    assert str(verdicts[0]) == str(verdicts[1])


@pytest.mark.parametrize("name", [e.name for e in EXERCISES])
def test_the_solution_passes(name):
    exercise = find(name)
    if exercise.is_kernel:
        verdict = judge(exercise, exercise.solution)
    else:
        assert not judge_answer(name, python_answer(exercise, exercise.given))
        verdict = judge_answer(name, python_answer(exercise, exercise.answer))
    assert verdict, str(verdict)


@pytest.mark.parametrize(("name", "what"), ROWS["wrong"])
def test_a_mistake_is_told_by_its_cause(name, what):
    row = TABLES[name]["wrong"][what]
    verdict = of_row(name, row, seed=7)
    assert not verdict
    for words in says(row):
        assert any(one in plain(verdict) for one in words.split("|")), str(verdict)
    if find(name).is_kernel and says(row):
        assert verdict.lines and (not verdict.findings or explained(verdict.findings)), str(verdict)


@pytest.mark.parametrize(("name", "what"), ROWS["right"])
def test_other_right_ways_pass(name, what):
    verdict = of_row(name, TABLES[name]["right"][what])
    assert verdict, str(verdict)


def test_every_exercise_has_its_mistakes():
    assert len(EXERCISES) == 46
    assert all(len(table["wrong"]) >= 4 for table in TABLES.values())


@pytest.mark.parametrize("name", [exercise.name for exercise in EXERCISES])
def test_the_page_and_the_kernel_agree(name):
    question = questions.find(f"ex-{name.replace('_', '-')}")
    assert question.answer == twins.counted(name)
    assert question.why and question.wrong


@pytest.mark.parametrize("name", notebooks.all_notebooks())
def test_the_notebook_is_what_the_folders_say(name):
    stored = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    made = notebooks.all_notebooks()[name]
    assert [c.source for c in stored.cells] == [c.source for c in made.cells]


PIECE = "#ifdef SOLUTION\n    {}\n#else\n    // Your turn.\n#endif\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("int a;\n" + PIECE.format("a = 1;"), "a = 1;\n"),
        (PIECE.format("a = 1;") + PIECE.format("b = 2;"), ""),  # where each belongs is the question
        (PIECE.format("for (;;) {"), ""),
        ("int a;\n", ""),
    ],
)
def test_a_solution_is_shown_by_its_piece_where_it_is_one(text, shown):
    assert only_piece(text) == shown


def test_what_an_exercise_needs_its_task_says_and_its_solution_does():
    """Each requirement is one that the kernel without the technique misses, so 0 never satisfies it."""
    needs = [need for exercise in EXERCISES for need in exercise.needs]
    assert len(needs) > 20
    for need in needs:
        assert need.least > 0 and re.match(r"[a-z].*[^.]$", need.task)


def test_sizes_are_drawn_anew():
    """Besides the fixed sizes each check has one that no answer can know."""
    for name in (
        "coalesce",
        "place_barriers",
        "wmma_tile",
        "vectorize",
        "rasterise",
        "transpose_tile",
    ):
        labels = [
            {c.label for c in find(name).cases(np.random.default_rng(seed))} for seed in range(4)
        ]
        assert len(set.union(*labels)) > len(labels[0])


# It obeys no rule that small inputs or small changes of the source would show.
NOISE = "sum == 0.0f ? 0.0f : 1.0f + (__float_as_uint(sum) * 2654435761u >> 9) * 1e-7f"


def fallbacks(exercise):
    """What is said of outputs of this exercise that no suspect explains."""
    rng = np.random.default_rng(5)
    for case in exercise.cases(rng) if exercise.is_kernel else ():
        noise = rng.uniform(2, 3, case.expected.shape) * (1 + np.abs(case.expected).max())
        for output in (noise, 0 * noise):
            with np.errstate(over="ignore", invalid="ignore"):
                output = output.astype(case.args[case.output].dtype)
                told = findings(case, output, exercise.suspects)
            if told and not explained(told):
                said = tuple(map(in_words, told))
                yield plain(Verdict(exercise.name, False, f"wrong at {case.label}", said))


def test_no_fallback_would_do():
    """Words that a fallback holds too name no cause."""
    source = edited(find("coalesce").solution, [("= sum;", f"= {NOISE};")])
    of_any = plain(judge(find("coalesce"), source))
    assert "very element is wrong" in of_any
    for name, table in TABLES.items():
        told = [of_any, *fallbacks(find(name))]
        for row in table["wrong"].values():
            for words in says(row):
                assert not any(one in one_told for one in words.split("|") for one_told in told), (
                    words
                )
