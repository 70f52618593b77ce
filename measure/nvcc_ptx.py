"""PTX of somebody's CUDA C++ by nvcc, for sm_100a; and bfloat16, which NumPy lacks."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np


def ptx_of(source: Path, out: Path, *words: str) -> str:
    """The PTX of a source, compiled with these further words of nvcc's command line. RuntimeError says what nvcc said."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise RuntimeError("nvcc is not on the path")
    line = [nvcc, "-arch=sm_100a", "-ptx", "-lineinfo", "-w", "--expt-relaxed-constexpr", *words]
    done = subprocess.run(
        [*line, str(source), "-o", str(out)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        raise RuntimeError(f"nvcc: {(lines or ['failed'])[0]}")
    return out.read_text(encoding="utf-8")


def nvcc_version() -> str:
    """The version of the nvcc on the path; "none" without one."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return "none"
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"V(\d[\d.]*)", said)[1]


def bf16(x: np.ndarray) -> np.ndarray:
    """float32 to bfloat16's bits, rounded to the nearest, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def wide(x: np.ndarray) -> np.ndarray:
    """bfloat16's bits to float32."""
    return (x.astype(np.uint32) << 16).view(np.float32)
