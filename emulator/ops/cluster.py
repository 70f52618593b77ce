"""Clusters, fences between proxies, registers moved between warpgroups (PTX ISA 9.7.9.22, 9.7.13, 9.7.19).

`mapa` makes an address of another block's shared memory, `getctarank` says whose an address is.
`barrier.cluster` lets all threads of a cluster meet; `st.async` and `red.async` write another block's
shared memory and complete bytes at its mbarrier, when somebody waits for that.
"""

from __future__ import annotations

import numpy as np

from emulator.errors import ExecutionError
from emulator.machine.access import dtype_of
from emulator.machine.chunk import Chunk, Group
from emulator.machine.cluster import RANK_BITS, REMOTE
from emulator.machine.code import CodeBlock
from emulator.machine.memory import SHARED_WINDOW
from emulator.machine.values import Affine, Pattern
from emulator.numbers.reductions import of_type
from emulator.ops.bulk_loads import Load, loads
from emulator.ops.forms import SHARED
from emulator.text.program import Imm, Vector
from emulator.text.rows import Row


def mapa(ins, bind):
    """The address that a place of this block's shared memory has in block `rank` of the cluster."""
    put = bind.put(ins.operands[0])
    kind = ins.parts[-1]
    in_window = not any(part.startswith("shared") for part in ins.parts)
    get, rank_of = bind.integer(ins.operands[1], kind), bind.integer(ins.operands[2], "u32")

    def step(m, mask):
        address, rank = get(m), rank_of(m)
        lanes, ranks = m.addresses(address), m.addresses(rank)
        here = m.lanes_of(mask)
        if (ranks >= m.cluster)[here].any() or (ranks < 0)[here].any():
            at = np.unravel_index(int((here & (ranks >= m.cluster)).argmax()), here.shape)
            text = f"mapa: there is no block {int(ranks[at])} in a cluster of {m.cluster}"
            m.fail(ExecutionError, text, ins, int(at[0]), int(at[1]))
        base = SHARED_WINDOW if in_window else 0
        mapped = base + ((ranks + 1) << RANK_BITS) + ((lanes - base) & (REMOTE - 1))
        mapped = np.where(here, mapped, base)
        put(m, Affine(Pattern(mapped, int(mapped.min()), int(mapped.max()))), mask)

    return step


def getctarank(ins, bind):
    """The rank in the cluster of the block that an address of shared memory belongs to."""
    put = bind.put(ins.operands[0])
    in_window = not any(part.startswith("shared") for part in ins.parts)
    get = bind.integer(ins.operands[1], ins.parts[-1])

    def step(m, mask):
        lanes = m.addresses(get(m)) - (SHARED_WINDOW if in_window else 0)
        own = np.broadcast_to(np.arange(m.B)[:, None] % m.cluster, lanes.shape)
        rank = np.where(lanes >> RANK_BITS > 0, (lanes >> RANK_BITS) - 1, own)
        rank = np.where(m.lanes_of(mask), rank, 0)
        put(m, Affine(Pattern(rank, int(rank.min()), int(rank.max()))), mask)

    return step


PEER_BIT = 1 << 24  # of an address of shared memory on a GPU: the lowest bit of the block's rank


def clears_peer_bit(mask: int) -> bool:
    """Whether an `and` with this mask makes the leader's address of a pair, as published kernels write it.

    ptxas's front end also clears with it low bits that it knows to be 0.
    """
    cleared = ~mask & 0xFFFFFFFF
    return bool(cleared & PEER_BIT) and cleared ^ PEER_BIT < 1 << 10


def leader_address(ins, bind, plain, mask_bits: int):
    """`and.b32` of an address of shared memory with such a mask: the same place in the even block of its pair.

    Here addresses are numbered otherwise than on a GPU (`machine.cluster`). plain: the step of `and`, for launches
    without clusters.
    """
    put = bind.put(ins.operands[0])
    get = bind.integer(next(x for x in ins.operands[1:] if not isinstance(x, Imm)), "u32")

    def step(m, mask):
        if m.cluster == 1:
            plain(m, mask)
            return
        lanes = m.addresses(get(m)) & (mask_bits | PEER_BIT)
        own = np.broadcast_to(np.arange(m.B)[:, None] % m.cluster, lanes.shape)
        rank = np.where(lanes >> RANK_BITS > 0, (lanes >> RANK_BITS) - 1, own)
        found = (rank - rank % 2 + 1 << RANK_BITS) + (lanes & (REMOTE - 1))
        found = np.where(rank % 2 == 0, lanes, found)  # an even block's own stays as it is
        put(m, Affine(Pattern(found, int(found.min()), int(found.max()))), mask)

    return step


# --- barrier.cluster --------------------------------------------------------------------------------


class ClusterBarrier:
    """Who has arrived at the barrier of each cluster, and who stands there; among `Chunk.barriers`."""

    def __init__(self, m: Chunk):
        self.clusters = m.B // m.cluster
        self.standing: dict[int, np.ndarray] = {}
        self.waits: dict[int, ClusterWait] = {}
        self.arrived = np.zeros((m.B, m.T), bool)  # in the present round
        self.round = np.zeros(
            m.B, np.int64
        )  # rounds completed, the same for all blocks of a cluster
        self.mine = np.full((m.B, m.T), -1, np.int64)  # the round in which a thread arrived last
        self.waited = np.ones((m.B, m.T), bool)

    def arrive(self, m: Chunk, lanes: np.ndarray, ins) -> None:
        twice = lanes & ~self.waited
        if twice.any():
            at = np.unravel_index(int(twice.argmax()), twice.shape)
            text = (
                "a thread arrives at barrier.cluster twice without a barrier.cluster.wait between"
            )
            m.fail(ExecutionError, text, ins, int(at[0]), int(at[1]))
        self.arrived |= lanes
        self.waited &= ~lanes
        self.mine = np.where(lanes, self.round[:, None], self.mine)
        self.complete(m)

    def complete(self, chunk: Chunk) -> None:
        """Lets go the clusters of which every living thread has arrived."""
        shape = (self.clusters, -1)
        missing = chunk.lanes_of(chunk.alive) & ~self.arrived
        done = ~missing.reshape(shape).any(axis=1) & self.arrived.reshape(shape).any(axis=1)
        if not done.any():
            return
        blocks = np.repeat(done, chunk.cluster)
        self.round = self.round + blocks
        self.arrived &= ~blocks[:, None]
        chunk.progress()
        if chunk.sanitizer is not None:
            chunk.sanitizer.cluster_complete(done)
        going = {at: mask & blocks[:, None] for at, mask in self.standing.items()}
        left = {at: mask & ~blocks[:, None] for at, mask in self.standing.items()}
        self.standing = {at: mask for at, mask in left.items() if mask.any()}
        for at, mask in going.items():
            if mask.any():
                self.waits[at].go(chunk, chunk.code.blocks[at], mask)


def _cluster_barrier(m: Chunk) -> ClusterBarrier:
    found = m.state("cluster barrier", lambda: ClusterBarrier(m))
    m.barriers["cluster"] = found
    return found


def cluster_arrive(ins, bind):
    """barrier.cluster.arrive: `.release` unless it says `.relaxed`."""
    releases = "relaxed" not in ins

    def step(m, mask):
        lanes = m.lanes_of(mask)
        if m.sanitizer is not None:
            m.sanitizer.cluster_arrive(lanes, releases)
        _cluster_barrier(m).arrive(m, lanes.copy(), ins)

    return step


class ClusterWait:
    """barrier.cluster.wait. Lives in a CodeBlock of its own, as its `head_step`."""

    def __init__(self, ins, bind):
        self.ins, self.aligned = ins, False

    def arrive(self, m: Chunk, block: CodeBlock, group: Group, converged: bool) -> bool:
        """True when the whole group may walk on at once; else it has been put where it belongs."""
        state, lanes = _cluster_barrier(m), m.lanes_of(group.mask)
        never = lanes & state.waited
        if never.any():
            at = np.unravel_index(int(never.argmax()), never.shape)
            text = "barrier.cluster.wait without a barrier.cluster.arrive before it"
            m.fail(ExecutionError, text, self.ins, int(at[0]), int(at[1]))
        over = lanes & (state.mine < state.round[:, None])
        if (over == lanes).all():
            self._pass(m, lanes)
            return True
        waits = lanes & ~over
        there = state.standing.get(block.index)
        state.standing[block.index] = waits if there is None else there | waits
        state.waits[block.index] = self
        if over.any():
            self.go(m, block, over)
        return False

    def go(self, m: Chunk, block: CodeBlock, lanes: np.ndarray) -> None:
        """Puts these lanes behind the wait."""
        self._pass(m, lanes)
        count = int(np.count_nonzero(lanes))
        m.runs[block.index][0] += m.warps_of(lanes)
        m.runs[block.index][1] += count
        m.stand_at(block.targets[0], lanes, count)

    def _pass(self, m: Chunk, lanes: np.ndarray) -> None:
        _cluster_barrier(m).waited |= lanes
        if m.sanitizer is not None:
            m.sanitizer.cluster_wait(lanes)


# --- st.async, red.async ----------------------------------------------------------------------------


def store_async(ins, bind):
    """st.async and red.async: a remote write that completes bytes at the mbarrier of the same block."""
    kind, operands = ins.parts[-1], list(ins.operands)
    target, values = bind.address(operands[0], "shared"), operands[1]
    items = values.items if isinstance(values, Vector) else (values,)
    dtype = dtype_of(kind)
    gets = [bind.array(item, dtype) for item in items]
    barrier_of = bind.address(operands[2], "shared")
    combine = None
    if ins.parts[0] == "red":
        op = next(
            p for p in ins.parts if p in ("add", "min", "max", "inc", "dec", "and", "or", "xor")
        )
        combine = of_type(op, kind)
        if combine is None:
            raise bind.unsupported()
    width = dtype.itemsize * len(items)

    def step(m, mask):
        lanes = m.lanes_of(mask)
        block, thread = np.nonzero(lanes)
        where, at = (m.addresses(get(m))[block, thread] for get in (target, barrier_of))
        owner = _owner(m, where, block)
        if (owner != _owner(m, at, block)).any():
            text = "the destination and the mbarrier of an st.async must be in the same block"
            m.fail(ExecutionError, text, ins, int(block[0]), int(thread[0]))
        place, barrier = where & (REMOTE - 1), at & (REMOTE - 1)
        bad = (place % width != 0) | (place + width > m.shared.size) | (barrier + 8 > m.shared.size)
        if bad.any() or (barrier % 8 != 0).any():
            i = int(bad.argmax())
            text = f"{ins.parts[0]}.async of {width} bytes at byte {int(place[i])}: outside, or misaligned"
            m.fail(ExecutionError, text, ins, int(block[i]), int(thread[i]))
        data = np.stack([np.broadcast_to(g(m), lanes.shape)[block, thread] for g in gets], axis=1)
        index = (owner * m.shared.stride + place)[:, None] // dtype.itemsize + np.arange(len(items))
        m.rows[ins.index].bytes += width * len(block)
        ticket = 0
        if m.sanitizer is not None:
            ticket = m.sanitizer.bulk_issue(
                ins, owner, index, block, thread, barrier, None, dtype.itemsize, combine is not None
            )
        left = np.ones(len(block), bool)
        loads(m).append(Load(ins, owner, barrier, index, data, width, left, ticket, combine))
        m.progress()

    return step


def _owner(m, address: np.ndarray, block: np.ndarray) -> np.ndarray:
    rank = (address >> RANK_BITS) - 1
    return np.where(rank < 0, block, block // m.cluster * m.cluster + rank)


# --- Fences -----------------------------------------------------------------------------------------


def _init_fence(ins, bind):
    """Every store is seen at once here; what fences order is the sanitizer's concern."""

    def step(m, mask):
        if m.sanitizer is not None:
            m.sanitizer.init_fence(m.lanes_of(mask))

    return step


def _proxy_fence(ins, bind):
    """fence.proxy.async, of shared memory, of global memory or of all."""
    of_global = {"global", "async::global"} & set(ins.parts)
    of_shared = any(part.split("::")[-2:-1] == ["shared"] for part in ins.parts)

    def step(m, mask):
        m.count_wavefronts(ins, mask, 2)
        if m.sanitizer is not None and not of_global:
            m.sanitizer.proxy_fence(m.lanes_of(mask))
        if m.device is not None and not of_shared:
            m.device.bulk.proxy_fence(mask)

    return step


_ASYNC = "async! weak|relaxed cluster mbarrier::complete_tx::bytes! shared::cluster"

OPCODES = {
    "mapa": {f"{SHARED} u32|u64!": Row(mapa, (3,), types="own own u32", spread="any")},
    "getctarank": {f"{SHARED} u32|u64!": Row(getctarank, (2,), types="u32 own", spread="any")},
    "barrier": {
        "cluster! arrive! release|relaxed aligned": Row(
            cluster_arrive, (0,), types="", spread="none"
        ),
        "cluster! wait! acquire aligned": Row(
            ClusterWait, (0,), types="", spread="none", meets="barrier"
        ),
    },
    "st": {
        f"{_ASYNC} v2|v4 b32|b64|u32|u64|s32|s64|f32|f64!": Row(
            store_async, (3,), types="- own", spread="none"
        )
    },
    "red": {
        f"{_ASYNC} inc|dec|min|max|add|and|or|xor! u32|s32|u64|s64|b32|b64!": Row(
            store_async, (3,), types="- own", spread="none"
        )
    },
}

FENCES = {
    "fence": {
        "mbarrier_init! release! cluster!": Row(_init_fence, (0,), types="", spread="none"),
        "proxy! async|async::global|async::shared::cta|async::shared::cluster! "
        "global|shared::cta|shared::cluster": Row(_proxy_fence, (0,), types="", spread="none"),
    }
}
