"""What modules import, read from their text, and whether they do so in a circle."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path


def modules(root: Path, rooms: Iterable[str]) -> dict[str, Path]:
    """{dotted name: file} of every module in the rooms; a package goes by its folder's name."""
    found = {}
    for room in rooms:
        for path in sorted((root / room).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(text: str, module: str, is_package: bool, known: Container[str]) -> set[str]:
    """Modules that an `import` names, wherever it stands, those that only type checkers read among them.

    `from x import y` is of the module x.y where there is one, else of x.
    """
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (node.module or "").split(".") if node.module else []
            if node.level:
                above = module.split(".")
                above = above[: len(above) - node.level + is_package]
                base = above + base
            for alias in node.names:
                whole = ".".join([*base, alias.name])
                found.add(whole if whole in known else ".".join(base))
    return found


def graph(root: Path, rooms: Iterable[str]) -> dict[str, set[str]]:
    """{module of the rooms: what it imports}."""
    known = modules(root, rooms)
    return {
        name: imports(path.read_text(encoding="utf-8"), name, path.stem == "__init__", known)
        for name, path in known.items()
    }


def circle(edges: dict[str, set[str]]) -> list[str]:
    """Modules that import one another in a circle, in order; [] when there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as found:
        return found.args[1]
    return []
