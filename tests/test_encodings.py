"""Files are read and written as UTF-8 everywhere: Windows has code pages of its own."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("emulator", "figures", "kernels", "measure", "book")
CALL = re.compile(r"\.(?:read_text|write_text)\(")


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
