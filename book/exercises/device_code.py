"""The part of a CUDA file that the compiler for kernels takes: device code, on the lines where it was."""

import re

from .includes import INCLUDE, for_kernels

_COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
_DEVICE_WORDS = re.compile(
    r"__global__|__device__|__constant__|\b(?:constexpr|struct|class|union|enum|namespace|using|typedef|template)\b"
)


def device_code(text: str) -> str:
    """The same file with host functions and host includes blanked out: line numbers stay what they were.

    The compiler for kernels takes no host code, so `main` and its helpers must go; the kernels are left as they are.
    """
    text = INCLUDE.sub(lambda m: m[0] if for_kernels(m[1]) else "", text)
    plain = _COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    plain = re.sub(
        r"^[ \t]*#(?:\\\n|[^\n])*",
        lambda m: re.sub(r"[^\n]", " ", m[0]),
        plain,
        flags=re.MULTILINE,
    )
    pieces, start, depth = [], 0, 0
    for at, mark in enumerate(plain):
        depth += (mark == "{") - (mark == "}")
        if mark in "};" and depth == 0:
            pieces.append((start, at + 1))
            start = at + 1
    kept = []
    for begin, end in pieces:
        code = plain[begin:end]
        head = code.split("{")[0]
        is_function = "{" in code and "(" in head
        if is_function and not _DEVICE_WORDS.search(head):
            kept.append(_directives(text[begin:end]))
        else:
            kept.append(text[begin:end])
    kept.append(text[start:])
    return "".join(kept)


def _directives(piece: str) -> str:
    lines, going = [], False
    for line in piece.split("\n"):
        keep = going or line.lstrip().startswith("#")
        going = keep and line.endswith("\\")
        lines.append(line if keep else "")
    return "\n".join(lines)
