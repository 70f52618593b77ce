"""PTX of somebody's CUDA C++ by nvcc, for sm_100a; and bfloat16, which NumPy lacks."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

from kernels.formats import decode, encode

bf16, wide = partial(encode, name="bfloat16"), partial(decode, name="bfloat16")


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
