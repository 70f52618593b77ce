"""What a student handed in: the kernels and the cells of Python in a folder's notebooks and files, as text."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MOST_BYTES = 5_000_000
KINDS = (".ipynb", ".cu", ".py")
KERNEL = re.compile(r"%%kernel[ \t]+(\w+)[ \t]*\n")
NOT_PYTHON = re.compile(r"^\s*[%!?].*$", re.MULTILINE)


@dataclass
class Submission:
    """kernels: {exercise: CUDA}; the last cell of a name counts, as in a notebook. cells: Python, in order.
    refused: what could not be read, in words.
    """

    student: str
    kernels: dict[str, str] = field(default_factory=dict)
    cells: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def read(self, path: Path) -> None:
        """Add a file: a notebook, `EXERCISE.cu`, or Python whose calls of `check` say what it answers."""
        try:
            text = _text(path)
            if path.suffix == ".cu":
                self._kernel(path.stem, text, path)
            elif path.suffix == ".py":
                self.cells.append(text)
            else:
                for source in _code_cells(text):
                    if found := KERNEL.match(source):
                        self.kernels[found[1]] = source[found.end() :]
                    elif not source.lstrip().startswith("%%"):
                        self.cells.append(NOT_PYTHON.sub("", source))
        except ValueError as error:
            self.refused.append(f"{path.name}: {error}")

    def _kernel(self, name: str, text: str, path: Path) -> None:
        if name in self.kernels:
            raise ValueError(f"{name} was handed in twice; which one counts?")
        self.kernels[name] = text


def _text(path: Path) -> str:
    if path.is_symlink():
        raise ValueError("a link is not followed; hand in the file itself")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES:,} bytes")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError("not a text in UTF-8") from None


def _code_cells(text: str) -> Iterator[str]:
    """The sources of a notebook's code cells. Outputs, attachments and metadata are not looked at."""
    try:
        cells = json.loads(text)["cells"]
        sources = [
            cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
            for cell in cells
            if cell["cell_type"] == "code" and "setup" not in cell["metadata"].get("tags", ())
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("not a Jupyter notebook") from None
    yield from sources


def submissions(folder: Path, single: str | None = None) -> list[Submission]:
    """One submission for each student: what this folder has under the student's name, a folder (with all that lies below
    it), files, or both. single: the whole folder is this student's.

    ValueError when the folder is not there, or holds nothing that could be a submission.
    """
    if not folder.is_dir():
        raise ValueError(
            f"{folder} is no folder; it should hold a folder or a file for each student"
        )
    entries = [(single, folder)] if single else _students(folder)
    found: dict[str, Submission] = {}
    for student, entry in sorted(entries):
        one = found.setdefault(student, Submission(student))
        files = [entry] if entry.is_file() else sorted(entry.rglob("*"))
        if entry.is_symlink():
            one.refused.append(f"{entry.name}: a link is not followed; hand in the file itself")
            files = []
        for path in files:
            wanted = path.suffix in KINDS and ".ipynb_checkpoints" not in path.parts
            if wanted and (path.is_file() or path.is_symlink()):
                one.read(path)
    if not found:
        raise ValueError(f"{folder} holds no submission: no folder, and no .ipynb, .cu or .py file")
    return list(found.values())


def _students(folder: Path) -> list[tuple[str, Path]]:
    return [
        (entry.stem if entry.is_file() else entry.name, entry)
        for entry in folder.iterdir()
        if not entry.name.startswith(".") and (entry.is_dir() or entry.suffix in KINDS)
    ]
