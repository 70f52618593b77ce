"""`printf` from a kernel: what `call vprintf` does, lane after lane, on the standard output."""

from __future__ import annotations

import re
import struct

import numpy as np

from emulator.machine.access import fetch
from emulator.machine.memory import LOCAL_WINDOW
from emulator.text.program import Address, Symbol
from emulator.text.rows import Row

_CONVERSION = re.compile(r"%([-+ #0]*)(\d*|\*)(?:\.(\d+))?(hh|h|ll|l|z|j|t)?([diouxXcsfFeEgGap%])")


def vprintf(ins, bind):
    """Operands: the .param variables that hold the format's and the arguments' generic addresses."""
    places = (op if isinstance(op, Address) else Address(Symbol(op.name)) for op in ins.operands)
    pointers = [bind.address(place, "local") for place in places]

    def step(m, mask):
        whole = np.dtype(np.uint64)
        formats, arguments = (
            np.broadcast_to(fetch(m, m.local, get(m), mask, whole, 1, ins)[0], (m.B, m.T))
            for get in pointers
        )
        for block, thread in np.argwhere(m.lanes_of(mask)).tolist():
            template = _string(m, int(formats[block, thread]))
            own, row = int(arguments[block, thread]) - LOCAL_WINDOW, int(m.local.row[block, thread])
            data = m.local.buffer.bytes[row + max(own, 0) : row + m.local.size]
            print(_formatted(m, template, data.tobytes()), end="")

    return step


def _string(m, address: int) -> str:
    """The zero-terminated bytes at a global address."""
    buffer = m.globals.space.find(address)
    if buffer is None:
        return "(null)"
    data = buffer.bytes[address - buffer.start :].tobytes()
    return data.split(b"\0")[0].decode(errors="replace")


def _formatted(m, template: str, data: bytes) -> str:
    """C's formatting of arguments that lie in `data`, each aligned to its size; missing ones are zero."""
    data += bytes(8 * (template.count("%") + template.count("*") + 1))
    at = 0

    def one(match: re.Match) -> str:
        nonlocal at
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        wide = kind in "sp" or kind in "fFeEgGa" or length in ("l", "ll", "z", "j", "t")
        size = 8 if wide else 4
        if width == "*":
            at = -(-at // 4) * 4
            width, at = str(struct.unpack_from("<i", data, at)[0]), at + 4
        at = -(-at // size) * size
        code = "d" if kind in "fFeEgGa" else ("iI" if size == 4 else "qQ")[kind not in "di"]
        value = struct.unpack_from("<" + code, data, at)[0]
        at += size
        if kind == "s":
            value = _string(m, value)
        elif kind == "p":
            return f"{value:#x}"
        elif kind == "a":
            return float(value).hex()
        elif kind == "c":
            value = chr(value & 255)
        elif kind == "u":
            kind = "d"
        precision = f".{precision}" if precision is not None else ""
        return f"%{flags}{width}{precision}{kind}" % value

    return _CONVERSION.sub(one, template)


OPCODES = {"vprintf": {"": Row(vprintf, (2,), types="-", spread="none")}}
