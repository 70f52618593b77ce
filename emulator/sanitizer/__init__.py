"""Finds hazards: races on shared and global memory, reads of what nobody wrote, and of copies under way."""

from emulator.sanitizer.device import DeviceMemory
from emulator.sanitizer.report import Hazard, Places, Report, source_name
from emulator.sanitizer.shadow import STRONG, Shadow
from emulator.sanitizer.watching import watch, watch_device

__all__ = [
    "STRONG",
    "DeviceMemory",
    "Hazard",
    "Places",
    "Report",
    "Shadow",
    "source_name",
    "watch",
    "watch_device",
]
