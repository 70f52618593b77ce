"""What each finder names, and what it costs, on answers that no table of mistakes holds."""

import re
import time
import tomllib
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

from kernels.table import table

from . import find, judge, wrong_output
from .cell import judge_answer

HELD_OUT = Path(__file__).parents[2] / "tests" / "book" / "exercises" / "held_out.toml"


def answers(path: Path):
    """(exercise, row, source) of each held-out answer: edits of the exercise's solution."""
    for name, rows in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for row in rows:
            source = find(name).solution
            for old, new in row["edits"]:
                if old not in source:
                    raise ValueError(f"{name}, {row['what']}: the solution has no {old!r}")
                source = source.replace(old, new)
            yield find(name), row, source


def tried(exercise, source: str) -> tuple[object, float]:
    began = time.process_time()
    if exercise.is_kernel:
        verdict = judge(exercise, source, np.random.default_rng(7))
    else:
        exec(source, names := {"np": np})
        verdict = judge_answer(exercise.name, eval(exercise.variable, names))
    return verdict, time.process_time() - began


def names(verdict, cause: str) -> bool:
    return bool(re.search(cause, " ".join(" ".join((verdict.headline, *verdict.lines)).split())))


def timed(finders):
    """The same finders, with what each took and how often it knew something."""
    spent, knew = Counter(), Counter()

    def watched(finder, e):
        began = time.process_time()
        found = finder(e)
        spent[finder.__name__] += time.process_time() - began
        knew[finder.__name__] += bool(found)
        return found

    return tuple(partial(watched, finder) for finder in finders), spent, knew


def measure(path: Path = HELD_OUT) -> None:
    finders = wrong_output.FINDERS
    wrong_output.FINDERS, spent, knew = timed(finders)
    wrong, seconds, misjudged = [], [], []
    for exercise, row, source in answers(path):
        verdict, took = tried(exercise, source)
        seconds.append(took)
        if verdict.passed == bool(row["cause"]):
            misjudged.append(f"{exercise.name}: {row['what']}")
        elif row["cause"]:
            wrong.append((exercise, row, source, names(verdict, row["cause"])))
    wrong_output.FINDERS = finders
    named = [one for one in wrong if one[3]]
    print(f"{len(seconds)} answers, misjudged: {', '.join(misjudged) or 'none'}")
    print(f"cause named in {len(named)} of {len(wrong)} wrong ones; not in:")
    print(
        "".join(f"  {e.name}: {row['what']}\n" for e, row, _, known in wrong if not known), end=""
    )
    print(f"seconds: median {np.median(seconds):.2f}, most {max(seconds):.2f}\n")
    rows = []
    for finder in finders[:-1]:
        name, lost = finder.__name__, 0
        if knew[name]:
            wrong_output.FINDERS = tuple(one for one in finders if one is not finder)
            lost = sum(not names(tried(e, s)[0], row["cause"]) for e, row, s, _ in named)
        rows.append((name.strip("_").replace("_", " "), knew[name], lost, f"{spent[name]:.2f}"))
    wrong_output.FINDERS = finders
    print(table(("finder", "knew", "lost without it", "seconds"), rows))
