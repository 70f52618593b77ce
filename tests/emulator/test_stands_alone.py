"""The emulator can be installed by itself, NumPy being all that it imports, and its packages form no circle.

`emulator.plugin` is what pytest loads: it imports pytest too, and what a test uses where the test imports that.
"""

import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

import emulator
from tests.imports import circle, graph, imports

FOLDER = Path(emulator.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))


GRAPH = graph(FOLDER.parent, ["emulator"])
PLUGIN = {name for name in GRAPH if name.split(".")[:2] == ["emulator", "plugin"]}


def test_it_imports_numpy_only():
    roots = {name.split(".")[0] for module in GRAPH.keys() - PLUGIN for name in GRAPH[module]}
    assert roots - set(sys.stdlib_module_names) - {"emulator"} == {"numpy"}


def test_nothing_of_it_imports_the_plugin():
    assert not any(GRAPH[module] & PLUGIN for module in GRAPH.keys() - PLUGIN)


def test_no_circle_of_packages():
    """Where `machine` builds on `text`, nothing in `text` may build on `machine`."""
    packages: dict[str, set[str]] = {}
    for module, names in GRAPH.items():
        own = ".".join(module.split(".")[:2])
        uses = {".".join(n.split(".")[:2]) for n in names if n.startswith("emulator.")}
        packages.setdefault(own, set()).update(uses - {own})
    assert circle(packages) == []


@pytest.mark.parametrize(
    "text",
    ["from . import chunk", "from .chunk import Chunk", "from emulator.machine import chunk",
     "import emulator.machine.chunk", "def f():\n    from emulator.machine.chunk import Chunk",
     "if TYPE_CHECKING:\n    from emulator.machine.chunk import Chunk"],
)  # fmt: skip
def test_an_import_is_seen_however_it_is_written(text):
    found = imports(text, "emulator.machine.specials", False, GRAPH)
    assert found - {"emulator.machine"} == {"emulator.machine.chunk"}
    closed = {**GRAPH, "emulator.machine.specials": found}
    assert set(circle(closed)) == {"emulator.machine.specials", "emulator.machine.chunk"}


def test_what_is_installed_is_the_emulator_with_its_samples():
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert [name.split(">")[0] for name in project["project"]["dependencies"]] == ["numpy"]
    chosen = project["tool"]["setuptools"]["packages"]["find"]["include"]
    for folder in {path.parent for path in FILES}:  # what setuptools' finder asks of a package
        assert (folder / "__init__.py").exists(), folder
        package = ".".join(folder.relative_to(FOLDER.parent).parts)
        assert any(fnmatch(package, pattern) for pattern in chosen)
    data = project["tool"]["setuptools"]["package-data"]["emulator"]
    assert {p.name for pattern in data for p in FOLDER.glob(pattern)} >= {"naive.ptx", "README.md"}
