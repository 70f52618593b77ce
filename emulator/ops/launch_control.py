"""clusterlaunchcontrol: a cluster takes over one that has not begun (PTX ISA 9, "clusterlaunchcontrol").

`try_cancel` writes 16 bytes to shared memory and completes them at an mbarrier: nobody may look into them but
`query_cancel`. A grid of such a kernel begins with a third of its clusters (`Launch`); the others wait for their turn,
and are cancelled in their order.
"""

from __future__ import annotations

import numpy as np

from emulator.errors import ExecutionError
from emulator.ops.bulk_loads import CHUNK, Load, loads
from emulator.ops.bulk_operands import Issuers, check_inside, in_shared
from emulator.text.program import Vector
from emulator.text.rows import Row

_BYTES = 16


def _try_cancel(ins, bind):
    to, barrier_of = (bind.address(operand, "shared") for operand in ins.operands)
    everywhere = "multicast::cluster::all" in ins

    def step(m, mask):
        rows = Issuers(m, mask)
        offset, owner = in_shared(m, rows, to, ins, "the response", _BYTES)
        barrier, barrier_owner = in_shared(m, rows, barrier_of, ins, "the mbarrier", 8)
        check_inside(m, rows, offset, _BYTES, ins, "the response")
        failed = m.state("failed cancellations", set)
        for i, block, thread in rows:
            if block // m.cluster in failed:
                text = (
                    "a cluster asks for another one after it has seen that none was left: undefined"
                )
                m.fail(ExecutionError, text, ins, block, thread)
            if int(owner[i]) != int(barrier_owner[i]):
                text = "the response and the mbarrier must be in the same block"
                m.fail(ExecutionError, text, ins, block, thread)
            first = m.launch.cancel_cluster()
            low, high = 0, int(first is not None)
            if high:
                x, y, z = (int(n) for n in first)
                low = x | y << 32 | z << 48
            data = np.array([low, high], np.uint64).view(CHUNK)
            base = block // m.cluster * m.cluster
            targets = range(base, base + m.cluster) if everywhere else [int(owner[i])]
            _send(m, ins, data, np.array(targets), int(offset[i]), int(barrier[i]), block, thread)
        m.rows[ins.index].bytes += _BYTES * len(rows)
        m.progress()

    return step


def _send(m, ins, data, targets, offset: int, barrier: int, block: int, thread: int) -> None:
    """The response is under way to these blocks, at the same place in each."""
    count = len(targets)
    chunks = (targets * m.shared.stride + offset >> 4)[:, None]
    barriers, ticket = np.full(count, barrier), 0
    if m.sanitizer is not None:
        ticket = m.sanitizer.bulk_issue(
            ins, targets, chunks, np.full(count, block), np.full(count, thread), barriers, None
        )
    data = np.repeat(data[None], count, axis=0)
    left = np.ones(count, bool)
    loads(m).append(Load(ins, targets, barriers, chunks, data, _BYTES, left, ticket))


def _halves(ins, bind):
    """get(m) -> (low, high) of a response, (B, T) int64 each."""
    handle = ins.operands[1]
    if not isinstance(handle, Vector) or len(handle.items) != 2:
        raise bind.error("the response is in a register of type .b128")
    gets = [bind.integer(item, "u64") for item in handle.items]
    return lambda m: [m.addresses(get(m)) for get in gets]


def _is_canceled(ins, bind):
    put, halves = bind.put(ins.operands[0]), _halves(ins, bind)

    def step(m, mask):
        _, high = halves(m)
        lanes, found = m.lanes_of(mask), high != 0
        blocks = np.flatnonzero((lanes & ~found).any(axis=1))
        m.state("failed cancellations", set).update((blocks // m.cluster).tolist())
        put(m, found, mask)

    return step


def _first_block(ins, bind):
    which = next((p[-1] for p in ins.parts if p.startswith("get_first_ctaid::")), "")
    halves, target = _halves(ins, bind), ins.operands[0]
    if not which and not (isinstance(target, Vector) and len(target.items) == 4):
        raise bind.error("x, y, z and a fourth that is not used: a vector of four registers")
    puts = [bind.put(item) for item in ([target] if which else target.items[:3])]
    axes = ["xyz".index(which)] if which else [0, 1, 2]

    def step(m, mask):
        low, high = halves(m)
        none = m.lanes_of(mask) & (high == 0)
        if none.any():
            block, thread = np.unravel_index(int(none.argmax()), none.shape)
            text = "the first block of a cluster where none was cancelled: ask query_cancel.is_canceled before"
            m.fail(ExecutionError, text, ins, int(block), int(thread))
        found = low & 0xFFFFFFFF, low >> 32 & 0xFFFF, low >> 48 & 0xFFFF
        for put, axis in zip(puts, axes, strict=True):
            put(m, found[axis].astype(np.uint32), mask)

    return step


_FIRST = "get_first_ctaid|get_first_ctaid::x|get_first_ctaid::y|get_first_ctaid::z"
OPCODES = {
    "clusterlaunchcontrol": {
        "try_cancel! async! shared::cta mbarrier::complete_tx::bytes! multicast::cluster::all b128!": Row(
            _try_cancel, (2,), types="-", spread="none"
        ),
        "query_cancel! is_canceled! pred! b128!": Row(
            _is_canceled, (2,), types="pred -", spread="any"
        ),
        f"query_cancel! {_FIRST}! v4 b32! b128!": Row(_first_block, (2,), types="-", spread="any"),
    }
}
