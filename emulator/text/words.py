"""The words that PTX text consists of, and the numbers among them."""

from __future__ import annotations

import re
import struct

from emulator.text.program import Imm

_TOKEN = re.compile(
    r"""(?P<newline>\n)
      | (?P<space>[ \t\r\f]+|//[^\n]*)
      | (?P<comment>/\*.*?\*/)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<float>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
      | (?P<int>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?|WARP_SZ(?![\w$]))
      | (?P<word>\.[\w$]+|[%$_a-zA-Z][\w$]*(?:(?:\.|::)[\w$]+)*)
      | (?P<mark>.)""",
    re.X | re.S,
)


def tokens_of(text: str) -> list[tuple[str, str, int]]:
    """(kind, text, line) of every token, comments left out, and an "end" token."""
    found, line = [], 1
    for match in _TOKEN.finditer(text):
        kind, value = match.lastgroup, match.group()
        if kind == "newline":
            line += 1
        elif kind == "comment":
            line += value.count("\n")
        elif kind != "space":
            found.append((kind, value, line))
    found.append(("end", "", line))
    return found


def integer(text: str) -> int:
    """An integer literal: decimal, octal, hexadecimal or binary, with or without U; the threads of a warp."""
    if text == "WARP_SZ":
        return 32
    text = text.rstrip("U")
    if text[:2] in ("0x", "0X", "0b", "0B"):
        return int(text, 0)
    return int(text, 8) if len(text) > 1 and text[0] == "0" else int(text)


def floating(text: str) -> Imm:
    """A floating-point literal; of `0f` and `0d` the bits are kept."""
    if text[:2] in ("0f", "0F"):
        bits = int(text[2:], 16)
        return Imm(struct.unpack("<f", struct.pack("<I", bits))[0], bits)
    if text[:2] in ("0d", "0D"):
        bits = int(text[2:], 16)
        return Imm(struct.unpack("<d", struct.pack("<Q", bits))[0], bits)
    return Imm(float(text))


def joined(tokens: list[tuple[str, str, int]]) -> str:
    """An instruction's text, evenly spaced."""
    text = ""
    for _, word, _ in tokens:
        if text and (word in ",;])}|+" or text[-1] in "[({@!|+-"):
            text += word
        else:
            text += (" " if text else "") + word
    return text
