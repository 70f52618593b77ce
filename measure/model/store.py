"""The counts of every recorded configuration, kept in `results/model/counts-sm_90.json`, since counting one takes
seconds.

`python -m measure model --count` counts what the recordings need and the file lacks. Counts hang on the compiler,
which the file names, and on the kernels' sources: `tests/measure/test_model.py` counts some anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path

from kernels.nvrtc import compiler
from measure.provenance import FOLDER, rows_in, store

from .counts import Counts, count

ARCH = 90
METHOD = (
    "instructions of the main loop from the cubin, the rest by the emulator on one tile at two K"
)


def path(arch: int = ARCH) -> Path:
    return FOLDER / "model" / f"counts-sm_{arch}.json"


def key(rung: str, macros: Mapping[str, int]) -> tuple:
    """What a configuration is called in the file."""
    return rung, tuple(sorted(macros.items()))


@cache
def stored(arch: int = ARCH) -> dict[tuple, Counts]:
    """All counts in the file, by `key`."""
    names = {field.name for field in fields(Counts)}
    read = [Counts(**{name: row[name] for name in names}) for row in rows_in(path(arch))]
    return {key(one.rung, one.macros): one for one in read}


def counted(rung: str, macros: Mapping[str, int]) -> Counts:
    """The counts of a configuration: stored ones, else counted now."""
    return stored().get(key(rung, macros)) or count(rung, macros, ARCH)


def complete(wanted: Iterable[tuple[str, Mapping[str, int]]]) -> Path:
    """Counts what the file lacks, and writes it."""
    found, new = dict(stored()), 0
    for rung, macros in wanted:
        if key(rung, macros) not in found:
            try:
                found[key(rung, macros)] = count(rung, macros, ARCH)
                new += 1
            except (
                Exception
            ) as error:  # what the emulator cannot run at this size is left out, by name
                print(f"{rung} {dict(macros)}: {type(error).__name__}: {error}", file=sys.stderr)
            if new and new % 20 == 0:
                _write(found)
    return _write(found)


def _write(found: Mapping[tuple, Counts]) -> Path:
    rows, nvrtc = [_row(found[name]) for name in sorted(found)], compiler()
    stored.cache_clear()
    machine = {"gpu": "none", "nvrtc": f"{nvrtc.major}.{nvrtc.minor}"}
    return store_lines(path(), METHOD, machine, rows)


def store_lines(at: Path, method: str, machine: Mapping, rows: list[dict]) -> Path:
    """As `provenance.store`, with a line per row."""
    store(at, method, machine, None, rows=rows)
    text = at.read_text(encoding="utf-8")
    at.write_text(text.replace('{"rung"', '\n{"rung"'), encoding="utf-8")
    return at


def _row(one: Counts) -> dict:
    row = asdict(one)
    row["work"] = {
        name: [round(float(part), 4) for part in parts]
        for name, parts in one.work.items()
        if any(parts)
    }
    return row
