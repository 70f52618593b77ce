"""What the emulator stopped at, and the hazards that it found, in words and in the lines of the reader's kernel."""

from textwrap import shorten

from emulator import errors

from .signature import declared
from .time_limit import DoesNotEnd

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

# By the emulator's own reason, where the class of the error says too little.
_REASONS = {
    "arrivals": (
        "an mbarrier that gets too many arrivals",
        "Somebody arrives for the next phase before this one has ended. Who fills a stage has to wait until it is empty: "
        "is that wait there, and does it name the right parity? A wait for the wrong one passes at once.",
    ),
    "parity": (
        "a parity that is neither 0 nor 1",
        "Take the lowest bit of the number of the phase, as n % 2 or n & 1. In C -1 % 2 is -1.",
    ),
    "whole warpgroup": (
        "an instruction of the whole warpgroup that not all threads reach",
        "All 128 threads of the warpgroup have to come to it together: no `if` and no return before it that only some take.",
    ),
    "whole warp": (
        "an instruction of the whole warp that not all lanes reach",
        "All 32 lanes of the warp have to come to it together: no `if`, no return and no loop before it that only some "
        "take.",
    ),
    "lanes disagree": (
        "lanes of one warp that disagree",
        "All 32 lanes have to give load_matrix_sync and store_matrix_sync the same pointer, that of the first element of the "
        "tile, and the same stride. Which elements each lane takes is the fragment's affair. So threadIdx.x may stand there "
        "only as threadIdx.x / 32, the number of the warp.",
    ),
}
_APART = (
    "The lanes of one warp wait at different places. An instruction of the whole warp (mma, ldmatrix, wmma, a "
    "shuffle) needs all 32 lanes together: no `if` around it that only some take."
)

# A line that ends with one of these is not the end of its statement.
_GOES_ON = tuple("=+-*/%,(?:&|^<>")


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
    headline, why = _REASONS.get(getattr(error, "reason", ""), (headline, why))
    if isinstance(error, errors.Deadlock) and not error.reason and _lanes_apart(error.stands):
        why = _APART

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
        said.append(f"block {error.block}{thread}: {_message(error, source, name)}")
    seen: set[str] = set()
    for block, warp, lanes, ptx_line in getattr(error, "stands", ()):
        line = at(ptx_line) if ptx_line else None
        where = line or "its end"
        if where not in seen and len(seen) < 4:  # other warps wait at the same place
            seen.add(where)
            who = f"block {block}, warp {warp}, lanes {lanes}"
            said.append(f"{who}: {line}" if line else f"{who} wait")
    if lacks := getattr(error, "lacks", ()):
        said += list(dict.fromkeys(map(_mbarrier, lacks)))[:2]
        why = (
            "A wait for parity p returns when a phase of that parity is over. A fresh barrier is in phase 0, so a wait for "
            "parity 1 passes at once, and a wait for parity 0 passes when the first phase has ended. A phase ends when "
            "all arrivals and all announced bytes have come."
        )
    return (headline, *said, *([why] if why else []))


def _lanes_apart(stands) -> bool:
    """Whether the lanes of one warp wait at two places, as they do where a branch has split them."""
    warps = [(block, warp) for block, warp, *_ in stands]
    return len(set(warps)) < len(warps)


def _mbarrier(one: errors.Lack) -> str:
    """What an mbarrier lacks: "the mbarrier at byte 16 of barriers is in phase 0 and lacks 64 of 64 arrivals"."""
    begins = f"the mbarrier at byte {one.offset} of {one.symbol} is in phase {one.phase} (parity {one.phase & 1})"
    if one.pending > one.expected:
        return (
            f"{begins}, and got more arrivals than the {one.expected} that barrier_init gave it: several threads use this one "
            "barrier."
        )
    text = f"{begins} and lacks {one.pending} of {one.expected} arrivals"
    if one.missing > 0:
        text += f" and {one.missing} bytes: {one.announced} were announced, copies brought {one.brought}"
    elif one.missing < 0:
        text += f"; copies brought {one.brought} bytes, {-one.missing} more than the {one.announced} announced"
    else:
        text += " and no bytes"
    if one.missing and not one.pending:
        text += ". Announce (expect_tx) what the copies bring, boxes counted whole"
    elif one.phase and one.pending == one.expected and not one.missing:
        text += f". If phase {one.phase - 1} was meant, the parity to wait for is {1 - one.wanted}"
    return f"{text}."


def parameter_name(number: int, source: str, kernel: str) -> str:
    """What the kernel calls this parameter, else "argument 2"."""
    names = declared(source, kernel) or []
    return names[number].name if number < len(names) else f"argument {number}"


_VERBS = {"cp": "a copy reads", "ldmatrix": "ldmatrix reads", "wmma": "a fragment takes"}


def _message(error: Exception, source: str, kernel: str) -> str:
    """What the emulator stopped at, without addresses, and with "C" for "argument 2"."""
    found = getattr(error, "accessed", None)
    if found is None or error.instruction.startswith("wgmma"):  # its message names the descriptor
        return str(error).splitlines()[0]
    root = found.verb.removesuffix(" accesses")
    what = f"{_VERBS.get(root, found.verb)} {found.size} bytes"
    if isinstance(error, errors.Misaligned):
        return f"{what} at an address that is not a multiple of {found.size}"
    if found.buffer.endswith(" memory"):
        return f"{what}, beyond the end of {found.buffer} ({found.room} bytes)"
    if not found.buffer:
        return f"{what}, at a null pointer or an offset from one"
    number = found.buffer.removeprefix("argument ")
    name = parameter_name(int(number), source, kernel) if number.isdigit() else found.buffer
    if found.offset < 0:
        place = f"{-found.offset} bytes before the start of"
    elif found.offset < found.room:
        place = f"{found.offset} bytes into"
    else:
        past = found.offset - found.room
        place = f"{past} bytes past the end of" if past else "just past the end of"
    return f"{what}, {place} {name} ({found.room} bytes)"
