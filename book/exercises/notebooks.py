"""Writes the exercise notebooks from the catalogue: `python -m book.exercises.notebooks`, then run them to store outputs.

One notebook per part. Each exercise is a task, a `%%kernel` cell with the skeleton, a cell that checks it, two hints and
the solution with its explanation, the last three folded.
"""

import argparse
import re

import jupytext
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book import chapters

from .catalogue import EXERCISES, PARTS
from .exercise import FOLDER, Exercise
from .lab import FILES, SKELETON, SOLUTION

PROPER = ("Hopper", "Blackwell")  # a name, which keeps its capital
LOAD = "%load_ext book.exercises\nfrom book.cells import answers\nfrom book.exercises import check, twins"
PAGES = FOLDER / "pages"  # what the pages say beside the exercises


def file_name(part: str) -> str:
    """ "Tensor cores" -> "4_tensor_cores"."""
    return f"{PARTS.index(part) + 1}_{'_'.join(part.lower().split())}"


def folded(summary: str, text: str) -> str:
    """A paragraph that opens on a click, in JupyterLab, in Colab and in the book."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def cells(exercise: Exercise) -> list:
    goals = "".join(
        f" The goal: at most {g.limit:,} {g.words} at {g.case}." for g in exercise.goals
    )
    if exercise.needs:
        asked = "; ".join(dict.fromkeys(need.task for need in exercise.needs))
        goals = f" The check wants it done this way: {asked}.{goals}"
    time = f"about {exercise.minutes} minutes"
    if exercise.is_kernel:
        language = "cuda"
        work = [
            new_code_cell(f"%%kernel {exercise.name}\n{exercise.skeleton.rstrip()}"),
            new_code_cell(f'check("{exercise.name}")'),
        ]
    else:
        language = "python"
        answer = exercise.variable
        gap = "\n\n\n" if "\ndef " in "\n" + exercise.given else "\n\n"
        work = [new_code_cell(f'{exercise.given.rstrip()}{gap}check("{exercise.name}", {answer})')]
    twin = f"ex-{exercise.name.replace('_', '-')}"
    shown = exercise.gap or exercise.solution
    solution = f"```{language}\n{shown.rstrip()}\n```\n\n{exercise.explanation}"
    return [
        new_markdown_cell(
            f"## {exercise.title}\n\n*{time[0].upper() + time[1:]}.* {exercise.task}{goals}"
        ),
        new_code_cell(f'answers.check("{twin}")'),
        new_code_cell(f'answers.settle("{twin}", twins.counted("{exercise.name}"))'),
        *work,
        new_markdown_cell(
            "\n\n".join(
                [
                    folded("A hint", exercise.hints[0]),
                    folded("A second hint", exercise.hints[1]),
                    folded(
                        "A solution, in place of the gap" if exercise.gap else "A solution",
                        solution,
                    ),
                ]
            )
        ),
    ]


def notebook(part: str):
    made = new_notebook()
    title = part if part in PROPER else part[0].lower() + part[1:]
    pieces = re.split(r"(?m)^## (.+)\n", (PAGES / "parts.md").read_text(encoding="utf-8"))
    said = dict(zip(pieces[1::2], map(str.strip, pieces[2::2]), strict=True))
    begin = [f"# Exercises: {title}", said[part], said["On each page"]]
    begin += [said["On the first page"]] if part == PARTS[0] else []
    made.cells = [
        new_markdown_cell("\n\n".join(begin)),
        new_code_cell(LOAD),
    ]
    for exercise in EXERCISES:
        if exercise.part == part:
            made.cells += cells(exercise)
    chapters.write_setup_cell(made)
    return made


def page(text: str):
    """A notebook from MyST Markdown, as `chapters.from_markdown` takes it."""
    made = jupytext.reads(text, fmt="md:myst")
    chapters.write_setup_cell(made)
    return made


def all_notebooks() -> dict:
    """{file name without ending: notebook without outputs}."""
    parts = {file_name(part): notebook(part) for part in PARTS}
    lab = (FILES / "notes.md").read_text(encoding="utf-8")
    lab = lab.replace("{skeleton}", SKELETON.rstrip()).replace("{solution}", SOLUTION.rstrip())
    progress = (PAGES / "progress.md").read_text(encoding="utf-8")
    return parts | {"lab3": page(lab), "progress": page(progress)}


def main() -> None:
    """Write every notebook, keeping the stored outputs of cells whose source has not changed."""
    for name, made in all_notebooks().items():
        path = FOLDER / f"{name}.ipynb"
        chapters.keep_outputs(made, path)
        chapters.write(made, path)
        print(path.name)


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m book.exercises.notebooks", description=main.__doc__
    ).parse_args()
    main()
