"""What the set-up cell says of the machine that it runs on."""

from __future__ import annotations

import sys

from kernels.gpus import gpu


def said() -> str:
    """One line: the GPU that was found; where none is there, what runs instead and, in Colab, how to get one."""
    if (found := gpu()) is not None:
        return f"GPU: {found.name} (sm_{found.arch}). Kernels run and are timed on it."
    line = "No GPU: kernels run on the emulator, and times are recorded ones."
    if "google.colab" in sys.modules:
        line += " For a GPU: Runtime > Change runtime type > T4 GPU, then run all cells again."
    return line
