"""The tests that belong to a change: `make quick`, or `make quick OF="emulator figures"`.

    python -m tests.quick                  of the rooms in which git sees changes
    python -m tests.quick emulator         of one room

A room's quick tests leave out what compiles many kernels or launches large ones; `make test` runs everything.
"""

from __future__ import annotations

import os
import subprocess
import sys

from book.__main__ import ON_EMULATOR, ROOT

ALWAYS = ("tests/test_map.py", "tests/test_encodings.py")
# {room: (tests, files among them that take longer)}. The longest name that a changed file begins with counts.
ROOMS = {
    "emulator": (
        ("tests/emulator",),
        (
            *("machine/test_blocks_together.py", "ops/test_barriers.py", "ops/test_clusters.py"),
            *("ops/test_membermasks.py", "ops/test_wgmma.py", "sanitizer", "text/test_modifiers.py"),
        ),
    ),
    "kernels": (
        ("tests/kernels",),
        (
            *("test_a_new_rung.py", "test_build.py", "test_check.py", "test_counted_on.py"),
            *("test_hopper_shapes.py", "test_linear.py", "test_planted_mistakes.py", "test_seeded.py"),
            *("test_alone.py::test_nvcc_builds_a_rung_that_leaves",),
            *("test_rungs.py::test_compiles_without_spills_or_warnings",),
        ),
    ),
    "measure": (("tests/measure",), ("test_machine_code.py", "test_published.py")),
    "results": (("tests/measure", "tests/book/test_bound_numbers.py"), ("test_machine_code.py",)),
    "figures": (("tests/figures",), ()),
    "book/cells": (("tests/book/cells",), ("test_on_a_t4.py",)),
    "book/exercises": (("tests/book/exercises",), ("test_exercises.py", "test_lab.py")),
    "book": (
        tuple(f"tests/book/test_{name}.py" for name in (
            *("bound_numbers", "glossary", "plumbing", "reading", "references", "setup_cells"),
            *("terms", "toc"),
        )),
        (),
    ),
}  # fmt: skip


def changed() -> list[str]:
    """Files that differ from the branch `main`, or from the last commit on it, and files that git does not know."""
    git = ["git", "-C", str(ROOT)]
    base = subprocess.run([*git, "merge-base", "HEAD", "main"], capture_output=True, text=True)
    since = base.stdout.strip() or "HEAD"
    files = subprocess.run([*git, "diff", "--name-only", since], capture_output=True, text=True)
    new = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True
    )
    return [*files.stdout.split(), *new.stdout.split()]


def room_of(file: str) -> str | None:
    """The room of a file, or of the file that a test is about; None for one in no room."""
    inside = file.removeprefix("tests/")
    fitting = [room for room in ROOMS if f"{inside}/".startswith(f"{room}/")]
    return max(fitting, key=len, default=None)


def arguments(rooms: list[str]) -> list[str]:
    """What pytest is told. ValueError for a room that there is not."""
    wanted, left_out = list(ALWAYS), []
    for room in rooms:
        if room not in ROOMS:
            raise ValueError(f"no room {room!r}; the rooms are {', '.join(ROOMS)}")
        tests, slow = ROOMS[room]
        wanted += [name for name in tests if name not in wanted]
        for name in slow:
            option = "--deselect" if "::" in name else "--ignore"
            left_out.append(f"{option}={tests[0]}/{name}")
    return [*wanted, *left_out]


def main(words: list[str]) -> int:
    rooms = words or sorted({room for file in changed() if (room := room_of(file))})
    try:
        told = arguments(rooms)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"of {', '.join(rooms) or 'no room: nothing has changed'}", flush=True)
    # what needs the rendered pages is left to `make test`; one long file may keep both processes busy
    parts = ["-m", "not site", "-q", "-n", "2", "--dist", "worksteal"]
    command = [sys.executable, "-m", "pytest", *told, *parts]
    return subprocess.run(command, cwd=ROOT, env=os.environ | ON_EMULATOR).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
