"""What a page's cells cost the reader's browser: all pages, each whole by its button.

    python -m book.page_costs [--browser firefox] [PAGE ...]     stores them in results/page-<browser>.json (`make page` first)
    python -m book.page_costs --table                            prints what was stored, the dearest pages first

Seconds are of processor, of the browser and all that it starts, from the button on, so that other work on the machine does
not count. Python's memory only grows: what it has at the end is the most that it had. The tab's is the most that the largest
process of the browser ever held (VmHWM), Python, the page and its figures together; each page has a browser of its own.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlparse

from book import browser, chapters, page_python
from measure import provenance

WAIT = 900_000  # ms of the clock, on a machine that others load
ENDED = """() => /^(Done|A cell failed|Python could not)/.test(document.querySelector(".run-status").textContent)"""
SHOWN = f"""() => document.querySelector(".run-said") || ({ENDED})()"""
METHOD = "python -m book.page_costs: each page opened in a browser of its own, and run whole by its button"


def _below(pid: int) -> Iterator[int]:
    """The processes that a process has started, and those that these have. None where there is no /proc."""
    above = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            above[int(stat.parent.name)] = int(words[1])
        except OSError:  # it has ended meanwhile
            continue
    found = {pid}
    while new := {one for one, parent in above.items() if parent in found} - found:
        found |= new
        yield from new


def _read(pid: int, name: str) -> str:
    try:
        return (Path("/proc") / str(pid) / name).read_text(encoding="utf-8")
    except OSError:
        return ""


def processor_seconds() -> float:
    """What this process's descendants have computed, a browser among them; 0 where there is no /proc."""
    words = [_read(pid, "stat").rpartition(")")[2].split() for pid in _below(os.getpid())]
    return sum(int(w[11]) + int(w[12]) for w in words if w) / os.sysconf("SC_CLK_TCK")


def largest_process() -> float:
    """MB that the largest of this process's descendants has ever held; 0 where there is no /proc."""
    found = [re.search(r"VmHWM:\s+(\d+)", _read(pid, "status")) for pid in _below(os.getpid())]
    return max((int(one[1]) * 1024 / 1e6 for one in found if one), default=0)


def of_page(page: Path, kind: str) -> dict:
    """What one page costs. RuntimeError where its button does not end well."""
    site, folder = page_python.SITE, f"/{page_python.PLACE.as_posix()}/"
    asked = set()
    with browser.served(site) as address, browser.launched(kind) as launched:
        tab = launched.new_page()
        tab.on("request", lambda request: asked.add(urlparse(request.url).path))
        tab.goto(address + page.relative_to(chapters.ROOT).with_suffix(".html").as_posix())
        tab.wait_for_selector(".run-bar", timeout=120_000)
        began = processor_seconds()
        tab.locator(".run-bar").get_by_role("button", name="Run this page").click()
        tab.wait_for_function(SHOWN, timeout=WAIT)
        first = processor_seconds() - began
        tab.wait_for_function(ENDED, timeout=WAIT, polling=200)
        whole = processor_seconds() - began
        said = tab.locator(".run-bar .run-status").inner_text()
        if not said.startswith("Done"):
            failed = tab.locator(".run-failed").all_inner_texts()
            raise RuntimeError(f"{page.stem}: {said} {failed[-1][-500:] if failed else ''}")
        notes = tab.locator(".run-said").all_inner_texts()
        loaded = [path for path in asked if folder in path]
        return {
            "page": page.stem,
            "cells": len(notes),
            "not_here": sum("Ran in" not in note for note in notes),
            "bytes": sum((site / path.lstrip("/")).stat().st_size for path in loaded),
            "first_s": round(first, 1),
            "whole_s": round(whole, 1),
            "python_mb": int(re.search(r"uses (\d+) MB", said)[1]),
            "tab_mb": round(largest_process()),
            "browser": f"{kind} {launched.version}",
        }


def record(pages: list[Path], kind: str) -> int:
    """Measures these pages and stores each as soon as it is known, beside those that are stored; how many failed."""
    stored = provenance.FOLDER / f"page-{kind}.json"
    rows = json.loads(stored.read_text(encoding="utf-8"))["rows"] if stored.exists() else []
    order = [page.stem for page in chapters.paths()]
    failed = 0
    for page in pages:
        try:
            row = of_page(page, kind)
        except Exception as problem:  # the others are still to be known
            print(problem, file=sys.stderr, flush=True)
            failed += 1
            continue
        print(_line(row), flush=True)
        rows = [one for one in rows if one["page"] != row["page"]] + [row]
        rows.sort(key=lambda one: order.index(one["page"]))
        about = {"cpu": f"{os.cpu_count()} cores, shared with other work", "numpy": _numpy()}
        provenance.store(stored, METHOD, about, rows=rows)
    return failed


def _numpy() -> str:
    return "a stand-in for tests" if page_python.is_stand_in() else "as Pyodide's release has it"


HEADS = ("page", "MB loaded", "first result, s", "whole page, s", "Python, MB", "tab, MB")


def _line(row: dict) -> str:
    numbers = (row["bytes"] / 1e6, row["first_s"], row["whole_s"])
    words = [row["page"], *(f"{n:.1f}" for n in numbers), str(row["python_mb"])]
    return f"| {' | '.join([*words, str(row['tab_mb'])])} |"


def table(kind: str) -> str:
    """What was stored, as Markdown, the dearest pages first. FileNotFoundError where nothing was."""
    stored = provenance.FOLDER / f"page-{kind}.json"
    rows = json.loads(stored.read_text(encoding="utf-8"))["rows"]
    rows = sorted(rows, key=lambda row: (-row["python_mb"], -row["whole_s"]))
    return "\n".join([f"| {' | '.join(HEADS)} |", f"|---{'|---' * 5}|", *map(_line, rows)])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m book.page_costs")
    parser.add_argument("pages", nargs="*", help="parts of names; all pages without any")
    parser.add_argument("--browser", choices=list(browser.KINDS), default="chromium")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args(arguments)
    try:
        if asked.table:
            print(table(asked.browser))
            return 0
        every = chapters.paths()
        pages = [p for p in every if not asked.pages or any(n in p.stem for n in asked.pages)]
        if not pages or not (page_python.SITE / page_python.PLACE / "numpy.zip").exists():
            raise ValueError("no such page" if not pages else "the pages have no Python: make page")
        return min(1, record(pages, asked.browser))
    except (ValueError, OSError, browser.NoBrowser) as problem:
        print(f"book.page_costs: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
