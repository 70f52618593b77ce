"""Instructions in which the lanes of a warp exchange values (PTX ISA 9.7.9.6, 9.7.13), and those that only wait."""

from __future__ import annotations

import numpy as np

from emulator.machine.membermask import BITS, by_lane, check_callers, each, is_everyone
from emulator.machine.values import Affine, Pattern
from emulator.numbers import comparisons
from emulator.text.program import SINK
from emulator.text.rows import Row

_LANES = np.arange(32)


def _by_warp(m, array: np.ndarray) -> np.ndarray:
    """(B, T)-broadcastable to (W, 32)."""
    return np.broadcast_to(array, (m.B, m.T)).reshape(m.W, 32)


def _members(m, mask, member) -> np.ndarray:
    """(W, 32) bool: lanes that execute the instruction and are in its membermask."""
    lanes = m.lanes_of(mask).reshape(m.W, 32)
    return lanes if is_everyone(member) else lanes & (by_lane(m, member) & BITS != 0)


def _boolean(m, holds) -> np.ndarray:
    return _by_warp(m, np.atleast_2d(holds))


def _spread(m, per_warp: np.ndarray) -> np.ndarray:
    """(W,) to (B, T): the same value in each lane of a warp."""
    return np.repeat(per_warp, 32).reshape(m.B, m.T)


def _before_volta(ins, bind):
    raise bind.unsupported("only shfl.sync exists since sm_70")


def source_lane(ins, bind):
    """get(m) -> (lane that each lane of a shfl reads, whether there is one), (32,) or (W, 32); else its own."""
    mode = ins.parts[2]
    b, c = bind.integer(ins.operands[2], "u32"), bind.integer(ins.operands[3], "u32")

    def lanes(m, x):
        return x if type(x) is int else m.addresses(x).reshape(m.W, 32)

    def get(m):
        by, clamp = lanes(m, b(m)), lanes(m, c(m))
        by, segment, clamp = by & 31, (clamp >> 8) & 31, clamp & 31
        low = _LANES & segment
        top = low | (clamp & ~segment)
        if mode == "up":
            lane = _LANES - by
            valid = lane >= top
        elif mode == "idx":
            lane = low | (by & ~segment)
            valid = lane <= top
        else:
            lane = _LANES + by if mode == "down" else _LANES ^ by
            valid = lane <= top
        return np.where(valid, lane, _LANES) & 31, valid

    return get


def shfl(ins, bind):
    first, second = bind.pair(ins.operands[0])
    put, put_valid = bind.put(first), bind.put(second)
    source, lanes = bind.array(ins.operands[1], np.uint32), source_lane(ins, bind)
    member = bind.integer(ins.operands[4], "u32")

    def step(m, mask):
        check_callers(m, mask, member(m), ins)
        if m.sanitizer is not None:
            m.sanitizer.collective(mask)
        lane, valid = lanes(m)
        array = source(m)
        if lane.ndim == 1 and array.shape[1] == m.T:
            moved = array.reshape(-1, 32).take(lane, axis=1).reshape(array.shape)
        elif array.shape[1] == 1:
            moved = array
        else:
            moved = np.take_along_axis(
                _by_warp(m, array), np.broadcast_to(lane, (m.W, 32)), axis=1
            ).reshape(m.B, m.T)
        put(m, _zero_where_absent(m, moved, lane, mask), mask)
        if second is not SINK:
            whole = np.broadcast_to(valid, (m.W, 32)).reshape(m.B, m.T)
            put_valid(m, bool(valid.flat[0]) if valid.all() or not valid.any() else whole, mask)

    return step


def _zero_where_absent(m, moved, lane, mask) -> np.ndarray:
    """What comes from a lane that has exited, or is elsewhere, is 0 (measured on an H200: `shuffle_rule`)."""
    if mask is None:
        return moved
    here = m.lanes_of(mask).reshape(m.W, 32)
    there = np.take_along_axis(here, np.broadcast_to(lane, (m.W, 32)), axis=1)
    if (there | ~here).all():
        return moved
    return np.where(there.reshape(m.B, m.T), moved, np.uint32(0))


def vote(ins, bind):
    parts = [part for part in ins.parts[1:] if part != "sync"]
    mode, operands = parts[0], ins.operands
    put, holds = bind.put(operands[0]), bind.predicate(operands[1])
    member = bind.integer(operands[2], "u32") if len(operands) > 2 else (lambda m: 0xFFFFFFFF)

    def step(m, mask):
        lanes, votes = _members(m, mask, member(m)), _boolean(m, holds(m))
        if mode == "ballot":
            value = np.where(votes & lanes, BITS, np.uint32(0)).sum(axis=1, dtype=np.uint32)
        elif mode == "all":
            value = (votes | ~lanes).all(axis=1)
        elif mode == "any":
            value = (votes & lanes).any(axis=1)
        else:
            value = (votes | ~lanes).all(axis=1) | ~(votes & lanes).any(axis=1)
        put(m, _spread(m, value), mask)

    return each(member, step, ins)


def match(ins, bind):
    first, second = bind.pair(ins.operands[0])
    put, put_all = bind.put(first), bind.put(second)
    source = bind.array(ins.operands[1], np.uint64 if ins.parts[-1] == "b64" else np.uint32)
    member = bind.integer(ins.operands[2], "u32")

    def step(m, mask):
        lanes, values = _members(m, mask, member(m)), _by_warp(m, source(m))
        same = (values[:, :, None] == values[:, None, :]) & lanes[:, None, :]
        found = np.where(same, BITS, np.uint32(0)).sum(axis=2, dtype=np.uint32)
        if "any" in ins.parts:
            return put(m, found.reshape(m.B, m.T), mask)
        everyone = np.where(lanes, BITS, np.uint32(0)).sum(axis=1, dtype=np.uint32)[:, None]
        agreed = found == everyone
        put(m, np.where(agreed, found, np.uint32(0)).reshape(m.B, m.T), mask)
        put_all(m, agreed.reshape(m.B, m.T), mask)

    return each(member, step, ins)


_REDUCTIONS = {
    "add": (np.add, 0),
    "and": (np.bitwise_and, -1),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
    "min": (np.minimum, None),
    "max": (np.maximum, None),
}


def redux(ins, bind):
    op, kind = ins.parts[2], ins.parts[-1]
    put, member = bind.put(ins.operands[0]), bind.integer(ins.operands[2], "u32")
    dtype = np.dtype(np.int32 if kind == "s32" else np.uint32)
    source, (ufunc, identity) = bind.array(ins.operands[1], dtype), _REDUCTIONS[op]
    if identity is None:
        identity = np.iinfo(dtype).max if op == "min" else np.iinfo(dtype).min

    def step(m, mask):
        lanes, values = _members(m, mask, member(m)), _by_warp(m, source(m))
        neutral = np.array(identity & 0xFFFFFFFF, np.uint32).view(dtype)
        put(
            m, _spread(m, ufunc.reduce(np.where(lanes, values, neutral), axis=1, dtype=dtype)), mask
        )

    return each(member, step, ins)


def redux_floats(ins, bind):
    op = ins.parts[2]
    put, member = bind.put(ins.operands[0]), bind.integer(ins.operands[2], "u32")
    source = bind.array(ins.operands[1], np.float32)
    function = comparisons.minimum if op == "min" else comparisons.maximum

    def step(m, mask):
        lanes, values = _members(m, mask, member(m)), np.array(_by_warp(m, source(m)))
        if "abs" in ins.parts:
            values = np.abs(values)
        first = values[np.arange(m.W), lanes.argmax(axis=1)]
        total = first
        for lane in range(32):
            other = np.where(lanes[:, lane], values[:, lane], first)
            total = function(total, other, "f32", nan="NaN" in ins.parts)
        put(m, _spread(m, total), mask)

    return each(member, step, ins)


def activemask(ins, bind):
    put = bind.put(ins.operands[0])

    def step(m, mask):
        lanes = m.lanes_of(mask).reshape(m.W, 32)
        put(m, _spread(m, np.where(lanes, BITS, np.uint32(0)).sum(axis=1, dtype=np.uint32)), mask)

    return step


def elect(ins, bind):
    """elect.sync d|p, membermask: the lowest of its lanes leads."""
    put, put_leads = (bind.put(operand) for operand in bind.pair(ins.operands[0]))
    member = bind.integer(ins.operands[1], "u32")

    def step(m, mask):
        leader = _members(m, mask, member(m)).argmax(axis=1)
        put(m, Affine(Pattern(_spread(m, leader).astype(np.int64), 0, 31)), mask)
        put_leads(m, (leader[:, None] == _LANES).reshape(m.B, m.T), mask)

    return each(member, step, ins)


def bar_warp(ins, bind):
    """bar.warp.sync: the machine has made the lanes meet."""

    member = bind.integer(ins.operands[0], "u32")

    def step(m, mask):
        check_callers(m, mask, member(m), ins)
        if m.sanitizer is not None:
            m.sanitizer.warp_barrier(mask)

    return step


def nanosleep(ins, bind):
    return lambda m, mask: m.spin(mask)


def nothing(ins, bind):
    """What changes no result."""
    return lambda m, mask: None


OPCODES = {
    "shfl": {
        "sync! up|down|bfly|idx! b32!": Row(
            shfl, (5,), types="b32 b32 b32 b32 u32", spread="shuffles 1", meets="warp", member=4
        ),
        "up|down|bfly|idx! b32!": Row(_before_volta, types="-", spread="none"),
    },
    "vote": {
        "sync! all|any|uni|ballot! pred|b32!": Row(
            vote, (3,), types="own pred u32", spread="warp", meets="warp", member=2
        ),
        "all|any|uni|ballot! pred|b32!": Row(vote, (2,), types="own pred", spread="warp"),
    },
    "match": {
        "sync! any|all! b32|b64!": Row(
            match, (3,), types="u32 own u32", spread="warp", meets="warp", member=2
        )
    },
    "redux": {
        "sync! add|min|max|and|or|xor! b32|u32|s32!": Row(
            redux, (3,), types="u32 u32 u32", spread="warp", meets="warp", member=2
        ),
        "sync! min|max! abs NaN f32!": Row(
            redux_floats, (3,), types="own own u32", spread="warp", meets="warp", member=2
        ),
    },
    "activemask": {"b32!": Row(activemask, (1,), types="b32", spread="none")},
    "elect": {"sync!": Row(elect, (2,), types="b32 b32", spread="warp", meets="warp", member=1)},
    "bar": {
        "warp! sync!": Row(
            bar_warp, (1,), types="u32", spread="none", meets="warp barrier", member=0
        )
    },
    "nanosleep": {"u32!": Row(nanosleep, (1,), types="u32", spread="none")},
    "griddepcontrol": {"launch_dependents|wait!": Row(nothing, (0,), types="", spread="none")},
    "pmevent": {"mask": Row(nothing, (1,), types="-", spread="none")},
}
