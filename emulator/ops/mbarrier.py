"""The instructions on mbarriers (PTX ISA 9.7.13.15); `machine.mbarriers` has their state."""

from __future__ import annotations

import numpy as np

from emulator.errors import ExecutionError
from emulator.machine.access import space_of
from emulator.machine.mbarriers import COUNT, MBarrier, keys, named, waiters, warps_of
from emulator.machine.tensor_memory import finish
from emulator.machine.values import Affine, Pattern
from emulator.ops.bulk_loads import land
from emulator.ops.copies import settle
from emulator.ops.forms import SCOPE, SHARED
from emulator.text.program import SINK
from emulator.text.rows import Row


def _init(ins, bind):
    space = space_of(ins)
    get, count_of = bind.address(ins.operands[0], space), bind.integer(ins.operands[1], "u32")

    def step(m, mask):
        counts = m.addresses(count_of(m))
        m.count_wavefronts(ins, mask, 0, by_lane=1)
        for name in named(m, ins, space, get(m), mask):
            barrier, blocks = MBarrier(m, name.offset), name.lanes.any(axis=1)
            count = np.where(name.lanes, counts, 0).max(axis=1)
            if ((count < 1) | (count > COUNT))[blocks].any():
                m.fail(ExecutionError, f"an mbarrier counts 1 to {COUNT} arrivals", ins)
            barrier.pending = barrier.expected = count
            barrier.tx, barrier.phase = np.zeros_like(count), np.zeros_like(count)
            for field in (
                barrier.history.phases,
                barrier.history.announced,
                barrier.history.brought,
            ):
                field[blocks] = 0
            barrier.store(blocks)
            if m.sanitizer is not None:
                m.sanitizer.mbarrier_init(name.offset, name.lanes, ins)

    return step


def _inval(ins, bind):
    space, get = space_of(ins), bind.address(ins.operands[0], space_of(ins))

    def step(m, mask):
        for name in named(m, ins, space, get(m), mask):
            barrier = MBarrier(m, name.offset)
            barrier.word[barrier.index[name.lanes.any(axis=1)]] = 0
            if m.sanitizer is not None:
                m.sanitizer.mbarrier_inval(name.offset, name.lanes, ins)

    return step


def _arrive(ins, bind):
    """arrive and arrive_drop, with .expect_tx and .noComplete, here or at another block's mbarrier."""
    space, operands = space_of(ins), list(ins.operands)
    put = None
    if len(operands) > 1 and not hasattr(operands[0], "base"):
        destination = operands.pop(0)
        put = bind.put(destination) if destination != SINK else None
    get = bind.address(operands[0], space)
    last = bind.integer(operands[1], "u32") if len(operands) > 1 else lambda m: 1
    expects, drops = "expect_tx" in ins.parts, ins.parts[1] == "arrive_drop"
    may_not_complete = "noComplete" in ins.parts
    fenced = {"release", "cluster"} <= set(
        ins.parts
    )  # what that costs was measured at a remote arrival

    def step(m, mask):
        value = last(m)
        value = value if type(value) is int else m.addresses(value)
        tokens = np.zeros((m.B, m.T), np.uint64)
        for name in named(m, ins, space, get(m), mask, afar=True):
            barrier = MBarrier(m, name.offset)
            total = name.sum(m, 1 if expects else value)
            barrier.check_blocks(total > 0, ins, name.lanes)
            if m.sanitizer is not None:
                m.sanitizer.mbarrier_used(name.offset, name.lanes, name.owners, ins)
            barrier.check_room(total, ins, name.lanes)
            if expects:
                barrier.expect(name.sum(m, value))
                barrier.check_tx(ins, name.lanes)
            if may_not_complete and (total >= barrier.pending)[total > 0].any():
                text = "arrive.noComplete would complete the phase, which is undefined"
                m.fail(ExecutionError, text, ins)
            if drops:
                barrier.expected = barrier.expected - total
            count = 1 if expects else value
            if name.owners is None:
                tokens = np.where(name.lanes, barrier.arrive(name.lanes, count, ins), tokens)
                continue
            if put is not None:
                text = "an arrival at another block's mbarrier returns no token: write _ for it"
                m.fail(ExecutionError, text, ins)
            if fenced:
                m.count_wavefronts(ins, name.lanes, 2)
            if m.sanitizer is None:
                barrier.arrive_from_afar(total)
                continue
            late, now = barrier.beyond(name, count), keys(name.offset)[0]
            m.sanitizer.release_afar(now, name.lanes & ~late, name.owners, ins)
            barrier.arrive_from_afar(total)
            if late.any():  # these belong to the phase that now runs
                m.sanitizer.release_afar(now, late, name.owners, ins)
                m.sanitizer.surplus(name.offset, late, barrier.expected.max(), ins)
        if put is not None:
            put(m, tokens, mask)

    return step


def _expect_tx(ins, bind):
    space, expects = space_of(ins), ins.parts[1] == "expect_tx"
    get, bytes_of = bind.address(ins.operands[0], space), bind.integer(ins.operands[1], "u32")

    def step(m, mask):
        value = m.addresses(bytes_of(m))
        for name in named(m, ins, space, get(m), mask, afar=True):
            barrier = MBarrier(m, name.offset)
            blocks = name.sum(m, 1) > 0
            barrier.check_blocks(blocks, ins, name.lanes)
            if m.sanitizer is not None:
                m.sanitizer.mbarrier_used(name.offset, name.lanes, name.owners, ins)
            (barrier.expect if expects else barrier.bring)(name.sum(m, value))
            barrier.check_tx(ins, name.lanes)
            if not expects:
                barrier.complete(blocks)
            barrier.store(blocks)

    return step


# What Triton passes for parity 1; ptxas's machine code looks at the lowest bit.
_TRUE = (1 << 32) - 1


def _wait(ins, bind):
    """test_wait and try_wait: has the phase of a token, or of a parity, been completed?

    What arrives at the mbarrier lands only if the wait cannot go on without it: as late as possible. One that nothing
    repeats goes on, and is answered with no the first time.
    """
    space = space_of(ins)
    put, get = bind.put(ins.operands[0]), bind.address(ins.operands[1], space)
    by_parity = "parity" in ins.parts
    if by_parity:
        parity_of = bind.integer(ins.operands[2], "u32")
    else:
        token_of = bind.array(ins.operands[2], np.uint64)

    def step(m, mask):
        if by_parity:
            wanted = m.addresses(parity_of(m))
            wanted = np.where(wanted == _TRUE, 1, wanted)
            if (wrong := m.lanes_of(mask) & (wanted > 1)).any():
                block, thread = np.argwhere(wrong)[0]
                what = int(np.broadcast_to(wanted, (m.B, m.T))[block, thread])
                text = f"a wait for parity {what}: a parity is 0 or 1"
                m.fail(ExecutionError, text, ins, int(block), int(thread), reason="parity")
        else:
            wanted = np.broadcast_to(token_of(m), (m.B, m.T)) >> np.uint64(63)
            wanted = wanted.astype(np.int64)
        holds, everyone = np.zeros((m.B, m.T), bool), True
        for name in named(m, ins, space, get(m), mask):
            offset, lanes = name.offset, name.lanes
            barrier = MBarrier(m, offset)
            barrier.check(lanes, ins)
            if m.sanitizer is not None:
                m.sanitizer.mbarrier_used(offset, lanes, None, ins)
            passed = lanes & (barrier.phase[:, None] != wanted)
            if ins.index in m.code.unchecked:  # then nothing lands, and nobody learns anything
                holds |= passed
                if m.sanitizer is not None:
                    m.sanitizer.unchecked_wait(offset, lanes, ins)
                continue
            if m.sanitizer is not None and passed.any():
                m.sanitizer.passed_at_once(offset, passed, ins)
            late = lanes & ~passed
            if ins.index in m.code.single:
                late &= _asked_before(m, barrier, ins, late)
            here = late.any(axis=1)
            if late.any() and (
                settle(m, offset, late) | land(m, offset, here) | finish(m, offset, here)
            ):
                barrier = MBarrier(m, offset)
                passed = lanes & (barrier.phase[:, None] != wanted)
                late &= ~passed
            holds |= passed
            if late.any():
                everyone = False
            waiters(m)[offset, ins.index] = (ins, late, wanted)
            if m.sanitizer is not None and passed.any():
                m.sanitizer.acquire(keys(offset)[1], warps_of(m, passed), "relaxed" in ins)
        put(m, holds, mask)
        if not everyone:
            m.spin(mask)

    return step


def _asked_before(m, barrier, ins, lanes: np.ndarray) -> np.ndarray:
    """Which threads, (B, T) bool, have asked in this instruction for the running phase; these lanes ask now."""
    asked = m.state("asked once", dict)
    phases = barrier.history.phases
    when, whom = asked.get((barrier.offset, ins.index), (phases, np.zeros_like(lanes)))
    before = whom & (when == phases)[:, None]
    asked[barrier.offset, ins.index] = phases.copy(), before | lanes
    return before


def _pending_count(ins, bind):
    put, token = bind.put(ins.operands[0]), bind.array(ins.operands[1], np.uint64)

    def step(m, mask):
        count = np.broadcast_to(token(m) & np.uint64(COUNT), (m.B, m.T)).astype(np.int64)
        put(m, Affine(Pattern(count, 0, COUNT)), mask)

    return step


_WAITED = f"acquire|relaxed {SCOPE} {SHARED} b64!"

OPCODES = {
    "mbarrier": {
        f"init! {SHARED} b64!": Row(_init, (2,), types="- u32", spread="none"),
        f"inval! {SHARED} b64!": Row(_inval, (1,), types="-", spread="none"),
        f"arrive|arrive_drop! expect_tx|noComplete release|relaxed {SCOPE} {SHARED} b64!": Row(
            _arrive, (1, 2, 3), types="-", spread="any"
        ),
        f"expect_tx|complete_tx! relaxed {SCOPE} {SHARED} b64!": Row(
            _expect_tx, (2,), types="- u32", spread="none"
        ),
        f"test_wait|try_wait! {_WAITED}": Row(_wait, (3, 4), types="pred - u64", spread="any"),
        f"test_wait|try_wait! parity! {_WAITED}": Row(
            _wait, (3, 4), types="pred - u32", spread="any"
        ),
        "pending_count! b64!": Row(_pending_count, (2,), types="u32 u64", spread="any"),
    }
}
