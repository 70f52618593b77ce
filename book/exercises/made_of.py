"""What a wrong element of the output is made of, in words: which elements of the inputs, and how often.

The kernel is launched again on inputs made for it (`trials`), and so is the solution of the exercise, which says what the
element must be made of.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .diagnose import wrong
from .exercise import Case
from .explain import parameter_name
from .launches import unwritten
from .places_in_words import element, numbers, spans
from .trials import TrialFailed, Trials, empty_output

CLOSE = 1e-3
MOST = 1200  # elements of an input that are asked one by one


def made_of(mine: Trials, right: Trials, got: np.ndarray, source: str) -> tuple[str | None, bool]:
    """A sentence on the first wrong element, None where the trials do not show it, and whether values may be rounded there."""
    case = mine.case
    if case.args[case.output].dtype.kind != "f" or case.args[0].dtype.kind != "f":
        return None, False
    bad = wrong(case, got) & np.isfinite(got.astype(float))
    if not bad.any() or (case.product is not None and not got[bad].any()):
        return None, False  # no products are added anywhere, which needs no trials
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    asked: tuple[Callable, ...] = (_of_sums, _no_sum, _scalars, _of_pairs)
    if case.product is not None:
        asked = (_scalars, _of_a_product)
    elif unwritten(case.args[case.output]).all():
        asked = (_scalars, _of_sums, _no_sum, _of_pairs)
    for ask in asked:
        try:
            if said := ask(mine, right, at, source):
                return said, ask in (_no_sum, _of_a_product)
        except (TrialFailed, ArithmeticError, ValueError):
            continue  # numbers beyond what a trial can read
    return None, False


def _name(trials: Trials, number: int, source: str) -> str:
    return parameter_name(number, source, trials.entry)


# Scalars: how the output grows with alpha.


def _scalars(mine: Trials, right: Trials, at, source: str) -> str | None:
    """Where the output does not grow with a factor (alpha, beta) as it must."""
    case = mine.case
    factors = [i for i, value in enumerate(case.args) if isinstance(value, np.float32)]
    for number in factors:
        rest = {i: 0.0 for i in factors if i != number}
        if case.product is None or len(factors) < 2:
            rest |= {case.output: empty_output(case)}
        grown = []
        for trials in (right, mine):
            one, two, four = (trials.run({**rest, number: s})[at] for s in (1.0, 2.0, 4.0))
            grown.append((two / one, four / one) if one else (0.0, 0.0))
        must, does = (tuple(round(float(g), 3) for g in pair) for pair in grown)
        if must != (2.0, 4.0) or does == must or not np.isfinite(does).all():
            continue
        name, where = _name(mine, number, source), element(_name(mine, case.output, source), at)
        if does == (4.0, 16.0):
            return f"{where} is multiplied by {name} twice: with {name} twice as large it becomes 4 times as large."
        if does == (1.0, 1.0):
            return f"{where} does not depend on {name}: it is not multiplied there."
        if does[0] == 0.5:
            return f"{where} is divided by {name}, and must be multiplied by it."
        if does != (0.0, 0.0):
            return (
                f"With {name} twice as large {where} becomes {does[0]:g} times as large, and must become twice as large: "
                f"{name} must multiply all of it, once."
            )
    return None


# Sums and moves: each element of the output takes elements of an input, some of them several times.


def _of_sums(mine: Trials, right: Trials, at, source: str) -> str | None:
    case = mine.case
    flat = int(np.ravel_multi_index(at, case.expected.shape))
    inputs = [i for i, value in enumerate(case.args) if isinstance(value, np.ndarray)]
    inputs = [
        i for i in inputs if i != case.output or not np.isnan(case.args[i].astype(float)).all()
    ]
    said = []
    for number in inputs:
        others = _others(case, inputs, number)
        places = _near(case, number, flat)
        must = right.weights(number, flat, places, others)
        has = mine.weights(number, flat, places, others)
        if (must != has).any():
            said.append(_compared(mine, number, at, places, must, has, source))
            if case.output not in inputs:
                break  # what is multiplied with it tells the same
    return " ".join(said) or None


def _no_sum(mine: Trials, right: Trials, at, source: str) -> str | None:
    """Where an element does not follow its inputs as a sum or a copy does: what is done to them besides."""
    case = mine.case
    inputs = [i for i, value in enumerate(case.args) if isinstance(value, np.ndarray)]
    inputs = [
        i for i in inputs if i != case.output or not np.isnan(case.args[i].astype(float)).all()
    ]
    here = element(_name(mine, case.output, source), at)
    for number in inputs:
        others, name = _others(case, inputs, number), _name(mine, number, source)
        x = np.random.default_rng(4).integers(4, 9, case.args[number].shape).astype(float)

        def held(value, number=number, others=others) -> tuple[float, float]:
            return tuple(float(t.run({**others, number: value})[at]) for t in (mine, right))

        for value, words in (
            (0 * x, f"where all of {name} is 0"),
            (x, f"where {name} holds whole numbers from 4 to 8"),
            (-x, f"where all of {name} is negative"),
            (x / 16, f"where {name} holds numbers between 0 and 1"),
        ):
            has, must = held(value)
            if not np.isfinite(has) or abs(has - must) > 1e-3 * max(abs(must), 1):
                whole = has == np.round(has) and must != np.round(must)
                what = (
                    "digits behind the point are lost, as in an int"
                    if whole
                    else "something else is done to it than to add it up (a product, an absolute value, a test of values)"
                )
                if not value.any():
                    what = f"something is added, or subtracted, that does not depend on {name}"
                return f"{here} is {has:.5g} {words}, and must be {must:.5g} there: {what}."
    return None


def _of_pairs(mine: Trials, right: Trials, at, source: str) -> str | None:
    """Which elements of two inputs are multiplied with each other, where they are not those of the same place."""
    case = mine.case
    inputs = [i for i, v in enumerate(case.args) if isinstance(v, np.ndarray) and i != case.output]
    if len(inputs) != 2 or case.args[inputs[0]].shape != case.args[inputs[1]].shape or len(at) != 1:
        return None
    (a, b), shape = inputs, case.args[inputs[0]].shape
    number = np.broadcast_to(np.arange(shape[-1], dtype=float), shape)
    for k in range(min(shape[-1], 64)):
        one = np.zeros(shape)
        one[..., k] = 1
        met = float(mine.run({a: one, b: number})[at])
        if np.isfinite(met) and met != k:
            first, second = (f"{_name(mine, i, source)}[{at[0]}]" for i in inputs)
            return (
                f"{element(_name(mine, case.output, source), at)} multiplies {first}[{k}] with {second}[{met:g}], and "
                f"must multiply it with {second}[{k}]."
            )
    return None


def _others(case: Case, inputs, number: int) -> dict:
    """What the other arguments hold: ones in a product with this one, nothing where they are added to it."""
    others: dict = {i: 1.0 for i, v in enumerate(case.args) if isinstance(v, np.float32)}
    if case.output != number:
        others[case.output] = empty_output(case)
    alike = [i for i in inputs if i not in (number, case.output)]
    in_place = case.output in inputs
    others |= {i: np.full(case.args[i].shape, 0.0 if in_place else 1.0) for i in alike}
    return others


def _near(case: Case, number: int, flat: int) -> np.ndarray:
    """The elements of an input that are asked: all of them, or those around this one where they are too many."""
    size = case.args[number].size
    if size <= MOST:
        return np.arange(size)
    middle = flat * size // max(case.expected.size, 1)
    first = min(max(middle - MOST // 2, 0), size - MOST)
    return np.arange(first, first + MOST)


def _compared(mine: Trials, number: int, at, places, must, has, source: str) -> str:
    """What this element has, and what it must have."""
    shape = mine.case.args[number].shape
    where = element(_name(mine, mine.case.output, source), at)
    name = _name(mine, number, source)

    def listed(marked) -> str:
        return spans(name, shape, places[marked])

    if must.sum() == 1 and has.sum() == 1 and not (has < 0).any():
        return f"{where} holds {listed(has > 0)}, and must hold {listed(must > 0)}."
    if not has.any():
        return f"{where} takes nothing of {name}, and must take {listed(must > 0)}."
    said = []
    if ((must > 0) & (has == 0)).any():
        said.append(f"lacks {listed((must > 0) & (has == 0))}")
    if ((must == 0) & (has > 0)).any():
        said.append(f"takes {listed((must == 0) & (has > 0))}, which it must not")
    if (has < 0).any():
        said.append(f"subtracts {listed(has < 0)}")
    often = sorted(set(has[(must > 0) & (has > must)].tolist()))
    for times in often[:2]:
        marked = (must > 0) & (has > must) & (has == times)
        said.append(f"takes {listed(marked)} {times} times")
    if len(often) > 2:
        said.append(f"others up to {often[-1]} times")
    needs = (
        f"{where} must be made of {listed(must > 0)}, each once. " if (must > 0).sum() > 1 else ""
    )
    return f"{needs}It {', and '.join(said)}." if needs else f"{where} {', and '.join(said)}."


# One number of an input for each row or column of the output, whatever is done with it.


def of_an_input_per_line(mine: Trials, right: Trials, at, source: str) -> str | None:
    """Which element of such an input (a bias, say) the wrong element takes, where it is not the one that it must.

    Inputs are changed and outputs compared, so it does not matter which function of its input the output is.
    """
    case = mine.case
    if case.expected.ndim != 2:
        return None
    for number, value in enumerate(case.args):
        if number == case.output or not isinstance(value, np.ndarray):
            continue
        if value.ndim != 1 or len(value) not in case.expected.shape:
            continue
        try:
            has, must = _taken(mine, number), _taken(right, number)
        except TrialFailed:
            continue
        if has[at] < 0 or must[at] < 0 or has[at] == must[at]:
            continue
        name = _name(mine, number, source)
        own = np.indices(must.shape)
        axis = next((a for a in (0, 1) if (must == own[a]).all()), None)
        rule = "" if axis is None else _rule(has, axis, f"element of {name}, number")
        return (
            f"{element(_name(mine, case.output, source), at)} takes {name}[{has[at]}], and must take "
            f"{name}[{must[at]}]{rule}."
        )
    return None


def _taken(trials: Trials, number: int) -> np.ndarray:
    """For each element of the output, which single element of this input it depends on; -1 where on none or on several."""
    size = len(trials.case.args[number])
    places = np.arange(size)

    def changed(marked) -> np.ndarray:
        return trials.raw({number: 4.0 * marked}) != before

    before = trials.raw({number: 0.0})
    found, sure = np.zeros(before.shape, int), np.ones(before.shape, bool)
    for bit in range(max((size - 1).bit_length(), 1)):
        one, other = (changed((places >> bit & 1) == value) for value in (1, 0))
        found += one << bit
        sure &= one != other
    return np.where(sure & ~unwritten(before), found, -1)


# Products of matrices: a row of A with a column of B, term by term.


class _Asked:
    """A product kernel that is asked with A and B made for it."""

    def __init__(self, trials: Trials):
        self.trials, case = trials, trials.case
        p = case.product
        (self.M, self.K), self.N = p.A.shape, p.B.shape[1]
        self.by_columns = case.args[1].shape == (self.N, self.K) != (self.K, self.N)
        self.fixed = {
            i: float(j == 0)
            for j, i in enumerate(i for i, v in enumerate(case.args) if isinstance(v, np.float32))
        }
        self.fixed[case.output] = empty_output(case)

    def __call__(self, A, B) -> np.ndarray:
        A = np.broadcast_to(A, (self.M, self.K))
        B = np.broadcast_to(B, (self.K, self.N))
        return self.trials.run({**self.fixed, 0: A, 1: B.T if self.by_columns else B})


def _of_a_product(mine: Trials, right: Trials, at, source: str) -> str | None:
    ask = _Asked(mine)
    names = [_name(mine, i, source) for i in (0, 1, mine.case.output)]
    if mine.case.args[0].shape != (ask.M, ask.K):
        return None
    if said := _no_product(ask, at, names):
        return said
    count = ask(1, 1)[at]
    if count == 0 and (several := _several(ask, at, 0, ask.M)):
        here, listed = (
            element(names[2], at),
            ", ".join(f"row {n} {times:g} times" for n, times in several[:4]),
        )
        return f"{here} adds and subtracts rows of {names[0]} ({listed}), and must take all of row {at[0]}, once."
    if count == 0:
        return f"{element(names[2], at)} gets no term at all, though something must be added to it."
    if not np.isfinite(count):
        return None
    i, j = at
    said, where = [], element(names[2], at)
    rows = _line(lambda tag: ask(tag[:, None], 1), ask.M, ask(1, 1))
    columns = _line(lambda tag: ask(1, tag), ask.N, ask(1, 1))
    for line, own, size, what, name, axis in (
        (rows, i, ask.M, "row", names[0], 0),
        (columns, j, ask.N, "column", names[1], 1),
    ):
        if line[at] == own:
            continue
        if line[at] >= 0:
            said.append(
                f"takes {what} {int(line[at])} of {name}, and must take {what} {own}{_rule(line, axis, what)}"
            )
        else:
            several = _several(ask, at, axis, size)
            which = numbers(np.array([n for n, _ in several]))
            said.append(
                f"takes elements of {len(several)} {what}s of {name} ({which}), and must take all of {what} {own}"
            )
    if not said:
        said += _terms(ask, at, count, names)
    return f"{where} {', and '.join(said)}." if said else None


def _no_product(ask: _Asked, at, names) -> str | None:
    """Where the output is no sum of products of A and B at all."""
    rng = np.random.default_rng(0)
    A, B = (rng.integers(1, 9, shape).astype(float) for shape in ((ask.M, ask.K), (ask.K, ask.N)))
    here = element(names[2], at)
    plain, no_a, no_b = ask(A, B)[at], ask(0, B)[at], ask(A, 0)[at]
    for zero, name in ((no_a, names[0]), (no_b, names[1])):
        if zero and np.isfinite(zero):
            return f"{here} is {zero:g} where all of {name} is 0, and must be 0 there: what is added is no product with {name}."
    for twice, name in ((ask(2 * A, B)[at], names[0]), (ask(A, 2 * B)[at], names[1])):
        if not np.isfinite(twice) or not plain or abs(twice / plain - 2) < 0.01:
            continue
        if twice == plain:
            return (
                f"{here} does not change when all of {name} is doubled: {name} is not read for it."
            )
        if abs(twice / plain - 4) < 0.01:
            return f"{here} becomes 4 times as large when all of {name} is doubled: two elements of {name} are multiplied."
        return f"With all of {name} doubled {here} does not double: something else than products of A and B is added."
    other = rng.integers(-9, 0, A.shape).astype(float)
    if abs(ask(A + other, B)[at] - plain - ask(other, B)[at]) > 0.5:
        return f"{here} is no sum: the products are not added up (a maximum, an exchange, or a test of values stands there)."
    return None


def _line(tagged: Callable, size: int, count: np.ndarray) -> np.ndarray:
    """Which row (or column) each element takes, where all its terms are of one; -1 where not."""
    numbers = np.arange(size, dtype=float)
    shuffled = np.random.default_rng(1).permutation(size).astype(float)
    with np.errstate(all="ignore"):
        mean, other = tagged(numbers) / count, tagged(shuffled) / count
    found = np.nan_to_num(np.round(mean), nan=-1).astype(int)
    inside = (found >= 0) & (found < size)
    at = np.where(inside, found, 0)
    sure = inside & (np.abs(mean - found) < CLOSE) & (np.abs(other - shuffled[at]) < CLOSE)
    return np.where(sure, found, -1)


def _several(ask: _Asked, at, axis: int, size: int) -> list[tuple[int, float]]:
    """The rows of A (or columns of B) that this element takes terms of, and how many of each."""
    found = []
    for n in range(size):
        one = (np.arange(size) == n).astype(float)
        times = ask(one[:, None], 1)[at] if axis == 0 else ask(1, one)[at]
        if times:
            found.append((n, float(times)))
    return found


def _rule(line: np.ndarray, axis: int, what: str) -> str:
    """By which rule all elements take their rows (or columns), in words; "" where none is known."""
    known = line >= 0
    row, col = np.indices(line.shape)
    own, other = (row, col) if axis == 0 else (col, row)
    names = ("row", "column") if axis == 0 else ("column", "row")
    rules = [
        (other, f"the {names[1]} of the output stands where its {names[0]} must"),
        (0 * own, f"every element takes {what} 0"),
        *((own // t * t + other % t, f"within a tile of {t}, the {names[1]} of the output stands where its {names[0]} must")
          for t in (8, 16, 32)),
        *((own % t, f"the number of the block (or of the tile) is missing: only {names[0]} % {t} is used") for t in (8, 16, 32)),
        *((own // t * t, f"the thread's number is missing: {t} {names[0]}s each take the first of them") for t in (8, 16, 32)),
        *((own + d, f"everywhere it is {abs(d)} too {'large' if d > 0 else 'small'}") for d in (1, -1, 4, -4, 8, -8, 16, -16)),
    ]  # fmt: skip
    for guess, words in rules:
        if known.any() and (line == guess)[known].all():
            return f" ({words})"
    return ""


def _one(size: int, k: int) -> np.ndarray:
    return (np.arange(size) == k).astype(float)


def _parts(ask: _Asked, at) -> list[str]:
    """What fraction of some terms along K an element has, where it has not all of each."""
    for k in (0, ask.K // 2, ask.K - 1):
        part = float(ask(_one(ask.K, k), 1)[at])
        if np.isfinite(part) and abs(part - round(part)) > CLOSE:
            return [
                f"has the term k = {k} only {part:.3g} times: the sum so far is multiplied by something, or a "
                "term is not taken whole"
            ]
    first, last = (float(ask(_one(ask.K, k), 1)[at]) for k in (0, ask.K - 1))
    if first != last:
        return [
            f"has the term k = 0 {first:.3g} times and the term k = {ask.K - 1} {last:.3g} times: the sum so far is "
            "multiplied by something in each turn"
        ]
    return []


def _fractions(ask: _Asked, at, count: float, names) -> list[str]:
    """Where an operand loses what stands behind the point."""
    for A, B, name in ((0.25, 1, names[0]), (1, 0.25, names[1])):
        held = float(ask(A, B)[at])
        if np.isfinite(held) and abs(held - 0.25 * count) > CLOSE * count:
            return [
                f"is {held:.4g} where all of {name} is 0.25 and all of the other operand is 1, and must be "
                f"{0.25 * count:.4g} there: digits behind the point are lost, as in an int"
            ]
    return []


def _terms(ask: _Asked, at, count: float, names) -> list[str]:
    """Which terms along K are missing, come twice, or meet another element of B, of an element with the right row and column."""
    M, N = ask.M, ask.N
    number, shape = 0, (M, ask.K)
    others = {**ask.fixed, 1: np.ones((N, ask.K) if ask.by_columns else (ask.K, N))}
    flat = int(np.ravel_multi_index(at, (M, N)))
    own = np.ravel_multi_index((np.full(ask.K, at[0]), np.arange(ask.K)), shape)
    i, j = at
    try:
        times = ask.trials.weights(number, flat, own, others)
    except TrialFailed:
        return _parts(ask, at)
    if (times > 1).any() and ask(_one(ask.K, 0), _one(ask.K, 1)[:, None])[at]:
        return [
            f"multiplies {names[0]}[{i}][0] with {names[1]}[1][{j}] too: each term of {names[0]} has to be multiplied with its "
            f"own term of {names[1]} before anything is added"
        ]
    if (times != 1).any():
        said = []
        for n in [n for n in sorted(set(times.tolist())) if n != 1][:2]:
            listed = numbers(np.flatnonzero(times == n))
            said.append(
                f"lacks the terms k = {listed}"
                if not n
                else f"has the terms k = {listed} {n} times"
            )
        return said
    sign = np.random.default_rng(2).choice([-1.0, 1.0], ask.K)
    if ask(sign, sign[:, None])[at] == count:
        return _fractions(ask, at, count, names)
    for k in range(ask.K):
        one = (np.arange(ask.K) == k).astype(float)
        met = ask(one, np.arange(ask.K, dtype=float)[:, None])[at]
        if np.isfinite(met) and met != k:
            return [
                f"multiplies {names[0]}[{i}][{k}] with {names[1]}[{met:g}][{j}], and must multiply it with {names[1]}[{k}][{j}]: "
                "the two operands are not at the same k"
            ]
    return []
