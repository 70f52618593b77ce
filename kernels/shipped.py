"""Builds that travel with the book: PTX, and what ptxas said, of all that its pages compile on the emulator.

They are for a machine without a compiler: NVIDIA has none for macOS. `python -m book.builds` makes them,
one file per page in `results/builds/`. Machine code is there only where a page reads it.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from .rungs import FOLDER

BUILDS = FOLDER.parent / "results" / "builds"


@lru_cache
def shipped(folder: Path = BUILDS) -> Mapping[str, dict]:
    """{key: the stored build} of every page; see `kernels.build.key`."""
    found: dict[str, dict] = {}
    for path in sorted(folder.glob("*.json.xz")):
        for key, stored in read(path)["builds"].items():
            if stored["cubin"] or key not in found:
                found[key] = stored
    return found


def read(path: Path) -> dict:
    """One page's file: {"code": the hash of its code cells, "files": [keys], "builds": {key: build}}."""
    return json.loads(lzma.decompress(path.read_bytes()))


def write(path: Path, code: str, files: Iterable[str], builds: Mapping[str, dict]) -> None:
    """Stores one page's builds, similar ones side by side: the same builds give the same bytes."""
    alike = sorted(builds, key=lambda key: (builds[key]["name"], builds[key]["arch"], key))
    stored = {"code": code, "files": sorted(files), "builds": {key: builds[key] for key in alike}}
    text = json.dumps(stored, separators=(",", ":")).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


def without_time(stored: Mapping, machine_code: bool) -> dict:
    """A build of a cache as it is shipped: without the seconds that it took, which differ each time."""
    return {**stored, "seconds": 0.0, "cubin": stored["cubin"] if machine_code else ""}
