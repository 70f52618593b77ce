"""Elements of arrays as C++ writes them, and rows of them in short."""

from __future__ import annotations

import numpy as np


def element(name: str, at) -> str:
    """ "C[3][5]"."""
    return name + "".join(f"[{int(i)}]" for i in at)


def spans(name: str, shape, found: np.ndarray, most: int = 3) -> str:
    """ "X[0][16] to X[0][31]", "x[1], x[3], x[5] and so on (16 in all, the last x[31])"."""

    def at(i) -> str:
        return element(name, np.unravel_index(int(i), shape))

    def joined(parts) -> str:
        return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"

    runs = np.split(found, np.flatnonzero(np.diff(found) != 1) + 1)
    if len(runs) <= most:
        return joined(
            [
                text
                for run in runs
                for text in ([f"{at(run[0])} to {at(run[-1])}"] if len(run) > 2 else map(at, run))
            ]
        )
    if len(found) <= most + 1:
        return joined(list(map(at, found)))
    lengths = {len(run) for run in runs}
    if lengths == {1}:
        shown = ", ".join(map(at, found[:most]))
    else:
        shown = ", ".join(
            f"{at(run[0])} to {at(run[-1])}" if len(run) > 1 else at(run[0]) for run in runs[:most]
        )
    return f"{shown} and so on ({len(found)} in all, the last {at(found[-1])})"


def numbers(found: np.ndarray, most: int = 3) -> str:
    """ "16 to 31", "1, 3, 5 and so on (16 in all, the last 31)"."""
    return spans("", (1 << 20,), found, most).replace("[", "").replace("]", "")
