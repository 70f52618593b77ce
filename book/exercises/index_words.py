"""Marked places in words."""

import numpy as np


def indices(what: str, marked: np.ndarray) -> str:
    """ "rows 16 and up", "row 3", "rows with index % 16 in 8-15", "6 of 40 columns"."""
    found = np.flatnonzero(marked)
    n, first, last = len(marked), int(found[0]), int(found[-1])
    if len(found) == n:
        return f"all {what}s"
    if len(found) == 1:
        return f"{what} {first}"
    if last - first + 1 == len(found):
        return f"{what}s {first} and up" if last == n - 1 else f"{what}s {first}-{last}"
    for period in (2, 4, 8, 16, 32, 64):
        residues = np.unique(found % period)
        if period < n and np.array_equal(np.isin(np.arange(n) % period, residues), marked):
            span = f"{residues[0]}-{residues[-1]}"
            if len(residues) == 1:
                span = f"{residues[0]}"
            elif residues[-1] - residues[0] + 1 != len(residues):
                span = ", ".join(map(str, residues))
            return (
                f"{what}s r with r % {period} in {span}"
                if len(residues) > 1
                else (f"{what}s r with r % {period} = {span}")
            )
    return f"{len(found)} of {n} {what}s"
