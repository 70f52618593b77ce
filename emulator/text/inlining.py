"""Calls: an entry's body with the functions that it calls put in their place."""

from __future__ import annotations

from dataclasses import replace

from emulator.errors import PtxError, Unsupported
from emulator.text.program import (
    Address,
    Function,
    Group,
    Instruction,
    Label,
    Negative,
    Not,
    Pair,
    Part,
    Program,
    Reg,
    Symbol,
    Variable,
    Vector,
)
from emulator.text.rows import Table, row_of

ASSERT_FUNCTIONS = {"__assertfail", "__assert_fail"}


class Inliner:
    """Collects, besides the body, the registers, variables and branch targets of all that is inlined."""

    def __init__(self, program: Program, table: Table):
        self.program, self.table = program, table
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
            row_of(self.table, item)  # refuses what the opcode does not take
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
            further = tuple(_rename(item, names) for item in further)
            return Address(_rename(base, names), offset, further)
        case Vector(items):
            return Vector(tuple(_rename(item, names) for item in items))
        case Group(items):
            return Group(tuple(_rename(item, names) for item in items))
        case Pair(first, second):
            return Pair(_rename(first, names), _rename(second, names))
        case Not(item):
            return Not(_rename(item, names))
        case Part(item, selector):
            return Part(_rename(item, names), selector)
        case Negative(item):
            return Negative(_rename(item, names))
    return operand


def _rename_instruction(item: Instruction, names: dict[str, str]) -> Instruction:
    guard = item.guard and (_rename(item.guard[0], names), item.guard[1])
    return replace(
        item, operands=tuple(_rename(operand, names) for operand in item.operands), guard=guard
    )
