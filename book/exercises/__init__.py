"""Exercises: write the kernel yourself, and be told at once what is wrong.

A notebook says `%load_ext book.exercises`, writes a kernel in a `%%kernel NAME` cell and calls `check("NAME")`, which
runs it on the emulator, and on the GPU when there is one. `lab` runs the ECE 60827 lab.
"""

from .catalogue import EXERCISES, find
from .cell import (
    check,
    load_ipython_extension,
    load_progress,
    progress,
    save_progress,
    source,
)
from .judge import judge
from .verdict import Verdict

__all__ = [
    "EXERCISES",
    "Verdict",
    "check",
    "find",
    "judge",
    "load_ipython_extension",
    "load_progress",
    "progress",
    "save_progress",
    "source",
]
