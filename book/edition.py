"""Which edition of the book this is: its version, and the day of its last change."""

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def version() -> str:
    """The version, as `pyproject.toml` has it: its one place. CITATION.cff and CHANGELOG.md repeat it, and are tested."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]["version"]


def files() -> tuple[str, str]:
    """What a release keeps of the book: the pages, and the print."""
    return f"gemm-ladder-{version()}.zip", f"gemm-ladder-{version()}.pdf"


def date() -> str:
    """YYYY-MM-DD of the last commit or, where there is no clone, of the release (CITATION.cff)."""
    try:
        command = ["git", "log", "-1", "--format=%cs"]
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return told.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
        return re.search(r"^date-released: *\"?([\d-]+)", citation, re.MULTILINE)[1]
