"""The grades as other programs read them."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from .grade import Grade

FORMATS = ("json", "csv", "gradescope", "nbgrader")


def written(grades: Sequence[Grade], kind: str, assignment: str = "gemm-ladder") -> str:
    """The text of a report. ValueError for a kind that there is not, or more than one student for Gradescope, which asks
    for one file per submission.
    """
    if kind == "json":
        return json.dumps(
            {"assignment": assignment, "grades": [asdict(g) for g in grades]}, indent=1
        )
    if kind == "csv":
        heads = ["student", "exercise", "passed", "headline", "seconds"]
        rows = [[g.student, g.exercise, int(g.passed), g.headline, g.seconds] for g in grades]
        return _csv([heads, *rows])
    if kind == "gradescope":
        return json.dumps(_gradescope(grades), indent=1)
    if kind == "nbgrader":
        heads = ["assignment", "student_id", "raw_score", "score", "max_score"]
        rows = [
            [assignment, student, points, points, total]
            for student, points, total in totals(grades)
        ]
        return _csv([heads, *rows])
    raise ValueError(f"there is no report {kind!r}; there are {', '.join(FORMATS)}")


def totals(grades: Sequence[Grade]) -> list[tuple[str, int, int]]:
    """(student, passed, asked) for each student, in the order of the grades."""
    found = []
    for student, rows in groupby(grades, key=lambda g: g.student):
        rows = list(rows)
        found.append((student, sum(g.passed for g in rows), len(rows)))
    return found


def _gradescope(grades: Sequence[Grade]) -> dict:
    """`results.json` of Gradescope's autograder specification, for one submission."""
    if len(students := {g.student for g in grades}) != 1:
        raise ValueError(
            f"Gradescope's report is of one submission, and there are {len(students)} students: name one with --single"
        )
    tests = [
        {
            "name": g.exercise,
            "score": int(g.passed),
            "max_score": 1,
            "status": "passed" if g.passed else "failed",
            "output": "\n".join([g.headline, *g.lines]),
            "output_format": "text",
        }
        for g in grades
    ]
    return {"score": sum(test["score"] for test in tests), "tests": tests}


def _csv(rows: Sequence[Sequence]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [[_cell(value) for value in row] for row in rows]
    )
    return text.getvalue()


def _cell(value):
    """A student's name must not become a formula of a spreadsheet."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@" else value
