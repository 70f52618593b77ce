"""Writes the exercise notebooks from the catalogue: `python -m book.exercises.notebooks`, then run them to store outputs.

One notebook per part. Each exercise is a task, a `%%kernel` cell with the skeleton, a cell that checks it, two hints and
the solution with its explanation, the last three folded.
"""

from __future__ import annotations

import argparse
import re

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book import chapters

from .catalogue import EXERCISES, PARTS
from .exercise import FOLDER, Exercise
from .lab import FILES, SKELETON, SOLUTION

INTRODUCTIONS = {
    "Memory": "These exercises ask which thread touches which address, and who must wait for whom.",
    "More work per thread": "These exercises make accesses fewer and wider, and use each value more than once.",
    "Copies that do not wait": "These exercises are about `cp.async`: what a wait promises, what it does not, and how to "
    "fetch ahead.",
    "Tensor cores": "One warp multiplies, first through the WMMA API, then with `mma` and its registers.",
    "Bank conflicts and swizzles": "Where data lies in shared memory decides whether the lanes of a warp are served together or "
    "one after another. These exercises move data to better places, by padding and by swizzles.",
    "Everything at once": "These exercises are about what a kernel needs besides its inner loop: guards at the "
    "edges and an order of its tiles. The last one is a kernel that you make as fast as you can.",
    "Sums across threads": "These exercises show how threads and blocks add up values together: shuffles, reductions, atomic "
    "additions, and how many digits of a sum are kept.",
    "The capstone": "You build one kernel in five steps, each of them checked: cp.async, a swizzle, ldmatrix, mma, and a "
    "pipeline along K.",
    "Hopper": "These exercises are about tensor maps, descriptors, barriers that count bytes, fences, roles, and K split "
    "between warpgroups. "
    "The emulator runs all of it. A GPU tries your kernel too if it is of compute capability 9.0.",
    "Blackwell": "These exercises are about tensor memory, the bits of a descriptor, sums that take turns, pairs of blocks, and "
    "the order of scales. The emulator runs all of it, and nobody has tried them on a GPU of compute capability 10.0.",
}
PROPER = ("Hopper", "Blackwell")  # a name, which keeps its capital
EXCUSED = "nbval-ignore-output"  # its output depends on the machine
LOAD = "%load_ext book.exercises\nfrom book.cells import answers\nfrom book.exercises import check, twins"
HOW = (
    "Fill the gap, run the cell, then the check below it. Without changes each check fails, and says why. The question "
    "between task and kernel needs no kernel."
)
# On the first page only.
KEPT = (
    "The page [Your progress](progress.ipynb) lists what you have passed. A machine in the cloud, such as Colab's, forgets "
    "this list when your session ends. To keep it, run `from book.exercises import save_progress, load_progress` and "
    '`save_progress("progress.json")`, and download that file. Next time, upload it and call `load_progress("progress.json")`.'
)


def file_name(part: str) -> str:
    """ "Tensor cores" -> "4_tensor_cores"."""
    return f"{PARTS.index(part) + 1}_{'_'.join(part.lower().split())}"


def folded(summary: str, text: str) -> str:
    """A paragraph that opens on a click, in JupyterLab, in Colab and in the book."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def cells(exercise: Exercise) -> list:
    """The notebook cells of one exercise."""
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
    """The notebook of one part, without outputs."""
    made = new_notebook()
    title = part if part in PROPER else part[0].lower() + part[1:]
    begin = [f"# Exercises: {title}", INTRODUCTIONS[part], HOW]
    begin += [KEPT] if part == PARTS[0] else []
    made.cells = [
        new_markdown_cell("\n\n".join(begin)),
        new_code_cell(LOAD),
    ]
    for exercise in EXERCISES:
        if exercise.part == part:
            made.cells += cells(exercise)
    chapters.write_setup_cell(made)
    return made


PROGRESS = (
    "# Exercises: your progress\n\nThis is every exercise, with the minutes that it may take, in the order of the book. "
    "[The lab](lab3.ipynb) is not in this list. The count below includes it as one more exercise."
)
SAVING = """\
A machine in the cloud forgets what you have passed when it is given back. `save_progress` writes a small file that you can
download, and `load_progress` adds such a file to what has been passed here:

```python
from book.exercises import load_progress, save_progress

save_progress("progress.json")
load_progress("progress.json")
```\
"""
LIST = """\
from book.exercises import EXERCISES, progress

for exercise in EXERCISES:
    print(f"{exercise.part:28} {exercise.minutes:3} min  {exercise.title}")\
"""


def progress():
    """The page that the reader's own work fills in."""
    made = new_notebook()
    passed = new_code_cell("progress()")
    passed.metadata.tags = [EXCUSED]
    made.cells = [
        new_markdown_cell(PROGRESS),
        new_code_cell(LIST),
        new_markdown_cell(
            "Run the cell to see which you have passed on this machine, in whichever notebook."
        ),
        passed,
        new_markdown_cell(SAVING),
    ]
    chapters.write_setup_cell(made)
    return made


def lab():
    """The lab's notebook, from `lab3/notes.md`: Markdown, with code cells between lines of four backquotes."""
    made = new_notebook()
    text = (FILES / "notes.md").read_text(encoding="utf-8")
    text = text.replace("{skeleton}", SKELETON.rstrip()).replace("{solution}", SOLUTION.rstrip())
    for piece in re.split(r"^(````python[^`]*?\n.*?\n````)$", text, flags=re.MULTILINE | re.DOTALL):
        if code := re.fullmatch(r"````python *(\w*)\n(.*)\n````", piece, re.DOTALL):
            cell = new_code_cell(code[2])
            if code[1] == "excused":
                cell.metadata.tags = [EXCUSED]
            made.cells.append(cell)
        elif piece.strip():
            made.cells.append(new_markdown_cell(piece.strip()))
    chapters.write_setup_cell(made)
    return made


def all_notebooks() -> dict:
    """{file name without ending: notebook without outputs}."""
    parts = {file_name(part): notebook(part) for part in PARTS}
    return parts | {"lab3": lab(), "progress": progress()}


def main() -> None:
    """Write every notebook, keeping the stored outputs of cells whose source has not changed."""
    for name, made in all_notebooks().items():
        path = FOLDER / f"{name}.ipynb"
        if path.exists():
            kept = {c.source: c for c in chapters.read(path).cells if c.cell_type == "code"}
            for cell in made.cells:
                if cell.cell_type == "code" and cell.source in kept:
                    cell.outputs = kept[cell.source].outputs
                    cell.execution_count = kept[cell.source].execution_count
        chapters.write(made, path)
        print(path.name)


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m book.exercises.notebooks", description=main.__doc__
    ).parse_args()
    main()
