"""Calls: an entry's body with the functions that it calls put in their place.

A function that calls itself, directly or through others, cannot be put in place: it stands once, behind the entry's
body, and works on a stack (`Frame`). Its variables lie at distances from the register `STACK`, which grows by what
the caller's variables occupy; a caller that may be entered again before the call returns saves its
registers first (`ops.calls`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from emulator.errors import PtxError, Unsupported
from emulator.text.calls import CallGraph, parts_of
from emulator.text.program import (
    WIDTHS,
    Address,
    Function,
    Imm,
    Instruction,
    Label,
    Program,
    Reg,
    Saved,
    Symbol,
    Variable,
)
from emulator.text.renaming import renamed
from emulator.text.rows import Table, row_of

ASSERT_FUNCTIONS = {"__assertfail", "__assert_fail"}
STACK = Reg("%stack")  # where the variables of the function that runs begin, in local memory
STACK_BYTES = 16 << 10  # of each thread, where functions call themselves
_UNCOUNTED = -1  # index of instructions that belong to a call


@dataclass
class Frame:
    """What one call of a recursive function keeps in local memory: each variable's place, and the size."""

    places: dict[str, int] = field(default_factory=dict)
    size: int = 0

    def add(self, name: str, variable: Variable) -> None:
        align = max(variable.align, 1)
        self.places[name] = -(-self.size // align) * align
        self.size = -(-(self.places[name] + variable.size) // 16) * 16


@dataclass
class Outlined:
    """A recursive function's one copy: where it starts, its frame, and where its calls return to."""

    function: Function
    label: str
    suffix: str
    frame: Frame
    returns: list[str] = field(default_factory=list)


class Inliner:
    """Collects, besides the body, the registers, variables and branch targets of all that is inlined."""

    def __init__(self, program: Program, table: Table):
        self.program, self.table, self.graph = program, table, CallGraph(program)
        self.count = 0
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.targets: dict[str, tuple[str, ...]] = {}
        self.callees: dict[str, tuple[int, ...]] = {}  # table of an indirect call -> addresses
        self.outlined: dict[str, Outlined] = {}

    def entry(self, function: Function) -> list:
        """An entry's body, and behind it those of the recursive functions that it comes to call."""
        body = self.expand(function, "", {}, (function.name,))
        if not self.outlined:
            return body
        self.registers[STACK.name] = "u64"
        self.variables.append(Variable("%stack", "local", "b8", 16, STACK_BYTES))
        first = next(item for item in body if isinstance(item, Instruction))
        body = [_made(first, ("mov", "u64"), STACK, Symbol("%stack")), *body]
        body.append(_made(first, ("exit",)))
        done: set[str] = set()
        while done != set(self.outlined):
            name = next(name for name in self.outlined if name not in done)
            done.add(name)
            body.extend(self.outline(self.outlined[name]))
        for one in self.outlined.values():
            self.targets[f"returns of {one.label}"] = tuple(one.returns)
        sizes = {one.label: one.frame.size for one in self.outlined.values()}
        return [_sized(item, sizes) for item in body]

    def expand(
        self,
        function: Function,
        suffix: str,
        names: dict[str, str],
        chain: tuple[str, ...],
        context: Outlined | None = None,
    ) -> list:
        """The body with its own names marked by `suffix` and its parameters replaced by the caller's.

        context: the recursive function that this is inside of, if any.
        """
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
            self.variable(replace(variable, name=names[variable.name]), context)
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
            row_of(self.table, item)  # refuses what the opcode does not take
            if item.parts[0] == "call":
                body.extend(self.call(function, item, names, chain, context))
            elif item.parts[0] == "ret" and suffix:
                guard = renamed(item, names).guard
                body.append(
                    replace(item, parts=("bra",), operands=(Symbol(end.name),), guard=guard)
                )
            else:
                body.append(_framed(renamed(item, names), context))
        return [*body, end]

    def variable(self, variable: Variable, context: Outlined | None) -> None:
        if context is not None and variable.space in ("local", "param"):
            context.frame.add(variable.name, variable)
        else:
            self.variables.append(variable)

    def outline(self, one: Outlined) -> list:
        """The one copy of a recursive function, which returns to where the call on top of the stack came from."""
        function, names = one.function, {}
        for variable in (*function.params, *function.results):
            if variable.space != "reg":
                names[variable.name] = variable.name + one.suffix
        body = self.expand(function, one.suffix, names, (function.name,), one)
        first = next(item for item in body if isinstance(item, Instruction))
        back = _made(first, ("brx", "return"), STACK, Symbol(f"returns of {one.label}"))
        return [Label(one.label), *body, back]

    # --- Calls ---

    def call(
        self,
        caller: Function,
        item: Instruction,
        names: dict[str, str],
        chain: tuple[str, ...],
        context: Outlined | None,
    ) -> list:
        """A call as a branch around it where it is guarded, and the callee, or one of the callees."""
        known = self.graph.callees(caller, item)
        item = renamed(item, names)
        results, target, arguments, _ = parts_of(item)
        if isinstance(target, Symbol) and not known:
            if target.name in ASSERT_FUNCTIONS:
                return [replace(item, parts=("trap",), operands=())]
            if target.name == "vprintf" and len(arguments) == 2:
                return [
                    _framed(replace(item, parts=("vprintf",), operands=tuple(arguments)), context)
                ]
            raise Unsupported(
                f"call of {target.name}, which has no body here", item.line, item.text
            )
        if not isinstance(target, Symbol) and not isinstance(target, Reg):
            raise PtxError(
                "a call goes to a function or an address in a register", item.line, item.text
            )
        for callee in known:
            if len(results) != len(callee.results) or len(arguments) != len(callee.params):
                raise PtxError(f"{callee.name} takes other arguments", item.line, item.text)
        self.count += 1
        number = self.count
        after = Label(f"after call {number}")
        found: list = []
        if item.guard:
            register, negated = item.guard
            guard = (register, not negated)
            found = [replace(item, parts=("bra",), operands=(Symbol(after.name),), guard=guard)]
        plain = replace(item, guard=None)
        if isinstance(target, Symbol):
            enter = Label(f"enter {number}")
            if not item.guard:
                found += [
                    replace(item, parts=("bra", "call"), operands=(Symbol(enter.name),)),
                    enter,
                ]
            found += self.entered(known[0], plain, f"#{number}", chain, context)
            return [*found, after]
        table = f"callees of {number}"
        self.targets[table] = tuple(f"enter {number}.{i}" for i in range(len(known)))
        self.callees[table] = tuple(self.program.address_of(callee.name) for callee in known)
        places = tuple(Imm(address) for address in self.callees[table])
        found.append(
            replace(plain, parts=("brx", "call"), operands=(target, Symbol(table), *places))
        )
        for i, callee in enumerate(known):
            found.append(Label(f"enter {number}.{i}"))
            found += self.entered(callee, plain, f"#{number}.{i}", chain, context)
            found.append(_made(plain, ("bra",), Symbol(after.name)))
        return [*found, after]

    def entered(
        self,
        callee: Function,
        item: Instruction,
        suffix: str,
        chain: tuple[str, ...],
        context: Outlined | None,
    ) -> list:
        """What a call of this function becomes: its body between its parameters' way in and its results' way out."""
        results, _, arguments, _ = parts_of(item)
        if self.graph.is_recursive(callee.name):
            return self.pushed(callee, item, suffix, results, arguments, context)
        names, before, behind = {}, [], []
        given = [(pair, before) for pair in zip(callee.params, arguments, strict=True)]
        given += [(pair, behind) for pair in zip(callee.results, results, strict=True)]
        for (formal, actual), code in given:
            if formal.space != "reg" and isinstance(actual, Symbol):
                names[formal.name] = actual.name
                continue
            place = self.own(formal, suffix, names, context)
            to, source = (place, actual) if code is before else (actual, place)
            code += _passed(item, formal, to, source)
        before, behind = ([_framed(x, context) for x in part] for part in (before, behind))
        return [
            *before,
            *self.expand(callee, suffix, names, (*chain, callee.name), context),
            *behind,
        ]

    def own(self, formal: Variable, suffix: str, names: dict[str, str], context: Outlined | None):
        """The register or the variable that a parameter becomes where the caller's cannot stand for it."""
        names[formal.name] = formal.name + suffix
        if formal.space == "reg":
            self.registers[names[formal.name]] = formal.type
            return Reg(names[formal.name])
        self.variable(replace(formal, name=names[formal.name], space="param"), context)
        return Symbol(names[formal.name])

    def pushed(
        self,
        callee: Function,
        item: Instruction,
        suffix: str,
        results: tuple,
        arguments: tuple,
        context: Outlined | None,
    ) -> list:
        """A call of a recursive function: parameters to registers, the stack grows, a branch; and back again."""
        one = self.outlined.get(callee.name)
        if one is None:
            own = f"#{callee.name}"
            one = Outlined(callee, f"function {callee.name}", own, Frame())
            self.outlined[callee.name] = one
            for formal in (*callee.params, *callee.results):
                if formal.space != "reg":
                    one.frame.add(formal.name + own, formal)
        back = Label(f"back{suffix}")
        one.returns.append(back.name)
        site = len(one.returns) - 1
        again = context is not None and context.function.name in self.graph.reached(callee.name)
        kept = (
            tuple(Reg(name + context.suffix) for name in context.function.registers)
            if again
            else ()
        )

        found: list = []
        ways = []  # (formal's piece, temporary register), what is passed in
        for n, (formal, actual) in enumerate(zip(callee.params, arguments, strict=True)):
            for kind, offset in _pieces(formal):
                held = self.temporary(f"in{n}.{offset}{suffix}", kind)
                found += _moved(item, kind, held, _piece(actual, offset))
                ways.append((kind, _piece(self.place_of(formal, one), offset), held))
        found = [_framed(x, context) for x in found]
        saved = Saved(kept, site, STACK, STACK_BYTES)
        found.append(_made(item, ("<push>",), saved))
        found += self.grown(item, context, 1)
        for kind, place, held in ways:
            found += [_framed(x, one) for x in _moved(item, kind, place, held)]
        found += [_made(item, ("bra",), Symbol(one.label)), back]
        ways = []
        for n, (formal, actual) in enumerate(zip(callee.results, results, strict=True)):
            for kind, offset in _pieces(formal):
                held = self.temporary(f"out{n}.{offset}{suffix}", kind)
                way = _moved(item, kind, held, _piece(self.place_of(formal, one), offset))
                found += [_framed(x, one) for x in way]
                ways.append((kind, _piece(actual, offset), held))
        found += self.grown(item, context, -1)
        found.append(_made(item, ("<pop>",), saved))
        for kind, place, held in ways:
            found += [_framed(x, context) for x in _moved(item, kind, place, held)]
        return found

    def temporary(self, name: str, kind: str) -> Reg:
        self.registers[f"%{name}"] = kind
        return Reg(f"%{name}")

    def place_of(self, formal: Variable, one: Outlined):
        name = formal.name + one.suffix
        return Reg(name) if formal.space == "reg" else Symbol(name)

    def grown(self, item: Instruction, context: Outlined | None, sign: int) -> list:
        """The stack, larger or smaller by the caller's frame. (A size is known at the end: `_sized`.)"""
        if context is None:
            return []
        return [_made(item, ("add", "u64"), STACK, STACK, Symbol(f"size of {context.label}", sign))]


def _made(item: Instruction, parts: tuple[str, ...], *operands) -> Instruction:
    """An instruction that belongs to a call, and is not counted."""
    return replace(item, index=_UNCOUNTED, parts=parts, operands=operands, guard=None)


def _sized(item, sizes: dict[str, int]):
    """An instruction that needed to know how large frames are."""
    if not isinstance(item, Instruction) or item.index != _UNCOUNTED:
        return item
    if item.parts[0] == "<push>":  # the caller's frame and the callee's lie above
        limit = STACK_BYTES - 2 * max(sizes.values())
        return replace(item, operands=(replace(item.operands[0], limit=limit),))
    if item.parts[0] != "add":
        return item
    *rest, last = item.operands
    if not isinstance(last, Symbol):
        return item
    size = sizes[last.name.removeprefix("size of ")] * last.offset
    return replace(item, operands=(*rest, Imm(size)))


def _pieces(formal: Variable) -> list[tuple[str, int]]:
    """(type, offset) of the registers that carry a parameter."""
    if formal.space == "reg":
        return [("pred" if formal.type == "pred" else f"b{8 * WIDTHS[formal.type]}", 0)]
    found, at = [], 0
    while at < formal.size:
        width = next(
            w
            for w in (8, 4, 2, 1)
            if at % w == 0 and formal.align % w == 0 and at + w <= formal.size
        )
        found.append((f"b{8 * width}", at))
        at += width
    return found


def _piece(place, offset: int):
    return Symbol(place.name, place.offset + offset) if isinstance(place, Symbol) else place


def _moved(item: Instruction, kind: str, to, source) -> list[Instruction]:
    """A register, a constant or (a piece of) a variable of parameters to a register or such a variable."""
    if isinstance(source, Symbol):
        return [_made(item, ("ld", "param", kind), to, Address(Symbol(source.name), source.offset))]
    if isinstance(to, Symbol):
        return [_made(item, ("st", "param", kind), Address(Symbol(to.name), to.offset), source)]
    return [_made(item, ("mov", kind), to, source)]


def _passed(item: Instruction, formal: Variable, to, source) -> list[Instruction]:
    """A parameter or result of which one side at least is a register or a constant."""
    pieces = _pieces(formal)
    if len(pieces) > 1:
        raise PtxError(f"{formal.name} is passed in memory", item.line, item.text)
    return _moved(item, pieces[0][0], to, source)


def _framed(item: Instruction, context: Outlined | None) -> Instruction:
    """The instruction with the variables of a recursive function at their places on the stack."""
    if context is None:
        return item
    places = context.frame.places
    on_stack = [x for x in item.operands if _base(x) in places]
    if not on_stack:
        return item

    def placed(operand):
        if _base(operand) not in places:
            return operand
        symbol = operand.base if isinstance(operand, Address) else operand
        return Address(
            STACK, places[symbol.name] + operand.offset + (symbol is not operand) * symbol.offset
        )

    operands = tuple(placed(x) for x in item.operands)
    root = item.parts[0]
    if root in ("ld", "st"):
        parts = tuple("local" if p.split("::")[0] == "param" else p for p in item.parts)
        return replace(item, parts=parts, operands=operands)
    if root in ("mov", "cvta") and item.parts[-1] in ("u64", "b64", "s64"):
        parts = ("<generic>",) if root == "cvta" else ("<place>",)
        return replace(item, parts=parts, operands=operands)
    if root == "vprintf":
        return replace(item, operands=operands)
    text = f"{item.opcode} of a variable of {context.function.name}, which calls itself, is not supported"
    raise Unsupported(text, item.line, item.text)


def _base(operand) -> str:
    symbol = operand.base if isinstance(operand, Address) else operand
    return symbol.name if isinstance(symbol, Symbol) else ""
