"""Instructions with other names in them: {name: name} of registers, variables and labels."""

from __future__ import annotations

from dataclasses import replace

from emulator.text.program import (
    Address,
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


def renamed(item: Instruction, names: dict[str, str]) -> Instruction:
    guard = item.guard and (_operand(item.guard[0], names), item.guard[1])
    return replace(
        item, operands=tuple(_operand(operand, names) for operand in item.operands), guard=guard
    )


def _operand(operand, names: dict[str, str]):
    match operand:
        case Reg(name):
            return Reg(names.get(name, name))
        case Symbol(name, offset):
            return Symbol(names.get(name, name), offset)
        case Address(base, offset, further):
            further = tuple(_operand(item, names) for item in further)
            return Address(_operand(base, names), offset, further)
        case Vector(items):
            return Vector(tuple(_operand(item, names) for item in items))
        case Group(items):
            return Group(tuple(_operand(item, names) for item in items))
        case Pair(first, second):
            return Pair(_operand(first, names), _operand(second, names))
        case Not(item):
            return Not(_operand(item, names))
        case Part(item, selector):
            return Part(_operand(item, names), selector)
        case Negative(item):
            return Negative(_operand(item, names))
    return operand
