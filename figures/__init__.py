"""Draws: plain data in, a figure that shows itself out. No input or output, no compiling."""

from figures.access import Access
from figures.drawing import Drawing, Listing
from figures.fragments import fragment, layout_grid, owners
from figures.hazards import hazard
from figures.ladder import bars, ladder, roofline
from figures.memory import global_access, shared_banks
from figures.pipeline import pipeline_timeline, schedule
from figures.source import annotated_source, diff_source
from figures.swizzles import swizzle_grid
from figures.tiles import tile_picture
from figures.widgets import (
    BankExplorer,
    Choice,
    CoalescingExplorer,
    FragmentExplorer,
    OccupancyExplorer,
    PipelineExplorer,
    SwizzleExplorer,
    TileExplorer,
)

__all__ = [
    "Access",
    "BankExplorer",
    "Choice",
    "CoalescingExplorer",
    "Drawing",
    "FragmentExplorer",
    "Listing",
    "OccupancyExplorer",
    "PipelineExplorer",
    "SwizzleExplorer",
    "TileExplorer",
    "annotated_source",
    "bars",
    "diff_source",
    "fragment",
    "global_access",
    "hazard",
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
