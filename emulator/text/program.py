"""What a PTX module is made of: operands, instructions, variables, functions. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Reg:
    """A register, by its unique name."""

    name: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as `%tid.x` or `%laneid`, without the percent sign."""

    name: str


@dataclass(frozen=True, slots=True)
class Imm:
    """An immediate. `value` is an int, or a float with the bits of `0f`/`0d` literals kept exact in `bits`."""

    value: int | float
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable (or a label, or a function), plus a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`; base is a Reg, a Symbol or None for an absolute address.

    `further` is what follows a comma: the coordinates of a box that TMA copies, in a Vector; no other
    instruction here takes any.
    """

    base: Reg | Symbol | None
    offset: int = 0
    further: tuple = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, ...}`"""

    items: tuple


def items(operand) -> tuple:
    """The parts of a vector operand; any other one alone."""
    return operand.items if isinstance(operand, Vector) else (operand,)


@dataclass(frozen=True, slots=True)
class Group:
    """`(a, b, ...)`: the argument lists of a call."""

    items: tuple


@dataclass(frozen=True, slots=True)
class Not:
    """`!%p`"""

    item: Reg


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`: a second destination, a predicate."""

    first: object
    second: object


@dataclass(frozen=True, slots=True)
class Part:
    """`%r1.b0`, `%r1.h10`: which bytes or halves of a register a video instruction means."""

    item: Reg
    selector: str


@dataclass(frozen=True, slots=True)
class Negative:
    """`-%r1`: an operand that `vmad` negates."""

    item: Reg | Part


@dataclass(frozen=True, slots=True)
class Saved:
    """What a call of a recursive function puts aside: the caller's registers, and which call it is.

    stack: the register that says where the caller's variables lie; limit: how many bytes a thread has for them.
    """

    registers: tuple[Reg, ...]
    site: int
    stack: Reg
    limit: int


SINK = Reg("_")  # the destination that throws its value away


@dataclass(frozen=True, slots=True)
class Location:
    """A source position; `caller` is where the function that contains it was inlined."""

    file: str
    line: int
    caller: Location | None = None

    def frames(self) -> tuple[tuple[str, int], ...]:
        """((file, line), ...) from the innermost function out to the kernel."""
        here, frames = self, []
        while here is not None:
            frames.append((here.file, here.line))
            here = here.caller
        return tuple(frames)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One PTX instruction. `parts` are the dot-separated words of the opcode; `index` numbers it in its program."""

    index: int
    line: int
    parts: tuple[str, ...]
    operands: tuple
    guard: tuple[Reg, bool] | None  # (predicate, negated)
    location: Location | None
    text: str

    @property
    def opcode(self) -> str:
        return ".".join(self.parts)

    def __contains__(self, word: str) -> bool:
        """`"sync" in instruction`: is this one of the opcode's modifiers?"""
        return word in self.parts


@dataclass(frozen=True, slots=True)
class Label:
    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable. `size` is in bytes, 0 when the declaration leaves it open (`extern .shared x[]`).

    `initial` holds its bytes; `pointers` says where addresses of other symbols go: (offset, width, Symbol, bits
    by which the address is shifted to the right).
    """

    name: str
    space: str
    type: str
    align: int
    size: int
    initial: bytes = b""
    pointers: tuple[tuple[int, int, Symbol, int], ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Function:
    """An `.entry` or a `.func` with a body of Labels and Instructions, in order."""

    name: str
    is_entry: bool
    params: tuple[Variable, ...]
    results: tuple[Variable, ...]
    body: tuple[Label | Instruction, ...]
    registers: dict[str, str]  # unique name -> type
    variables: tuple[Variable, ...]  # .shared, .local, .const, .global and .param declared inside
    targets: dict[str, tuple[str, ...]]  # .branchtargets lists
    reqntid: tuple[int, int, int] | None
    maxntid: tuple[int, int, int] | None
    cluster: tuple[int, int, int] | None  # .reqnctapercluster: blocks of a cluster
    explicit_cluster: bool  # .explicitcluster: a launch must say how many blocks a cluster has
    max_cluster_rank: int | None  # .maxclusterrank: the most blocks of a cluster
    line: int
    min_blocks: int | None = None  # .minnctapersm: blocks that a multiprocessor must hold at a time
    max_registers: int | None = None  # .maxnreg


@dataclass(frozen=True)
class Program:
    version: str
    target: str
    functions: dict[str, Function]
    variables: dict[str, Variable]
    declared: frozenset[str] = field(
        default_factory=frozenset
    )  # functions without a body (vprintf, malloc)

    def address_of(self, function: str) -> int | None:
        """What a pointer to a function holds; None for what has no body, and for entries."""
        known = (name for name, found in self.functions.items() if not found.is_entry)
        at = next((i for i, name in enumerate(known) if name == function), None)
        return None if at is None else CODE_ADDRESS + 16 * at


CODE_ADDRESS = 0x2_0000_0000  # of the first function: no buffer lies there


WIDTHS = {
    **{f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)},
    "f16": 2, "f16x2": 4, "f32": 4, "f32x2": 8, "f64": 8, "b128": 16, "pred": 1, "bf16": 2, "bf16x2": 4, "tf32": 4,
    "e4m3": 1, "e5m2": 1, "e4m3x2": 2, "e5m2x2": 2, "u16x2": 4, "s16x2": 4,
    "texref": 8, "samplerref": 8, "surfref": 8,
}  # fmt: skip
SPECIALS = {
    "tid", "ntid", "laneid", "warpid", "nwarpid", "ctaid", "nctaid", "smid", "nsmid", "gridid", "clusterid",
    "nclusterid", "cluster_ctaid", "cluster_nctaid", "cluster_ctarank", "cluster_nctarank", "is_explicit_cluster",
    "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "clock", "clock_hi", "clock64",
    "globaltimer", "globaltimer_lo", "globaltimer_hi", "dynamic_smem_size", "total_smem_size",
    "aggr_smem_size", "current_graph_exec",
}  # fmt: skip
SPACES = {"global", "shared", "const", "local", "param"}
