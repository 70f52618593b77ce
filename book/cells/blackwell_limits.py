"""What a k-step of Blackwell's rungs asks of one SM: counts, and the clocks that they take at least at data-sheet rates.

Nobody has timed these rungs here. The tensor cores' rate is twice Hopper's (NVIDIA's CUTLASS documentation; with 148 SMs it is
the B200 data sheet's 2,250 TFLOP/s at 1.86 GHz); 128 bytes per clock of shared memory is what an H200 has.
"""

import figures
from book.cells import columns

HEADS = {
    "block's tile": "rows and columns of C for which one block holds the sums",
    "tensor cores": "clocks that the products of a k-step of 64 take at 8,192 operations per clock",
    "reads": "wavefronts (128 bytes) of shared memory that the products read, each operand once per instruction",
    "TMA's writes": "wavefronts that TMA writes into shared memory",
    "if both share a path": "the tensor cores' largest share, if reads and writes together pass 128 bytes per clock",
    "L2 bytes per clock": "what L2 has to deliver to each SM while the tensor cores never wait",
}


def share(bn: int, pair: bool) -> float:
    """The largest share of the tensor cores, if products' reads and TMA's writes share 128 bytes per clock."""
    found = figures.pair_loads(bn, pair)
    return min(1.0, found["clocks"] / (2 * found["reads"]))


def bytes_per_clock(bn: int, pair: bool) -> float:
    """What L2 delivers to an SM per clock if its tensor cores never wait."""
    found = figures.pair_loads(bn, pair)
    return (found["a"] + found["b"]) / found["clocks"]


def show(*tiles: tuple[int, bool]) -> None:
    """Shows a line for each (columns of a tile of 128 rows, whether its block is one of a pair)."""
    rows = []
    for bn, pair in tiles:
        found = figures.pair_loads(bn, pair)
        rows.append(
            [
                f"128 x {bn}{', of a pair' if pair else ''}",
                found["clocks"],
                found["reads"],
                found["reads"],
                f"{share(bn, pair):.0%}",
                f"{bytes_per_clock(bn, pair):.0f}",
            ]
        )
    columns.show(
        HEADS,
        rows,
        caption="Per k-step of 64 and SM. Counts, and rates of data sheets and of Hopper: no times; the shared path is supposed.",
    )
