"""Compares a kernel's parameters with those that it is launched with: number, type and name, in the source's words."""

import re
from dataclasses import dataclass

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|__grid_constant__)\b")
# Other names of the same type.
_SAME = {
    "signed": "int", "signed int": "int", "int32_t": "int", "std::int32_t": "int", "__half": "half",
    "unsigned int": "unsigned", "uint32_t": "unsigned", "std::uint32_t": "unsigned",
    "float2": "float", "float4": "float", "half2": "half", "__half2": "half",
}  # fmt: skip


@dataclass(frozen=True)
class Declared:
    """One parameter as the source declares it: `type` without qualifiers, such as "float*"."""

    type: str
    name: str


def declared(source: str, kernel: str) -> list[Declared] | None:
    """The parameters of this kernel; None where the text does not show them plainly (a macro, say)."""
    text = _COMMENT.sub(" ", source)
    for found in re.finditer(rf"\b{re.escape(kernel)}\s*\(([^()]*)\)\s*\{{", text):
        parts = [part.strip() for part in found[1].split(",") if part.strip()]
        read = [_declared(part) for part in parts]
        return None if None in read else read
    return None


def _declared(text: str) -> Declared | None:
    plain = " ".join(_QUALIFIERS.sub(" ", text).replace("*", " * ").split())
    found = re.fullmatch(r"([\w: ]+?)((?: \*)*) ?(\w+)((?: ?\[\w*\])*)", plain)
    if found is None:
        return None
    base = _SAME.get(found[1].strip(), found[1].strip())
    return Declared(base + "*" * (found[2].count("*") + found[4].count("[")), found[3])


def differences(source: str, skeleton: str, kernel: str) -> list[str]:
    """Sentences on what differs from the parameters that the exercise gives; empty where nothing does.

    A name counts only where it is one of the exercise's names in another's place: other names are the
    reader's own affair.
    """
    mine, given = declared(source, kernel), declared(skeleton, kernel)
    if mine is None or given is None:
        return []
    if len(mine) != len(given):
        return [
            f"It is launched with {len(given)} arguments ({_listed(given)}), and takes "
            f"{len(mine)} ({_listed(mine)})."
        ]
    said = []
    for have, want in zip(mine, given, strict=True):
        if not _same(have.type, want.type):
            said.append(
                f"Parameter {have.name} is declared {have.type}; it is given "
                f"{_article(want.type)}, so {want.type} {have.name}."
            )
    names = [one.name for one in given]
    if any(h.name != w and h.name in names for h, w in zip(mine, names, strict=True)):
        said.append(
            f"The parameters are given in the order ({', '.join(names)}), and the kernel calls them "
            f"({', '.join(one.name for one in mine)}): a value arrives under another's name."
        )
    return said


def _same(have: str, want: str) -> bool:
    return (
        have == want or {have, want} == {"int", "unsigned"} or (want[-1] == "*" and have == "void*")
    )


def _listed(parameters) -> str:
    return ", ".join(f"{one.type} {one.name}" for one in parameters)


def _article(kind: str) -> str:
    if kind.endswith("*"):
        return f"an array of {kind.rstrip('*')}"
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
