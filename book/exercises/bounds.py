"""Local arrays with ends: a kernel's arrays in registers are exchanged for ones that stop at an index beyond them.

The compiler leaves nothing of such an array in the PTX, so an index past its end is invisible there. Here the kernel's text
gets arrays of the same sizes whose [] compares the index, and is compiled and launched once more.
"""

import re

import kernels
from emulator import errors

from .attempt import attempt, compile_cell
from .exercise import Exercise
from .explain import quote

HEADER = "ends.cuh"
WHOLE = "wgmma_k16"  # a template that takes whole arrays, which these are not
_ENDS = f"""\
#line 1 "{HEADER}"
template <typename T, int N>
struct ArrayWithEnds {{
    mutable T of[N];
    using Plain = T[N];
    template <typename I>
    __device__ __forceinline__ T& operator[](I i) const {{
        if (static_cast<long long>(i) < 0 || static_cast<long long>(i) >= N) __trap();
        return of[i];
    }}
    __device__ __forceinline__ operator Plain&() const {{ return of; }}
}};
#line 1 "{{file}}"
"""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TYPES = r"unsigned int|unsigned|int|float[24]?|double|__half2|half2|__half|half|bool|char|uint[24]?|int[24]|long long|short"
_DECLARATION = re.compile(
    rf"(?m)(?P<before>[;{{}}]|^)(?P<space>\s*)(?P<prefix>(?:__shared__\s+)?(?:(?:alignas|__align__)\(\d+\)\s+)?(?:const\s+)?)"
    rf"(?P<type>{_TYPES})\s+(?P<rest>\w[^;()]*?\[[^;]*);"
)
_DECLARATOR = re.compile(r"\s*(\w+)\s*((?:\[[^\[\]]+\]\s*)*)(=?.*)", re.DOTALL)


def with_ends(source: str, file: str) -> tuple[str, dict[str, str]]:
    """The same kernel with arrays that have ends, lines where they were, and these arrays with their sizes, as text."""
    found: dict[str, str] = {}
    plain = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), source)

    def change(match: re.Match) -> str:
        if plain[: match.start("type")].count("{") == plain[: match.start("type")].count("}"):
            return match[0]  # outside of every function
        if match["prefix"].startswith("__shared__"):
            return match[0]
        made = []
        for part in _split(match["rest"]):
            read = _DECLARATOR.fullmatch(part)
            if read is None:
                return match[0]
            name, sizes, first = read[1], re.findall(r"\[([^\[\]]+)\]", read[2]), read[3]
            kind = match["type"]
            for size in reversed(sizes):
                kind = f"ArrayWithEnds<{kind}, ({size})>"
            if sizes:
                found[name] = " x ".join(size.strip() for size in sizes)
            lines = "\n" * read[2].count("\n")
            made.append(f"{match['prefix']}{kind} {name}{lines}{first};")
        return f"{match['before']}{match['space']}{' '.join(made)}"

    text = _DECLARATION.sub(change, plain)
    return _ENDS.replace("{file}", file) + text, found


def _split(text: str) -> list[str]:
    """The declarators between the commas that stand in no bracket."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def beyond_its_end(exercise: Exercise, source: str, cases) -> tuple[str, ...]:
    """Headline and lines where a local array is used beyond its end in one of these launches; nothing otherwise.

    Not of those in shared memory: a right answer may walk through their rows as if they were one.
    """
    name = exercise.name
    text, arrays = with_ends(source, f"{name}.cu")
    if not arrays or WHOLE in source:
        return ()
    try:
        built = compile_cell(name, text, exercise.arch)
    except kernels.BuildError:
        return ()  # it does with its arrays what only plain ones can
    for case in cases:
        error = attempt(built, name, case).error
        line = _line_of(error, f"{name}.cu") if isinstance(error, errors.Trap) else None
        if line is not None:
            return _said(line, source, arrays)
    return ()


def _line_of(error, file: str) -> int | None:
    frames = error.frames.get(error.ptx_line, ())
    if not any(name.endswith(HEADER) for name, _ in frames):
        return None  # a trap of the reader's own
    return next((n for name, n in frames if name.endswith(file)), None)


def _said(line: int, source: str, arrays: dict[str, str]) -> tuple[str, ...]:
    lines = source.splitlines()
    words = set(re.findall(r"\w+", " ".join(lines[line - 1 : line + 2])))
    sizes = [f"{name} has {size} elements" for name, size in arrays.items() if name in words]
    return (
        "beyond the end of an array",
        quote(line, source, ".cu"),
        f"This uses an index that the array does not have{': ' if sizes else ''}{', '.join(sizes)}. An array of n elements ends "
        "at n - 1. The compiler may keep such an array in registers, where an access beyond its end is lost without a word.",
    )
