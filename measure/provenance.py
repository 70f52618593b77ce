"""The envelope of every file in `results/`: which machine, when, which commit, by what method."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from kernels.build import COMPILERS
from kernels.gpus import clocks, gpu
from kernels.nvrtc import compiler

FOLDER = Path(__file__).resolve().parent.parent / "results"
BOOK_GPUS = ("nvidia-h200", "nvidia-h100")  # the pages show the first of these that was recorded
MEASURED = ("kernels", "measure")  # rooms whose changes make a recording another one


def store(
    name: str | Path,
    method: str,
    machine: Mapping | None = None,
    indent: int | None = 1,
    **content,
) -> Path:
    """Write `results/<name>.json` (or the file at the path `name`) and return its path.

    It holds the machine (`describe()` unless given), the moment, the commit, the method in words and
    the content.
    """
    stored = {
        "machine": describe() if machine is None else dict(machine),
        "recorded": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "method": method,
        **content,
    }
    path = name if isinstance(name, Path) else FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(stored, indent=indent) + "\n", encoding="utf-8")
    return path


def rows_in(path: Path) -> list[dict]:
    """The rows that a file of results holds; none where it is not there."""
    return json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []


def load(kind: str) -> dict:
    """`results/<kind>-<gpu>.json` of the book's GPU, else the first by name. FileNotFoundError where
    there is none.
    """
    files = {path.stem.removeprefix(f"{kind}-"): path for path in FOLDER.glob(f"{kind}-*.json")}
    if not files:
        raise FileNotFoundError(f"no results/{kind}-*.json: nothing was recorded")
    return json.loads(files[shown(files)].read_text(encoding="utf-8"))


def recording(kind: str) -> dict | None:
    """What `load` gives, None where nothing was recorded."""
    try:
        return load(kind)
    except FileNotFoundError:
        return None


def shown(names: Iterable[str]) -> str:
    """Which of these GPUs the book's pages show: the first of `BOOK_GPUS` that is among them."""
    ordered = sorted(names)
    return next((name for gpu in BOOK_GPUS for name in ordered if gpu in name), ordered[0])


def label(stored: Mapping, rows: Iterable[Mapping] | None = None) -> str:
    """What to print beside recorded numbers: "recorded on <GPU>, <date>", with every date of these rows (or all)."""
    rows = stored.get("rows", ()) if rows is None else rows
    days = {row.get("recorded", stored["recorded"])[:10] for row in rows} or {
        stored["recorded"][:10]
    }
    return f"recorded on {stored['machine']['gpu']}, {' and '.join(sorted(days))}"


def label_here(*versions: str) -> str:
    """What to print beside numbers that are recorded now, by these versions of others' packages."""
    day = datetime.date.today().isoformat()
    return ", ".join([f"recorded on {gpu().name}", day, *versions])


def describe() -> dict:
    """This machine, as a results file names it. nvrtc: what compiled the builds that this process has used, which
    another machine's may have been (`$GEMM_BUILDS`).
    """
    import cupy
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    here, nvrtc = gpu(), compiler()
    used = {name.removeprefix("NVRTC ") for name in COMPILERS if name}
    return {
        "gpu": here.name,
        "arch": here.arch,
        "sms": here.sms,
        "clock_mhz": here.clock_mhz,
        "l2_bytes": here.l2_bytes,
        "driver": clocks().get("driver_version", here.driver),
        "cuda": here.runtime,
        "nvrtc": ", ".join(sorted(used)) or f"{nvrtc.major}.{nvrtc.minor}",
        "cublas": cublas.getVersion(device.get_cublas_handle()),
        "cupy": cupy.__version__,
        "python": platform.python_version(),
    }


def commit(of: str | Path | None = None) -> str:
    """git's commit of this repository (or `$GEMM_COMMIT`), or of the checkout `of`, with "+" when files differ from it;
    "unknown" outside a repository.
    """
    if of is None and (given := os.environ.get("GEMM_COMMIT")):
        return given
    at, rooms = (FOLDER.parent, MEASURED) if of is None else (Path(of), ())
    try:
        name = _git(at, "rev-parse", "HEAD")
        changed = _git(at, "status", "--porcelain", "--untracked-files=no", *rooms)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + ("+" if changed else "")


def _git(at: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=at, capture_output=True, text=True, check=True)
    return done.stdout.strip()
