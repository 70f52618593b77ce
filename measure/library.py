"""cuBLAS beside a rung: the caller's sizes, never padded ones, in the rung's layout and in its own best.

cuBLAS is faster in some layouts of A and B than in others. A rung is compared with cuBLAS on the
matrices as the rung's caller has them; where another layout suits the library better, that time is
given too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from kernels import cublas
from kernels.rungs import Types

from .timing import SAMPLES, Timing, cublas_launches, matrices, measure

LAYOUTS = tuple(product("KM", "NK"))  # what is contiguous in A and in B
LOOKS = 5  # samples of each layout; the best is then timed in full


@dataclass(frozen=True)
class Library:
    """cuBLAS at one size: `asked` in the layout asked for, `best` in its best one, a pair such as
    ("M", "N"): what is contiguous in A and in B.
    """

    asked: Timing
    best: Timing
    best_layout: tuple[str, str]


def timed(
    types: Types, size: tuple[int, int, int], layout: tuple[str, str] = ("K", "N"), samples: int = SAMPLES
) -> Library | None:
    """cuBLAS on random matrices of this size; None where it has no such types."""
    if not cublas.takes(types):
        return None
    M, N, K = size
    looks = {}
    for a, b in LAYOUTS:
        shapes = ((M, K) if a == "K" else (K, M), (K, N) if b == "N" else (N, K), (M, N))
        sets = matrices(types, shapes)
        launches = cublas_launches(sets, types, a, b)
        full = (a, b) == layout
        looks[a, b] = measure({"it": launches}, samples if full else LOOKS)["it"]
        if full:
            continue
        if looks[a, b].median < 0.99 * min(look.median for look in looks.values() if look is not looks[a, b]):
            looks[a, b] = measure({"it": launches}, samples)["it"]
    best = min(looks, key=lambda key: looks[key].median)
    if looks[best].median > 0.98 * looks[layout].median:
        best = layout  # a difference that the clock explains is none
    return Library(looks[layout], looks[best], best)
