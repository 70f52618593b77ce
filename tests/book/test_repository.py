"""What is tracked: no machine's own paths, nothing large, no leftovers."""

import re
import subprocess

import pytest

from book import chapters
from measure.results import recordings

TEXT = {
    ".py",
    ".cu",
    ".cuh",
    ".ipynb",
    ".md",
    ".yml",
    ".toml",
    ".txt",
    ".json",
    ".js",
    ".css",
    ".cfg",
}
MACHINE_PATH = re.compile(r"(?<![\w.:/-])/(?:home|root|work|Users|tmp|mnt)/\w+")
LEFTOVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")


@pytest.fixture(scope="module")
def tracked():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=chapters.ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    files = [chapters.ROOT / name for name in listed.stdout.splitlines()]
    return [path for path in files if path.exists()]


def test_no_file_is_large(tracked):
    assert [path.name for path in tracked if path.stat().st_size > 2_000_000] == []


def test_no_file_holds_a_path_of_one_machine(tracked):
    found = []
    for path in tracked:
        if path.suffix in TEXT and path.name != "test_repository.py":
            found += [
                (path.name, m) for m in MACHINE_PATH.findall(path.read_text(encoding="utf-8"))
            ]
    assert found == []


def test_nothing_is_left_undone(tracked):
    found = []
    for path in tracked:
        if path.suffix in {".py", ".cu", ".cuh", ".ipynb", ".md"}:
            found += [(path.name, m) for m in LEFTOVER.findall(path.read_text(encoding="utf-8"))]
    assert found == []


def test_licences_and_ci_are_there():
    for name in ("LICENSE", "LICENSE-TEXT", "README.md", "requirements.txt", ".ci/run"):
        assert (chapters.ROOT / name).stat().st_size > 0, name


@pytest.mark.skipif(not recordings(), reason="nothing has been recorded yet")
def test_the_readme_shows_its_picture():
    readme = (chapters.ROOT / "README.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", readme)
    pictures = [p for p in pictures if not p.startswith(("https://", "../../"))]  # badges
    assert pictures
    for picture in pictures:
        assert (chapters.ROOT / picture).stat().st_size > 10_000, f"{picture}: run `make picture`"
