"""Control flow: a function's body as basic blocks, calls inlined, in an order that reconverges.

Threads that have branched apart meet again because, among the blocks where threads stand, the one
that comes first in `order` runs first. So whoever reaches the place where paths join waits there until
the others have come: what the hardware's convergence barriers do.
"""

from __future__ import annotations

from dataclasses import dataclass

from emulator.text.blocks import Block, divide
from emulator.text.inlining import Inliner
from emulator.text.order import order_of
from emulator.text.program import Function, Program, Variable
from emulator.text.rows import Table


@dataclass(frozen=True)
class Flow:
    """One entry, ready to decode. `order[b]` is the rank of block b; block 0 is the first to run."""

    blocks: list[Block]
    order: list[int]
    registers: dict[str, str]
    variables: tuple[Variable, ...]


def build(program: Program, function: Function, table: Table) -> Flow:
    """Puts the functions that an entry calls in their places, and divides it into blocks."""
    inliner = Inliner(program, table)
    body = inliner.entry(function)
    blocks = divide(body, inliner.targets, table)
    order = order_of(blocks)
    return Flow(blocks, order, inliner.registers, tuple(inliner.variables))
