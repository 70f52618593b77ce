"""Builds that travel with the book: PTX, and what ptxas said, of all that its pages compile on the emulator.

They are for a machine without a compiler: NVIDIA has none for macOS. `python -m book.builds` makes them,
one file per page in `results/builds/`. Machine code is there only of the builds whose code a page reads.
"""

import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from .errors import NoCompiler
from .rung import FOLDER

BUILDS = FOLDER.parent / "results" / "builds"
READ = "machine-code-read.txt"  # beside the builds of $GEMM_BUILDS: hashes of the cubins that were read


@lru_cache
def shipped() -> Mapping[str, dict]:
    """{key: the stored build} of every page; see `kernels.build.key`."""
    return of_folder(BUILDS)


def of_folder(folder: Path) -> dict[str, dict]:
    found: dict[str, dict] = {}
    for path in sorted(folder.glob("*.json.*z")):
        for key, stored in read(path)["builds"].items():
            if stored["cubin"] or key not in found:
                found[key] = stored
    return found


def read(path: Path) -> dict:
    """One page's file: {"code": a hash of its code cells, "needs": [keys of all its builds], "files": [those of files of
    `kernels/`], "builds": {key: build}, those that no page before it has}.
    """
    if path.suffix == ".gz":  # in a page, whose Python lacks lzma
        return json.loads(gzip.decompress(path.read_bytes()))
    import lzma

    return json.loads(lzma.decompress(path.read_bytes()))


def write(
    path: Path, code: str, needs: Iterable[str], files: Iterable[str], builds: Mapping[str, dict]
) -> None:
    """Stores one page's builds, similar ones side by side: the same builds give the same bytes."""
    import lzma

    alike = sorted(builds, key=lambda key: (builds[key]["name"], builds[key]["arch"], key))
    stored = {
        "code": code,
        "needs": sorted(needs),
        "files": sorted(files),
        "builds": {key: builds[key] for key in alike},
    }
    text = json.dumps(stored, separators=(",", ":")).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


def machine_code(build) -> bytes:
    """A build's cubin, for whoever reads it; a collection of builds is told that it was. NoCompiler without one."""
    if not build.cubin:
        raise NoCompiler(f"The machine code of {build.name} for sm_{build.arch}")
    if carried := os.environ.get("GEMM_BUILDS"):
        with open(Path(carried) / READ, "a", encoding="utf-8") as read:
            read.write(f"{hash_of(build.cubin)}\n")
    return build.cubin


def hash_of(cubin: bytes) -> str:
    return hashlib.sha256(cubin).hexdigest()
