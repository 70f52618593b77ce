"""What the recorded autotuning says of one macro: the best speed that each of its values reached."""

from book.cells import columns
from kernels.occupancy import occupancy
from measure.provenance import label, load


def best_by(rung: str, macro: str) -> dict[int, dict]:
    """{value: its fastest measured row} of `results/tune-*.json`, in order of the values.

    A row holds "macros", "threads", "registers", "shared_bytes", "tflops" ... FileNotFoundError
    where nothing was recorded, KeyError when this rung was not tuned over this macro.
    """
    values = {row["macros"][macro] for row in _timed(rung) if macro in row["macros"]}
    if not values:
        raise KeyError(f"{rung} was not tuned over {macro}")
    return {value: at(rung, **{macro: value}) for value in sorted(values)}


def at(rung: str, **macros: int) -> dict:
    """The fastest measured row of a rung among those with these values of its macros.

    FileNotFoundError where nothing was recorded, KeyError where no such setting was measured.
    """
    rows = [row for row in _timed(rung) if macros.items() <= row["macros"].items()]
    if not rows:
        raise KeyError(f"{rung} was not measured with {macros}")
    return max(rows, key=lambda row: row["tflops"])


def _timed(rung: str) -> list[dict]:
    return [row for row in load("tune")["rows"] if row["rung"] == rung and row["tflops"]]


def show(rung: str, macro: str) -> None:
    """Shows the fastest measured setting for each value of one macro."""
    recording, rows = load("tune"), []
    arch = recording["machine"]["arch"]
    for value, row in best_by(rung, macro).items():
        m = row["macros"]
        held = occupancy(arch, row["threads"], row["registers"], row["shared_bytes"])
        tile = f"{m['BM']}x{m['BN']}x{m['BK']}"
        speed = f"{row['tflops']:.1f}"
        rows.append([value, tile, row["registers"], row["shared_bytes"], held.blocks, speed])
    names = (macro, "block", "registers", "shared bytes", "blocks per SM", "TFLOP/s")
    columns.show(
        dict.fromkeys(names, ""),
        rows,
        caption=f"The fastest of the settings tried for each value; {label(recording)}.",
    )
