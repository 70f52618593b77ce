"""cuBLAS beside a rung: the caller's sizes, never padded ones, in the rung's layout and in its own best.

cuBLAS is faster in some layouts of A and B than in others. A rung is compared with cuBLAS on the
matrices as the rung's caller has them; where another layout suits the library better, that time is
given too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from kernels import cublas
from kernels.rung import Types

from .timing import SAMPLES, Timing, cublas_launches, matrices, measure

LAYOUTS = tuple(product("KM", "NK"))  # what is contiguous in A and in B
LOOKS = 5  # samples of each layout; the best is then timed in full
SAME = 0.98  # of the time: a smaller difference may be the clock's


@dataclass(frozen=True)
class Library:
    """cuBLAS at one size: `asked` in the layout asked for, `best` in its best one, a pair such as
    ("M", "N"): what is contiguous in A and in B.
    """

    asked: Timing
    best: Timing
    best_layout: tuple[str, str]


def timed(
    types: Types,
    size: tuple[int, int, int],
    layout: tuple[str, str] = ("K", "N"),
    samples: int = SAMPLES,
) -> Library | None:
    """cuBLAS on random matrices of this size; None where it has no such types."""
    if not cublas.takes(types):
        return None
    looks = {each: _time(types, size, each, LOOKS) for each in LAYOUTS}
    best = min(looks, key=lambda each: looks[each].median)
    asked = _time(types, size, layout, samples)
    if best == layout or looks[best].median > SAME * looks[layout].median:
        return Library(asked, asked, layout)
    other = _time(types, size, best, samples)
    if other.median > SAME * asked.median:
        return Library(asked, asked, layout)
    return Library(asked, other, best)


def _time(
    types: Types, size: tuple[int, int, int], layout: tuple[str, str], samples: int
) -> Timing:
    (M, N, K), (a, b) = size, layout
    shapes = ((M, K) if a == "K" else (K, M), (K, N) if b == "N" else (N, K), (M, N))
    launches = cublas_launches(matrices(types, shapes), types, a, b)
    return measure({"cublas": launches}, samples)["cublas"]
