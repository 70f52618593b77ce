"""A decoded entry: basic blocks of steps, ready to run."""

from __future__ import annotations

from dataclasses import dataclass, field

from emulator.machine.pointers import Pointers
from emulator.sanitizer.report import source_name
from emulator.text.program import Function, Instruction

ALL = -1  # a register set with every register in it


@dataclass
class CodeBlock:
    """A decoded flow.Block. `live` is the set of registers (a bit each) that code from here on may read."""

    index: int
    steps: list
    plain: list[int]  # instructions whose threads are the block's threads
    guarded: list[int]  # instructions that count their own threads
    head: str
    head_step: object  # Barrier for "barrier", membermask getter for "warp"
    ends: str
    targets: list[int]
    predicate: tuple[int, bool] | None = None
    selector: object = None
    last: Instruction | None = None
    code: list[Instruction] = field(default_factory=list)
    live: int = 0
    length: int = 1  # steps before some were joined: what the clock goes on by


@dataclass
class Code:
    """A decoded entry, independent of any launch."""

    function: Function
    blocks: list[CodeBlock]
    rank: list[int]
    widths: list[int]  # bytes of each register slot, 0 for predicates
    names: list[str]
    instructions: dict[int, Instruction]
    shared_static: int
    shared_symbols: dict[str, int]
    local_bytes: int
    params: list[tuple[str, int, int, str]]  # name, offset, size, type
    pointers: Pointers
    reserved: bool  # asks for the part of shared memory that is the system's
    asks_for_grid: bool  # asks for a grid's workspace, which cooperative launches have
    unchecked: frozenset[int]  # waits for mbarriers whose answer nobody looks at
    single: frozenset[int]  # those that no loop repeats until they succeed

    @property
    def maps_addresses(self) -> bool:
        """Whether it makes addresses of other blocks' shared memory."""
        return any(ins.parts[0] == "mapa" for ins in self.instructions.values())

    def shared_symbol(self, address: int) -> tuple[str, int]:
        """(name, start) of the shared variable that a byte address is in, as its author wrote it."""
        before = [(at, name) for name, at in self.shared_symbols.items() if at <= address]
        if not before:
            return "shared memory", 0
        at, name = max(before)
        return source_name(name), at
