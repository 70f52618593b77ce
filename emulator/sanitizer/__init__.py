"""Finds hazards on shared memory: races, reads of what nobody wrote, and of copies under way."""

from emulator.sanitizer.report import Hazard, Places, Report, source_name
from emulator.sanitizer.shadow import STRONG, Shadow
from emulator.sanitizer.watching import watch

__all__ = ["STRONG", "Hazard", "Places", "Report", "Shadow", "source_name", "watch"]
