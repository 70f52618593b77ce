"""A row of an opcode table: which instructions it stands for, and what runs them.

A table maps the first word of an opcode to its *forms*, and each form to a Row:

    {"xor": {"b16|b32|b64!": Row(...), "pred!": Row(...)}, ...}

`modifiers` says how a form is written. The first form that an instruction's words fit is its own; an
instruction that fits none, or has another number of operands, is refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.errors import PtxError, Unsupported
from emulator.text import modifiers
from emulator.text.program import Instruction


@dataclass(frozen=True)
class Row:
    """What runs the instructions of one form.

    factory: makes an instruction's step (see `machine.binder`); None where control flow sees to it.
    operands: how many there may be, () for any number. meets: which lanes come together before it:
    those of a "warp", of a "warpgroup" (four), those of a warp at a "warp barrier" (lanes may wait at different ones), those at
    a block's "barrier" (the factory then makes what threads do there: see `ops.barriers`), or "".
    member: which operand is the membermask of those who meet; None for all of the warp.
    types: a word for each operand's type, in order (`text.typing`). spread: how undefined bits of operands come
    to the result, a word of `ops.spreads`, with the operands that it is about. A test asks every row for both.
    """

    factory: Callable | None
    operands: tuple[int, ...] = ()
    meets: str = ""
    member: int | None = None
    types: str | None = None
    spread: str | None = None


Table = dict[str, dict[str, Row]]


def row_of(table: Table, ins: Instruction) -> Row | None:
    """The row that an instruction fits, or None for an opcode that the table does not have.

    Raises Unsupported for modifiers that the opcode does not take, PtxError for a wrong number of operands.
    """
    forms = table.get(ins.parts[0])
    if forms is None:
        return None
    form = modifiers.fitting(tuple(forms), ins.parts[1:])
    if form is None:
        problem = modifiers.problem(ins.parts[0], tuple(forms), ins.parts[1:])
        why = "" if modifiers.OUTSIDE.intersection(ins.parts) else f": {problem}"
        raise Unsupported(f"{ins.opcode} is not supported{why}", ins.line, ins.text)
    row, count = forms[form], len(ins.operands)
    if row.operands and count not in row.operands:
        takes = " or ".join(map(str, row.operands)) + (
            " operand" if row.operands == (1,) else " operands"
        )
        raise PtxError(f"{ins.opcode} takes {takes}, not {count}", ins.line, ins.text)
    return row


def merged(*tables: Table) -> Table:
    """One table of several, in which an opcode has the forms that each of them gives it.

    Raises ValueError where two tables give an opcode the same form.
    """
    found: Table = {}
    for table in tables:
        for opcode, forms in table.items():
            twice = found.setdefault(opcode, {}).keys() & forms.keys()
            if twice:
                raise ValueError(f"two tables have {opcode} {min(twice)!r}")
            found[opcode] |= forms
    return found
