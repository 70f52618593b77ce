"""Clocks of wavefronts as `measure.shared_clocks` recorded them, beside the counts of the emulator."""

from book.cells import columns
from measure import provenance
from measure.shared_clocks import LOADS, stored, wavefronts


def clocks(load: str, copy: str) -> float:
    """Clocks that the multiprocessor took for each warp's turn. StopIteration when not recorded."""
    return next(
        row["clocks"] for row in stored()["turns"] if (row["load"], row["copy"]) == (load, copy)
    )


def show_loads() -> None:
    """Shows, for each pitch, the wavefronts of an ldmatrix beside the clocks that it takes."""
    rows = []
    for load in LOADS:
        if load != "no loads":
            count, _ = wavefronts(load, "no copies")
            rows.append([load, f"{count:g}", f"{clocks(load, 'no copies'):.1f}"])
    names = dict.fromkeys(("wavefronts", "clocks"), "")
    pitch = "bytes from one row of the tile to the next"
    caption = f"One ldmatrix of four matrices per turn; {provenance.label(stored())}."
    columns.show({"pitch": pitch, **names}, rows, caption=caption)
