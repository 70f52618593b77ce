"""The emulator can be installed by itself: NumPy and Python are all that it imports."""

import ast
import sys
import tomllib
from pathlib import Path

import emulator

FOLDER = Path(emulator.__file__).parent


def imported(path: Path) -> set[str]:
    """Top-level names of the packages that a file imports, at its top or inside a function."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.split(".")[0])
    return names


def test_it_imports_numpy_only():
    names = set().union(*map(imported, FOLDER.glob("*.py")))
    assert names - set(sys.stdlib_module_names) - {"emulator"} == {"numpy"}


def test_what_is_installed_is_the_emulator_with_its_samples():
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert [name.split(">")[0] for name in project["project"]["dependencies"]] == ["numpy"]
    assert project["tool"]["setuptools"]["packages"] == ["emulator"]
    data = project["tool"]["setuptools"]["package-data"]["emulator"]
    assert {p.name for pattern in data for p in FOLDER.glob(pattern)} >= {"naive.ptx", "README.md"}
