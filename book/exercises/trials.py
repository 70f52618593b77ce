"""Launches of a reader's kernel on inputs made for it, to learn what each element of its output is made of.

Nothing is counted or watched in them, so they are quick. A kernel that only moves, adds and multiplies shows all of itself:
an input of ones says how many terms a sum has, an input that holds its own row numbers says which row they come from.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

import emulator
import kernels
from emulator import errors

from .exercise import Case
from .explain import STOPPED
from .launches import poisoned, unwritten
from .patience import time_limit

SECONDS = 5.0  # of the processor, for all trials of one kernel
# Bases, and how many digits of each a float (or a half) holds exactly, with a sign and a carry.
DIGITS = ((4, 11), (64, 3), (1 << 20, 1))
DIGITS_OF_HALVES = ((4, 7), (64, 2))


class TrialFailed(Exception):
    """The kernel stopped, or the time for trials is over."""


class Trials:
    """One kernel at the sizes of one case."""

    def __init__(self, built: kernels.Build, entry: str, case: Case, seconds: float = SECONDS):
        self.module, self.entry, self.case = emulator.Module(built.ptx), entry, case
        self.until = time.process_time() + seconds

    def run(self, changed: Mapping[int, np.ndarray | float]) -> np.ndarray:
        """The output, as float64 and NaN where nothing was stored, with these arguments in place of the case's own."""
        out = self.raw(changed)
        return np.where(unwritten(out), np.nan, out.astype(float))

    def raw(self, changed: Mapping[int, np.ndarray | float], blocks=None) -> np.ndarray:
        """The output as the kernel leaves it. blocks: run only these."""
        case, args = self.case, []
        for number, value in enumerate(self.case.args):
            new = changed.get(number, value)
            if isinstance(value, np.ndarray):
                args.append(np.array(np.broadcast_to(new, value.shape), value.dtype, order="C"))
            else:
                args.append(type(value)(new))
        left = self.until - time.process_time()
        if left <= 0:
            raise TrialFailed
        try:
            with time_limit(left):
                self.module.launch(
                    self.entry, case.grid, case.block, args, case.shared_bytes, count=False, sanitize=False, record=0,
                    progress=False, blocks=blocks,
                )  # fmt: skip
        except (*STOPPED, errors.Unsupported, ValueError, TypeError) as error:
            raise TrialFailed from error
        return args[case.output]

    def weights(self, number: int, at: int, places: np.ndarray, others: Mapping) -> np.ndarray:
        """How often element `at` of the output takes each of these elements of an argument, which otherwise is 0."""
        size, dtype = self.case.args[number].size, self.case.args[number].dtype
        test = np.zeros(size)
        test[places] = np.random.default_rng(3).integers(1, 9, len(places))
        shape = self.case.args[number].shape
        wanted = self._held({**others, number: test.reshape(shape)}, at)
        for base, digits in DIGITS_OF_HALVES if dtype == np.float16 else DIGITS:
            found: list[int] = []
            for first in range(0, len(places), digits):
                some = places[first : first + digits]
                x = np.zeros(size)
                x[some] = float(base) ** np.arange(len(some))
                held = self._held({**others, number: x.reshape(shape)}, at)
                if held != round(held):
                    raise TrialFailed  # no sum of whole multiples
                found += _digits(int(held), base, len(some))
            if np.dot(found, test[places]) == wanted:
                return np.array(found)
        raise TrialFailed

    def _held(self, changed: Mapping, at: int) -> float:
        held = float(self.run(changed).reshape(-1)[at])
        if not np.isfinite(held):
            raise TrialFailed
        return held


def _digits(number: int, base: int, count: int) -> list[int]:
    """The digits of a whole number, the lowest first, each from 1 - base / 2 to base / 2."""
    found = []
    for _ in range(count):
        digit = number % base
        digit -= base if digit > base // 2 else 0
        found.append(digit)
        number = (number - digit) // base
    return found


def empty_output(case: Case) -> np.ndarray:
    """What the output holds before a trial: zeros where the kernel adds to it, else nothing."""
    old = case.args[case.output]
    return poisoned(old.shape, old.dtype) if unwritten(old).all() else np.zeros_like(old)
