"""Where the CUDA headers are: in wheels from PyPI, or in a CUDA toolkit."""

import importlib.util
import os
import re
from functools import lru_cache
from pathlib import Path

# One row per way the wheels are laid out below the namespace package `nvidia`. CUDA 13 wheels share
# one folder, CUDA 12 wheels have one each. `crt/` (for mma.h) comes from nvidia-cuda-crt, before
# CUDA 13 from nvidia-cuda-nvcc-cu12.
WHEEL_LAYOUTS = (
    ("cu13/include", "cu13/include/cccl"),
    ("cuda_runtime/include", "cuda_cccl/include", "cuda_nvcc/include", "cuda_crt/include"),
)
# CUDA 13 moved CCCL (<cuda/pipeline>, <cuda/std/...>) into include/cccl.
TOOLKIT_LAYOUT = (
    "include",
    "include/cccl",
    "targets/x86_64-linux/include",
    "targets/x86_64-linux/include/cccl",
)
NEEDED = ("cuda_fp16.h", "mma.h", "crt/mma.h", "cuda/pipeline")
VERSION = re.compile(r"#define\s+CUDART_VERSION\s+(\d+)")


def _wheels() -> list[tuple[Path, ...]]:
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    # The wheels may be spread over several site-packages (a venv over a system Python).
    return [tuple(root / part for root in roots for part in layout) for layout in WHEEL_LAYOUTS]


def _toolkits() -> list[tuple[Path, ...]]:
    named = [os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH")]
    roots = [Path(p) for p in named if p] + [Path("/usr/local/cuda")]
    roots += sorted(Path("/usr/local").glob("cuda-*"), reverse=True)
    return [tuple(root / part for part in TOOLKIT_LAYOUT) for root in roots]


def version_of(folders: tuple[Path, ...]) -> tuple[int, int]:
    """CUDA version of these headers, (0, 0) when they do not say."""
    for folder in folders:
        header = folder / "cuda_runtime_api.h"
        text = header.read_text(encoding="utf-8", errors="replace") if header.exists() else ""
        if match := VERSION.search(text):
            return int(match[1]) // 1000, int(match[1]) % 1000 // 10
    return 0, 0


@lru_cache
def include_folders(nvrtc: tuple[int, int]) -> tuple[Path, ...]:
    """Folders for `-I` that hold every header a rung includes, of this NVRTC's major version and the
    nearest minor one.

    FileNotFoundError says which packages to install when no place has them all. Headers of another
    major version are not taken: they may compile, and mean something else.
    """
    candidates, others = [], set()
    for folders in [*_wheels(), *_toolkits()]:
        present = tuple(folder for folder in folders if folder.is_dir())
        missing = [name for name in NEEDED if not any((f / name).exists() for f in present)]
        if present and not missing:
            version = version_of(present)
            if version[0] in (nvrtc[0], 0):  # 0: headers that do not say
                candidates.append(present)
            else:
                others.add(version)
    if not candidates:
        major, suffix = nvrtc[0], "" if nvrtc[0] >= 13 else f"-cu{nvrtc[0]}"
        crt = "crt" if major >= 13 else "nvcc"
        names = " ".join(f"nvidia-cuda-{part}{suffix}" for part in ("runtime", "cccl", crt))
        found = ", ".join(f"{major}.{minor}" for major, minor in sorted(others))
        raise FileNotFoundError(
            f"no CUDA {nvrtc[0]} headers found: pip install {names} (or set CUDA_HOME)"
            + (f"; those of CUDA {found} are not this compiler's" if found else "")
        )
    return min(candidates, key=lambda folders: _distance(version_of(folders), nvrtc))


def _distance(headers: tuple[int, int], nvrtc: tuple[int, int]) -> tuple[bool, int]:
    return headers[0] != nvrtc[0], abs(headers[1] - nvrtc[1])
