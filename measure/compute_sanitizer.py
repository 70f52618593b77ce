"""NVIDIA's compute-sanitizer: how it is asked, and what it prints."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
DEADLOCK_MS = 8000
HEADLINE = re.compile(r"^=+ (?! )(?P<words>\S.*)$")
PLACE = re.compile(r"\bin (?:\S*/)?(?P<place>[\w.]+\.cuh?:\d+)")
# What stands in a headline's place and is no report: titles, sums, and calls of the library that fail after a report.
NO_REPORT = re.compile(
    r"COMPUTE-SANITIZER|\w+ SUMMARY|Target application|Program hit|No |Note"
    r"|(?:Error|Warning): (?!Race|Potential)",
    re.IGNORECASE,
)
BROKEN = re.compile(r"Internal Sanitizer Error|Unknown option|Unrecogni[sz]ed", re.IGNORECASE)


@dataclass(frozen=True)
class Said:
    """Reports of one run: how many (at most the tool's limit), the different ones by their headlines, the places that
    they name ("file.cu:12"), and the words of a tool that did not work.
    """

    reports: int = 0
    words: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    broken: str = ""


@cache
def version() -> str:
    """ "2025.3.0.0", or "" where there is no compute-sanitizer."""
    words = _says("--version")
    found = re.search(r"[Vv]ersion\s+(\d[\d.]*)", words)
    return found[1] if found else words.strip().splitlines()[-1] if words.strip() else ""


@cache
def _says(option: str) -> str:
    if shutil.which("compute-sanitizer") is None:
        return ""
    done = subprocess.run(["compute-sanitizer", option], capture_output=True, text=True)
    return done.stdout + done.stderr


def initcheck_reads() -> str:
    """Where initcheck looks: shared memory too from version 2025.4 on."""
    shared = "--initcheck-address-space" in _says("--help")
    return "global and shared memory" if shared else "global memory"


def command(tool: str, only: str, port: int) -> list[str]:
    """The words before the program's. `only` is in the names of the kernels that are looked at: by initcheck all are,
    since others write the matrices; it looks at shared memory too, where it can.
    """
    known = _says("--help")
    words = ["compute-sanitizer", "--tool", tool]
    options = [("--show-backtrace", "device"), ("--port", str(port)), ("--launch-timeout", "60")]
    if tool != "initcheck":
        name = "--kernel-name" if re.search(r"--kernel-name\b(?!-)", known) else "--kernel-regex"
        options.append((name, f"kns={only}"))
    extra = {
        "initcheck": [("--initcheck-address-space", "all")],
        "racecheck": [
            ("--racecheck-deadlock-timeout", str(DEADLOCK_MS)),
            ("--racecheck-continue-on-deadlock", "no"),
        ],
    }
    options += [pair for pair in extra.get(tool, ()) if pair[0] in known]
    return [*words, *(word for pair in options for word in pair)]


def parse(output: str) -> Said:
    """What a run printed, sorted."""
    reports, words, places, broken = 0, [], [], ""
    inside = False
    for line in output.splitlines():
        head = HEADLINE.match(line)
        if head:
            text = head["words"].strip()
            inside = False
            if BROKEN.match(text):
                broken = broken or text
            elif NO_REPORT.match(text):
                continue
            else:
                reports += 1
                inside = True
                words.append(text.split(" at ")[0])
        if inside and line.startswith("===") and "Host Frame" not in line:
            places += [found["place"] for found in PLACE.finditer(line)]
        elif not line.startswith("==="):
            inside = False
    return Said(reports, tuple(dict.fromkeys(words))[:3], tuple(dict.fromkeys(places))[:6], broken)
