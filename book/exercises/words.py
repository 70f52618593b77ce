"""Puts findings into words: one table, and the only place where their sentences are made."""

import numpy as np

from .finding import Finding

# {Where} is the place with its verb, "Rows 16 and up are".
WORDS = {
    "place": "{Where} wrong.",
    "never-written": "{Where} never written.",
    "suspect": "{says}.",
    "nothing-added": "{Where} 0: nothing was added up there.",
    "left-out": "{Where} 0: nothing is added to these outputs. A loop over a thread's outputs leaves them out, or a test keeps "
    "their thread from adding.",
    "not-a-number": "{Where} NaN: computed from memory that was never written. What the output held before is no number: it must "
    "not be added to, nor read where beta is 0 (0 * NaN is NaN).",
    "unexplained": "{Where} wrong: [{at}] holds {held:.5g} and must hold {right:.5g}.",
    "wrong-sign": "{Where} of the wrong sign.",
    "last-digits": "{Where} nearly right: their last digits have changed. Values that are only moved must be copied, since "
    "arithmetic rounds them.",
    "offset": "Every element is too {side} by {by:.4g}: does the sum begin with 0?",
    "factor": "Every element is {factor:.4g} times what it must be: is something added or multiplied more than once?",
    "scaled": "The output is {first:.4g} * (A @ B) + {second:.4g} * (the old C), and must be {alpha:g} * (A @ B) + {beta:g} * "
    "(the old C), with alpha={alpha:g} and beta={beta:g}.",
    "moved-chunk": "{here} of the output{chunk} holds what belongs at {there}: compare the index that stores it with the "
    "index that reads it.",
    "moved-line": "{begins}: the {what} that is computed and the {what} that is stored are not the same.",
}
MOVED = frozenset(("moved-chunk", "moved-line"))


def words(one: Finding | str) -> str:
    """The sentence of a finding. A sentence stays what it is."""
    if isinstance(one, str):
        return one
    if one.kind not in WORDS:
        return one.evidence["says"]
    if one.kind == "never-written" and one.place.mean() > 0.97:
        return f"{'No element is' if one.place.all() else 'Almost none of the elements are'} ever written."
    place = where(one.place) if one.place is not None else ""
    return WORDS[one.kind].format(Where=place[:1].upper() + place[1:], **one.evidence)


def where(mask: np.ndarray) -> str:
    """The marked elements in words, with a verb: "rows 16 and up are"."""
    flat = mask.reshape(-1, mask.shape[-1]) if mask.ndim > 1 else mask.reshape(1, -1)
    rows, cols = flat.shape
    by_row, by_col = flat.mean(1) > 0.97, flat.mean(0) > 0.97
    if flat.mean() > 0.97:
        return "every element is"
    if mask.ndim == 1 and _covers(flat, by_row[:, None] | by_col):
        return _verb(indices("element", by_col))
    if by_row.any() and _covers(flat, np.repeat(by_row[:, None], cols, 1)):
        return _verb(indices("row", by_row))
    if by_col.any() and _covers(flat, np.repeat(by_col[None], rows, 0)):
        return _verb(indices("column", by_col))
    if by_row.any() and by_col.any() and _covers(flat, by_row[:, None] | by_col):
        return f"{indices('row', by_row)} and {indices('column', by_col)} are"
    part_row, part_col = flat.any(1), flat.any(0)
    if _covers(flat, part_row[:, None] & part_col):
        return f"{indices('row', part_row)}, there {indices('column', part_col)}, are"
    first = tuple(int(i) for i in np.argwhere(mask)[0])
    share = max(1, round(100 * float(flat.mean())))
    return f"about {share}% of the elements (the first at {list(first)}) are"


def _verb(subject: str) -> str:
    one = subject.split()[0] in ("row", "column", "element")
    return f"{subject} {'is' if one else 'are'}"


def _covers(mask: np.ndarray, shape: np.ndarray) -> bool:
    return mask[shape].mean() > 0.97 and not mask[~shape].any()


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
