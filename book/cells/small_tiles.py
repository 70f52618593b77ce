"""Small tiles as `measure.small_tiles` recorded them: times, conflicts, and what a warp waits for."""

import figures
from book.cells import columns, limits
from measure.limits import STALLS
from measure.provenance import label
from measure.small_tiles import POST, SIZE, SMALL, loads_in_a_row, run, stored

__all__ = ["loads_in_a_row", "run"]

# What `show` shows of them.
BUSY = ("warps resident, %", "shared-memory pipe, %", "issue slots used, %")
# What a warp waits for, by the memory behind it: the data, and the queue to it.
DOORS = {
    "global memory": ("long_scoreboard", "lg_throttle"),
    "shared memory": ("short_scoreboard", "mio_throttle"),
}
MMAS = SIZE**3 // (16 * 8 * 16)


def show() -> None:
    """Shows times and what Nsight Compute counted, of both kernels, for both sizes of a block's work."""
    if stored() is None:
        print("not recorded on any GPU yet")
        return
    rows = []
    for found in stored()["kernels"]:
        busy = [f"{found['at_4096'][name]:.0f}%" for name in BUSY]
        counter = f"{found['at_512']['bank conflicts, all']:,}"
        name, time = _name(found), f"{found['ms_median']:.2f}"
        rows.append([name, f"{conflicts(found):,}", counter, time, *busy])
    columns.show(
        {
            "tiles per block": f"tiles of 32 x 32 per block, and which kernel; {SIZE} x {SIZE} x {SIZE}",
            "ldmatrix beyond four": "wavefronts of `ldmatrix` that Nsight Compute counted, less four for each; "
            f"at {SMALL} x {SMALL} x {SMALL}",
            "conflict counter": "Nsight Compute's own counter of bank conflicts, all instructions together; at the same size",
            **dict.fromkeys(("ms", "warps", "shared memory", "issue slots"), ""),
        },
        rows,
        title=f"Times at {SIZE}, conflicts at {SMALL}",
        caption=columns.sentence(label(stored())),
    )


def show_share() -> None:
    """Shows the clocks that the conflicts could take at most, and their part of the clocks that passed."""
    if stored() is None:
        print("not recorded on any GPU yet")
        return
    sms, rows = stored()["machine"]["sms"], []
    for found in stored()["kernels"]:
        if found["kernel"] == "as it was":
            passing = conflicts(found) * (SIZE // SMALL) ** 3 / sms / 1e6
            took = found["at_4096"]["cycles"] / 1e6
            rows.append([_name(found), f"{passing:.1f}", f"{took:.1f}", f"{passing / took:.0%}"])
    columns.show(
        {
            "tiles per block": "tiles of 32 x 32 per block, and which kernel",
            "conflicts": "millions of clocks that the conflicts take at most, one for each extra wavefront",
            "clocks": "millions of clocks that the kernel took",
            "share": "the conflicts' clocks as a share of the kernel's",
        },
        rows,
        caption=columns.sentence(label(stored())),
    )


def show_clocks() -> None:
    """Shows, for each mma, the clocks that a warp spends, by what it waits for, and the instructions that it executes."""
    if stored() is None:
        print("not recorded on any GPU yet")
        return
    rows = []
    for found in stored()["kernels"]:
        each = found["at_4096"]["instructions"] / MMAS
        spent = {r: each * found["at_4096"].get(f"waits: {r}", 0) for r in STALLS}
        doors = [sum(spent[reason] for reason in reasons) for reasons in DOORS.values()]
        every = sum(spent.values())
        cells = [f"{n:.0f}" for n in (*doors, every - sum(doors), every)]
        rows.append([_name(found), *cells, f"{each:.1f}"])
    columns.show(
        {
            "tiles per block": "tiles of 32 x 32 per block, and which kernel",
            "global memory": "clocks per mma that a warp waits for data from global memory, or for room in the queue to it",
            "shared memory": "clocks per mma that a warp waits for shared memory, or for room in the queue to it",
            "else": "clocks per mma that a warp waits for anything else",
            "clocks": "clocks per mma in all",
            "instructions": "instructions that a warp executes per mma",
        },
        rows,
        caption=columns.sentence(label(stored())),
    )


def _name(found: dict) -> str:
    return f"{found['tiles']} x {found['tiles']} tiles, {found['kernel']}"


def row(kernel: str, tiles: int = POST) -> dict | None:
    """What was recorded of one kernel, `tiles` x `tiles` tiles per block; None when nothing was."""
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
