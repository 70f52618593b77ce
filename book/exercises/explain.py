"""What the emulator stopped at, and the hazards that it found, in words and in the lines of the reader's kernel."""

from __future__ import annotations

import re
from textwrap import shorten

from emulator import errors

from .patience import DoesNotEnd
from .signature import declared

QUOTED = 76  # columns of a page
STOPPED = (errors.ExecutionError, DoesNotEnd)

# In order: the more special kind first.
_STOPPED = {
    DoesNotEnd: (
        "it does not end, and was stopped",
        "Which loop never leaves? Look at what its condition counts.",
    ),
    errors.OutOfBounds: ("out of bounds", ""),
    errors.Misaligned: (
        "misaligned",
        "An access of 4, 8 or 16 bytes needs an address that is a multiple of 4, 8 or 16. So do the start of the array "
        "and the length of its rows in bytes, padding included: if a row's length is no such multiple, the rows after "
        "it do not begin at one.",
    ),
    errors.BarrierDivergence: (
        "a barrier that not all threads reach",
        "Every thread of the block must come to the same __syncthreads().",
    ),
    errors.Deadlock: (
        "it hangs, and was stopped",
        "No warp can go on: each waits for what no other will do.",
    ),
    errors.Trap: ("it stopped itself (trap)", ""),
}


_GOES_ON = tuple(
    "=+-*/%,(?:&|^<>"
)  # a line that ends with one of these is not the end of its statement


def statement_start(line: int, lines: list[str]) -> int:
    """The line where the statement begins that goes on at this line."""
    while line > 1:
        before = lines[line - 2].split("//")[0].rstrip()
        if not before.endswith(_GOES_ON) or before.lstrip().startswith(("#", "case ", "default:")):
            break
        line -= 1
    return line


def quote(line: int, source: str, file: str = "") -> str:
    """ "line 12: sum += As[ty][k];", as much of the statement as fits a page, from where it begins."""
    lines = source.splitlines()
    if not file.endswith(".cu") or not 1 <= line <= len(lines):
        return f"{file} line {line}"
    line = statement_start(line, lines)
    statement = lines[line - 1].strip()
    for more in lines[line : line + 3]:
        if statement.split("//")[0].rstrip().endswith((";", "{", "}", ")")):
            break
        statement += " " + more.strip()
    return shorten(f"line {line}: {statement}", QUOTED, placeholder=" ...")


def own_line(frames, file: str) -> int | None:
    """The line of `file` among these frames, None if there is none."""
    return next((n for name, n in frames if name == file), None)


def quoted(frames, source: str, file: str) -> str | None:
    """The line of `file` among these frames, which may begin in a header that it called; None if there is none."""
    line = own_line(frames, file)
    return quote(line, source, file) if line else None


def explain_error(
    error: Exception, source: str, file: str, kernel: str | None = None
) -> tuple[str, ...]:
    """Headline and lines for what the emulator stopped at, in the lines of `file`.

    kernel: its name, where the file is called otherwise.
    """
    headline, why = next(
        (words for kind, words in _STOPPED.items() if isinstance(error, kind)),
        ("the emulator stopped it", ""),
    )
    frames = getattr(error, "frames", {})
    if "more arrivals at the mbarrier" in str(error):
        headline, why = (
            "an mbarrier that gets too many arrivals",
            "Somebody arrives for the next phase before this one has ended. Who fills a stage has to wait until it is empty: "
            "is that wait there, and does it name the right parity? A wait for the wrong one passes at once.",
        )

    if isinstance(error, errors.Misaligned):
        why = _misaligned(getattr(error, "instruction", "")) or why
    if "a parity is 0 or 1" in str(error):
        headline, why = (
            "a parity that is neither 0 nor 1",
            "Take the lowest bit of the number of the phase, as n % 2 or n & 1. In C -1 % 2 is -1.",
        )

    def at(ptx_line) -> str | None:
        return quoted(frames.get(ptx_line, ()), source, file)

    here = at(error.ptx_line) if error.ptx_line else None
    if here is None and error.ptx_line and isinstance(error, DoesNotEnd):
        # A loop with nothing left in it is a branch of no source line: what stands before it is nearest.
        lines = sorted((n for n in frames if n <= error.ptx_line), reverse=True)
        here = next(filter(None, map(at, lines)), None)
    said = [here] if here else []
    if getattr(error, "block", None) is not None:
        thread = f", thread {error.thread}" if error.thread is not None else ""
        name = kernel or file.removesuffix(".cu")
        message = _in_words(str(error).splitlines()[0], source, name)
        said.append(f"block {error.block}{thread}: {message}")
    if "is for all 128 threads" in str(error):
        headline = "an instruction of the whole warpgroup that not all threads reach"
        why = "All 128 threads of the warpgroup have to come to it together: no `if` and no return before it that only some take."
    if "is for all 32 lanes" in str(error):
        headline = "an instruction of the whole warp that not all lanes reach"
        why = (
            "All 32 lanes of the warp have to come to it together: no `if`, no return and no loop before it that only some "
            "take."
        )
    if "of a wmma access differs between" in str(error):
        headline = "lanes of one warp that disagree"
        why = (
            "All 32 lanes have to give load_matrix_sync and store_matrix_sync the same pointer, that of the first element of the "
            "tile, and the same stride. Which elements each lane takes is the fragment's affair. So threadIdx.x may stand there "
            "only as threadIdx.x / 32, the number of the warp."
        )
    if _lanes_apart(getattr(error, "waiting", [])):
        why = (
            "The lanes of one warp wait at different places. An instruction of the whole warp (mma, ldmatrix, wmma, a "
            "shuffle) needs all 32 lanes together: no `if` around it that only some take."
        )
    seen: set[str] = set()
    for text in getattr(error, "waiting", []):
        who, _, where = text.partition(": ")
        if where in seen or len(seen) == 4:  # other warps wait at the same place
            continue
        seen.add(where)
        number = re.match(r"PTX line (\d+)", where)
        line = at(int(number[1])) if number else None
        said.append(f"{who}: {line or where.split('{')[0].strip()}" if line else f"{who} wait")
    if barriers := getattr(error, "barriers", []):
        told = (_mbarrier(text, source, kernel or file.removesuffix(".cu")) for text in barriers)
        said += list(dict.fromkeys(told))[:2]
        why = (
            "A wait for parity p returns when a phase of that parity is over. A fresh barrier is in phase 0, so a wait for "
            "parity 1 passes at once, and a wait for parity 0 passes when the first phase has ended. A phase ends when "
            "all arrivals and all announced bytes have come."
        )
    return (headline, *said, *([why] if why else []))


def _lanes_apart(waiting) -> bool:
    """Whether the lanes of one warp wait at two places, as they do where a branch has split them."""
    warps = [match[1] for text in waiting if (match := re.match(r"(.*warp \d+), lanes ", text))]
    return len(set(warps)) < len(warps)


def _misaligned(instruction: str) -> str:
    """What the address of this PTX instruction must be a multiple of, in the words of who wrote C++."""
    if instruction.startswith("wmma"):
        return (
            "load_matrix_sync and store_matrix_sync take pointers to 16 x 16 tiles: along K a tile begins at each multiple of "
            "16 elements, so a loop over tiles goes on in steps of 16."
        )
    if instruction.startswith("ldmatrix"):
        return "Each lane gives ldmatrix the address of a row of eight halves, so a column within a row must be a multiple of 8."
    return ""


def _mbarrier(text: str, source: str, kernel: str) -> str:
    """What an mbarrier lacks: "the mbarrier at byte 16 of barriers is in phase 0 and lacks 64 of 64 arrivals"."""
    said = _in_words(text.split("): ", 1)[-1], source, kernel) + "."
    lacks = re.search(r"lacks (\d+) of (\d+) arrivals", said)
    if lacks and int(lacks[1]) > int(lacks[2]):
        start = said[: lacks.start()].rsplit(" and ", 1)[0]
        return (
            f"{start}, and got more arrivals than the {lacks[2]} that barrier_init gave it: several threads use this one "
            "barrier."
        )
    return said


def explain_refusal(error: Exception, threads: int) -> tuple[str, ...]:
    """Headline and lines for a launch that was refused before it began: `threads` per block, shared memory, types."""
    text = str(error).splitlines()[0].rstrip(".")
    if "__launch_bounds__" in text:
        return (
            "it cannot be launched",
            f"__launch_bounds__ promises fewer threads per block than the {threads} that are launched.",
            f"Leave it out, or write __launch_bounds__({threads}).",
        )
    return ("it cannot be launched", f"{text}.")


def parameter_name(number: int, source: str, kernel: str) -> str:
    """What the kernel calls this parameter, else "argument 2"."""
    names = declared(source, kernel) or []
    return names[number].name if number < len(names) else f"argument {number}"


def _in_words(message: str, source: str, kernel: str) -> str:
    """The emulator's message without addresses, and with "C" for "argument 2"."""
    for old, new in (
        (r" at address 0x[0-9a-f]+, which is", " at an address that is"),
        (r" at address 0x[0-9a-f]+:", ","),
        (r", 0 bytes past", ", just past"),
        (r", shared memory has (\d+) bytes here", r", beyond the end of shared memory (\1 bytes)"),
        (r"\bcp accesses", "a copy reads"),
        (r"\bldmatrix accesses", "ldmatrix reads"),
        (r"\bwmma accesses", "a fragment takes"),
    ):
        message = re.sub(old, new, message)
    return re.sub(r"\bargument (\d+)", lambda m: parameter_name(int(m[1]), source, kernel), message)
