"""Hazards as a reader gets them: what went wrong together with what, where, and in whose code."""

import re
from dataclasses import dataclass, field

# Every kind of hazard there is. Those from unfinished-read on are of TMA, wgmma and clusters, those from
# unfinished-product on of tensor memory, those from unstarted-block on of what blocks and warps meet by.
KINDS = (
    "read-after-write", "write-after-read", "write-after-write", "uninitialised-read", "unfinished-copy",
    "global-race", "uninitialised-register", "undefined-shuffle", "membermask", "unfinished-read",
    "missing-proxy-fence", "wrong-swizzle", "missing-init-fence", "exit-before-copy", "exited-block",
    "unfinished-wgmma", "overwritten-fragment", "missing-wgmma-fence", "uncommitted-wgmma",
    "unfinished-product", "unordered-columns", "uninitialised-column", "missing-tcgen05-fence",
    "missing-tcgen05-wait", "unfinished-tensor-load", "two-writers", "early-dealloc", "leaked-columns",
    "uncommitted-product", "unstarted-block", "unmade-barrier", "remade-barrier", "overwritten-barrier",
    "unchecked-wait", "shared-barrier", "unfinished-store", "surplus-arrival", "foreign-lanes",
    "unreleased-map", "unacquired-map", "incoherent-read",
)  # fmt: skip


@dataclass
class Hazard:
    """One pair of places in the program that can go wrong together, as first seen.

    kind: one of KINDS. source, ptx_line, thread: of the access that was
    noticed; other_...: of the earlier one, or None.
    source is (file, line) in the kernel's own file, or None without
    `-lineinfo`; frames adds what was inlined there, innermost first. block, thread are (x, y, z).
    address: byte offset in the block's shared memory, that is symbol + offset, or in the buffer that
    `symbol` names; 0 where it is about a register. count: how often, in granules or threads.
    verb: what the access did ("reads" ...), of a global-race; did: what the earlier one was ("wrote", "read", "copy", "bulk",
    "wgmma", "together" ...), as far as known. other_block: of the earlier access, where another. early: the thread's own wait
    had passed at once. note: against the letter of the PTX ISA, but kernels that ship do it, and run.
    """

    kind: str
    message: str
    source: tuple[str, int] | None
    other_source: tuple[str, int] | None
    ptx_line: int
    other_ptx_line: int | None
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    other_thread: tuple[int, int, int] | None
    address: int
    symbol: str
    offset: int
    count: int = 0
    frames: tuple[tuple[str, int], ...] = ()
    other_frames: tuple[tuple[str, int], ...] = ()
    verb: str = ""
    did: str = ""
    other_block: tuple[int, int, int] | None = None
    early: bool = False
    note: bool = False

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"no kind of hazard is called {self.kind!r}")

    def __str__(self):
        return self.message + (f" ({self.count} times)" if self.count > 1 else "")


@dataclass
class Report:
    """The hazards of a launch, one for each kind and pair of source lines (PTX lines without)."""

    found: dict = field(default_factory=dict)

    @property
    def hazards(self) -> list[Hazard]:
        return list(self.found.values())


def source_name(symbol):
    """A shared variable as its author wrote it: `_ZZ10gemm_tiledE2As` is `As` in `gemm_tiled`."""
    if symbol.startswith("_ZZ"):
        for found in re.finditer(r"E(\d+)", symbol):
            name = symbol[found.end() :]
            if len(name) == int(found.group(1)):  # Itanium C++ ABI 5.1.6: local names
                return name
    return symbol


@dataclass(frozen=True)
class Places:
    """How a report names what the shadow numbers.

    symbols: (name, start, bytes) of the shared variables. block_of, thread_of: from an index to (x, y, z).
    """

    symbols: tuple = ()
    block_of: object = lambda b: (b, 0, 0)
    thread_of: object = lambda t: (t, 0, 0)

    def symbol(self, address):
        """(name, offset in it) of a byte of shared memory."""
        return next(
            ((n, address - s) for n, s, size in self.symbols if s <= address < s + size),
            ("shared memory", address),
        )


@dataclass(frozen=True)
class Seen:
    """What was noticed: `instruction`, of a thread of a block, at a byte of shared memory, and what it collided with.

    earlier: that other instruction, which `did` "read", "write", "copy" ..., or None; other: its thread, None
    where that is not known. block, thread, other: indices, which `places` names.
    """

    instruction: object
    earlier: object
    block: int
    thread: int
    address: int
    places: Places
    other: int | None = None
    did: str | None = None

    @property
    def one(self) -> tuple:
        return self.places.thread_of(self.thread)

    @property
    def two(self) -> tuple | None:
        return None if self.other is None else self.places.thread_of(self.other)

    @property
    def by(self) -> str:
        return f"thread {self.two}" if self.two else "another thread"

    @property
    def what(self) -> str:
        symbol, offset = self.places.symbol(self.address)
        return f"byte {offset} of {symbol}"


def describe(kind: str, seen: Seen) -> Hazard:
    """A Hazard, in words."""
    one, by, what, did = seen.one, seen.by, seen.what, seen.did
    here, there = where(seen.instruction), where(seen.earlier)
    same_warp = seen.other is not None and seen.other >> 5 == seen.thread >> 5
    missing = "the warp does not synchronise" if same_warp else "no barrier stands"
    if kind == "read-after-write" and did == "copy":
        text = (
            f"thread {one} reads {what} {here}; {by} copied it {there} and waited for it, "
            f"but {missing} between that wait and this read"
        )
    elif kind == "read-after-write":
        text = f"thread {one} reads {what} {here} that {by} wrote {there}; {missing} between"
    elif kind == "write-after-read":
        text = (
            f"thread {one} overwrites {what} {here} while {by} may still be reading it "
            f"{there}; {missing} between"
        )
    elif kind == "write-after-write" and did == "together":
        text = (
            f"thread {one} and {by} write different values to {what} in the same instruction, {here}; "
            "which one stays is undefined"
        )
    elif kind == "write-after-write":
        text = f"thread {one} and {by} both write {what}, {here} and {there}; {missing} between"
    elif kind == "uninitialised-read":
        text = f"thread {one} reads {what} {here}, which no thread has written"
    else:
        text = (
            f"thread {one} touches {what} {here} while the cp.async that {by} issued {there} "
            "is under way: nobody has waited for it"
        )
    return hazard_of(kind, text, seen)


def hazard_of(kind: str, text: str, seen: Seen) -> Hazard:
    """The Hazard that `text` tells."""
    block = seen.places.block_of(seen.block)
    return Hazard(
        kind,
        f"{kind} in block {block}: {text}",
        source_of(seen.instruction),
        source_of(seen.earlier),
        getattr(seen.instruction, "line", None),
        getattr(seen.earlier, "line", None),
        block,
        seen.one,
        seen.two,
        seen.address,
        *seen.places.symbol(seen.address),
        frames=frames_of(seen.instruction),
        other_frames=frames_of(seen.earlier),
        did=seen.did or "",
    )


def frames_of(instruction):
    """Source positions of an instruction, innermost first; none without `-lineinfo`."""
    location = getattr(instruction, "location", None)
    return location.frames() if location is not None else ()


def source_of(instruction):
    """Its (file, line) in the kernel's own file, or None."""
    frames = frames_of(instruction)
    return frames[-1] if frames else None


def place_of(instruction):
    """What makes two instructions one place: the source line, else the PTX line."""
    return source_of(instruction) or getattr(instruction, "line", None)


def where(instruction):
    """The same in words: "at k.cu:12 (hopper.cuh:30)"."""
    frames = [f"{file.rsplit('/', 1)[-1]}:{line}" for file, line in frames_of(instruction)]
    if len(frames) > 1:
        return f"at {frames[-1]} ({frames[0]})"
    if frames:
        return f"at {frames[0]}"
    return f"at PTX line {instruction.line}" if instruction is not None else ""
