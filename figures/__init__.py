"""Draws: plain data in, a figure that shows itself out. No input or output, no compiling."""

from figures.access import Access
from figures.drawing import Drawing, Listing
from figures.fragments import fragment, layout_grid, owners
from figures.ladder import bars, ladder, roofline
from figures.memory import global_access, shared_banks
from figures.pipeline import pipeline_timeline, schedule
from figures.source import annotated_source, diff_source
from figures.swizzles import swizzle_grid
from figures.tiles import tile_picture

__all__ = [
    "Access",
    "Drawing",
    "Listing",
    "annotated_source",
    "bars",
    "diff_source",
    "fragment",
    "global_access",
    "ladder",
    "layout_grid",
    "owners",
    "pipeline_timeline",
    "roofline",
    "schedule",
    "shared_banks",
    "swizzle_grid",
    "tile_picture",
]
