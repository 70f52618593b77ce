"""In which order blocks take the tiles of C, and what they read together."""

from __future__ import annotations

from figures.widgets import Explorer, Span

__all__ = ["RasterExplorer", "raster_order"]

BM, BN = 128, 256
GROUPS = (1, 2, 4, 8, 16, 32, 64)


def raster_order(rows: int, cols: int, group: int) -> list[tuple[int, int]]:
    """The (row, column) of every tile, in the order in which blocks take them: down `group` rows of tiles, then the next
    column, every second group from right to left, as `tile_position` of `wgmma_persistent` has it."""
    order = []
    for tile in range(rows * cols):
        number, at = divmod(tile, group * cols)
        deep = min(rows - number * group, group)
        across = at // deep
        order.append((number * group + at % deep, cols - 1 - across if number % 2 else across))
    return order


def reads(order: list[tuple[int, int]], blocks: int, at: int) -> tuple[int, int]:
    """How many different rows and columns of tiles round number `at` of `blocks` tiles reads."""
    here = order[at * blocks : (at + 1) * blocks]
    return len({row for row, _ in here}), len({col for _, col in here})


class RasterExplorer(Explorer):
    """The order of tiles against the bytes of A and B that a round reads; tiles of 128 x 256, 16-bit inputs."""

    kind = "raster"
    asks = "Change the group: how much of A and B does one round read?"
    says = "An explorer of the order of tiles, starting at {size} with {blocks} blocks and groups of {group}."
    takes = (
        ("size", 8192, (4096, 8192)),
        ("blocks", 128, (128, 132)),
        ("group", 1, GROUPS),
        ("at", 0, Span(0, 15)),
    )
    carries = (("groups", GROUPS), ("bm", BM), ("bn", BN))
