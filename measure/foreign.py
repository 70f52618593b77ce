"""Products that other compilers made, Triton's and CuTe's: their PTX in `measure/ptx/`, and the rows of their times.

A stored file begins with a line of JSON that says what it is, who made it, and from which source.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from .timing import Launch, measure

PTX = Path(__file__).parent / "ptx"
DEBUG_SECTION = re.compile(r"^\s*\.section\s+\.debug\w*\s*\{.*?^\s*\}\n?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Compiled:
    """What a compiler made of a kernel: PTX for an architecture, and how it is launched."""

    ptx: str
    entry: str
    shared_bytes: int
    threads: int
    version: str
    setting: Mapping[str, int]

    def arguments(self, *given) -> list:
        """A launch's arguments: those given, and null for the two buffers that Triton adds and does not use here."""
        return [*given, np.uint64(0), np.uint64(0)]


def tidy(ptx: str) -> str:
    """PTX without sections for a debugger and without comments; files by their names alone."""
    ptx = DEBUG_SECTION.sub("", re.sub(r"[ \t]*//[^\n]*", "", ptx))
    ptx = re.sub(r'(\.file\s+\d+\s+")[^"]*/([^"/]+")', r"\1\2", ptx)
    return "\n".join(line.rstrip() for line in ptx.splitlines() if line.strip()) + "\n"


def hash_of(source: Path) -> str:
    """Of a kernels' source, without regard to how lines end."""
    return hashlib.sha256(
        "\n".join(source.read_text(encoding="utf-8").splitlines()).encode()
    ).hexdigest()[:16]


def needs(package: str) -> ImportError:
    """What is raised where a compiler is not installed."""
    return ImportError(f"this needs {package}: pip install {package}")


def write(name: str, what: str, command: str, source: Path, made: Compiled) -> Path:
    """`measure/ptx/<name>.ptx`: its first line says what it is, what made it of which source, and how it is launched."""
    about = asdict(made)
    ptx = about.pop("ptx")
    head = {"what": what, "made by": command, "source": hash_of(source), **about}
    path = PTX / f"{name}.ptx"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"// {json.dumps(head)}\n{ptx}", encoding="utf-8")
    return path


def read(name: str) -> Compiled:
    """What `write` stored, its first line included; needs no compiler."""
    text = (PTX / f"{name}.ptx").read_text(encoding="utf-8")
    head = json.loads(text.splitlines()[0].removeprefix("// "))
    return Compiled(text, *(head[name] for name in list(Compiled.__dataclass_fields__)[1:]))


def error_of(launch: Launch, A, B, C, most: float) -> float:
    """Of C after a launch: the largest error over the largest element of A @ B. RuntimeError where it is not below `most`."""
    import cupy

    C.fill(np.nan)
    launch()
    expected = A.astype(cupy.float32) @ B.astype(cupy.float32)
    error = float(cupy.abs(C - expected).max() / cupy.abs(expected).max())
    if not error < most:
        raise RuntimeError(f"wrong at {A.shape}: {error:.1e} of the largest element")
    return error


def timed(competitors: Mapping[str, Sequence[Launch]], size: int, settings: Mapping) -> list[dict]:
    """A row for each competitor at this size, all timed in turn. settings: {name: macros}, none for the library."""
    return [
        {
            "kernel": name,
            "size": size,
            "ms_median": timing.median,
            "tflops": timing.tflops(size, size, size),
            "setting": dict(settings.get(name, {})),
        }
        for name, timing in measure(competitors).items()
    ]
