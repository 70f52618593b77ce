"""Finds hazards on shared memory: races, reads of what nobody wrote, and of copies under way."""

from emulator.sanitizer.shadow import Hazard, Report, Shadow, source_name, watch

__all__ = ["Hazard", "Report", "Shadow", "source_name", "watch"]
