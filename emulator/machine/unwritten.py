"""Which registers may hold what no instruction has written: a pass over a decoded entry, once.

Most code writes every register before it reads it, on all paths, and that can be proven here. Only
instructions of which it cannot are watched while they run (`ops.undefined`), and only when what they
compute may reach an address, a branch or a store; all others cost nothing.

Sets of registers are ints with a bit for each slot.
"""

from __future__ import annotations

from dataclasses import dataclass

from emulator.text.program import (
    SPACES,
    Group,
    Instruction,
    Negative,
    Not,
    Pair,
    Part,
    Reg,
    Symbol,
    Vector,
)


@dataclass(slots=True)
class Touch:
    """What one instruction does to registers.

    addresses: those that it addresses memory with; values: those that it computes with; stored:
    those of the values that leave the thread's registers; writes; guard: its predicate's bit. local:
    "read", "write" or "" for what it does to local memory. What the pass finds: undefined, of the
    registers read, those that may depend on something unwritten; unwritten: those that may themselves be.
    watched: the written registers whose state must be kept up while it runs.
    """

    ins: Instruction
    addresses: int
    values: int
    stored: int
    writes: int
    guard: int
    local: str = ""
    undefined: int = 0
    unwritten: int = 0
    watched: int = 0

    @property
    def strays(self) -> bool:
        """Whether its result is undefined in lanes that read from one that does not take part."""
        return self.ins.parts[0] == "shfl"

    @property
    def sinks(self) -> int:
        """What is read here and may be undefined though it decides what happens."""
        return self.undefined & (self.addresses | self.stored | self.guard)


def registers(operand) -> list[Reg]:
    """The registers that an operand names."""
    match operand:
        case Reg():
            return [operand]
        case Not(item) | Part(item):
            return [item]
        case Negative(item):
            return registers(item)
        case Vector(items) | Group(items):
            return [found for item in items for found in registers(item)]
        case Pair(first, second):
            return [*registers(first), *registers(second)]
    return []


def bits_of(found, names) -> int:
    """Registers as a set of slots; those that nobody has asked for yet are left out."""
    total = 0
    for register in found:
        if register.name in names.slots:
            total |= 1 << names.slots[register.name]
    return total


def slots_in(bits: int) -> list[int]:
    """The slots of a set of them."""
    found = []
    while bits:
        first = bits & -bits
        found.append(first.bit_length() - 1)
        bits ^= first
    return found


def touch(ins: Instruction, bind, names) -> Touch:
    """The Touch of an instruction whose factory has been through `bind`."""
    local = _local(ins, names)
    leaves = bind.values if not bind.defs or ins.parts[0] == "atom" else 0
    if local == "write" and _is_local(ins):
        leaves = 0
    guard = bits_of([ins.guard[0]], names) if ins.guard else 0
    return Touch(ins, bind.addresses, bind.values, leaves, bind.defs, guard, local)


def _is_local(ins: Instruction) -> bool:
    return any(word in ("local", "param") or word.startswith("param::") for word in ins.parts)


def suspicious(blocks, targets: list[list[int]], ends: list[int], start: int, strays: bool) -> bool:
    """Whether anything undefined may come to where it matters. It may say yes where `find` says no.

    start: the registers that are undefined at the start; strays: whether results of shuffles may be.

    blocks: (instruction, its Binder) of each basic block in order; targets: where each leads; ends: the
    registers that each one's branch or switch reads.
    """
    code = []
    for block in blocks:
        items = []
        for ins, bind in block:
            guard = 1 << bind.names.slots[ins.guard[0].name] if ins.guard else 0
            matters = bind.addresses | guard
            stray = strays and ins.parts[0] == "shfl"
            if not bind.defs or ins.parts[0] == "atom":
                matters |= bind.values
            touched = bind.values | matters | bind.defs
            items.append((touched, matters, bind.values, bind.defs, guard, stray))
        code.append(items)
    states: list[int | None] = [None] * len(blocks)
    states[0] = start
    work = {0}
    while work:
        at = min(work)
        work.discard(at)
        undefined = states[at]
        for touched, matters, values, writes, guard, stray in code[at]:
            here = undefined & touched
            if stray and not here & matters:
                undefined |= writes
            elif here:
                if here & matters:
                    return True
                if here & values:
                    undefined |= writes
                elif not guard:
                    undefined ^= here & writes
        if undefined & ends[at]:
            return True
        for target in targets[at]:
            before = states[target]
            joined = undefined if before is None else before | undefined
            if joined != before:
                states[target] = joined
                work.add(target)
    return False


def find(
    blocks: list[list[Touch]], targets: list[list[int]], ends: list[int], memory: int, start: int
) -> bool:
    """Fills in what the pass finds. Returns whether anything has to be watched at all.

    blocks: the Touches of each basic block in order; targets, ends, start: as of `suspicious`. memory: the bit
    that stands for local memory.
    """
    # (undefined, unwritten) at the start of each block, None where nothing gets to
    states: list[tuple[int, int] | None] = [None] * len(blocks)
    states[0] = (start | memory, start)
    work = {0}
    at_ends = False
    while work:
        at = min(work)
        work.discard(at)
        undefined, unwritten = states[at]
        for item in blocks[at]:
            item.undefined |= undefined & (item.addresses | item.values | item.guard | item.writes)
            item.unwritten |= unwritten & (item.addresses | item.values | item.guard)
            taints = undefined & item.values
            if item.local == "read":
                taints |= memory
            if taints or item.strays:
                undefined |= item.writes
            elif not item.guard:
                undefined &= ~item.writes
            if not item.guard:
                unwritten &= ~item.writes
        at_ends |= bool(undefined & ends[at])
        for target in targets[at]:
            before = states[target]
            joined = (undefined, unwritten)
            if before is not None:
                joined = (before[0] | undefined, before[1] | unwritten)
            if joined != before:
                states[target] = joined
                work.add(target)
    return at_ends or any(item.sinks for block in blocks for item in block)


def choose(blocks: list[list[Touch]], ends: list[int], memory: int) -> None:
    """Sets `watched`: the registers through which something undefined may come to where it matters."""
    relevant = 0
    for block, condition in zip(blocks, ends, strict=True):
        relevant |= condition
        for item in block:
            relevant |= item.sinks
    grown = -1
    while grown != relevant:
        grown = relevant
        for block in blocks:
            for item in block:
                if item.writes & relevant:
                    relevant |= item.values & item.undefined
                    if item.local == "read":
                        relevant |= memory
                if item.local == "write" and relevant & memory:
                    relevant |= item.values & item.undefined
    for block in blocks:
        for item in block:
            may_change = item.undefined & (item.writes | item.values) or item.local == "read"
            may_change = may_change or item.strays
            if item.writes & relevant and may_change:
                item.watched = item.writes & relevant
            if item.local == "write" and relevant & memory:
                item.watched |= memory


def origin(
    blocks: list[list[Touch]], start: Touch, slots: int
) -> tuple[Instruction, int | None] | None:
    """The first instruction that reads something unwritten which may have come to `slots` of `start`.

    Returns it with the slot; a shuffle, with None; or None where it is in local memory.
    """
    wanted, grown = slots, -1
    direct = start.unwritten & slots
    found = (start.ins, direct.bit_length() - 1) if direct else None
    while grown != wanted:
        grown = wanted
        for block in blocks:
            for item in block:
                if item.writes & wanted:
                    wanted |= item.values & item.undefined
    for block in blocks:
        for item in block:
            roots = item.unwritten & item.values
            if item.writes & wanted and roots and (found is None or item.ins.line < found[0].line):
                found = item.ins, roots.bit_length() - 1
    strays = (
        item.ins for block in blocks for item in block if item.strays and item.writes & wanted
    )
    return found or next(((ins, None) for ins in strays), None)


def _local(item: Instruction, names) -> str:
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


def watch(blocks, decoded, names, watching, opcodes) -> None:
    """Where something that nobody wrote may come to matter, steps are exchanged for watchful ones.

    blocks: of `code.CodeBlock`. decoded: (instruction, step or None, Binder) of those of each.
    watching: makes an `ops.watching.Watch`.
    """
    targets = [block.targets for block in blocks]
    ends = [
        (1 << block.predicate[0] if block.predicate else 0)
        | (bits_of(registers(block.last.operands[0]), names) if block.ends == "switch" else 0)
        for block in blocks
    ]
    pairs = [[(ins, bind) for ins, _, bind in items] for items in decoded]
    everything = (1 << len(names.widths)) - 1
    start = everything
    if not names.local_bytes and not suspicious(pairs, targets, ends, everything, False):
        start = 0
        shuffles = any(ins.parts[0] == "shfl" for block in pairs for ins, _ in block)
        if not shuffles or not suspicious(pairs, targets, ends, 0, True):
            return
    touches = [[touch(ins, bind, names) for ins, bind in block] for block in pairs]
    memory = 1 << len(names.widths)
    if not find(touches, targets, ends, memory, start):
        return
    choose(touches, ends, memory)
    watcher = watching(touches, names, opcodes, bool(start))
    behind: dict[int, list] = {}  # what must run behind a barrier, by block
    for block, items, found, condition in zip(blocks, decoded, touches, ends, strict=True):
        steps = []
        for (ins, step, bind), item in zip(items, found, strict=True):
            if step is None:
                if item.watched:
                    behind.setdefault(block.targets[0], []).append(watcher.cleared(item))
                continue
            step = watcher.step(step, bind, item)
            if ins.guard:
                step = watcher.guard(bind.guarded(step), item)
            steps.append(step)
        if condition:
            steps.extend(watcher.end(block, condition))
        block.steps[:] = steps
    for index, steps in behind.items():
        blocks[index].steps[:0] = steps
