"""Recorded pairs that differ in one thing: does the model predict which is faster, and how much?

A pair of the search differs in one macro, a pair of `variants` too. The search stores medians alone, most of them of
a quick look, and another run of the same setting differs by up to 2% (`results/hopper-trials.json`), so two of its
times count as different where they are further apart than twice that; sampled pairs where their samples do not
overlap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from .prediction import predict
from .recorded import Timed, searched, variants
from .store import key, stored

APART = 1.04
CLOCK = 1.755  # GHz at which both sides are predicted: with the clocks of the measured times, these would tell the answer


@dataclass(frozen=True)
class Pair:
    """Two times and two predictions. change: the macro that differs, with both values."""

    first: Timed
    second: Timed
    change: str
    predicted: float
    measured: float

    @property
    def hit(self) -> bool:
        """Whether the predicted direction is the measured one."""
        return (self.predicted - 1) * (self.measured - 1) > 0


def pairs() -> Iterator[Pair]:
    """All recorded pairs whose two configurations are counted and whose times are apart."""
    for rows in (searched(), variants()):
        groups: dict[tuple, list[Timed]] = defaultdict(list)
        for row in rows:
            if key(row.rung, row.macros) in stored():
                groups[row.gpu, row.rung, row.size, row.output].append(row)
        for group in groups.values():
            yield from _of(group)


def _of(group: Sequence[Timed]) -> Iterator[Pair]:
    times = {}
    for row in group:
        counts = stored()[key(row.rung, row.macros)]
        times[id(row)] = predict(counts, row.size, row.gpu, CLOCK).ms
    for a, b in combinations(group, 2):
        changed = [name for name in a.macros if a.macros[name] != b.macros[name]]
        if len(changed) == 1 and apart(a, b):
            name = changed[0]
            change = f"{name} {a.macros[name]} to {b.macros[name]}"
            yield Pair(a, b, change, times[id(b)] / times[id(a)], b.ms / a.ms)


def apart(a: Timed, b: Timed) -> bool:
    """Whether two times count as different."""
    if a.source == "tune":
        return max(a.ms, b.ms) / min(a.ms, b.ms) > APART
    return a.most < b.least or b.most < a.least
