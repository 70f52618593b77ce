"""Grades a folder of submissions without a GPU: `python -m book.exercises grade FOLDER`.

A submission is read as text (`submission`), a kernel is held to what it may include (`fence`), an answer in Python runs in a
process of its own from which only plain values come back (`sandbox`), and each student's answers are judged by the checker
of the pages with a seed of the student's own (`grade`). `reports` writes the results as Gradescope, nbgrader and
spreadsheets read them. What a submission prints, stores or claims counts for nothing.
"""

from .grade import Grade, grade
from .submission import Submission, submissions

__all__ = ["Grade", "Submission", "grade", "submissions"]
