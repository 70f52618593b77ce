"""The emulator can be installed by itself, NumPy being all that it imports, and its modules form no circle.

`emulator.plugin` is what pytest loads: it imports pytest too, and what a test uses where the test imports that.
"""

import ast
import sys
import tomllib
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import emulator

FOLDER = Path(emulator.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(FOLDER.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path) for path in FILES}


def imported(text: str, package: str) -> set[str]:
    """Dotted names that a module imports: at its top, inside a function or for type checking alone.

    package: where relative imports start from.
    """
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join(
                [*(start if node.level else []), *([node.module] if node.module else [])]
            )
            inner = {f"{base}.{alias.name}" for alias in node.names}
            names |= (inner & MODULES) or {base}
    return names


def graph_of(files: list[Path]) -> dict[str, set[str]]:
    return {
        name_of(path): imported(
            path.read_text(encoding="utf-8"),
            name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0],
        )
        for path in files
    }


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The names along a circle, or none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        return found.args[1]
    return []


GRAPH = graph_of(FILES)


PLUGIN = {name for name in GRAPH if name.split(".")[:2] == ["emulator", "plugin"]}


def test_it_imports_numpy_only():
    roots = {name.split(".")[0] for module in GRAPH.keys() - PLUGIN for name in GRAPH[module]}
    assert roots - set(sys.stdlib_module_names) - {"emulator"} == {"numpy"}


def test_nothing_of_it_imports_the_plugin():
    assert not any(GRAPH[module] & PLUGIN for module in GRAPH.keys() - PLUGIN)


def test_no_circle_of_modules():
    assert circle(GRAPH) == []


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
    assert imported(text, "emulator.machine") == {"emulator.machine.chunk"}
    closed = {**GRAPH, "emulator.machine.specials": imported(text, "emulator.machine")}
    assert set(circle(closed)) == {"emulator.machine.specials", "emulator.machine.chunk"}


def test_what_is_installed_is_the_emulator_with_its_samples():
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert [name.split(">")[0] for name in project["project"]["dependencies"]] == ["numpy"]
    chosen = project["tool"]["setuptools"]["packages"]["find"]["include"]
    for folder in {path.parent for path in FILES}:  # what setuptools' finder asks of a package
        assert (folder / "__init__.py").exists(), folder
        assert any(fnmatch(name_of(folder / "__init__.py"), pattern) for pattern in chosen)
    data = project["tool"]["setuptools"]["package-data"]["emulator"]
    assert {p.name for pattern in data for p in FOLDER.glob(pattern)} >= {"naive.ptx", "README.md"}
