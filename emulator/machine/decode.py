"""From an entry's parsed instructions to Python closures (`code`), once for each entry."""

from __future__ import annotations

from emulator.errors import EmulatorError, Unsupported
from emulator.machine import tensor_memory, warpgroup
from emulator.machine.binder import Binder
from emulator.machine.calls import selector_of
from emulator.machine.code import Code, CodeBlock
from emulator.machine.names import Names
from emulator.machine.pointers import find as find_pointers
from emulator.machine.unchecked import find as find_unchecked
from emulator.machine.unchecked import find_single
from emulator.machine.under_way import tracked, watched
from emulator.machine.unwritten import watch
from emulator.text import flow, typing
from emulator.text.program import Address, Function, Instruction, Program
from emulator.text.rows import Row, Table, row_of


def decode(
    program: Program, function: Function, globals_: dict[str, int], opcodes: Table, watching
) -> Code:
    """Decodes one entry.

    globals_: module variable -> address. watching: makes the steps that watch registers which may be read
    before they are written (`ops.watching.Watch`). Raises Unsupported, PtxError.
    """
    graph = flow.build(program, function, opcodes)
    names = Names(program, function, graph, globals_)
    kinds = [
        (tracked(graph.blocks, names.slot, kind.held), kind.under_way)
        for kind in (warpgroup, tensor_memory)
    ]
    blocks, flows, instructions, raw = [], [], {}, []
    verdicts: dict = {}
    for index, block in enumerate(graph.blocks):
        made = CodeBlock(
            index, [], [], [], block.head, None, block.ends, block.targets, last=block.last
        )
        made.code = block.code
        uses = kills = 0
        touched = []
        for position, item in enumerate(block.code):
            instructions[item.index] = item
            bind, row = Binder(names, item), _row(opcodes, item)
            typing.check(item, row.types or "", names.registers, verdicts)
            if position == 0 and block.head == "barrier":
                made.head_step, step = _made(row, item, bind), None
            else:
                if position == 0 and block.head and row.member is not None:
                    made.head_step = bind.integer(item.operands[row.member], "u32")
                step = _made(row, item, bind)
                for bits, under_way in kinds:
                    held = (bind.uses | bind.defs) & bits
                    if held and step is not None and item.parts[0] != "wgmma":
                        reads, writes = bind.uses & held, bind.defs & held
                        step = watched(step, item, reads, writes, names.slot, under_way)
            touched.append((item, step, bind))
            if step is not None:
                made.steps.append(bind.guarded(step) if item.guard else step)
            if item.index >= 0:
                (made.guarded if item.guard else made.plain).append(item.index)
            uses |= bind.uses & ~kills
            if not item.guard:
                kills |= bind.defs & ~bind.partial
        if block.last is not None:
            instructions[block.last.index] = block.last
            if block.last.index >= 0:
                made.plain.append(block.last.index)
        if block.guard:
            slot = names.slot(block.guard[0])
            made.predicate = (slot, block.guard[1])
            uses |= (1 << slot) & ~kills
        if block.ends == "switch":
            bind = Binder(names, block.last)
            made.selector = selector_of(block.last, bind)
            uses |= bind.uses & ~kills
        blocks.append(made)
        flows.append((uses, kills))
        raw.append(touched)
    _liveness(blocks, flows)
    watch(blocks, raw, names, watching, opcodes)
    for block in blocks:
        block.length = len(block.steps) or 1
        block.steps[:] = _joined(block.steps)
    pointers = find_pointers(raw, names, blocks)
    shared = {name: at for name, (space, at) in names.symbols.items() if space == "shared"}
    return Code(
        function, blocks, graph.order, names.widths, names.names, instructions,
        names.shared_static, shared, names.local_bytes, names.params, pointers,
        names.reserved, names.asks_for_grid, find_unchecked(raw, blocks), find_single(raw, blocks),
    )  # fmt: skip


def _row(opcodes: Table, item: Instruction) -> Row:
    row = row_of(opcodes, item)
    further = any(isinstance(x, Address) and x.further for x in item.operands)
    if row is None or (further and "tensor" not in item):
        raise Unsupported(f"{item.opcode} is not supported", item.line, item.text)
    return row


def _made(row: Row, item: Instruction, bind: Binder):
    """What the row's factory makes. A fault of the factory's own is told from one of the PTX: it passes as it is."""
    try:
        return row.factory(item, bind)
    except EmulatorError:
        raise
    except Exception as problem:
        problem.add_note(f"while decoding PTX line {item.line}: {item.text}")
        raise


def _joined(steps: list) -> list:
    """Steps in order, where one that can `join` the next has taken it in."""
    found: list = []
    for step in steps:
        if not (found and hasattr(found[-1], "join") and found[-1].join(step)):
            found.append(step)
    return found


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
