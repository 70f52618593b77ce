"""Elements of arrays as C++ writes them, and rows of them in short."""

from __future__ import annotations

import numpy as np


def element(name: str, at) -> str:
    """ "C[3][5]"."""
    return name + "".join(f"[{int(i)}]" for i in at)


def spans(name: str, shape, found: np.ndarray, most: int = 3) -> str:
    """ "X[0][16] to X[0][31]", "x[1], x[3], x[5] and so on (16 in all, the last x[31])"."""
    places = [element(name, np.unravel_index(int(i), shape)) for i in found]
    if len(found) == 1:
        return places[0]
    if (np.diff(found) == 1).all():
        return f"{places[0]} to {places[-1]}" if len(found) > 2 else " and ".join(places)
    if len(found) <= most + 1:
        return f"{', '.join(places[:-1])} and {places[-1]}"
    return f"{', '.join(places[:most])} and so on ({len(found)} in all, the last {places[-1]})"


def numbers(found: np.ndarray, most: int = 3) -> str:
    """ "16 to 31", "1, 3, 5 and so on (16 in all, the last 31)"."""
    return spans("", (1 << 20,), found, most).replace("[", "").replace("]", "")
