"""Files are read and written as UTF-8 everywhere: Windows has code pages of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("emulator", "figures", "kernels", "measure", "book")
CALL = re.compile(r"\.(?:read_text|write_text)\(")
# What stands for a foreign code page: every default encoding is then ASCII.
FOREIGN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def arguments(text: str, begin: int) -> str:
    """What stands between the parenthesis before `begin` and the one that closes it."""
    depth = 1
    for end in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[begin:end]
    return text[begin:]


def test_every_file_is_read_and_written_with_its_encoding():
    without = []
    for path in (p for room in ROOMS for p in (ROOT / room).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for call in CALL.finditer(text):
            if "encoding=" not in arguments(text, call.end()):
                line = text.count("\n", 0, call.start()) + 1
                without.append(f"{path.relative_to(ROOT)}:{line}")
    assert not without, "; ".join(without)


def test_sources_and_scripts_are_read_in_a_foreign_code_page():
    code = """
import figures
from book.exercises.catalogue import EXERCISES
from kernels.rungs import RUNGS
from kernels.source import source
read = [source(r.name) for r in RUNGS.values() if r.path]
read += [e.solution for e in EXERCISES if e.is_kernel]
figures.cuda(read[0])
assert len(read) > 40
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | FOREIGN,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-500:]
