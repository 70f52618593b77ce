"""Arrays that a launch should have touched and has not."""

from __future__ import annotations

import numpy as np

from .exercise import Case
from .explain import parameter_name


def touched(trace) -> dict[int, set[str]]:
    """For each array argument the kinds of access that the first block's warps made to it."""
    found: dict[int, set[str]] = {}
    for row in trace.instructions:
        for access in trace.accesses(row):
            if access.buffer.startswith("argument "):
                kind = "store" if access.kind == "store" else access.kind
                found.setdefault(int(access.buffer.split()[1]), set()).add(kind)
    return found


def untouched(case: Case, trace, source: str, kernel: str) -> list[str]:
    """Sentences on arrays that the kernel should have read or written and has not touched at all."""
    kinds = touched(trace)
    said, unread = [], []
    for number, value in enumerate(case.args):
        if not isinstance(value, np.ndarray):
            continue
        name = parameter_name(number, source, kernel)
        if number == case.output:
            if not kinds.get(number, set()) - {"load"}:
                said.append(f"Nothing is ever stored to {name}.")
        elif number not in kinds:
            unread.append(name)
    if unread:
        are = "is" if len(unread) == 1 else "are"
        said.append(f"{' and '.join(unread)} {are} not read, or what is read is not used.")
    return said
