"""Shows a rung's source, whole or the marked part, and what changed between two rungs."""

import difflib
import itertools
import re
import textwrap
from collections.abc import Iterable

from .build import local_headers
from .rung import Rung
from .rungs import find

MARK = re.compile(r"^\s*//\s*\[(/?)(\w+)\]\s*$")
COMMENT = re.compile(r"\s*// |")  # what a line that is a comment begins with; nothing for any other
ONE_LINER = re.compile(r"^(\s*)(\w.*\)) \{ (.*;) \}$")
LOOP = re.compile(r"^(\s*)(for \([^;]*;[^;]*;.*?\)) (\w[^;]*;)$")
WIDTH = 92  # characters that a page shows side by side
KEPT = "\N{NO-BREAK SPACE}"


def source(rung: str | Rung, part: str | None = None) -> str:
    """The CUDA source of a rung without its marks, or the part between `// [part]` and `//
    [/part]`, there or in a header that it includes, as a page shows it: see `listing`.

    A part marked several times is joined in file order. ValueError lists the parts there are.
    """
    rung = find(rung)
    if rung.path is None:
        raise ValueError(f"{rung.name} is written in Python: see kernels/{rung.name}.py")
    text = rung.path.read_text(encoding="utf-8")
    if part is None:
        return unmarked(text)
    found = parts(text)
    for header in local_headers(text).values():
        found = parts(header) | found  # what is there already stays
    if part not in found:
        raise ValueError(f"{rung.file} has no part {part!r}; it has {', '.join(found) or 'none'}")
    return listing(found[part])


def unmarked(text: str) -> str:
    """A source without the comments that mark its parts."""
    return "".join(line for line in text.splitlines(True) if not MARK.match(line))


def changed(text: str, name: str, changes: Iterable[tuple[str, str]]) -> str:
    """This text, of the kernel of this name, with every `(old, new)` change made, one after the other.

    ValueError when it does not contain what a change would replace.
    """
    for old, new in changes:
        if old not in text:
            raise ValueError(f"{name} does not contain {old!r}")
        text = text.replace(old, new)
    return text


def listing(text: str) -> str:
    """Source dedented, directives standing with what they direct, and comments wrapped to WIDTH.

    A comment that makes its line too long goes above it; a function of one line that is too long
    takes three, a loop two; an entry point's parameters are broken anew. No other code is broken.
    """
    lines = text.splitlines()
    for at in reversed(range(len(lines) - 1)):
        if lines[at].startswith("#pragma"):
            below = next((line for line in lines[at + 1 :] if line.strip()), "")
            lines[at] = " " * (len(below) - len(below.lstrip())) + lines[at]
    shown: list[str] = []
    for line in _parameters_broken(textwrap.dedent("\n".join(lines)).splitlines()):
        code, beside, comment = line.partition("  // ")
        if len(line) > WIDTH and beside and code.strip():
            indent = code[: len(code) - len(code.lstrip())]
            shown += [f"{indent}// {comment}", code.rstrip()]
        elif len(line) > WIDTH and (function := ONE_LINER.match(line)):
            indent, head, body = function.groups()
            shown += [f"{indent}{head} {{", f"{indent}    {body}", f"{indent}}}"]
        elif len(line) > WIDTH and (loop := LOOP.match(line)):
            indent, head, body = loop.groups()
            shown += [f"{indent}{head}", f"{indent}    {body}"]
        else:
            shown.append(line)
    return "\n".join(_wrapped(shown)) + "\n"


def _wrapped(lines: list[str]) -> list[str]:
    """Runs of comment lines of which one is too long, filled anew up to the end of a sentence."""
    shown: list[str] = []
    for start, group in itertools.groupby(lines, lambda line: COMMENT.match(line)[0]):
        run = list(group)
        if start and max(map(len, run)) > WIDTH:
            text = "\n".join(line.removeprefix(start) for line in run)
            run = [line for said in re.split(r"(?<=\.)\n", text) for line in _filled(said, start)]
        shown += run
    return shown


def _filled(words: str, start: str) -> list[str]:
    """Words as comment lines of at most WIDTH, narrower where a word or two would stand alone."""
    for width in range(WIDTH, WIDTH // 2, -4):
        lines = textwrap.wrap(words, width, initial_indent=start, subsequent_indent=start)
        if len(lines) == 1 or len(lines[-1]) > width // 3:
            break
    return lines


def parts(text: str) -> dict[str, str]:
    """The marked parts of a source, dedented, in file order. ValueError for a mark without a partner."""
    found: dict[str, list[str]] = {}
    open_parts: list[str] = []
    for line in text.splitlines(True):
        if match := MARK.match(line):
            closing, name = match.groups()
            if closing and name in open_parts:
                open_parts.remove(name)
            elif closing or name in open_parts:
                raise ValueError(f"mark [{closing}{name}] has no partner")
            else:
                open_parts.append(name)
                found.setdefault(name, [])
            continue
        for name in open_parts:
            found[name].append(line)
    if open_parts:
        raise ValueError(f"part [{open_parts[0]}] is not closed")
    return {name: textwrap.dedent("".join(lines)) for name, lines in found.items()}


def diff(a: str | Rung, b: str | Rung) -> str:
    """Unified diff from rung `a` to rung `b`; header comments left out."""
    before, after = (_body(source(rung), find(rung).entry) for rung in (a, b))
    names = [find(rung).file for rung in (a, b)]
    return "\n".join(difflib.unified_diff(before, after, *names, lineterm="", n=2))


def _body(text: str, entry: str) -> list[str]:
    """Lines below the header comment; the entry point's own name left out, and its parameters broken
    anew, since where they break follows from the name.
    """
    lines = text.splitlines()
    while lines and (lines[0].startswith("//") or not lines[0].strip()):
        lines.pop(0)
    return _parameters_broken(lines, entry, "gemm")


def _parameters_broken(lines: list[str], entry: str = r"\w+", name: str | None = None) -> list[str]:
    """The lines with the parameters of entry points, called `name` if given, broken at WIDTH."""
    found, signature = [], []
    for before, line in zip(["", *lines], lines, strict=False):
        begins = before.lstrip().startswith('extern "C"') and re.match(rf"\s*{entry}\(", line)
        if signature or begins:
            signature.append(line.strip())
            if ")" in line:
                head, _, parameters = " ".join(signature).partition("(")
                head = f"    {name or head}("
                whole = re.sub(r"(?<!,) ", KEPT, parameters)  # a line ends after a comma only
                wrapped = textwrap.wrap(head + whole, WIDTH, subsequent_indent=" " * len(head))
                found += [line.replace(KEPT, " ") for line in wrapped]
                signature = []
        else:
            found.append(line)
    return found
