"""Clocks of wavefronts as `measure.shared_clocks` recorded them, beside the counts of the emulator."""

from book.cells import columns
from measure import provenance
from measure.shared_clocks import LOADS, stored, wavefronts


def label() -> str:
    """The GPU and date to print beside recorded clocks."""
    if stored() is None:
        return "clocks: not recorded on any GPU yet"
    return provenance.label(stored())


def clocks(load: str, copy: str) -> float | None:
    """Clocks that the multiprocessor took for each warp's turn; None when not recorded."""
    rows = stored()["turns"] if stored() else []
    found = [row["clocks"] for row in rows if (row["load"], row["copy"]) == (load, copy)]
    return found[0] if found else None


def show_loads() -> None:
    """Shows, for each pitch, the wavefronts of an ldmatrix beside the clocks that it takes."""
    rows = []
    for load in LOADS:
        if load != "no loads":
            count, _ = wavefronts(load, "no copies")
            rows.append([load, f"{count:g}", _text(clocks(load, "no copies"))])
    names = dict.fromkeys(("wavefronts", "clocks"), "")
    pitch = "bytes from one row of the tile to the next"
    caption = f"One ldmatrix of four matrices per turn; {label()}."
    columns.show({"pitch": pitch, **names}, rows, caption=caption)


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
