"""Draws: plain data in, a figure that shows itself out. No input or output, no compiling."""

from figures.access import Access
from figures.drawing import Drawing, Listing
from figures.ladder import bars, ladder, roofline
from figures.memory import global_access, shared_banks
from figures.source import annotated_source, diff_source

__all__ = [
    "Access",
    "Drawing",
    "Listing",
    "annotated_source",
    "bars",
    "diff_source",
    "global_access",
    "ladder",
    "roofline",
    "shared_banks",
]
