"""Small tiles as `measure.small_tiles` recorded them: what conflicts could cost at most, and what an order of loads does."""

from book.cells import columns
from measure.provenance import label
from measure.small_tiles import KINDS, SIZE, SMALL, stored


def show_share() -> None:
    """Shows the clocks that the conflicts could take at most, and their part of the clocks that passed."""
    sms, rows = stored()["machine"]["sms"], []
    for found in stored()["kernels"]:
        if found["kernel"] == "as it was":
            passing = conflicts(found) * (SIZE // SMALL) ** 3 / sms / 1e6
            took = found["at_4096"]["cycles"] / 1e6
            name = f"{found['tiles']} x {found['tiles']} tiles, {found['kernel']}"
            rows.append([name, f"{passing:.1f}", f"{took:.1f}", f"{passing / took:.0%}"])
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


def show_order() -> None:
    """Shows the times with the loads of 1 to 8 rows before their stores, plain and swizzled."""
    found = {(row["kernel"], row["batch"]): row for row in stored()["order"]}
    rows = []
    for batch in sorted({batch for _, batch in found}):
        cells = [str(batch) if batch else "as compiled"]
        for kind in KINDS:
            row = found[kind, batch]
            cells += [str(row["loads in a row"]), f"{row['ms_median']:.1f}"]
        rows.append(cells)
    row_means = "most loads that a warp sends before it stores one of them, in the machine code"
    columns.show(
        {
            "rows at once": "how many rows the source loads before it stores them",
            "plain: in a row": row_means,
            "ms": "at 4096 x 4096 x 4096, the median",
            "swizzled: in a row": row_means,
            "ms ": "at 4096 x 4096 x 4096, the median",
        },
        rows,
        title="Too few loads under way cost more than conflicts",
        caption=f"8 x 8 tiles. Recorded on {stored()['machine']['gpu']}, {stored()['order'][0]['recorded'][:10]}.",
    )


def conflicts(row: dict) -> int:
    """Wavefronts of ldmatrix beyond four each, at 512 x 512 x 512: two for each 16 x 16 x 16 product."""
    least = 4 * 2 * (SMALL // 16) ** 3
    return row["at_512"]["ldmatrix wavefronts"] - least
