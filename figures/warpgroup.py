"""What a warpgroup multiplies: operands in shared memory, sums in the registers of its four warps."""

from __future__ import annotations

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, number, plural

__all__ = ["warpgroup_tiles"]

WARPS = (style.BLUE, style.SKY, style.GREEN, style.PURPLE)


def warpgroup_tiles(columns: int = 128, groups: int = 2) -> Drawing:
    """One wgmma m64nNk16 of each of `groups` warpgroups: A and B in shared memory, D in registers, row by row.

    `facts` holds {"registers": of a thread for its sums, "wavefronts": that one instruction reads}. ValueError for
    what is no width of the instruction.
    """
    if columns % 8 or not 8 <= columns <= 256 or groups not in (1, 2):
        raise ValueError(
            f"{columns} columns, {groups} warpgroups: N is 8 to 256 by 8, groups 1 or 2"
        )
    registers, wavefronts = columns // 2, 16 + columns // 4
    return Drawing(
        title=f"{plural(groups, 'warpgroup')}: A and B stay in shared memory, {number(64 * columns)} sums each in registers",
        alt=(
            f"{plural(groups, 'warpgroup')} of four warps. Each warp has 16 rows of 64 and all {columns} columns of its "
            f"warpgroup's sums, {registers} registers per thread. A is 64 rows of 16 elements for each warpgroup, B 16 rows of "
            f"{columns} elements, which all warpgroups read."
        ),
        legend=(
            *((color, f"warp {i} of its group") for i, color in enumerate(WARPS)),
            (style.ORANGE, "B, read by each group"),
        ),
        facts={"registers": registers, "wavefronts": wavefronts},
        figure=_drawn(columns, groups, WIDTH),
        narrow=_drawn(columns, groups, 330.0),
        min_width=480,
    )


def _drawn(columns: int, groups: int, width: float):
    left, top, band = width * 0.3, 66.0, 24.0
    wide = width - left - 6
    deep = 16.0 if width < 400 else 60.0
    canvas = Canvas(width, top + groups * (4 * band + 10) + 4)
    canvas.text(left, 10, f"B: 16 x {columns}, shared memory", size=11.5)
    canvas.rect(left, 22, wide, 32, fill=style.ORANGE)
    for group in range(groups):
        y = top + group * (4 * band + 10)
        words = ["A: 64 x 16,", "shared", "memory"] if width > 400 else ["A", "64 x 16"]
        for i, part in enumerate(words):
            canvas.text(2, y + 14 + 16 * i, part, size=11.5)
        for warp, color in enumerate(WARPS):
            at = y + warp * band
            canvas.rect(left - deep - 12, at + 1, deep, band - 2, fill=color)
            said = f"warp {4 * group + warp}: 16 x {columns} sums"
            canvas.cell(left, at + 1, wide, band - 2, color, said, inset=0, size=11.5)
    return canvas
