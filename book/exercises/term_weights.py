"""How often each term of a sum is counted, read off a wrong output.

A kernel that leaves terms out, or adds some twice, still computes a weighted sum. The weights follow from its output:
of a product by least squares, since all its elements share them, and of other sums by a launch whose inputs are made
for it (`Case.probe`), which gives them one by one.
"""

import numpy as np

from .exercise import Case
from .index_words import indices

CLOSE = 0.02  # of a whole number
FEW = 8  # so many terms are listed


def of_probe(kernel_attempt, case: Case) -> str | None:
    """The same of a sum that can be asked term by term. kernel_attempt launches a case, and returns an Attempt."""
    if case.probe is None:
        return None
    tried = kernel_attempt(case.probe())
    if tried.output is None or not np.isfinite(tried.output).all():
        return None
    if np.abs(tried.output - np.round(tried.output)).max() > CLOSE:
        return None
    return in_words(tried.output, "i")


def in_words(weights: np.ndarray, name: str) -> str | None:
    """ "The terms k with k % 16 = 0 are never added." for weights 0, 1, 1 ...; None where each term is counted once."""
    weights = np.round(weights).astype(int)
    if (weights == weights[0]).all():
        return None
    some = np.flatnonzero(weights)
    if 0 < len(some) <= FEW and 2 * len(some) < len(weights):
        times = [f"{i}" + (f" ({weights[i]} times)" if weights[i] != 1 else "") for i in some]
        listed = f"{', '.join(times[:-1])} and {times[-1]}" if len(times) > 1 else times[0]
        return f"Of {len(weights)} terms only {name} = {listed} {'are' if len(times) > 1 else 'is'} added."
    said = []
    for times in (0, *sorted(set(weights.tolist()) - {0, 1})):
        marked = weights == times
        if not marked.any():
            continue
        which = indices("term", marked).replace("terms r with r %", f"terms {name} with {name} %")
        are = "is" if which.split()[0] == "term" else "are"
        what = {0: "never added", -1: "subtracted"}.get(times, f"added {times} times")
        said.append(f"{which[0].upper()}{which[1:]} {are} {what}")
    if not said:
        return None
    more = (
        f"; {len(said) - 2} other groups of terms are added more than once" if len(said) > 2 else ""
    )
    return "; ".join([said[0], *(s[0].lower() + s[1:] for s in said[1:2])]) + more + "."
