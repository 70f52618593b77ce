"""Who runs next: runs one chunk of blocks to its end.

Threads stand in *groups*, one for each basic block where any of them are; running a group runs its
block's instructions for all its threads. As long as nobody has branched apart there is one group and
no mask. Otherwise the group whose block comes first in the flow order runs first, so paths that
diverged meet again; threads that poll (a `try_wait`, a spin lock) go to the back of the queue each
time, so the threads they wait for get to run; and threads at a barrier stand still until everyone it
expects is there. When no group can run, that is a deadlock, and it is reported.
"""

from __future__ import annotations

import numpy as np

from emulator.errors import ExecutionError, Trap
from emulator.machine import deadlock, meeting
from emulator.machine.chunk import Chunk, Group
from emulator.machine.code import CodeBlock

# Polls in a row, by everyone who can run, without any change, before it is a deadlock.
PATIENCE = 4000


def run(m: Chunk) -> None:
    """Runs every thread to its end."""
    blocks, rank = m.code.blocks, m.code.rank
    while m.groups or m.alive_count:
        at = _pick(m, rank)
        group = m.groups.pop(at)
        m.group = group
        others = 0
        for other in m.groups:
            others |= blocks[other].live
        for barrier in m.barriers.values():
            for other in barrier.standing:
                others |= blocks[other].live
        m.keep, m.active = others, group.count
        _run_group(m, at, group, group.count == m.alive_count)


def _pick(m: Chunk, rank: list[int]) -> int:
    """The block whose group runs next: the earliest turn, then the first in flow order."""
    if m.stalled > PATIENCE:
        deadlock.report(m, "every warp that can run is polling, and nothing changes any more")
    best = None
    for at, group in m.groups.items():
        if not group.blocked:
            key = (group.turn, rank[at])
            if best is None or key < best[0]:
                best = (key, at)
    if best is None:
        if meeting.meet_at_warp_barriers(m):
            return _pick(m, rank)
        deadlock.report(m, "no warp can make progress")
    return best[1]


def _run_group(m: Chunk, at: int, group: Group, converged: bool) -> None:
    """Runs blocks for one group until it has to be compared with the others again."""
    blocks, mask = m.code.blocks, group.mask
    warps = m.W if mask is None else m.warps_of(mask)
    while True:
        block: CodeBlock = blocks[at]
        if block.head:
            if block.head == "barrier":
                if not block.head_step.arrive(m, block, group, converged):
                    return
            elif not converged and not meeting.whole(m, block, group):
                return _let_go(m, at, group)
        counted = m.runs[at]
        counted[0] += warps
        counted[1] += group.count
        m.clock += block.length
        if m.clock > m.next_look:
            m.launch.limits.look(m, at)
        for step in block.steps:
            step(m, mask)
        polled = m.spun
        if polled:
            _poll(m, group)
        ends = block.ends
        if ends == "jump":
            at = block.targets[0]
        elif ends == "branch":
            slot, negated = block.predicate
            holds = m.regs[slot]
            if type(holds) is np.ndarray:
                taken, count = m.narrow(slot, negated, holds, mask)
                if count and count < group.count:
                    return _split(m, block, group, taken, count)
                at = block.targets[0 if count else 1]
            else:
                at = block.targets[0 if bool(holds) is not negated else 1]
        elif ends == "switch":
            targets = _switch(m, block, group)
            if len(targets) > 1:
                for target, lanes in targets.items():
                    m.stand(target, Group(lanes, int(np.count_nonzero(lanes)), group.turn))
                return
            (at,) = targets
        elif ends == "exit":
            return _exit(m, group)
        else:
            lane = int(m.lanes_of(mask).reshape(-1).argmax())
            text = "the program trapped"
            if "call" in block.last.text:
                text = "a device-side assertion failed"
            elif m.code.asks_for_grid and not m.launch.cooperative:
                text += (
                    ": it asks for what only a cooperative launch has, as grid.sync() does; "
                    "launch it with cooperative=True"
                )
            m.fail(Trap, text, block.last, *divmod(lane, m.T))
        if polled or not (converged or _stays_first(m, at, group)):
            return m.stand(at, group)


def _stays_first(m: Chunk, at: int, group: Group) -> bool:
    """Whether a group that has reached block `at` would be picked again, alone."""
    if at in m.groups:
        return False
    rank = m.code.rank
    key = (group.turn, rank[at])
    return all(
        other.blocked or key < (other.turn, rank[there]) for there, other in m.groups.items()
    )


def _poll(m: Chunk, group: Group) -> None:
    """Someone polled: to the back of the queue with them, and patience has an end."""
    m.spun = False
    m.queue += 1
    group.turn = m.queue
    m.stalled = 0 if m.changes else m.stalled + 1
    m.changes = 0


def _split(m: Chunk, block: CodeBlock, group: Group, taken: np.ndarray, count: int) -> None:
    m.stand(block.targets[0], Group(taken, count, group.turn))
    rest = m.lanes_of(group.mask) & ~taken
    m.stand(block.targets[1], Group(rest, group.count - count, group.turn))


def _switch(m: Chunk, block: CodeBlock, group: Group) -> dict[int, np.ndarray]:
    """{target: lanes} of a `brx.idx`."""
    index = block.selector(m)
    if type(index) is int:
        _check_switch(m, block, index < len(block.targets))
        return {block.targets[index]: group.mask}
    lanes, mask = m.addresses(index), m.lanes_of(group.mask)
    _check_switch(m, block, bool(((lanes >= 0) & (lanes < len(block.targets)))[mask].all()))
    found: dict[int, np.ndarray] = {}
    for value in np.unique(lanes[mask]).tolist():
        target = block.targets[value]
        picked = mask & (lanes == value)
        found[target] = found[target] | picked if target in found else picked
    return found


def _check_switch(m: Chunk, block: CodeBlock, holds: bool) -> None:
    if not holds:
        text = "brx.idx: the index is past the end of its .branchtargets"
        if "call" in block.last.parts:
            text = "the address that is called is that of no function which this call may go to"
        m.fail(ExecutionError, text, block.last)


def _exit(m: Chunk, group: Group) -> None:
    m.alive_count -= group.count
    m.changes += 1
    if m.alive_count:
        m.alive = m.lanes_of(m.alive) & ~m.lanes_of(group.mask)
        for barrier in list(m.barriers.values()):
            barrier.complete(m)
        for other in m.groups.values():
            other.blocked = False


def _let_go(m: Chunk, at: int, group: Group) -> None:
    """The lanes that have met all that they wait for may go on; the others stay."""
    waiting = meeting.waiting(m, m.code.blocks[at], group)
    mask = group.mask
    stay, go = mask & waiting, mask & ~waiting
    if go.any():
        leaving = Group(go, int(np.count_nonzero(go)), group.turn)
        staying = Group(stay, int(np.count_nonzero(stay)), group.turn)
        staying.blocked = True
        m.groups[at] = staying
        for other in m.code.blocks[at : at + 1]:
            m.keep |= other.live
        m.group, m.active = leaving, leaving.count
        _run_group(m, at, leaving, False)
    else:
        group.blocked = True
        m.groups[at] = group
