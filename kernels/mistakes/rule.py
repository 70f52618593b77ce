"""The mechanical rule behind the tables `drawn`: a statement that synchronises is deleted, swapped with the statement before or
after it, or weakened.
"""

import re

# (a call that synchronises, what is weaker)
WEAKER = (
    (r"__syncthreads\(\)", "__syncwarp()"),
    (r"named_barrier\((\w+), (\w+)\)", r"named_barrier(\1, \2 - 32)"),
    (r"cluster_(?:sync|exchange)\(\)", "__syncthreads()"),
    (r"(cp_async_wait|wgmma_wait|tma_store_wait_read|wait_prior)<([^>]+)>", r"\1<\2 + 1>"),
    (r"barrier_init\(([^,]+), ([^;]+)\);", r"barrier_init(\1, \2 + 1);"),
    (r"barrier_expect\(([^,]+), ([^;]+)\);", r"barrier_expect(\1, \2 - 16);"),
    (r"barrier_wait\(([^,]+), ([^;]+)\);", r"barrier_wait(\1, (\2) ^ 1);"),
    (r"__threadfence\(\)", "__threadfence_block()"),
    (
        r"((?:pipe\.)?(?:__syncwarp|async_fence|wgmma_fence|wgmma_commit|cp_async_commit|tensor_fence_\w+|barrier_init_fence"
        r"|tma_store_commit|producer_\w+|consumer_\w+|cluster_arrive|cluster_wait)\()",
        r"if (threadIdx.x % 64 < 32) \1",
    ),
    (
        r"((?:barrier_arrive(?:_at)?|named_barrier_arrive|tensor_commit\w*)\()",
        r"if (blockIdx.x == 0) \1",
    ),
)  # fmt: skip


def _code(line: str) -> str:
    """A line without its comment."""
    return line.split("//")[0].rstrip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def words(lines: list[str]) -> str:
    """A statement in one line."""
    return " ".join(" ".join(map(_code, lines)).split())


def statements(text: str) -> list[tuple[int, int]]:
    """(first, last) line of each statement that synchronises; the wrappers around single instructions are none."""
    lines, found = text.splitlines(), []
    for number, line in enumerate(lines):
        code = _code(line)
        wrapper = any(word in code for word in ("inline", "asm", "auto "))
        if wrapper or code.startswith("__device__"):
            continue
        if not any(re.search(call, code) for call, _ in WEAKER):
            continue
        last = number
        while not _code(lines[last]).endswith((";", "{")):
            last += 1
        if _code(lines[last]).endswith(";"):
            found.append((number, last))
    return found


def place(text: str, statement: str, which: int) -> tuple[int, int]:
    """Where the statement of these words stands for the `which`-th time (from 0). ValueError where it does not."""
    lines = text.splitlines()
    there = [span for span in statements(text) if words(lines[span[0] : span[1] + 1]) == statement]
    if which >= len(there):
        raise ValueError(f"{statement!r} no longer stands there {which + 1} times")
    return there[which]


def _units(lines: list[str], first: int) -> list[tuple[int, int]]:
    """The statements of the block in which line `first` stands, as (first, last) lines."""
    depth = _indent(lines[first])

    def inside(line: str) -> bool:
        return not line.strip() or line.startswith("#") or _indent(line) >= depth

    top = first
    while top and inside(_code(lines[top - 1])):
        top -= 1
    found, begun, before = [], None, top
    for number in range(top, len(lines)):
        line = _code(lines[number])
        if not inside(line):
            break
        if not line.strip():
            continue
        goes_on = _indent(line) != depth or line.strip().startswith(("}", "else"))
        body = _indent(lines[before]) > depth and _code(lines[before]).endswith((";", "}"))
        if begun is not None and not goes_on and body:  # of a loop without braces
            found.append((begun, before))
            begun = None
        begun, before = number if begun is None else begun, number
        if _indent(line) == depth and line.endswith((";", "}")):
            found.append((begun, number))
            begun = None
    return found


def changed(text: str, span: tuple[int, int], way: str) -> str | None:
    """The text with that statement changed; None where it cannot be."""
    lines = text.splitlines()
    first, last = span
    if way == "deleted":
        new = [*lines[:first], " " * _indent(lines[first]) + ";", *lines[last + 1 :]]
    elif way == "weakened":
        old = "\n".join(map(_code, lines[first : last + 1]))
        call, weaker = next(pair for pair in WEAKER if re.search(pair[0], old))
        new = [*lines[:first], re.sub(call, weaker, old, count=1), *lines[last + 1 :]]
    else:
        around = _units(lines, first)
        at = around.index(span) if span in around else -1
        other = at + (1 if way == "moved down" else -1)
        if at < 0 or not 0 <= other < len(around):
            return None
        (a, b), (c, d) = sorted((around[at], around[other]))
        new = [*lines[:a], *lines[c : d + 1], *lines[b + 1 : c], *lines[a : b + 1], *lines[d + 1 :]]
    return None if new == lines else "\n".join(new) + "\n"
