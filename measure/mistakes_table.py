"""The benchmark of seeded mistakes, counted: what the emulator, a test of the result and compute-sanitizer make of each row.

`record_emulated` stores what the emulator says (`results/mistakes-emulator.json`), with what it said at first;
`measure.mistakes` stores what a GPU says. `scores` counts both. The rows that were held out count apart.
"""

from __future__ import annotations

import json
import platform
import re
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernels.gpus import gpu
from kernels.mistakes import HELD_OUT, Seeded, held_out, judge, seeded, unchanged
from kernels.mistakes.names import LATER, NAMES, REPORTS
from kernels.table import table

from .compute_sanitizer import TOOLS
from .mistakes import JOBS, compile_all, digest, record
from .progress import progress
from .provenance import FOLDER, label, rows_in, shown, store

FILE = FOLDER / "mistakes-emulator.json"
METHOD = (
    "kernels.mistakes.judge: every case of a row, until the first finding; seconds of processor"
)


@dataclass
class Score:
    """Of one judge. `run` mistakes, so many `caught`, named by their `kind`, and that with a `line`; `right` rows that are no
    mistakes, with so many `alarms`; `silent`: runs that hung, faulted or failed without a report; seconds of each run.
    """

    name: str
    run: int = 0
    caught: int = 0
    named: int = 0
    line: int = 0
    right: int = 0
    alarms: int = 0
    silent: int = 0
    seconds: list[float] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    alarmed: list[str] = field(default_factory=list)

    def count(self, row: Mapping, caught: bool, named: bool, place: bool, seconds: float) -> None:
        key = _key(row)
        self.seconds.append(seconds)
        if row["table"] in ("drawn", "written", HELD_OUT):
            self.run += 1
            self.caught += caught
            self.named += caught and named
            self.line += caught and named and place
            self.missed += [] if caught else [key]
        else:
            self.right += 1
            self.alarms += caught
            self.alarmed += [key] if caught else []


def emulated() -> dict[str, dict]:
    """{key: stored row} of what the emulator said."""
    return {_key(row): row for row in rows_in(FILE)}


def record_emulated(rungs=(), seconds: float = float("inf"), again: bool = False) -> Path:
    """Judge the rows of these rungs (all) that are not stored, or changed since; each is stored with what was said of it at
    first.
    """
    end = time.monotonic() + seconds
    held = emulated()
    wanted = [row for row in (*seeded(), *held_out()) if not rungs or row.rung in rungs]
    for number, row in enumerate(wanted):
        progress(number, len(wanted), row.key)
        mark, old = digest(row), held.get(row.key, {})
        if (old.get("digest") == mark and not again) or time.monotonic() > end:
            continue
        begun = time.process_time()
        found = judge(row)
        said = {"how": found.how, "found": found.kind, "said": found.words, "place": found.place}
        said |= {"case": found.case, "seconds": round(time.process_time() - begun, 2)}
        named = {"named": found.kind in _names(row.kind), "place": found.place}
        first = old.get("first", {"how": found.how, "found": found.kind, **named})
        about = {"rung": row.rung, "words": row.words, "table": row.table, "kind": row.kind}
        held[row.key] = {**about, "digest": mark, **said, "first": first}
        _store(held)
    progress(len(wanted), len(wanted))
    return FILE


def _store(held: Mapping[str, dict]) -> None:
    rows = [held[row.key] for row in (*seeded(), *held_out()) if row.key in held]
    store(FILE, METHOD, {"python": platform.python_version()}, rows=rows)


def scores(stored: Mapping | None = None) -> list[Score]:
    """The emulator's, at first and now, of the rows that it was mended by and of those held out; then a GPU's, where one was
    recorded (or is given): of the result, of each tool, of any tool; and the emulator's of the same rows.
    """
    rows = emulated()
    apart = {True: [], False: []}
    for row in rows.values():
        apart[row["table"] == HELD_OUT].append(row)
    found = [_emulator(apart[False], "emulator, at first", at_first=True)]
    found.append(_emulator(apart[False], "emulator"))
    found.append(_emulator(apart[True], "emulator, held-out rows, at first", at_first=True))
    found.append(_emulator(apart[True], "emulator, held-out rows"))
    stored = stored or recording_of_gpu()
    if stored is None:
        return found
    known = {row.key: row for row in (*seeded(), *unchanged())}
    ran = [row for row in stored["rows"] if set(row["runs"]) == {"result", *TOOLS}]
    ran = [row for row in ran if _key(row) in known]
    as_it_is = {_setting(known[_key(row)]): row["runs"] for row in ran if row["table"] == "rung"}
    result, tools = Score("test of the result"), {name: Score(name) for name in TOOLS}
    any_tool = Score("any of the four")
    for row in ran:
        about, plain = known[_key(row)], row["runs"]["result"]
        result.count(row, plain["how"] != "right", False, False, plain["seconds"])
        right = as_it_is.get(_setting(about), {}) if about.wrong else {}
        said = [_said(row["runs"][name], about.kind, right.get(name)) for name in TOOLS]
        for name, one in zip(TOOLS, said, strict=True):
            tools[name].count(row, *one, row["runs"][name]["seconds"])
            tools[name].silent += row["runs"][name]["how"] in ("hung", "fault", "failed")
        any_tool.count(row, *max(said), sum(row["runs"][name]["seconds"] for name in TOOLS))
    keys = {_key(row) for row in ran}
    same = [row for key, row in rows.items() if key in keys]
    found += [_emulator(same, "emulator, rows of this GPU"), result, *tools.values(), any_tool]
    return found


def _emulator(rows, name: str, at_first: bool = False) -> Score:
    score = Score(name)
    for row in rows:
        said = {**row, **row["first"]} if at_first else row
        names = NAMES.get(row["kind"], ()) if at_first else _names(row["kind"])
        named = said["found"] in names
        if at_first:  # of later rows, by all the names that there were then
            named = row["first"].get("named", named)
        score.count(row, bool(said["how"]), named, bool(said["place"]), row["seconds"])
    return score


def _names(kind: str) -> tuple[str, ...]:
    """The kinds of hazard or error that name a mistake of this kind."""
    return NAMES.get(kind, ()) + LATER.get(kind, ())


def _key(row: Mapping) -> str:
    return f"{row['rung']}: {row['words']}"


def _setting(row: Seeded) -> tuple:
    return row.rung, *sorted(row.setting.items())


def _said(run: Mapping, kind: str, right: Mapping | None) -> tuple[bool, bool, bool]:
    """Whether a tool's run caught a mistake of this kind, named it, and named a line of a kernel. What it says of the kernel as
    it is (`right`), too, is about no mistake.
    """
    if run["how"] != "reported":
        return False, False, False
    alike = right["words"] if right and right["how"] == "reported" else ()
    words = [one for one in run["words"] if one not in alike]
    named = any(
        re.match(begins, one) and kind in kinds for begins, kinds in REPORTS for one in words
    )
    return bool(words), named, bool(run["places"])


def recording_of_gpu() -> dict | None:
    """What the book's GPU was recorded to say, None where nothing was."""
    names = [path.stem for path in FOLDER.glob("mistakes-*.json") if path != FILE]
    if not names:
        return None
    return json.loads((FOLDER / f"{shown(names)}.json").read_text(encoding="utf-8"))


HEADINGS = (
    "",
    "mistakes",
    "caught",
    "named",
    "with line",
    "right rows",
    "false alarms",
    "no verdict",
    "s each",
)


def cells(score: Score) -> list:
    """A row of the table: counts, and the median of seconds."""
    named = "" if score.name == "test of the result" else score.named
    lines = "" if score.name == "test of the result" else score.line
    middle = statistics.median(score.seconds) if score.seconds else 0.0
    counts = [score.run, score.caught, named, lines, score.right, score.alarms, score.silent]
    return [score.name, *counts, f"{middle:.1f}"]


def show(stored: Mapping | None = None) -> str:
    """The table as text, and what each of the emulator's misses escapes by."""
    stored = stored or recording_of_gpu()
    lines = [table(list(HEADINGS), [cells(score) for score in scores(stored)], left=1)]
    if stored is None:
        lines.append("GPU: not yet run")
    else:
        lines.append(f"{label(stored)}, compute-sanitizer {stored['machine']['compute_sanitizer']}")
    reasons = {row.key: row.reason for row in seeded()}
    now = next(score for score in scores(stored) if score.name == "emulator")
    lines += [f"not caught: {key}: {reasons.get(key) or 'no reason known'}" for key in now.missed]
    lines += [f"false alarm: {key}" for key in now.alarmed]
    return "\n".join(lines)


def run(options) -> int:
    if options.compile_only:
        count, refused = compile_all(options.arch, options.jobs)
        print(*refused, sep="\n")
        print(f"{count} builds are in the cache")
        return 1 if refused else 0
    if options.emulate or gpu() is None:
        if options.emulate:
            print(record_emulated(options.rungs, options.seconds, options.again))
        print(show())
        return 0
    path, left = record(options.seconds, options.jobs or JOBS, options.again)
    print(path)
    if left:
        print(f"left out: {len(left)}", *left, sep="\n  ")
    return 0


def add_options(command) -> None:
    command.add_argument(
        "--emulate", action="store_true", help="judge the rows anew on the emulator, too"
    )
    command.add_argument("--seconds", type=float, default=500.0, help="ends by then (500)")
    command.add_argument("--jobs", type=int, help=f"processes side by side ({JOBS})")
    command.add_argument("--again", action="store_true", help="run what is recorded already too")
    command.add_argument("--compile-only", action="store_true", help="fill the cache; needs no GPU")
    command.add_argument("--arch", type=int, default=90, help="compile for this architecture (90)")
