"""atom and red: read-modify-write of memory, lane after lane (PTX ISA 9.7.13).

`add.f32` in global memory, vectors included, flushes subnormal operands and sums to zeros of their sign; in
shared memory it keeps them. Its NaN is 0x7fffffff. The other types keep subnormals everywhere. Measured
on an H200: tests/data/README.md, `atomic_f32_rule` and `packed_rule`.
"""

from __future__ import annotations

import numpy as np

from emulator.machine.access import count, dtype_of, resolve, space_of
from emulator.machine.values import UNSIGNED
from emulator.numbers import comparisons, floats
from emulator.ops.forms import MOVED, SCOPE, SHARED
from emulator.ops.memory import ELSEWHERE
from emulator.text.program import SINK, WIDTHS, items
from emulator.text.rows import Row

_PACKED = ("f16x2", "bf16x2")
# Sums of float32 from here on, as of zero, are multiples of 2**-123: none can be subnormal.
_NEVER_SUBNORMAL = np.float32(2.0**-100)
_ACCUMULATE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def _operation(ins, bind, kind: str):
    """(new value of (old, b, c), the ufunc that does the same, or None)."""
    op = next(
        (
            p
            for p in ins.parts[1:]
            if p in ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
        ),
        "",
    )
    if kind in ("f16x2", "bf16x2", "bf16", "f16"):
        form = kind.removesuffix("x2")
        if op not in ("add", "min", "max"):
            raise bind.unsupported()
        function = {"add": floats.add, "min": comparisons.minimum, "max": comparisons.maximum}[op]
        halves = np.float16 if form == "f16" else np.uint16

        def half(old, b, c):
            return function(old.view(halves), b.view(halves), form).view(old.dtype)

        return half, None
    table = {
        "add": (lambda old, b, c: old + b, np.add),
        "min": (lambda old, b, c: np.minimum(old, b), np.minimum),
        "max": (lambda old, b, c: np.maximum(old, b), np.maximum),
        "exch": (lambda old, b, c: b, None),
        "cas": (lambda old, b, c: np.where(old == b, c, old), None),
        "inc": (
            lambda old, b, c: np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1)),
            None,
        ),
        "dec": (
            lambda old, b, c: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
            None,
        ),
    }
    if op in _ACCUMULATE:
        ufunc = _ACCUMULATE[op]
        return (lambda old, b, c: ufunc(old, b)), ufunc
    if op not in table:
        raise bind.unsupported()
    return table[op]


def atom(ins, bind):
    kind = next((p for p in reversed(ins.parts) if p in WIDTHS or p in _PACKED), "b128")
    if kind == "b128" or ELSEWHERE & set(ins.parts):  # the type need not be the last word
        raise bind.unsupported()
    if kind in _PACKED:
        dtype = np.dtype(np.uint32)
    elif kind in ("f16", "bf16"):
        dtype = np.dtype(np.uint16)
    else:
        dtype = dtype_of(kind)
    operands = list(ins.operands)
    returns = ins.parts[0] == "atom"
    destination = operands.pop(0) if returns else SINK
    space, lanes = space_of(ins), len(items(operands[1]))
    destinations = items(destination) if lanes > 1 and destination != SINK else (destination,) * 1
    puts = [bind.put(d) for d in destinations]
    get = bind.address(operands[0], space)
    b_gets = [bind.array(item, dtype) for item in items(operands[1])]
    c_get = bind.array(operands[2], dtype) if "cas" in ins else None
    update, ufunc = _operation(ins, bind, kind)
    sums = {space: _sums_of_f32(space == "global") for space in ("global", "shared")}
    adds_f32 = kind == "f32" and "add" in ins.parts
    returns = returns and any(d != SINK for d in destinations)
    width = dtype.itemsize * lanes

    def step(m, mask):
        m.spin(mask)
        bs = [np.broadcast_to(b(m), (m.B, m.T)) for b in b_gets]
        c = np.broadcast_to(c_get(m), (m.B, m.T)) if c_get else None
        olds = [np.zeros((m.B, m.T), dtype) for _ in bs]
        for memory, where, here, name in resolve(m, space, get(m), mask):
            for place in memory.places(m, where, here, dtype.itemsize, width, ins):
                active = m.lanes_of(place.mask)
                index = np.broadcast_to(place.index, active.shape)[active]
                view = place.buffer.view(dtype)
                for i, b in enumerate(bs):
                    target = view[place.start + i :]
                    picked = b[active], c[active] if c is not None else None
                    way = update, ufunc
                    if adds_f32:
                        way = sums["global" if name == "global" else "shared"](
                            target[index], b[active]
                        )
                    old = _in_turn(target, index, *picked, *way, returns, m)
                    if returns:
                        olds[i][active] = old
            count(m, ins, name, where, here, width, "atomic")
        if returns:
            for put, old in zip(puts, olds, strict=True):
                put(m, old, mask)

    return step


def _sums_of_f32(flushes: bool):
    """way(found, added) -> the update and ufunc of `add.f32`; the ufunc only where it gives the same bits."""

    def update(old, b, c):
        return floats.add(old, b, "f32", ftz=flushes)

    def way(found, added):
        least, largest = np.float32(np.inf), np.float64(0)
        for x in (found, added):
            size = np.abs(x)
            largest += size.sum(dtype=np.float64)
            least = np.minimum(
                least, np.where(size == 0, np.float32(np.inf), size).min(initial=np.inf)
            )
        plain = largest < np.finfo(np.float32).max and not (flushes and least < _NEVER_SUBNORMAL)
        return update, np.add if plain else None

    return way


def _in_turn(target, index, b, c, update, ufunc, returns: bool, m):
    """Applies `update` lane after lane, in lane order, and returns what each lane found there."""
    with np.errstate(all="ignore"):
        if ufunc is not None and not returns:
            ufunc.at(target, index, b)
            m.changes += 1
            return None
        order = np.argsort(index, kind="stable")
        where = index[order]
        first = np.ones(len(where), bool)
        first[1:] = where[1:] != where[:-1]
        starts = np.flatnonzero(first)
        lengths = np.diff(np.append(starts, len(where)))
        old = np.empty(len(index), target.dtype)
        changed = False
        if ufunc is not None and lengths.max() > 8:
            for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
                lanes = order[start : start + length]
                chain = np.empty(length + 1, target.dtype)
                chain[0], chain[1:] = target[where[start]], b[lanes]
                chain = ufunc.accumulate(chain)
                old[lanes] = chain[:-1]
                changed |= bool(chain[-1] != chain[0])
                target[where[start]] = chain[-1]
        else:
            for turn in range(int(lengths.max())):
                lanes = order[starts[lengths > turn] + turn]
                at = index[lanes]
                before = target[at]
                after = update(before, b[lanes], c[lanes] if c is not None else None)
                old[lanes] = before
                changed |= bool(
                    (
                        after.view(UNSIGNED[after.itemsize])
                        != before.view(UNSIGNED[before.itemsize])
                    ).any()
                )
                target[at] = after
        if changed:
            m.changes += 1
        return old


_FORM = (
    f"relaxed|acquire|release|acq_rel {SCOPE} global|{SHARED} noftz L2::cache_hint v2|v4|v8 "
    f"add|min|max|and|or|xor|exch|cas|inc|dec! {MOVED}|b128|f16x2|bf16x2!"
)

OPCODES = {
    "atom": {_FORM: Row(atom, (3, 4, 5), types="own - own own", spread="loads")},
    "red": {_FORM: Row(atom, (2, 3), types="- own", spread="none")},
}
