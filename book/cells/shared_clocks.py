"""Clocks of wavefronts as `measure.shared_clocks` recorded them, beside the counts of the emulator."""

from itertools import product

from book.cells import columns
from measure import provenance
from measure.shared_clocks import COPIES, LOADS, stored, wavefronts


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


def show_together(*loads: str) -> None:
    """Shows clocks of loads alone, of copies alone and of both in one turn, beside their wavefronts."""
    rows = []
    for load, copy in product(loads, [name for name in COPIES if name != "no copies"]):
        first, second = wavefronts(load, copy)
        pairs = ((load, "no copies"), ("no loads", copy), (load, copy))
        took = [_text(clocks(*pair)) for pair in pairs]
        rows.append([load, copy, f"{first:g} + {second:g}", *took])
    columns.show(
        {
            "ldmatrix": "bytes from one row of the tile that is read to the next",
            "cp.async": "how the rows lie that the copy writes",
            "wavefronts": "of the ldmatrix, and of the cp.async, per turn",
            "load alone": "clocks per turn of the ldmatrix without the copy",
            "copy alone": "clocks per turn of the copy without the ldmatrix",
            "together": "clocks per turn of both",
        },
        rows,
        caption=f"One ldmatrix and one cp.async per turn; {label()}.",
    )


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
