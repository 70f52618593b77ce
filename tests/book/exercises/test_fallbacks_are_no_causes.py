"""No test of a message is content with a fallback: words that a fallback holds too name no cause.

Every table of mistakes in this folder is found by its shape, so that a new one is held to the same.
"""

import importlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from book.exercises import EXERCISES, judge
from book.exercises.cell import judge_answer
from book.exercises.diagnose import explained, findings
from book.exercises.verdict import Verdict

NAMES = {exercise.name: exercise for exercise in EXERCISES}
HERE = Path(__file__)
TABLES = [
    importlib.import_module(f"tests.book.exercises.{path.stem}")
    for path in sorted(HERE.parent.glob("test_*.py"))
    if path != HERE
]
STORES = """extern "C" __global__ void coalesce(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    if (row < M && col < N) {
        for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = WHAT;
    }
}"""
# It obeys no rule that small inputs or small changes of the source would show.
NOISE = "sum == 0.0f ? 0.0f : 1.0f + (__float_as_uint(sum) * 2654435761u >> 9) * 1e-7f"


def expectations(module):
    """(exercise or "", words) of every expected message in a module's tables."""
    for name, table in vars(module).items():
        if name.isupper() and isinstance(table, dict):
            yield from _within(table, "", name == "GIVEN")
    for test in vars(module).values():
        for mark in getattr(test, "pytestmark", ()):
            if mark.name == "parametrize" and "words" in str(mark.args[0]):
                yield from (("", row[-1]) for row in mark.args[1] if isinstance(row, tuple))


def _within(table, exercise, plain):
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        known = key[0] if isinstance(key, tuple) else key
        about = known if known in NAMES else exercise
        if isinstance(value, str):
            if plain:
                yield about, value
        elif isinstance(value, tuple) and isinstance(value[-1], str):
            if isinstance(table, dict) or not isinstance(value[0], str):  # else an edit: (old, new)
                yield about, value[-1]
        elif isinstance(value, dict | list):
            yield from _within(value, about, plain)


def plain(verdict):
    return " ".join(str(verdict).split())


@cache
def of_any_kernel() -> tuple[str, ...]:
    """What is said of a kernel that reads and stores everything, and whose output has no explanation."""
    return (plain(judge(NAMES["coalesce"], STORES.replace("WHAT", NOISE))),)


@cache
def of(name: str) -> tuple[str, ...]:
    """What is said of outputs of this exercise that no suspect explains."""
    exercise = NAMES[name]
    if not exercise.is_kernel:
        if (
            name == "lane_map"
        ):  # the other answers have no fallback: each is told by its own numbers
            return (plain(judge_answer(name, lambda lane, half: (15, 15))),)
        return ()
    said = []
    rng = np.random.default_rng(5)
    for case in exercise.cases(rng):
        noise = rng.uniform(2, 3, case.expected.shape) * (1 + np.abs(case.expected).max())
        for output in (noise, 0 * noise):
            with np.errstate(over="ignore", invalid="ignore"):
                told = findings(
                    case, output.astype(case.args[case.output].dtype), exercise.suspects
                )
            if told and not explained(told):
                said.append(plain(Verdict(name, False, f"wrong at {case.label}", tuple(told))))
    return tuple(said)


@pytest.mark.parametrize("module", TABLES, ids=lambda module: module.__name__.rsplit(".", 1)[-1])
def test_no_fallback_would_do(module):
    for exercise, words in expectations(module):
        for fallback in of_any_kernel() + (of(exercise) if exercise else ()):
            for one in words.split("|"):
                assert one not in fallback, f"{exercise}: {one!r} stands in {fallback!r}"


def test_the_tables_are_found_and_the_fallbacks_are():
    found = {module.__name__.rsplit(".", 1)[-1]: len([*expectations(module)]) for module in TABLES}
    assert found["test_exercises"] > 60 and found["test_ramp"] > 60 and found["test_causes"] > 30
    assert found["test_lab"] and found["test_diagnose"]
    (noise,) = of_any_kernel()
    assert "Every element is wrong" in noise
    assert all(len(of(name)) > 0 for name in ("coalesce", "rasterise", "lane_map"))
