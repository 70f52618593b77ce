"""The static twin of each exercise: a question with a number for its answer, that a page without a kernel can judge.

The questions stand in `book/answers/exercises.toml`; `counted(name)` finds each answer anew, by the `twin` of the
exercise, which launches the exercise's own kernel where it has one to count.
"""

import math
from functools import cache

import numpy as np

from .attempt import Attempt, attempt, compile_cell
from .catalogue import find
from .counts import count
from .exercise import ANSWER, Case, Exercise

SEED = 1  # sizes of the fixed cases do not depend on it


class Run:
    """Launches of one exercise's solution, or of what is given, at one of its cases, and what they count."""

    def __init__(self, exercise: Exercise):
        self.exercise = exercise

    @cache  # noqa: B019 (lives as long as one question)
    def __call__(self, version: str = ANSWER, case: int = 0) -> Attempt:
        return self.launch(self.exercise.cases(np.random.default_rng(SEED))[case], version)

    def launch(self, case: Case, version: str = ANSWER) -> Attempt:
        return attempt(self._built(version), self.exercise.name, case)

    def _built(self, version: str = ANSWER):
        exercise = self.exercise
        source = exercise.solution if version == ANSWER else exercise.skeleton
        return compile_cell(exercise.name, source, exercise.arch)

    def report(self):
        return self._built().reports[self.exercise.name]

    def python(self):
        names: dict = {}
        exec(self.exercise.answer, names)
        return names[self.exercise.variable]

    def count(self, what: str, version: str = ANSWER, case: int = 0) -> int:
        return count(self(version, case).trace, what)

    def per_warp(self, what: str, case: int = 0) -> int:
        """The same per warp."""
        trace = self(case=case).trace
        return count(trace, what) // (trace.blocks * math.prod(trace.block) // 32)

    def sectors_per_request(self, argument: int, version: str = ANSWER) -> int:
        """Of all requests for this argument."""
        trace = self(version).trace
        rows = [
            row
            for row in trace.instructions
            if any(a.buffer == f"argument {argument}" for a in trace.accesses(row))
        ]
        return sum(r.global_sectors for r in rows) // sum(r.global_requests for r in rows)

    def lane(
        self, opcode: str, lane: int, *, warp=0, nth=0, row=None, buffer=None, version=ANSWER, case=0
    ) -> int:  # fmt: skip
        """The byte that this lane accesses, behind the lowest that the same instructions access, or in this buffer.

        opcode: how the instructions begin; row: only this one of them. nth: of the accesses of this warp. buffer: only
        accesses of this one.
        """
        trace = self(version, case).trace
        rows = trace.rows(opcode) if row is None else [trace.rows(opcode)[row]]
        found = [a for one in rows for a in trace.accesses(one) if buffer in (None, a.buffer)]
        start = 0 if buffer else min(int(a.addresses[a.active].min()) for a in found)
        return int([a for a in found if a.warp == warp][nth].addresses[lane]) - start


def counted(name: str) -> int:
    """The answer to the twin of this exercise. ValueError for a name that no exercise has."""
    exercise = find(name)
    return exercise.twin(Run(exercise))
