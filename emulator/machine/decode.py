"""From an entry's parsed instructions to Python closures (`code`), once for each entry."""

from __future__ import annotations

from emulator.errors import PtxError, Unsupported
from emulator.machine.binder import Binder
from emulator.machine.code import Code, CodeBlock
from emulator.machine.names import Names
from emulator.machine.unwritten import bits_of, choose, find, registers, touch
from emulator.text import flow
from emulator.text.program import SPACES, Address, Function, Instruction, Program, Symbol


def decode(
    program: Program,
    function: Function,
    globals_: dict[str, int],
    opcodes: dict,
    barrier,
    watching,
) -> Code:
    """Decodes one entry.

    globals_: module variable -> address. opcodes: first word -> factory. barrier: the factory of what
    stands at the head of a block that begins with a barrier. watching: makes the steps that watch
    registers which may be read before they are written (`ops.watching.Watch`). Raises Unsupported, PtxError.
    """
    graph = flow.build(program, function)
    names = Names(program, function, graph, globals_)
    blocks, flows, instructions, raw = [], [], {}, []
    for index, block in enumerate(graph.blocks):
        made = CodeBlock(
            index, [], [], [], block.head, None, block.ends, block.targets, last=block.last
        )
        made.code = block.code
        uses = kills = 0
        plain: list[Decoded] = []
        for position, item in enumerate(block.code):
            instructions[item.index] = item
            bind = Binder(names, item)
            if position == 0 and block.head == "barrier":
                made.head_step, step = barrier(item, bind), None
            else:
                if position == 0 and block.head == "warp":
                    made.head_step = bind.membermask()
                step = _step(item, bind, opcodes)
            local = _local(item, names)
            plain.append((step, bind, touch(item, names, bind.reads, bind.defs, local)))
            if step is not None:
                made.steps.append(bind.guarded(step) if item.guard else step)
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
        raw.append(plain)
    _liveness(blocks, flows)
    _watch(blocks, raw, names, watching, opcodes)
    shared = {name: at for name, (space, at) in names.symbols.items() if space == "shared"}
    return Code(
        function, blocks, graph.order, names.widths, names.names, instructions,
        names.shared_static, shared, names.local_bytes, names.params,
    )  # fmt: skip


def _step(item: Instruction, bind: Binder, opcodes: dict):
    factory = opcodes.get(item.parts[0])
    if factory is None or any(isinstance(x, Address) and x.further for x in item.operands):
        raise Unsupported(f"{item.opcode} is not supported", item.line, item.text)
    try:
        step = factory(item, bind)
    except (IndexError, KeyError, AttributeError, ValueError, TypeError) as problem:
        raise PtxError(
            f"cannot read this instruction ({problem!r})", item.line, item.text
        ) from problem
    return step


def _local(item: Instruction, names: Names) -> str:
    """ "read" or "write" for a load or store that is, or may be, one of local memory; else ""."""
    kind = {"ld": "read", "ldu": "read", "st": "write"}.get(item.parts[0], "")
    if not kind or not names.local_bytes:
        return ""
    space = next((p.split("::")[0] for p in item.parts[1:] if p.split("::")[0] in SPACES), "")
    if space == "param":
        address = item.operands[kind == "read"]
        symbol = address.base.name if isinstance(address.base, Symbol) else ""
        return kind if names.symbols.get(symbol, ("", 0))[0] == "local" else ""
    return kind if space in ("", "local") else ""


Decoded = tuple  # (step or None, Binder, Touch) of one instruction, its guard left out


def _watch(blocks: list[CodeBlock], raw: list[list[Decoded]], names, watching, opcodes) -> None:
    """Where something that nobody wrote may come to matter, steps are exchanged for watchful ones."""
    touches = [[item for _, _, item in plain] for plain in raw]
    targets = [block.targets for block in blocks]
    ends = [
        (1 << block.predicate[0] if block.predicate else 0)
        | (bits_of(registers(block.last.operands[0]), names) if block.ends == "switch" else 0)
        for block in blocks
    ]
    memory = 1 << len(names.widths)
    if not find(touches, targets, ends, memory):
        return
    choose(touches, ends, memory)
    watch = watching(touches, names, opcodes)
    behind: dict[int, list] = {}  # what must run behind a barrier, by block
    for block, plain, condition in zip(blocks, raw, ends, strict=True):
        steps = []
        for step, bind, item in plain:
            if step is None:
                if item.watched:
                    behind.setdefault(block.targets[0], []).append(watch.cleared(item))
                continue
            step = watch.step(step, bind, item)
            if item.ins.guard:
                step = watch.guard(bind.guarded(step), item)
            steps.append(step)
        if condition:
            steps.extend(watch.end(block, condition))
        block.steps[:] = steps
    for index, steps in behind.items():
        blocks[index].steps[:0] = steps


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
