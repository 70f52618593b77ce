"""Mistakes seeded into the ladder's kernels, and right changes that look like mistakes: a benchmark for whatever looks for them.

Each rung has a file here, of three tables. `drawn` came from a rule: of all statements that synchronise, a random draw
says which one is deleted, moved by one statement, or weakened (a barrier of the block becomes one of the warp, a wait
leaves one group more, a count is off by one, an `if` lets a part through). `written` were thought up. `twins` are right.
All were written before anybody had looked at what the emulator says of them.

A row has the words of the mistake and what it changes, the first place of each, in the kernel with its headers in place
of their `#include`. `judge` runs it on the emulator; `python -m measure mistakes` runs it on a GPU.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import emulator

from ..build import Build, build
from ..check import SCALARS, check_one, edge_sizes, persistent_case
from ..rungs import RUNGS, find
from .rule import changed, place

FOLDER = Path(__file__).resolve().parent
TABLES = ("drawn", "written", "twins")
HELD_OUT = "held_out"
INCLUDE = re.compile(r'^#include "(\w+\.cuh)"$', re.MULTILINE)


@dataclass(frozen=True)
class Seeded:
    """A rung with some of its text changed. `table` is one of TABLES, HELD_OUT, or "rung" for one as it is."""

    rung: str
    table: str
    words: str
    setting: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[tuple[str, str], ...] = ()
    kind: str = ""  # one of `names.NAMES`; "" of what is right
    reason: str = ""  # why the emulator does not see it
    drawn: tuple[str, str, int] | None = None  # way, statement, and which of those of these words

    @property
    def key(self) -> str:
        return f"{self.rung}: {self.words}"

    @property
    def wrong(self) -> bool:
        """Whether it is a mistake."""
        return self.table in ("drawn", "written", HELD_OUT)

    @property
    def arch(self) -> int:
        """What it is compiled for on the emulator."""
        return max(80, find(self.rung).min_arch)


@dataclass(frozen=True)
class Case:
    """In what a row is run: complete macros, (M, N, K), alpha and beta."""

    macros: Mapping[str, int]
    size: tuple[int, int, int]
    alpha: float
    beta: float


@dataclass(frozen=True)
class Verdict:
    """By what a kernel is found wrong. how: "hazard", "error", "result", or "" for not at all; `place`: "file.cu:12", ""
    where none is known; `case`: in which one.
    """

    how: str = ""
    kind: str = ""
    words: str = ""
    place: str = ""
    case: int = -1


@cache
def seeded() -> tuple[Seeded, ...]:
    """All rows, in the ladder's order."""
    found = []
    for rung in RUNGS:
        path = FOLDER / f"{rung}.toml"
        held = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for table in TABLES:
            found += [_row(rung, table, row) for row in held.get(table, ())]
    return tuple(found)


@cache
def held_out() -> tuple[Seeded, ...]:
    """Mistakes written when the emulator was done with the others: the file is as it was before it was asked."""
    held = tomllib.loads((FOLDER / f"{HELD_OUT}.toml").read_text(encoding="utf-8"))
    return tuple(_row(row["rung"], HELD_OUT, row) for row in held["row"])


def _row(rung: str, table: str, row: Mapping) -> Seeded:
    changes = tuple((one["right"], one["wrong"]) for one in row.get("change", ()))
    drawn = (row["way"], row["statement"], row.get("which", 0)) if "way" in row else None
    words, setting = row.get("words", _words(drawn)), row.get("setting", {})
    about = (row.get("kind", ""), row.get("reason", ""))
    return Seeded(rung, table, words, setting, changes, *about, drawn)


def _words(drawn: tuple[str, str, int] | None) -> str:
    way, statement, which = drawn or ("", "", 0)
    return f"{way}: {statement}{f' ({which + 1})' if which else ''}"


def unchanged() -> tuple[Seeded, ...]:
    """Every rung and setting that `seeded` changes, as it is."""
    found = {}
    for row in seeded():
        named = ", ".join(f"{name}={value}" for name, value in row.setting.items())
        words = f"as it is{', ' if named else ''}{named}"
        found[row.rung, words] = Seeded(row.rung, "rung", words, row.setting)
    return tuple(found.values())


def whole(rung: str) -> str:
    """The source of a rung, its own headers in place of their `#include`."""
    path, seen = find(rung).path, set()

    def header(found: re.Match) -> str:
        if found[1] in seen:
            return ""
        seen.add(found[1])
        return INCLUDE.sub(header, (path.parent / found[1]).read_text(encoding="utf-8"))

    return INCLUDE.sub(header, path.read_text(encoding="utf-8")).replace("#pragma once\n", "")


def source(row: Seeded) -> str:
    """The changed source, as a whole."""
    text = whole(row.rung)
    for right, wrong in row.changes:
        if right not in text:
            raise ValueError(f"{row.key}: {row.rung} no longer has {right!r}")
        text = text.replace(right, wrong, 1)
    if row.drawn:
        way, statement, which = row.drawn
        text = changed(text, place(text, statement, which), way) or text
    return text


def cases(row: Seeded) -> list[Case]:
    """Where a mistake is looked for: the edges of the tiles, and several tiles per block."""
    values = find(row.rung).resolve(row.setting, row.arch)
    found = [(values, size) for size in edge_sizes(row.rung, values, row.arch)[2:]]
    several = persistent_case(row.rung, values, row.arch)
    if several and values.get("SPLIT", 0) == 0:
        rounds = [(several[0], size) for size in several[1]]
        found = rounds if "SPLIT" in values else [found[0], *rounds, *found[1:]]
    return [
        Case(macros, size, *SCALARS[turn % len(SCALARS)])
        for turn, (macros, size) in enumerate(found)
    ]


def made(row: Seeded, case: Case, arch: int | None = None) -> Build:
    """The changed kernel, compiled for `arch` (else as on the emulator). BuildError where it does not compile."""
    rung = find(row.rung)
    return build(source(row), case.macros, rung.target(str(arch or row.arch)), name=rung.file)


def judge(row: Seeded, only: tuple[int, ...] | None = None) -> Verdict:
    """What becomes of a row on the emulator, in all cases or in these; it ends at the first finding."""
    for number, case in enumerate(cases(row)):
        if only is not None and number not in only:
            continue
        try:
            right, hazards = check_one(
                row.rung, case.size, case.macros, case.alpha, case.beta, arch=row.arch, built=made(row, case)
            )  # fmt: skip
        except emulator.ExecutionError as error:
            words = str(error).splitlines()[0]
            return Verdict("error", type(error).__name__, words, _place(error), number)
        if hazards:
            first = hazards[0]
            return Verdict("hazard", first.kind, str(first), _place(first), number)
        if not right.ok:
            return Verdict("result", "wrong", str(right), "", number)
    return Verdict()


def _place(found) -> str:
    return ":".join(map(str, getattr(found, "source", None) or ()))
