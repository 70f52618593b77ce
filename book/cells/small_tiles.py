"""Small tiles as `measure.small_tiles` recorded them: times, conflicts, and what a warp waits for."""

import figures
from book.cells import limits
from measure.limits import STALLS
from measure.provenance import label
from measure.small_tiles import POST, SIZE, SMALL, loads_in_a_row, run, stored

__all__ = ["loads_in_a_row", "run"]

# What `show` prints of them, and how wide.
BUSY = ("warps resident, %", "shared-memory pipe, %", "issue slots used, %")
WIDTHS = (10, 8, 7, 15, 13)
# What a warp waits for, by the memory behind it: the data, and the queue to it.
DOORS = {
    "global memory": ("long_scoreboard", "lg_throttle"),
    "shared memory": ("short_scoreboard", "mio_throttle"),
}
MMAS = SIZE**3 // (16 * 8 * 16)


def show() -> None:
    """Prints times and what Nsight Compute counted, of both kernels, for both sizes of a block's work."""
    if stored() is None:
        print("not recorded on any GPU yet")
        return
    print(label(stored()))
    head = ("conflicts", "ms", "warps", "shared memory", "issue slots")
    print(f"{'tiles a block':25}" + "".join(f"{w:>{n}}" for w, n in zip(head, WIDTHS, strict=True)))
    for found in stored()["kernels"]:
        busy = [f"{found['at_4096'][name]:.0f}%" for name in BUSY]
        cells = (f"{conflicts(found):,}", f"{found['ms_median']:.2f}", *busy)
        print(
            f"{_name(found):25}" + "".join(f"{c:>{n}}" for c, n in zip(cells, WIDTHS, strict=True))
        )


def show_share() -> None:
    """Prints the clocks that the conflicts could take at most, and their part of the clocks that passed."""
    if stored() is None:
        print("not recorded on any GPU yet")
        return
    sms = stored()["machine"]["sms"]
    for found in stored()["kernels"]:
        if found["kernel"] == "as it was":
            passing = conflicts(found) * (SIZE // SMALL) ** 3 / sms / 1e6
            took = found["at_4096"]["cycles"] / 1e6
            print(
                f"{_name(found)}: at most {passing:.1f} of {took:.1f} million clocks, {passing / took:.0%}"
            )


def show_clocks() -> None:
    """Prints, for each mma, the clocks that a warp spends, by what it waits for, and the instructions that it executes."""
    if stored() is None:
        print("not recorded on any GPU yet")
        return
    print(f"for each mma, {label(stored())}")
    head = (*DOORS, "else", "clocks", "instructions")
    print(f"{'':25}" + "".join(f"{word:>{len(word) + 3}}" for word in head))
    for found in stored()["kernels"]:
        each = found["at_4096"]["instructions"] / MMAS
        spent = {r: each * found["at_4096"].get(f"waits: {r}", 0) for r in STALLS}
        doors = [sum(spent[reason] for reason in reasons) for reasons in DOORS.values()]
        every = sum(spent.values())
        cells = [f"{n:.0f}" for n in (*doors, every - sum(doors), every)] + [f"{each:.1f}"]
        print(
            f"{_name(found):25}"
            + "".join(f"{c:>{len(w) + 3}}" for w, c in zip(head, cells, strict=True))
        )


def _name(found: dict) -> str:
    return f"{found['tiles']} x {found['tiles']} tiles, {found['kernel']}"


def row(kernel: str, tiles: int = POST) -> dict | None:
    """What was recorded of one kernel, `tiles` x `tiles` tiles a block; None when nothing was."""
    rows = stored()["kernels"] if stored() else []
    return next((r for r in rows if (r["kernel"], r["tiles"]) == (kernel, tiles)), None)


def waits():
    """What a warp of each kernel waits for, to flip through; None, after saying so, when not recorded."""
    if stored() is None:
        print("not recorded on any GPU yet")
        return None
    pages = {}
    for found in stored()["kernels"]:
        counted = found["at_4096"]
        stalls = {reason: counted.get(f"waits: {reason}") for reason in STALLS}
        pages[_name(found)] = limits.wait_bars(_name(found), stalls, stored())
    title = "With conflicts and without: what does a warp wait for?"
    return figures.Choice(pages, name="kernel", title=title, slider=False)


def conflicts(row: dict) -> int:
    """Wavefronts of ldmatrix beyond four each, at 512 x 512 x 512: two for each 16 x 16 x 16 product."""
    least = 4 * 2 * (SMALL // 16) ** 3
    return row["at_512"]["ldmatrix wavefronts"] - least
