"""What the compiler says: messages against source lines, and ptxas's report on each kernel.

Files are named as they are included, wherever the compile ran.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

from .errors import Diagnostic

MESSAGE = re.compile(
    r"^(?P<file>[^\s(]+)\((?P<line>\d+)\): (?:catastrophic )?(?P<severity>error|warning)[^:]*: (?P<text>.*)$"
)
PTXAS_MESSAGE = re.compile(
    r"^\s*ptxas (?P<where>.*?;?)\s*(?P<severity>error|fatal|warning)\s*: (?P<text>.*)$"
)
COMPILING = re.compile(r"Compiling entry function '(?P<entry>[^']+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
BARRIERS = re.compile(r"used (\d+) barriers")
SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
PTX_FILE = re.compile(r'^(\s*\.file\s+\d+\s+")([^"]*)(")', re.MULTILINE)
WGMMA_NOTE = re.compile(r"(?m)\((C75\d\d)\) (.+?)(?: in function '.*')?$")
PTX_ENTRY = re.compile(r"\.entry\s+([\w$]+)")


@dataclass(frozen=True)
class Report:
    """What ptxas says of one kernel: registers per thread; bytes of static shared, stack, spills."""

    registers: int = 0
    shared_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    stack: int = 0
    barriers: int = 0


def diagnostics_of(log: str, texts: Mapping[str, str]) -> list[Diagnostic]:
    lines = log.splitlines()
    found = []
    for index, line in enumerate(lines):
        if match := MESSAGE.match(line):
            file, number = match["file"], int(match["line"])
            source, column = None, None
            if file in texts and 0 < number <= len(texts[file].splitlines()):
                source = texts[file].splitlines()[number - 1]
            # NVRTC prints the source line indented by two, then the caret line.
            for shown, caret in pairwise(lines[index + 1 : index + 5]):
                same = source is not None and shown[2:].rstrip() == source.rstrip()
                if same and caret.strip() == "^":
                    column = caret.index("^") - 2
                    break
            message = " ".join([match["text"].strip(), *_types(lines[index + 1 :], source)])
            found.append(Diagnostic(match["severity"], message, file, number, column, source))
        elif match := PTXAS_MESSAGE.match(line):
            severity = "warning" if match["severity"] == "warning" else "error"
            found.append(
                Diagnostic(severity, f"ptxas: {match['where']} {match['text']}".replace("  ", " "))
            )
    return found


def repairs_of(log: str) -> tuple[str, ...]:
    """What ptxas says that it did to wgmma instructions, C7510 and its neighbours: a wait that it put in, products that
    it serialises. Each once, with its code.
    """
    return tuple(dict.fromkeys(f"({code}) {text}" for code, text in WGMMA_NOTE.findall(log)))


def _types(lines: list[str], source: str | None) -> list[str]:
    """What the compiler adds to a message before it shows the line: "operand types are: float * float4"."""
    found = []
    for line in lines[:4]:
        if not line.startswith(" " * 12) or (source and line[2:].rstrip() == source.rstrip()):
            break
        found.append(line.strip().replace("nvcuda::wmma::", ""))
    return [f"({' '.join(found)})"] if found else []


def reports_of(log: str, ptx: str) -> dict[str, Report]:
    reports = {entry: Report() for entry in PTX_ENTRY.findall(ptx)}
    entry = None
    for line in log.splitlines():
        if match := COMPILING.search(line):
            entry = match["entry"]
        if entry not in reports:
            continue
        if match := STACK.search(line):
            stack, stores, loads = map(int, match.groups())
            reports[entry] = replace(
                reports[entry], stack=stack, spill_stores=stores, spill_loads=loads
            )
        if match := USED.search(line):
            reports[entry] = replace(
                reports[entry],
                registers=int(match[1]),
                barriers=_number(BARRIERS, line),
                shared_bytes=_number(SHARED, line),
            )
    return reports


def _number(pattern: re.Pattern, line: str) -> int:
    match = pattern.search(line)
    return int(match[1]) if match else 0


def relative_names(log: str, texts: Mapping[str, str]) -> str:
    for name in texts:
        log = re.sub(rf"(?m)(?<![\w.])/[^\s(:]*/{re.escape(name)}(?=\()", name, log)
    return log


def relative_files(ptx: str, texts: Mapping[str, str], folders: tuple[Path, ...]) -> str:
    """Line information that names files as they are included, wherever the compile ran."""

    def shorten(match: re.Match) -> str:
        path = match[2].replace("\\\\", "/").replace("\\", "/")  # Windows, escaped or not
        for name in texts:
            if path == name or path.endswith(f"/{name}"):
                return f"{match[1]}{name}{match[3]}"
        for folder in sorted(folders, key=lambda f: -len(str(f))):
            if path.startswith(f"{folder.as_posix()}/"):
                return f"{match[1]}{path[len(str(folder)) + 1 :]}{match[3]}"
        return f"{match[1]}{PurePosixPath(path).name}{match[3]}"

    return PTX_FILE.sub(shorten, ptx)
