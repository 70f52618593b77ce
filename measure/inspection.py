"""Somebody's kernel on the emulator: what each line costs, where banks and sectors are wasted, what races.

`python -m measure inspect FILE.cu|FILE.ptx --grid 4 --block 256 --arg f32[1024]=random:1 ...` prints it, and
`--html REPORT.html` writes it as a page that needs no network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

import figures
from emulator import EmulatorError, ExecutionError, Module, TensorMap, Trace
from emulator.arguments import argument
from kernels.build import Build, build
from kernels.errors import BuildError
from kernels.table import table

from .merged_loads import merged_loads
from .model.of_trace import bound
from .model.rates import HIGHEST
from .others_source import INCLUDE, device_source, parameter_names

SECTOR = 32  # bytes
SECONDS = 120.0
MAP = "map:BOX:TYPE[SHAPE]=WHAT"
WASTE = 0.6  # of the bytes in the sectors: a load that uses less is named


class CannotInspect(ValueError):
    """Why a kernel was not run, in one line."""


@dataclass(frozen=True)
class Finding:
    """A line and what it wastes. needed: what the same bytes would take without waste, per request."""

    line: int
    opcode: str
    requests: int
    taken: int
    needed: int
    text: str

    def each(self, count: int) -> str:
        return f"{count / self.requests:.3g}" if self.requests else "-"


@dataclass(frozen=True)
class Inspection:
    """One launch, and what it shows. source: the text whose lines `costs` counts, CUDA or PTX. merged: what
    `merged_loads` says of it, None where that is not certain or there is no machine code.
    """

    name: str
    entry: str
    trace: Trace = field(repr=False)
    source: str = field(repr=False)
    is_ptx: bool
    args: tuple = field(repr=False)
    arguments: tuple[str, ...]
    left_out: tuple[str, ...]
    built: Build | None = field(repr=False, default=None)
    ptx_entry: str = ""
    merged: Mapping[int, int] | None = None

    def _line(self, row) -> int | None:
        if self.is_ptx:
            return row.ptx_line
        return next((at for file, at in row.frames if file == self.name), None)

    def _findings(self, rows) -> list[Finding]:
        """A finding per line, of (row, requests, taken, needed)."""
        text = self.source.splitlines()
        found: dict[int, Finding] = {}
        for row, requests, taken, needed in rows:
            line = self._line(row) or 0
            words = text[line - 1].strip() if 0 < line <= len(text) else "(a header)"
            old = found.get(line, Finding(line, row.opcode, 0, 0, 0, words))
            found[line] = Finding(
                line, old.opcode, old.requests + requests, old.taken + taken, old.needed + needed, words
            )  # fmt: skip
        return sorted(found.values(), key=lambda f: f.needed - f.taken)

    @cached_property
    def conflicts(self) -> list[Finding]:
        """Lines whose accesses to shared memory take more wavefronts than they need, worst first."""
        return self._findings(
            (row, row.warps, row.shared_wavefronts, row.shared_wavefronts_ideal)
            for row in self.trace.instructions
            if row.shared_wavefronts > row.shared_wavefronts_ideal > 0
        )

    @cached_property
    def wasted(self) -> list[Finding]:
        """Lines that move more sectors than hold what they use, worst first."""
        return self._findings(
            (row, row.global_requests, row.global_sectors, -(-row.bytes // SECTOR))
            for row in self.trace.instructions
            if row.global_sectors * SECTOR * WASTE > row.bytes > 0
            and row.global_sectors > row.global_requests
        )

    @cached_property
    def machine_loads(self) -> dict[int, dict[str, int]]:
        """Of each line of which ptxas merged loads from shared memory: how many warps executed, and their
        wavefronts, by PTX and by machine code.
        """
        columns = ("warps", "machine_loads", "shared_wavefronts", "machine_wavefronts")
        rows = [
            r for r in self.trace.instructions if r.opcode.startswith("ld.") and r.shared_wavefronts
        ]
        found = self._sums(rows, dict(zip(columns, columns, strict=True)))
        return {at: kept for at, kept in found.items() if kept["warps"] != kept["machine_loads"]}

    def _sums(self, rows, columns: Mapping[str, str]) -> dict[int, dict[str, int]]:
        """{line: {name: sum of its column}}; 0 is the line of what stands in a header."""
        found: dict[int, dict[str, int]] = {}
        for row in rows:
            kept = found.setdefault(self._line(row) or 0, dict.fromkeys(columns, 0))
            for name, column in columns.items():
                kept[name] += getattr(row, column)
        return found

    def machine_text(self) -> str:
        """`machine_loads` for a terminal."""
        if self.built is None:
            return "merged loads from shared memory: not known, since PTX has no machine code"
        if self.merged is None:
            return "merged loads from shared memory: not mapped to machine code"
        if not self.machine_loads:
            return "merged loads from shared memory: none"
        text = self.source.splitlines()
        cells = [
            [str(at), *(f"{count:,}" for count in kept.values()), text[at - 1].strip()[:70]]
            for at, kept in sorted(self.machine_loads.items())
        ]
        head = ["line", "PTX loads", "machine loads", "PTX wavefronts", "machine wavefronts"]
        lines = f"{len(cells)} line" + "s" * (len(cells) > 1)
        return f"merged loads from shared memory: {lines}\n{table([*head, 'source'], cells)}"

    def bound_text(self) -> str:
        """The least time on a named GPU, from the counts alone: a bound, no time."""
        parts = bound(self.trace, HIGHEST, self.merged is not None)
        if not parts:
            return "bound: none, since nothing is counted here of which a rate is known"
        first, *more = (f"{part.resource} {1e3 * part.ms:.3g} µs" for part in parts)
        also = f"; {', '.join(more)}" if more else ""
        left = ", loads from shared memory left out" if self.merged is None else ""
        return f"bound on an NVIDIA H200 at {HIGHEST} GHz (no time: at least this, by counts{left}): {first}{also}"

    @property
    def hazards(self) -> list:
        return self.trace.hazards

    @property
    def costs(self) -> dict[int, dict[str, int]]:
        """What each line of `source` cost, as `figures.annotated_source` takes it."""
        columns = {"warps": "warps", "sectors": "global_sectors"}
        columns |= {"wavefronts": "shared_wavefronts", "ideal": "shared_wavefronts_ideal"}
        rows = [row for row in self.trace.instructions if self._line(row) is not None]
        return self._sums(rows, columns)

    def annotated(self, title: str | None = None):
        """The source with what each line cost."""
        return figures.annotated_source(self.costs, self.source, title=title)

    def head(self) -> list[str]:
        """What ran, in a few lines."""
        trace = self.trace
        lines = [f"{self.name}: {self.entry}, grid {_size(trace.grid)}, block {_size(trace.block)}"]
        if self.built is not None:
            report = self.built.reports[self.ptx_entry]
            words = f"sm_{self.built.arch}: {report.registers} registers per thread"
            words += f", {report.shared_bytes:,} bytes of static shared memory"
            if report.spill_stores + report.spill_loads:
                words += f", {report.spill_stores + report.spill_loads} bytes spilled"
            lines.append(words)
        lines += [f"argument {at}: {said}" for at, said in enumerate(self.arguments)]
        if self.left_out:
            lines.append(f"left out, since the GPU does not run it: {', '.join(self.left_out)}")
        lines.append(
            f"{trace.total('warps'):,} instructions of warps, {trace.total('global_sectors'):,} sectors, "
            f"{trace.total('shared_wavefronts'):,} wavefronts"
        )
        return lines

    def text(self) -> str:
        """All that was found, for a terminal."""
        parts = ["\n".join(self.head()), self.annotated().text]
        parts.append(_listed("bank conflicts", "wavefronts", self.conflicts))
        parts += [self.machine_text(), self.bound_text()]
        parts.append(_listed("sectors that are not used", "sectors", self.wasted))
        found = [f"  {hazard}" for hazard in self.hazards]
        parts.append("\n".join([f"hazards: {len(found) or 'none'}", *found]))
        return "\n\n".join(parts)

    def html(self) -> str:
        """All that was found, as a page that needs nothing else."""
        from .inspection_page import page

        return page(self)

    def __repr__(self) -> str:
        return self.text()


def inspect(
    source: str | Path,
    grid: Sequence[int] | int,
    block: Sequence[int] | int,
    args: Sequence,
    entry: str | None = None,
    shared_bytes: int = 0,
    arch: int | str = 80,
    macros: Mapping[str, int] | None = None,
    name: str | None = None,
    seconds: float | None = SECONDS,
    cooperative: bool = False,
    cluster: Sequence[int] | None = None,
) -> Inspection:
    """Compile (unless it is PTX), run on the emulator, and look. Arrays in `args` are changed in place.

    source: a path of a `.cu` or `.ptx` file, or the text. entry: the kernel's name in the source; an instance of a
    template is "name<256>". CannotInspect says in one line why a kernel was not compiled or does not run.
    """
    text, name, folder = _read(source, name)
    is_ptx = name.endswith(".ptx")
    built, left_out = None, ()
    try:
        if not is_ptx:
            prepared = device_source(text, entry)
            left_out = prepared.left_out
            local = INCLUDE.search(text) and '#include "' in text
            options = ("-default-device", *prepared.options, *([f"-I{folder}"] if local else []))
            built = build(prepared.text, macros, arch, name, options, cache=not local)
        module = Module(built.ptx if built else text)
        ptx_entry = _entry(module, entry, name, () if is_ptx else prepared.templates)
        shown = text if not is_ptx else text.rstrip("\0")
        names = [] if is_ptx else parameter_names(text, _written(ptx_entry))
        merged = merged_loads(built, ptx_entry) if built else None
        trace = module.launch(
            ptx_entry, grid, block, list(args), shared_bytes,
            max_seconds=seconds, cooperative=cooperative, cluster=cluster, merged=merged,
        )  # fmt: skip
    except BuildError as error:
        old = "CUtensorMap" in text and int(re.sub(r"\D", "", str(arch)) or 0) < 90
        hint = "; tensor maps need --arch 90" if old else ""
        raise CannotInspect(_build_error(error, name) + hint) from None
    except (EmulatorError, TypeError, ValueError) as error:
        raise CannotInspect(_run_error(error, name)) from None
    said = tuple(
        f"{names[at] + ', ' if len(names) == len(args) else ''}{_said(arg)}"
        for at, arg in enumerate(args)
    )
    return Inspection(
        name, _written(ptx_entry), trace, shown, is_ptx, tuple(args), said, left_out, built, ptx_entry,
        merged,
    )  # fmt: skip


def _read(source: str | Path, name: str | None) -> tuple[str, str, Path]:
    """The text, what to call it, and the folder of its headers."""
    if isinstance(source, str) and ("\n" in source or "{" in source):
        looks_like_ptx = re.search(r"^\s*\.version\b", source, re.MULTILINE)
        return source, name or ("kernel.ptx" if looks_like_ptx else "kernel.cu"), Path.cwd()
    path = Path(source)
    if path.suffix not in (".cu", ".ptx"):
        raise CannotInspect(f"{path}: a .cu or a .ptx file is expected")
    try:
        return path.read_text(encoding="utf-8"), name or path.name, path.resolve().parent
    except FileNotFoundError:
        raise CannotInspect(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise CannotInspect(f"{path} is not text") from None


def _written(symbol: str) -> str:
    """A kernel's name as its author wrote it: `_Z6reducePfi` is `reduce`, `_ZN3abc6reduceEPf` too."""
    if not symbol.startswith("_Z"):
        return symbol
    rest, name = symbol[2:], symbol
    rest = rest[1:] if rest.startswith("N") else rest
    while length := re.match(
        r"[LS]?(\d+)", rest
    ):  # Itanium C++ ABI 5.1: <length><name>, nested or not
        start = length.end()
        name, rest = rest[start : start + int(length[1])], rest[start + int(length[1]) :]
    return name


def _entry(module: Module, asked: str | None, name: str, templates: Sequence[str]) -> str:
    there = {symbol: _written(symbol) for symbol in module.entries}
    if not there:
        hint = (
            f": {templates[0]} is a template, name an instance, as in --entry '{templates[0]}<...>'"
            if templates
            else ""
        )
        raise CannotInspect(f"{name} has no kernel{hint}")
    wanted = re.sub(r"\s*<.*", "", asked) if asked else None
    found = [s for s, written in there.items() if wanted in (None, s, written)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(dict.fromkeys(there.values()))
    if not found:
        raise CannotInspect(f"--entry {asked}: {name} has no such kernel; it has {listed}")
    if wanted and len(found) > 1:
        raise CannotInspect(f"--entry {asked}: several; name one of {', '.join(found)}")
    raise CannotInspect(f"--entry: {name} has several kernels: {listed}")


def _build_error(error: BuildError, name: str) -> str:
    wrong = [d for d in error.diagnostics if d.severity != "warning"]
    if not wrong:
        return f"{name} does not compile: {str(error).splitlines()[-1]}"
    first = wrong[0]
    where = f"{first.file}:{first.line}" if first.line else name
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    message = " ".join(first.message.split())[:200]
    if missing := re.search(r'cannot open source file "([^"]+)"', message):
        return f"{where}: the header {missing[1]} is not here{more}"
    return f"{where}: {message}{more}"


def _run_error(error: Exception, name: str) -> str:
    kind = type(error).__name__
    message = " ".join(str(error).splitlines()[0].split())
    if isinstance(error, CannotInspect):
        return message
    if isinstance(error, ExecutionError):
        where = (
            f" at {error.source[0]}:{error.source[1]}"
            if error.source
            else f" at PTX line {error.ptx_line}"
        )
        who = f", block {error.block}" if error.block is not None else ""
        who += f", thread {error.thread}" if error.thread is not None else ""
        return f"{kind}: {message}{where if error.ptx_line else ''}{who}"
    if isinstance(error, EmulatorError):
        return f"{name}: {kind}: {message}"
    message = message.replace("pass a TensorMap of it", f"pass a TensorMap of it, --arg {MAP}")
    return re.sub(r"\b_Z\w+", lambda symbol: _written(symbol[0]), message)


def _said(arg) -> str:
    if isinstance(arg, np.ndarray):
        return f"{arg.dtype} [{', '.join(map(str, arg.shape))}]"
    if isinstance(arg, TensorMap):
        boxes = " x ".join(map(str, arg.box))
        return f"a tensor map of {_said(arg.array)}, boxes of {boxes}, swizzle {arg.swizzle}"
    return f"{getattr(arg, 'dtype', type(arg).__name__)} {arg}"


def _size(extent: Sequence[int]) -> str:
    return " x ".join(map(str, [*extent[:1], *(n for n in extent[1:] if n > 1)]))


def _listed(what: str, unit: str, found: list[Finding]) -> str:
    if not found:
        return f"{what}: none"
    head = ["line", "instruction", "requests", f"{unit} per request", "would do", "source"]
    cells = [
        [str(f.line), f.opcode, f"{f.requests:,}", f.each(f.taken), f.each(f.needed), f.text[:70]]
        for f in found
    ]
    lines = f"{len(found)} line" + "s" * (len(found) > 1)
    return f"{what}: {lines}\n{table(head, cells, left=2)}"


def run(options) -> int:
    """`python -m measure inspect`: 1 where there are hazards."""
    args = [argument(text) for text in options.arg]
    if options.html and not options.html.resolve().parent.is_dir():
        raise ValueError(f"--html {options.html}: no file can be written there")
    if wrong := [at for at in options.show if at >= len(args)]:
        raise ValueError(f"--show {wrong[0]}: there are {len(args)} arguments, from 0")
    named = ("entry", "arch", "seconds", "cooperative", "cluster")
    how = {name: getattr(options, name) for name in named}
    how |= {"shared_bytes": options.shared, "macros": dict(options.define)}
    found = inspect(options.file, options.grid, options.block, args, **how)
    print(found.text())
    with np.printoptions(threshold=40, precision=5):
        for at in options.show:
            print(f"\nargument {at} afterwards:\n{getattr(args[at], 'array', args[at])}")
    if options.html:
        options.html.write_text(found.html(), encoding="utf-8")
        print(f"\nwritten: {options.html}")
    return 1 if found.hazards else 0
