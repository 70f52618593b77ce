"""Clocks of wavefronts as `measure.shared_clocks` recorded them, beside the counts of the emulator."""

from itertools import product

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
    """Prints, for each pitch, the wavefronts of an ldmatrix beside the clocks that it takes."""
    print(f"one ldmatrix of four matrices, {label()}")
    print(f"{'':12}{'wavefronts':>12}{'clocks':>9}")
    for load in LOADS:
        if load != "no loads":
            count, _ = wavefronts(load, "no copies")
            print(f"{load:12}{count:12g}{_text(clocks(load, 'no copies')):>9}")


def show_together(*loads: str) -> None:
    """Prints clocks of loads alone, of copies alone and of both in one turn, beside their wavefronts."""
    print(f"one ldmatrix and one cp.async in turn, {label()}")
    print(
        f"{'ldmatrix':12}{'cp.async':14}{'wavefronts':>12}{'alone':>8}{'alone':>8}{'together':>10}"
    )
    for load, copy in product(loads, [name for name in COPIES if name != "no copies"]):
        first, second = wavefronts(load, copy)
        cells = (
            clocks(load, "no copies"),
            clocks("no loads", copy),
            clocks(load, copy),
        )
        a, b, both = map(_text, cells)
        print(f"{load:12}{copy:14}{f'{first:g} + {second:g}':>12}{a:>8}{b:>8}{both:>10}")


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
