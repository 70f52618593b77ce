"""What an exercise is: plain data, in one place for the notebooks, the checker and the tests.

A kernel exercise has its CUDA source in `kernel.cu` of its folder, which holds both versions: the answer between `#ifdef
SOLUTION` and `#else`, what the reader is given between `#else` and `#endif`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent

import numpy as np

from .counts import count, in_words

FOLDER = Path(__file__).resolve().parent
GIVEN, ANSWER, BOTH = "given", "answer", "both"


@dataclass(frozen=True)
class Product:
    """The matrix product behind a case, in float64: `alpha * A @ B + beta * old`. Shapes (M, K), (K, N), (M, N)."""

    A: np.ndarray
    B: np.ndarray
    old: np.ndarray
    alpha: float = 1.0
    beta: float = 0.0

    @property
    def C(self) -> np.ndarray:
        return self.alpha * self.A @ self.B + (self.beta * self.old if self.beta else 0)

    def weighted(self, how_often) -> np.ndarray:
        """A @ B with each term along K as often as `how_often` of their numbers says."""
        return self.A * how_often(np.arange(self.A.shape[1])) @ self.B


@dataclass(frozen=True)
class Case:
    """One launch: `args` in kernel order, the index of the output among them and what it must hold.

    The output's initial contents are the case's affair: poisoned where the kernel must write, old values where it must
    read. `tolerance` is relative to `scale`, element by element; 0 means equal. `special` says what this case
    has that a simpler one has not, as a clause. `shared_bytes`: dynamic shared memory. `drawn`: its sizes are new
    each time, so it explains only what no other case shows.
    """

    label: str
    args: tuple
    output: int
    expected: np.ndarray
    grid: tuple[int, ...]
    block: tuple[int, ...]
    tolerance: float = 0.0
    scale: np.ndarray | float = 1.0
    product: Product | None = None
    special: str = ""
    shared_bytes: int = 0
    drawn: bool = False


@dataclass(frozen=True)
class Counted:
    metric: str

    @property
    def words(self) -> str:
        return in_words(self.metric)

    def value(self, trace) -> int:
        return count(trace, self.metric)


@dataclass(frozen=True)
class Goal(Counted):
    """At most so many of it, at the case of this label, or at the one that `Exercise.read` names for all."""

    limit: int
    case: str = ""


@dataclass(frozen=True)
class Need(Counted):
    """At least so many of it, at such a case: the technique is used. `task` states it."""

    least: int
    task: str
    case: str = ""


@dataclass(frozen=True)
class Exercise:
    """One exercise. `cases(rng)` gives fresh random launches, the last of a size drawn anew; `judge(answer, rng)` judges an
    answer that is not a kernel.

    `suspects` are mistakes of this exercise with the output that each would give; `inspect(built, trace)` says what a right
    output does not show; `outside` what an access outside an array most likely means here, where no guard would help;
    `decode(case, output)` what a wrong output holds, where no suspect gives it; `watch(case, trace)` what a wrong launch
    accessed that it should not. `variable` is what an answer that is no kernel is called in its cell. `faster_than`: a rung
    to beat, and the size of a cubed product, on a GPU. `arch`: what a kernel is compiled for, where not for sm_80; a GPU of
    another generation does not run it. `twin(run)` counts the answer to the question of the page (`twins.Run`).
    """

    name: str
    title: str
    minutes: int
    task: str
    hints: tuple[str, str]
    explanation: str
    part: str = ""
    folder: Path = FOLDER
    cases: Callable[[np.random.Generator], tuple[Case, ...]] | None = None
    goals: tuple[Goal, ...] = ()
    needs: tuple[Need, ...] = ()
    faster_than: tuple[str, int] | None = None
    suspects: Mapping[str, Callable[[Case], np.ndarray | None]] = field(default_factory=dict)
    inspect: Callable | None = None
    decode: Callable[[Case, np.ndarray], str | None] | None = None
    watch: Callable | None = None
    outside: str = ""
    judge: Callable | None = None
    given: str = ""
    answer: str = ""
    variable: str = ""
    arch: str | None = None
    twin: Callable | None = None

    @classmethod
    def read(cls, file: str, at: str = "", **fields) -> Exercise:
        """The exercise of this file's folder: its name is the folder's, its words stand in `task.md` beside it.

        at: the label of the case where goals and needs are counted that name none.
        """
        folder = Path(file).parent
        head, *sections = re.split(
            r"(?m)^## (.+)\n", (folder / "task.md").read_text(encoding="utf-8")
        )
        title, minutes, task = re.fullmatch(
            r"# (.+)\n\n(\d+) minutes\n\n(.+)", head.strip(), re.DOTALL
        ).groups()
        said = dict(zip(sections[::2], map(str.strip, sections[1::2]), strict=True))
        code = {
            name.lower(): said[name].removeprefix("```python\n").removesuffix("```")
            for name in ("Given", "Answer")
            if name in said
        }
        hints = said["Hint"], said["Second hint"]
        if launches := fields.pop("cases", None):

            def cases(rng) -> tuple[Case, ...]:
                *fixed, last = launches(rng)
                return (*fixed, replace(last, drawn=bool(fixed)))

            fields["cases"] = cases
        for kind in fields.keys() & {"goals", "needs"}:
            fields[kind] = tuple(replace(one, case=one.case or at) for one in fields[kind])
        return cls(
            folder.name, title, int(minutes), task, hints, said["Explanation"], folder=folder, **code, **fields
        )  # fmt: skip

    @property
    def is_kernel(self) -> bool:
        return self.cases is not None

    @property
    def skeleton(self) -> str:
        return cuda(self.path, GIVEN) if self.is_kernel else self.given

    @property
    def solution(self) -> str:
        """One right answer, of the same kind."""
        return cuda(self.path, ANSWER) if self.is_kernel else self.answer

    def mistakes(self, answer, rng: np.random.Generator | None = None) -> list[str]:
        """What is wrong with an answer that is not a kernel, in sentences. rng draws what it is asked."""
        call = f'check("{self.name}", {self.variable})'
        if f"def {self.variable}(" in self.given and not callable(answer):
            return [f"The answer is the function itself: {call}, without parentheses"]
        if f"{self.variable} = {{" in self.given and not isinstance(answer, Mapping):
            return [f"The answer is the dictionary of counts: {call}"]
        return self.judge(answer, rng or np.random.default_rng())

    @property
    def gap(self) -> str:
        """The lines of the CUDA file that only the solution has; "" where they are not one whole piece."""
        return only_piece(self.path.read_text(encoding="utf-8")) if self.is_kernel else ""

    @property
    def path(self) -> Path:
        return self.folder / "kernel.cu"


def cuda(path: Path, wanted: str) -> str:
    """One version of a CUDA file that holds both, GIVEN or ANSWER, without the `#ifdef SOLUTION` lines themselves."""
    marks = {"#ifdef SOLUTION": ANSWER, "#else": GIVEN, "#endif": BOTH}
    reading, lines = BOTH, []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line in marks:
            reading = marks[line]
        elif reading in (BOTH, wanted):
            lines.append(line)
    return "\n".join(lines) + "\n"


def only_piece(text: str) -> str:
    """The lines that only the answer has, from the margin on; "" where they are not one piece that closes its braces."""
    pieces = re.findall(r"(?ms)^#ifdef SOLUTION\n(.*?)^(?:#else|#endif)$", text)
    whole = len(pieces) == 1 and pieces[0].count("{") == pieces[0].count("}")
    return dedent(pieces[0]) if whole else ""
