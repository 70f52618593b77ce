"""Numbers that share scales: what is lost when a matrix is stored in few bits, by format and by kind of scale."""

import numpy as np

from book.cells import columns
from kernels import blocks
from kernels.formats import E4M3, nearest

WAYS = {
    "e4m3, one scale for the matrix": 8.0,
    "mxfp8: e4m3, a power of two for 32": 8.25,
    "e2m1, one scale for the matrix": 4.0,
    "nvfp4: e2m1, a scale of e4m3 for 16": 4.5,
}


def rounded(values: np.ndarray, way: str) -> np.ndarray:
    """(rows, k) values as one of `WAYS` stores them, float64."""
    if "one scale" not in way:
        return blocks.values_of(blocks.quantise(values, way.split(":")[0]))
    table = E4M3[:127] if way.startswith("e4m3") else blocks.E2M1
    scale = np.abs(values).max() / table[-1]
    return np.sign(values) * table[nearest(table, np.abs(values) / scale)] * scale


def error(values: np.ndarray, way: str) -> float:
    """Root mean square of the rounding errors, over that of the values."""
    off = rounded(values, way) - values
    return float(np.sqrt((off**2).mean() / (values**2).mean()))


def normal(rows: int = 128, k: int = 512, outlier: float = 0) -> np.ndarray:
    """Random normal numbers; with `outlier`, one of them is that large."""
    values = np.random.default_rng(29).standard_normal((rows, k))
    if outlier:
        values[0, 0] = outlier
    return values


def median_error(values: np.ndarray, way: str) -> float:
    """The median of the relative errors of single numbers."""
    return float(np.median(np.abs(rounded(values, way) - values) / np.abs(values)))


def show(*outliers: float) -> None:
    """Shows for each way its bits per number, and the median error of normal numbers without and with an outlier."""
    matrices = {"none": normal(), **{f"{size:,g}": normal(outlier=size) for size in outliers}}
    rows = [
        [way, f"{bits:g}", *(f"{median_error(one, way):.1%}" for one in matrices.values())]
        for way, bits in WAYS.items()
    ]
    columns.show(
        {
            "": "numbers, and who shares a scale",
            "bits": "per number, scales included",
            **dict.fromkeys(
                matrices,
                "median of the errors of single numbers, each as a share of the number, if one number of the matrix is so large; "
                "100% means that most became 0",
            ),
        },
        rows,
        caption="65,536 random normal numbers in rows of 512; the last columns by their outlier.",
    )
