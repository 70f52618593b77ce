"""Which buffers each instruction may access: a pass over a decoded entry, once.

A pointer starts as a parameter or as a module variable's address and is passed on by arithmetic. So
an address shows by where its parts come from which buffers it may point into, and a launch need
not watch reads of those that nothing writes. Sets of sources are ints with a bit for each.
"""

from __future__ import annotations

from dataclasses import dataclass

from emulator.machine.unwritten import slots_in
from emulator.text.program import WIDTHS, Address, Imm, Instruction, Reg, Symbol, Vector

UNKNOWN = 1  # a pointer that came from memory
WINDOW = 2  # an address of shared or local memory
_DEPTH = 8  # how far back an address is traced
_FIRST = 2  # the bits above are those of `Pointers.sources`
_SPACES = {"global", "shared", "const", "local", "param"}
_ELSEWHERE = {"const", "param", "local", "shared"}
_READS = {"ld", "ldu", "atom", "red"}
_WRITES = {"st", "atom", "red", "tensormap"}
_ACCESSES = {*_READS, *_WRITES, "cp", "wmma"}


@dataclass(frozen=True)
class Pointers:
    """sources: the number of a parameter, or the name of a module variable, for each bit above the first two.

    reads, writes: instruction index -> the sources of the addresses that it reads or writes global
    memory at. fences: whether anything may order one block after another. guesses: plain loads of what the
    kernel also updates with an atomic, through the same register: a first guess for `atom.cas`, say. waits: whether
    a loop polls global memory, so that blocks may wait for each other.
    """

    sources: tuple[int | str, ...]
    reads: dict[int, int]
    writes: dict[int, int]
    fences: bool
    guesses: frozenset[int]
    waits: bool

    def of(self, sources: int) -> list[int | str] | None:
        """The parameters and variables among these sources; None where they may be anything."""
        if sources & UNKNOWN:
            return None
        return [name for i, name in enumerate(self.sources) if sources >> (_FIRST + i) & 1]


def space_of(ins: Instruction) -> str:
    """The first state space that its words name. (A copy to shared memory names that first.)"""
    if ins.parts[0] == "cp":
        return ""
    return next((p.split("::")[0] for p in ins.parts[1:] if p.split("::")[0] in _SPACES), "")


def find(decoded: list[list[tuple]], names, blocks) -> Pointers:
    """decoded: (instruction, step or None, Binder) of those of each block, as `decode` has them; blocks: those."""
    variables = [name for name, (space, _) in names.symbols.items() if space == "global"]
    sources = (*range(len(names.params)), *variables)
    bits = {source: 1 << (_FIRST + i) for i, source in enumerate(sources)}
    params = {name: bits[i] for i, (name, *_) in enumerate(names.params)}

    def symbol(name: str) -> int:
        if name in params:
            return params[name]
        space, _ = names.symbols.get(name, ("", 0))
        return bits[name] if space == "global" else WINDOW

    wide = sum(1 << slot for slot, width in enumerate(names.widths) if width == 8)
    made = [
        (bind.defs & wide, bind.values, *_made(ins, symbol))
        for block in decoded
        for ins, _, bind in block
        if bind.defs & wide
    ]
    held: dict[int, int] = {}  # register slot -> sources
    changed = True
    while changed:
        changed = False
        for defs, values, own, passes in made:
            total = own
            if passes:
                for slot in slots_in(values & wide):
                    total |= held.get(slot, 0)
            for slot in slots_in(defs):
                before = held.get(slot, 0)
                if total | before != before:
                    held[slot] = total | before
                    changed = True

    reads: dict[int, int] = {}
    writes: dict[int, int] = {}
    fences, loads, updated = False, [], []
    strong = set()
    for at, block in enumerate(decoded):
        for ins, *_ in block:
            root = ins.parts[0]
            fences |= root in ("membar", "fence") or not _STRONG.isdisjoint(ins.parts)
            if root not in _ACCESSES or space_of(ins) in _ELSEWHERE:
                continue
            if root == "atom" or (root == "ld" and not _POLLS.isdisjoint(ins.parts)):
                strong.add(at)
            if root in ("ld", "atom", "red"):
                target = ins.operands[root != "red"]
                (loads if root == "ld" else updated).append((ins.index, target))
            for position, address in enumerate(_maybe_global(ins)):
                if address is None:
                    continue
                found = _pointed(address, names, held, symbol)
                if found == WINDOW:
                    continue
                for kind, table in (("reads", reads), ("writes", writes)):
                    if _does(ins, position, kind):
                        table[ins.index] = table.get(ins.index, 0) | found
    guesses = _guesses(decoded, loads, updated) if updated else frozenset()
    waits = any(_in_loop(blocks, at) for at in strong)
    return Pointers(sources, reads, writes, fences, guesses, waits)


def _in_loop(blocks, start: int) -> bool:
    seen, work = set(), list(blocks[start].targets)
    while work:
        at = work.pop()
        if at == start:
            return True
        if at not in seen:
            seen.add(at)
            work.extend(blocks[at].targets)
    return False


def _guesses(decoded, loads, updated) -> frozenset[int]:
    """The loads whose address is computed as that of an atomic is."""
    made: dict[str, Instruction | None] = {}  # register -> the one instruction that writes it
    for block in decoded:
        for ins, *_ in block:
            if ins.operands and isinstance(ins.operands[0], Reg):
                name = ins.operands[0].name
                made[name] = None if name in made or ins.guard else ins

    def expression(operand, depth: int = 0):
        ins = made.get(operand.name) if isinstance(operand, Reg) else None
        if ins is None or ins.parts[0] in _ACCESSES or depth > _DEPTH:
            return operand
        return (ins.opcode, *(expression(x, depth + 1) for x in ins.operands[1:]))

    def place(address: Address):
        base, offset = expression(address.base), address.offset
        while isinstance(base, tuple) and base[0].startswith("add") and isinstance(base[2], Imm):
            base, offset = base[1], offset + base[2].value
        return base, offset

    targets = {place(address) for _, address in updated}
    return frozenset(index for index, address in loads if place(address) in targets)


def _maybe_global(ins: Instruction) -> list[Address | None]:
    """Its addresses, without those that its words say are elsewhere: a copy names its target's space, then its source's."""
    addresses = [x for x in ins.operands if isinstance(x, Address)]
    if ins.parts[0] == "tensormap":
        return addresses[:1]  # a copy is from shared memory
    if ins.parts[0] != "cp":
        return addresses
    if "prefetch" in ins.parts:
        return []
    spaces = [part.split("::")[0] for part in ins.parts if part.split("::")[0] in _SPACES]
    spaces += ["shared"] * (len(addresses) - len(spaces))  # what counts a copy's bytes
    return [
        address if space == "global" else None
        for address, space in zip(addresses, spaces, strict=False)
    ]


def _does(ins: Instruction, position: int, kind: str) -> bool:
    """Whether an instruction "reads" or "writes" at its address operand of this position."""
    root = ins.parts[0]
    if root == "cp":  # a copy: to the first, from the second
        return (position > 0) == (kind == "reads")
    if root == "wmma":
        return ("load" in ins.parts) == (kind == "reads")
    return root in (_READS if kind == "reads" else _WRITES)


_POLLS = {"volatile", "relaxed", "acquire"}
_STRONG = {"release", "acquire", "acq_rel"}


def _made(ins: Instruction, symbol) -> tuple[int, bool]:
    """(sources that its result has of its own, whether it passes on those of its operands)."""
    root = ins.parts[0]
    if root in ("ld", "ldu", "atom"):
        width = WIDTHS.get(ins.parts[-1], 8)
        address = next((x for x in ins.operands if isinstance(x, Address)), None)
        if width < 8 or ins.parts[-1] == "f64" or address is None:
            return 0, False
        if root == "ld" and "param" in (p.split("::")[0] for p in ins.parts):
            base = address.base
            if isinstance(base, Symbol) and symbol(base.name) != WINDOW:
                return symbol(base.name), False
        return UNKNOWN, False
    own = 0
    for operand in ins.operands:
        if isinstance(operand, Symbol):
            own |= symbol(operand.name)
        elif isinstance(operand, Vector):  # two halves, which may be a pointer's
            own |= UNKNOWN
    return own, True


def _pointed(address: Address, names, held: dict[int, int], symbol) -> int:
    base = address.base
    if isinstance(base, Symbol):
        return symbol(base.name)
    if isinstance(base, Reg):
        return held.get(names.slots.get(base.name, -1), 0) or UNKNOWN
    return UNKNOWN
