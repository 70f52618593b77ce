"""An inspection of somebody's kernel in a page: its lines with their costs, what they waste, what races."""

from __future__ import annotations

import textwrap

from IPython.display import display

from book.cells import columns
from book.cells.setting import WIDTH
from measure.inspection import CannotInspect, inspect
from measure.inspection_page import (
    conflict_figure,
    findings_table,
    hazard_figure,
    sector_figure,
)


def show(found, title: str | None = None) -> None:
    """The annotated source, and a table for each kind of waste that there is."""
    display(found.annotated(title))
    if found.conflicts:
        display(findings_table(found.conflicts, "wavefronts", "Lines with bank conflicts"))
    if found.wasted:
        display(findings_table(found.wasted, "sectors", "Lines that use less than they move"))
    kinds = [hazard.kind for hazard in found.hazards]
    print(f"hazards: {', '.join(kinds) or 'none'}")
    print(textwrap.fill(found.bound_text(), WIDTH))


def worst_access(found):
    """The access that wastes most, drawn: by bank where there is a conflict, else by sector."""
    return conflict_figure(found) or sector_figure(found)


def hazard(found, which: int = 0):
    """One of the hazards, drawn."""
    return hazard_figure(found, found.hazards[which])


def refusal(*args, **kwargs) -> str:
    """The line in which `inspect` says why it does not run a kernel; a ValueError where it does."""
    try:
        inspect(*args, **kwargs)
    except CannotInspect as error:
        return str(error)
    raise ValueError("this kernel is not refused")


def arguments():
    """How an argument is written on the command line."""
    return columns.written(
        "Types are s, u or f with a number of bits",
        {
            "--arg": "as it is typed",
            "what the kernel gets": "the value of this parameter",
        },
    )
