"""Control flow: a function's body as basic blocks, calls inlined, in an order that reconverges.

Threads that have branched apart meet again because, among the blocks where threads stand, the one
that comes first in `order` runs first. The order is topological, each loop contiguous (a weak
topological order; Bourdoncle, 1993), and several back edges to one loop head are led through one
latch. So whoever reaches the place where paths join waits there until the others have come: what
the hardware's convergence barriers do.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace

from emulator.errors import PtxError, Unsupported
from emulator.text import modifiers
from emulator.text.program import (
    Address,
    Function,
    Group,
    Instruction,
    Label,
    Not,
    Pair,
    Program,
    Reg,
    Symbol,
    Variable,
    Vector,
)


@dataclass
class Block:
    """Straight-line code. `head` says whether its first instruction makes lanes meet: "barrier", "warp" or "".

    ends: "jump" (targets[0]), "branch" (targets[0] if the predicate holds, else targets[1]), "switch"
    (targets[index]), "exit", "trap".
    """

    code: list[Instruction] = field(default_factory=list)
    head: str = ""
    ends: str = "jump"
    targets: list[int] = field(default_factory=list)
    guard: tuple[Reg, bool] | None = None
    last: Instruction | None = None  # the control instruction itself, if there is one


@dataclass(frozen=True)
class Flow:
    """One entry, ready to decode. `order[b]` is the rank of block b; block 0 is the first to run."""

    blocks: list[Block]
    order: list[int]
    registers: dict[str, str]
    variables: tuple[Variable, ...]


ASSERT_FUNCTIONS = {"__assertfail", "__assert_fail"}
_WARP_SYNC = {
    "shfl",
    "vote",
    "match",
    "redux",
    "elect",
    "mma",
    "wmma",
    "ldmatrix",
    "stmatrix",
    "movmatrix",
}


def head_of(instruction: Instruction) -> str:
    """Which lanes this instruction makes meet: those of a "barrier", those of a "warp", or none."""
    root = instruction.parts[0]
    if root in ("bar", "barrier"):
        if "warp" in instruction:
            return "warp"
        return "" if "cluster" in instruction else "barrier"
    return "warp" if root in _WARP_SYNC and "sync" in instruction else ""


def build(program: Program, function: Function) -> Flow:
    """Inlines every call of an entry and divides it into blocks. Recursion and indirect calls are refused."""
    inliner = _Inliner(program)
    body = inliner.expand(function, "", {}, (function.name,))
    blocks = _divide(body, inliner.targets)
    order = _order(blocks)
    return Flow(blocks, order, inliner.registers, tuple(inliner.variables))


# --- Calls ------------------------------------------------------------------------------------------


class _Inliner:
    def __init__(self, program: Program):
        self.program = program
        self.count = 0
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.targets: dict[str, tuple[str, ...]] = {}

    def expand(
        self, function: Function, suffix: str, names: dict[str, str], chain: tuple[str, ...]
    ) -> list:
        """The body with its own names marked by `suffix` and its parameters replaced by the caller's."""
        names = dict(names)
        for name, kind in function.registers.items():
            names.setdefault(name, name + suffix)
            self.registers[names[name]] = kind
        for variable in function.variables:
            if variable.space == "shared":  # one per kernel, however often the function is inlined
                names[variable.name] = (
                    f"{function.name}.{variable.name}" if len(chain) > 1 else variable.name
                )
                if any(v.name == names[variable.name] for v in self.variables):
                    continue
            else:
                names[variable.name] = variable.name + suffix
            self.variables.append(replace(variable, name=names[variable.name]))
        labels = [item.name for item in function.body if isinstance(item, Label)]
        names.update({label: label + suffix for label in labels})
        for name, labels in function.targets.items():
            self.targets[name + suffix] = tuple(names.get(label, label) for label in labels)
            names[name] = name + suffix
        end, body = Label(f"end of {function.name}{suffix}"), []
        for item in function.body:
            if isinstance(item, Label):
                body.append(Label(names[item.name]))
                continue
            modifiers.check(item)
            if item.parts[0] == "call":
                body.extend(self.call(_rename_instruction(item, names), chain))
            elif item.parts[0] == "ret" and suffix:
                guard = _rename_instruction(item, names).guard
                body.append(
                    replace(item, parts=("bra",), operands=(Symbol(end.name),), guard=guard)
                )
            else:
                body.append(_rename_instruction(item, names))
        return [*body, end]

    def call(self, item: Instruction, chain: tuple[str, ...]) -> list:
        operands = list(item.operands)
        results = operands.pop(0).items if operands and isinstance(operands[0], Group) else ()
        target = operands.pop(0) if operands else None
        arguments = operands.pop(0).items if operands and isinstance(operands[0], Group) else ()
        if not isinstance(target, Symbol):
            raise Unsupported("an indirect call is not supported", item.line, item.text)
        callee = self.program.functions.get(target.name)
        if callee is None:
            if target.name in ASSERT_FUNCTIONS:
                return [replace(item, parts=("trap",), operands=())]
            if target.name == "vprintf" and len(arguments) == 2:
                return [replace(item, parts=("vprintf",), operands=tuple(arguments))]
            raise Unsupported(
                f"call of {target.name}, which has no body here", item.line, item.text
            )
        if callee.name in chain:
            raise Unsupported(
                f"recursive call of {callee.name} is not supported", item.line, item.text
            )
        if len(results) != len(callee.results) or len(arguments) != len(callee.params):
            raise PtxError(f"{callee.name} takes other arguments", item.line, item.text)
        self.count += 1
        names = {}
        for formal, actual in zip(
            (*callee.results, *callee.params), (*results, *arguments), strict=True
        ):
            if formal.space == "reg" or not isinstance(actual, Symbol):
                raise Unsupported(
                    "parameters of a call must be .param variables", item.line, item.text
                )
            names[formal.name] = actual.name
        inside = self.expand(callee, f"#{self.count}", names, (*chain, callee.name))
        after = Label(f"after call {self.count}")
        if item.guard:
            register, negated = item.guard
            guard = [
                replace(
                    item,
                    parts=("bra",),
                    operands=(Symbol(after.name),),
                    guard=(register, not negated),
                )
            ]
        else:
            guard = [
                replace(item, parts=("bra", "call"), operands=(Symbol(f"enter {self.count}"),))
            ]
            inside = [Label(f"enter {self.count}"), *inside]
        return [*guard, *inside, after]


def _rename(operand, names: dict[str, str]):
    match operand:
        case Reg(name):
            return Reg(names.get(name, name))
        case Symbol(name, offset):
            return Symbol(names.get(name, name), offset)
        case Address(base, offset, further):
            return Address(_rename(base, names), offset, further)
        case Vector(items):
            return Vector(tuple(_rename(item, names) for item in items))
        case Group(items):
            return Group(tuple(_rename(item, names) for item in items))
        case Pair(first, second):
            return Pair(_rename(first, names), _rename(second, names))
        case Not(item):
            return Not(_rename(item, names))
    return operand


def _rename_instruction(item: Instruction, names: dict[str, str]) -> Instruction:
    guard = item.guard and (_rename(item.guard[0], names), item.guard[1])
    return replace(
        item, operands=tuple(_rename(operand, names) for operand in item.operands), guard=guard
    )


# --- Blocks -----------------------------------------------------------------------------------------


def _divide(body: list, tables: dict[str, tuple[str, ...]]) -> list[Block]:
    blocks, labels, ends = [Block()], {}, []

    def start(head: str = "") -> Block:
        """A new block that the present one falls into."""
        here = blocks[-1]
        if here.code or here.last or here.head:
            if here.ends == "jump" and not here.targets:
                here.targets = [len(blocks)]
            blocks.append(Block())
        blocks[-1].head = head
        return blocks[-1]

    for item in body:
        if isinstance(item, Label):
            start()
            labels[item.name] = len(blocks) - 1
            continue
        root, here = item.parts[0], blocks[-1]
        if here.last is not None:
            here = start()
        if root in ("bra", "exit", "ret", "trap", "brkpt"):
            here.last = item
            kind = {"bra": "jump", "brkpt": "trap", "ret": "exit"}.get(root, root)
            if kind == "jump":
                target = item.operands[0].name
                here.targets = [target]
                if item.guard:
                    here.ends, here.guard = "branch", item.guard
                    here.targets.append(len(blocks))
            elif item.guard:
                here.ends, here.guard = "branch", item.guard
                here.targets = [f"{kind} of {item.index}", len(blocks)]
                ends.append(
                    (
                        f"{kind} of {item.index}",
                        Block(ends=kind, last=item if kind == "trap" else None),
                    )
                )
            else:
                here.ends = kind
        elif root == "brx":
            here.last, here.ends = item, "switch"
            table = item.operands[1].name
            if table not in tables:
                raise PtxError(f"no .branchtargets named {table}", item.line, item.text)
            here.targets = list(tables[table])
            if item.guard:
                raise Unsupported("a guarded brx.idx is not supported", item.line, item.text)
        else:
            head = head_of(item)
            if head and item.guard:  # only the lanes whose guard holds take part: branch around it
                register, negated = item.guard
                if here.code or here.head:
                    here = start()
                here.ends, here.guard = "branch", (register, negated)
                here.targets = [len(blocks), len(blocks) + 1]
                blocks.append(Block(head=head))
                blocks[-1].code.append(replace(item, guard=None))
                blocks[-1].targets = [len(blocks)]
                blocks.append(Block())
                continue
            if head:
                here = start(head)
            here.code.append(item)
            if root in ("bar", "barrier"):
                start()
    if blocks[-1].ends == "jump" and not blocks[-1].targets:
        blocks[-1].ends = "exit"
    for name, block in ends:  # where guarded exits and traps lead
        labels[name] = len(blocks)
        blocks.append(block)
    for index, block in enumerate(blocks):
        if block.ends == "jump" and not block.targets:
            block.targets = [index + 1]
        for at, target in enumerate(block.targets):
            if isinstance(target, str):
                if target not in labels:
                    raise PtxError(f"no label {target}", block.last.line, block.last.text)
                block.targets[at] = labels[target]
    return blocks


# --- Order ------------------------------------------------------------------------------------------


def _order(blocks: list[Block]) -> list[int]:
    """The rank of each block; appends a latch block for every loop head with several back edges."""
    sequence: list[int] = []
    reachable, stack = {0}, [0]
    while stack:
        for target in blocks[stack.pop()].targets:
            if target not in reachable:
                reachable.add(target)
                stack.append(target)

    def place(nodes: set[int]) -> None:
        """Ranks `nodes`, ignoring edges that leave them (back to the head of a loop around them, say)."""
        for component in _components(blocks, nodes):
            if len(component) == 1 and not any(
                t in component for b in component for t in blocks[b].targets
            ):
                sequence.extend(component)
                continue
            entries = {
                t for b in reachable - component for t in blocks[b].targets if t in component
            }
            head = min(entries or component)
            back = [b for b in component if head in blocks[b].targets]
            sequence.append(head)
            place(component - {head})
            if len(back) > 1:
                latch = len(blocks)
                blocks.append(Block(targets=[head]))
                for b in back:
                    blocks[b].targets = [latch if t == head else t for t in blocks[b].targets]
                sequence.append(latch)

    place(reachable)
    rank = {block: position for position, block in enumerate(sequence)}
    return [rank.get(index, len(sequence) + index) for index in range(len(blocks))]


def _components(blocks: list[Block], nodes: set[int]) -> list[set[int]]:
    """Strongly connected components (Tarjan, without recursion), in topological order, ties by position."""

    def following(b: int) -> list[int]:
        return [t for t in blocks[b].targets if t in nodes]

    index: dict[int, int] = {}
    low: dict[int, int] = {}
    owner: dict[int, int] = {}
    stack: list[int] = []
    groups: list[set[int]] = []
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, iter(following(root)))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    work.append((target, iter(following(target))))
                    break
                if target not in owner:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = set()
                    while True:
                        member = stack.pop()
                        owner[member] = len(groups)
                        group.add(member)
                        if member == node:
                            break
                    groups.append(group)
    entering = [0] * len(groups)
    for b in nodes:
        for target in set(following(b)):
            entering[owner[target]] += owner[target] != owner[b]
    ready = [(min(groups[g]), g) for g in range(len(groups)) if not entering[g]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, g = heapq.heappop(ready)
        ordered.append(groups[g])
        for b in groups[g]:
            for target in set(following(b)):
                if owner[target] != g:
                    entering[owner[target]] -= 1
                    if not entering[owner[target]]:
                        heapq.heappush(ready, (min(groups[owner[target]]), owner[target]))
    return ordered
