"""In which order blocks take the tiles of C, and what they read together."""

from __future__ import annotations

from figures.widgets import Explorer, _one_of, _within

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

    def __init__(
        self,
        size: int = 8192,
        blocks: int = 128,
        group: int = 1,
        at: int = 0,
        *,
        title: str = "Change the group: how much of A and B does one round read?",
        caption: str = "",
    ):
        start = {
            "size": _one_of("size", size, (4096, 8192)),
            "blocks": _one_of("blocks", blocks, (128, 132)),
            "group": _one_of("group", group, GROUPS),
            "at": _within("at", at, 0, 15),
        }
        super().__init__(
            title,
            f"An explorer of the order of tiles, starting at {size} with {blocks} blocks and groups of {group}.",
            start,
            {"groups": list(GROUPS), "bm": BM, "bn": BN},
            caption,
        )
