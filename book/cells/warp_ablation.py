"""The ablation of `warp_tiled` as a table and a picture: what each idea is worth where it was timed."""

from book.cells import columns, equal_tiles
from measure import ablation
from measure.provenance import label

TILE = {"BM": 128, "BN": 128, "BK": 8}
# Recorded by the tuner at one block tile, each step a little more than the one before.
STEPS = {
    "vectorized, thread tile 8 x 8": ("vectorized", {"TM": 8, "TN": 8}),
    "the ideas of warp_tiled, 8 x 8": ("warp_tiled", {"TM": 8, "TN": 8}),
    "thread tile 16 x 8, warp tile 32 x 128": (
        "warp_tiled",
        {"TM": 16, "TN": 8, "WM": 32, "WN": 128},
    ),
    "warp tile 64 x 64": ("warp_tiled", {"TM": 16, "TN": 8, "WM": 64, "WN": 64}),
}


def show_times() -> None:
    """Shows what was timed."""
    found = ablation.stored()
    rows = [
        [row["variant"], f"{row['tflops']:.1f}", f"{row['ms_min']:.3f} to {row['ms_max']:.3f}"]
        for row in found["rows"]
    ]
    heads = {
        "ideas": "which of the five ideas the kernel has",
        "TFLOP/s": "of the median",
        "ms": "the fastest and the slowest of 25 samples",
    }
    columns.show(heads, rows, caption=columns.sentence(label(found)))


def steps():
    """A waterfall of recorded settings: ideas together, thread tile, shape of the warp tile."""
    return equal_tiles.waterfall(
        {words: (rung, {**TILE, **more}) for words, (rung, more) in STEPS.items()},
        title="The ideas bring most, a larger thread tile the rest, the square warp tile little",
        tile=", block tile 128 x 128 x 8",
    )
