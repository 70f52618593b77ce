"""From a wrong output to the mistake behind it.

The first of the suspects that reproduces every written element is the culprit. When none does, the pattern of the
wrong elements is described instead.
"""

import numpy as np

from .exercise import Case
from .finding import EFFECT, Finding
from .launches import unwritten
from .suspects import SUSPECTS


def wrong(case: Case, got: np.ndarray) -> np.ndarray:
    """Mask of the elements that are not what they must be, the never written among them."""
    if case.tolerance == 0:
        return (got != case.expected) | unwritten(got)
    with np.errstate(invalid="ignore"):
        return ~(np.abs(got - case.expected) <= case.tolerance * case.scale) | unwritten(got)


def named(
    case: Case, got: np.ndarray, suspects=(), others=(), fine=(), first=None
) -> list[Finding]:
    """The first suspect that gives this output; of `others`, wrong outputs of other cases, they explain all they can.

    others: (case, output) pairs. A mistake that looks like another at one size shows itself at the next. fine: cases
    that the kernel gets right, so no suspect that would change them. first: (case, output) of the launch that went wrong
    first, which a suspect has to explain too unless it says nothing of that size.
    """
    rows = [*dict(suspects).items(), *SUSPECTS]
    rows = [row for row in rows if not any(_tells(other, row[1]) for other in fine)]
    if first is not None:
        gone = unwritten(first[1])
        rows = [
            row
            for row in rows
            if (there := _predicted(first[0], row[1])) is None
            or (_same(*first, there, 20) | gone).all()
        ]
    missing = unwritten(got)
    if not (wrong(case, got) & ~missing).any():
        return []
    found = [(message, guess) for message, guess in rows if _matches(case, got, missing, guess)]
    for other, output in others:
        gone = unwritten(output)
        if not (wrong(other, output) & ~gone).any():
            continue
        alike = [row for row in found if _matches(other, output, gone, row[1])]
        silent = [row for row in found if not _tells(other, row[1])]
        found = alike or silent or found
    return [Finding("suspect", None, {"says": message}) for message, _ in found[:1]]


def _tells(case: Case, guess) -> bool:
    """Whether this suspect would change the output of the case."""
    predicted = _predicted(case, guess)
    return predicted is not None and not _same(case, case.expected, predicted, 20).all()


def _predicted(case: Case, guess) -> np.ndarray | None:
    """The output that this suspect would give, None where it does not fit the case."""
    try:
        predicted = guess(case)
    except (ValueError, IndexError, AttributeError):
        return None
    return None if predicted is None or predicted.shape != case.expected.shape else predicted


def findings(case: Case, got: np.ndarray, suspects=(), others=(), fine=()) -> list[Finding]:
    """What is wrong with this output; empty when nothing is. The finders are asked in order, until one knows a cause.

    others, fine: other launches of the same kernel, which tell suspects apart that look alike here (`named`).
    """
    bad, missing = wrong(case, got), unwritten(got)
    if not bad.any():
        return []
    found = [Finding("never-written", missing, certainty=EFFECT)] if missing.any() else []
    bad = bad & ~missing
    if not bad.any():
        return found
    more = named(case, got, suspects, others, fine)
    for finder in () if more else FINDERS:
        if one := finder(case, got, bad, missing):
            more = [one]
            break
    return found + (more or [unexplained(case, got, bad)])


def _zeros(case: Case, got, bad, missing) -> Finding | None:
    if got[bad].any():
        return None
    everywhere = not got[~missing].any()
    return (
        Finding("nothing-added", bad, certainty=EFFECT) if everywhere else Finding("left-out", bad)
    )


def _not_numbers(case: Case, got, bad, missing) -> Finding | None:
    return Finding("not-a-number", bad) if np.isnan(got[bad].astype(float)).all() else None


def unexplained(case: Case, got: np.ndarray, bad: np.ndarray) -> Finding:
    """Which elements are wrong, and what the first of them holds: where no cause is known."""
    at = tuple(np.argwhere(bad)[0])
    where = ", ".join(map(str, map(int, at)))
    evidence = {"at": where, "held": got[at], "right": case.expected[at]}
    return Finding("unexplained", bad, evidence, EFFECT)


def _same(case: Case, got, predicted, times: float) -> np.ndarray:
    if not case.tolerance:
        return got == predicted
    loose = times * case.tolerance * np.maximum(case.scale, np.abs(predicted))
    with np.errstate(invalid="ignore"):
        return np.abs(got.astype(float) - predicted) <= loose


def _matches(case: Case, got, missing, guess) -> bool:
    """The same where the suspect also changes what is right. What differs little is compared closely, what is much
    rounded loosely."""
    predicted = _predicted(case, guess)
    if predicted is None:
        return False
    for times in (20, 2):
        differs = ~_same(case, case.expected, predicted, times)
        same = _same(case, got, predicted, times)
        if (same | missing).all() and (differs & ~missing).any():
            return True
    return False


def _moved(case: Case, got, bad, missing) -> Finding | None:
    """What belongs elsewhere: whole rows or columns of a product, chunks or elements of a mapping."""
    if case.product is not None:
        return _moved_line("row", got, case.expected, missing) or _moved_line(
            "column", got.T, case.expected.T, missing.T
        )
    # Chunks of eight halves: one half alone may occur twice by chance.
    whole = got.ndim == 3 or (got.dtype == np.float16 and got.shape[-1] % 8 == 0)
    mine = got.reshape(-1, 8 if whole else 1) if got.ndim < 3 else got.reshape(-1, got.shape[-1])
    right = case.expected.reshape(mine.shape)
    shape = got.shape[:-1] if got.ndim == 3 else (*got.shape[:-1], got.shape[-1] // mine.shape[1])
    chunk = " (chunks of eight)" if whole and got.ndim < 3 else ""
    if case.tolerance:
        return None
    gone = missing.reshape(mine.shape).any(1)
    wrongs = mine[~gone & (mine != right).any(1)]
    if not whole and 2 * np.isin(wrongs, right).sum() <= wrongs.size:
        return None  # by chance, here and there
    for at in np.flatnonzero((mine != right).any(1) & ~gone):
        found = np.flatnonzero((right == mine[at]).all(1))
        if len(found) == 1:
            here, there = (list(map(int, np.unravel_index(i, shape))) for i in (at, found[0]))
            return Finding("moved-chunk", None, {"here": here, "there": there, "chunk": chunk})
    return None


def _fitted(case: Case, got, bad, missing) -> Finding | None:
    """Which multiples of two parts the output is: of A @ B and the old C where beta counts, else of what it must be and of 1."""
    p = case.product
    if not case.tolerance or missing.any() or not np.isfinite(got).all() or got.size < 8:
        return None
    scaled = p is not None and p.beta
    parts = (p.A @ p.B, p.old) if scaled else (case.expected, np.ones(got.shape))
    wanted = (p.alpha, p.beta) if scaled else (1.0, 0.0)
    columns = np.stack([part.reshape(-1) for part in parts], axis=1)
    found, *_ = np.linalg.lstsq(columns, got.reshape(-1).astype(float), rcond=None)
    off = np.abs(columns @ found - got.reshape(-1)).reshape(got.shape)
    if (off > 40 * case.tolerance * (case.scale + np.abs(parts[1]))).any():
        return None
    found = [0.0 if abs(one) < 1e-3 else float(one) for one in found]
    first, second = found
    if np.allclose(found, wanted, atol=1e-3):
        return None
    if scaled:
        alpha, beta = wanted
        evidence = {"first": first, "second": second, "alpha": alpha, "beta": beta}
        return Finding("scaled", None, evidence)
    if not second:
        return Finding("factor", None, {"factor": first}) if first else None
    if abs(first - 1) > 1e-3:
        return None
    return Finding("offset", None, {"side": "large" if second > 0 else "small", "by": abs(second)})


def _changed_on_the_way(case: Case, got, bad, missing) -> Finding | None:
    """What has become of values that belong where they are: the sign, or their last digits."""
    held, right = got[bad].astype(float), case.expected[bad].astype(float)
    if not np.isfinite(held).all():
        return None
    if (np.abs(held + right) <= 1e-6 * np.abs(right)).all():
        return Finding("wrong-sign", bad)
    if not case.tolerance and (np.abs(held - right) <= 1e-3 * np.abs(right).max()).all():
        return Finding("last-digits", bad)
    return None


def _moved_line(what: str, mine, right, gone) -> Finding | None:
    n = len(right)
    if n > 256 or gone.any():
        return None
    source = []
    for line in mine:
        near = np.flatnonzero(np.abs(right - line).max(1) < 1e-3 * np.abs(right).max())
        if len(near) != 1:
            return None
        source.append(int(near[0]))
    if source == list(range(n)):
        return None
    first, *more = [i for i in range(n) if source[i] != i]
    begins = (
        f"{what.capitalize()} {first} of the output holds what belongs in {what} {source[first]}"
    )
    if more:
        begins += f", {what} {more[0]} what belongs in {what} {source[more[0]]}"
    return Finding("moved-line", None, {"begins": begins, "what": what})


# In order; each is given the case, the output, and the masks of what is wrong and of what was never written.
FINDERS = _zeros, _fitted, _moved, _not_numbers, _changed_on_the_way
