"""The rooms of this repository and the arrows between them, read from the imports: CONTRIBUTING.md has the map."""

import re
from pathlib import Path

import nbformat
import pytest

from tests.imports import circle, graph, imports, modules

ROOT = Path(__file__).resolve().parent.parent
# Which rooms a room may import. Emulation is at the bottom, so every room may use it.
ARROWS = {
    "emulator": (),
    "figures": ("emulator",),
    "kernels": ("emulator",),
    "measure": ("kernels", "figures", "emulator"),
    "book": ("measure", "figures", "kernels", "emulator"),
}
# Of the emulator, drawings know the trace and the rules that count what an access costs, and nothing else.
COUNTS = re.compile(r"emulator(\.counts\b.*)?")


def against_the_map(edges: dict[str, set[str]]) -> list[str]:
    """Imports that no arrow of the map allows, in words."""
    found = []
    for module, targets in edges.items():
        room = module.split(".")[0]
        for target in sorted(targets):
            to = target.split(".")[0]
            if to != room and to not in ARROWS[room]:
                found.append(f"{module} imports {target}: no arrow runs from {room} to {to}")
            if (room, to) == ("figures", "emulator") and not COUNTS.fullmatch(target):
                found.append(f"{module} imports {target}: figures knows counts and traces only")
    return found


def of_rooms(root: Path) -> dict[str, set[str]]:
    """{module: modules of the rooms that it imports}."""
    return {
        name: {target for target in targets if target.split(".")[0] in ARROWS}
        for name, targets in graph(root, ARROWS).items()
    }


EDGES = of_rooms(ROOT)


def test_every_arrow_is_on_the_map():
    assert against_the_map(EDGES) == []


@pytest.mark.parametrize("room", ARROWS)
def test_no_modules_of_a_room_import_one_another_in_a_circle(room):
    inside = {
        module: {target for target in targets if target.split(".")[0] == room}
        for module, targets in EDGES.items()
        if module.split(".")[0] == room
    }
    assert len(inside) > 5
    assert circle(inside) == []


def test_no_circle_runs_through_several_rooms():
    rooms = {room: set() for room in ARROWS}
    for module, targets in EDGES.items():
        room = module.split(".")[0]
        rooms[room] |= {target.split(".")[0] for target in targets} - {room}
    assert circle(rooms) == []


def test_chapters_import_what_the_book_may():
    notebooks = sorted((ROOT / "book").rglob("*.ipynb"))
    assert len(notebooks) > 20
    known = modules(ROOT, ARROWS)
    for path in notebooks:
        for cell in nbformat.read(path, as_version=4).cells:
            lines = [line for line in cell.source.splitlines() if not line.startswith(("!", "%"))]
            if cell.cell_type != "code" or cell.source.startswith("%%") or "!git" in cell.source:
                continue
            for target in imports("\n".join(lines), "book.page", False, known):
                room = target.split(".")[0]
                assert room not in ARROWS or room == "book" or room in ARROWS["book"]
                assert room not in ARROWS or target in known, f"{path.name}: {target}"


def test_the_map_is_what_contributing_shows():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = re.findall(r"^(\w+) +-> +(.+)$", text, re.MULTILINE)
    assert {room: set(names.split(", ")) for room, names in shown} == {
        room: set(names) for room, names in ARROWS.items() if names
    }


# ---- the checks can fail


def write(root: Path, files: dict[str, str]) -> Path:
    for room in ARROWS:
        (root / room).mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"kernels/a.py": "import measure.timing"}, "from kernels to measure"),
        ({"kernels/a.py": "def f():\n    from measure import bench"}, "from kernels to measure"),
        ({"emulator/a.py": "from kernels.rungs import RUNGS"}, "from emulator to kernels"),
        ({"figures/a.py": "from kernels import gemm"}, "from figures to kernels"),
        ({"figures/a.py": "from emulator.machine import Chunk"}, "counts and traces only"),
        ({"measure/a.py": "from book.cells import timing"}, "from measure to book"),
    ],
)
def test_an_arrow_against_the_map_is_found(tmp_path, files, words):
    assert words in " ".join(against_the_map(of_rooms(write(tmp_path, files))))


def test_what_the_map_allows_is_not_faulted(tmp_path):
    files = {
        "measure/a.py": "from kernels import b\nimport emulator, figures.c, numpy",
        "kernels/b.py": "from __future__ import annotations\nfrom pathlib import Path",
        "figures/c.py": "from emulator.counts.trace import Access",
    }
    assert against_the_map(of_rooms(write(tmp_path, files))) == []


@pytest.mark.parametrize(
    "files",
    [
        {"kernels/a.py": "from .b import x", "kernels/b.py": "from . import a"},
        {"kernels/a.py": "from .b import x",
         "kernels/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import y"},
        {"kernels/a.py": "from kernels.b import x", "kernels/b.py": "import kernels.c",
         "kernels/c.py": "def f():\n    from .a import y"},
    ],
)  # fmt: skip
def test_a_circle_is_found(tmp_path, files):
    found = circle(of_rooms(write(tmp_path, files)))
    assert found[0] == found[-1] and set(found) == {"kernels.a", "kernels.b", "kernels.c"} & {
        name.removesuffix(".py").replace("/", ".") for name in files
    }
