"""From an entry's parsed instructions to Python closures (`code`), once for each entry."""

from __future__ import annotations

from emulator.errors import PtxError, Unsupported
from emulator.machine.binder import Binder
from emulator.machine.code import Code, CodeBlock
from emulator.machine.names import Names
from emulator.machine.warpgroup import tracked, watched
from emulator.text import flow
from emulator.text.program import Address, Function, Instruction, Program


def decode(
    program: Program, function: Function, globals_: dict[str, int], opcodes: dict, barrier
) -> Code:
    """Decodes one entry.

    globals_: module variable -> address. opcodes: first word -> factory. barrier: the factory of what
    stands at the head of a block that begins with a barrier. Raises Unsupported, PtxError.
    """
    graph = flow.build(program, function)
    names = Names(program, function, graph, globals_)
    under_way = tracked(graph.blocks, names.slot)
    blocks, flows, instructions = [], [], {}
    for index, block in enumerate(graph.blocks):
        made = CodeBlock(
            index, [], [], [], block.head, None, block.ends, block.targets, last=block.last
        )
        made.code = block.code
        uses = kills = 0
        for position, item in enumerate(block.code):
            instructions[item.index] = item
            bind = Binder(names, item)
            if position == 0 and block.head == "barrier":
                made.head_step = barrier(item, bind)
            else:
                if position == 0 and block.head == "warp":  # a warpgroup always meets whole
                    made.head_step = bind.membermask()
                made.steps.append(_step(item, bind, opcodes, under_way))
            (made.guarded if item.guard else made.plain).append(item.index)
            uses |= bind.uses & ~kills
            if not item.guard:
                kills |= bind.defs & ~bind.partial
        if block.last is not None:
            instructions[block.last.index] = block.last
            made.plain.append(block.last.index)
        if block.guard:
            slot = names.slot(block.guard[0])
            made.predicate = (slot, block.guard[1])
            uses |= (1 << slot) & ~kills
        if block.ends == "switch":
            bind = Binder(names, block.last)
            made.selector = bind.integer(block.last.operands[0], "u32")
            uses |= bind.uses & ~kills
        blocks.append(made)
        flows.append((uses, kills))
    _liveness(blocks, flows)
    shared = {name: at for name, (space, at) in names.symbols.items() if space == "shared"}
    return Code(
        function, blocks, graph.order, names.widths, names.names, instructions,
        names.shared_static, shared, names.local_bytes, names.params,
    )  # fmt: skip


def _step(item: Instruction, bind: Binder, opcodes: dict, under_way: int):
    factory = opcodes.get(item.parts[0])
    further = any(isinstance(x, Address) and x.further for x in item.operands)
    if factory is None or (further and "tensor" not in item):
        raise Unsupported(f"{item.opcode} is not supported", item.line, item.text)
    try:
        step = factory(item, bind)
    except (IndexError, KeyError, AttributeError, ValueError, TypeError) as problem:
        raise PtxError(
            f"cannot read this instruction ({problem!r})", item.line, item.text
        ) from problem
    if (bind.uses | bind.defs) & under_way and item.parts[0] != "wgmma":
        step = watched(step, item, bind.uses & under_way, bind.defs & under_way, bind.names.slot)
    return bind.guarded(step) if item.guard else step


def _liveness(blocks: list[CodeBlock], flows: list[tuple[int, int]]) -> None:
    before: list[list[int]] = [[] for _ in blocks]
    for block in blocks:
        for target in block.targets:
            before[target].append(block.index)
    work = set(range(len(blocks)))
    while work:
        index = max(work)
        work.discard(index)
        block, (uses, kills) = blocks[index], flows[index]
        out = 0
        for target in block.targets:
            out |= blocks[target].live
        live = uses | (out & ~kills)
        if live != block.live:
            block.live = live
            work.update(before[index])
