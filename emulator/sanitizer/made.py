"""Which mbarriers have been made, and which warps know it; which blocks of a cluster others know to have begun.

An mbarrier may be used by its block's warps that are ordered after its `mbarrier.init`, and by another block's also
where a fence.mbarrier_init stands before a `barrier.cluster`, even a relaxed one. To make it again, or to write over
it, without `mbarrier.inval`, is undefined (PTX ISA 9.7.13.15.9). A block's shared memory may be reached from afar
once it is known to have begun (PTX ISA 5.1.6): after a `barrier.cluster`, or after anything else that one of its
warps did before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.sanitizer import words
from emulator.sanitizer.report import Seen

BYTES = 8


def ends_some(code) -> bool:
    """Whether an entry invalidates mbarriers."""
    return any(ins.parts[:2] == ("mbarrier", "inval") for ins in code.instructions.values())


@dataclass
class _Made:
    """The mbarriers at one offset; (B,) each, of the chunk's blocks, and (B, warps) of the block's cluster.

    time: when it was made, 0 where it is not; thread: who made it, in its block; by: with which instruction.
    fenced: that thread has executed a fence since; came, met: it has then come to the barrier of its cluster, which
    then completed. knows: a warp is ordered after all that. learned: when it was told by that barrier, 0 for never.
    """

    time: np.ndarray
    thread: np.ndarray
    by: list
    fenced: np.ndarray
    came: np.ndarray
    met: np.ndarray
    knows: np.ndarray
    learned: np.ndarray


class Made:
    """What a Shadow or ClusterShadow knows of mbarriers and of blocks that have begun.

    chunk_blocks, threads: blocks of the chunk, threads of one; together: blocks of a cluster; ends: whether the
    kernel invalidates mbarriers, so that it matters who still uses them.
    """

    def __init__(self, shadow, chunk_blocks: int, threads: int, together: int = 1, ends=False):
        self.shadow, self.B, self.together = shadow, chunk_blocks, together
        self.threads, self.per = threads, threads // 32
        self.rank = np.arange(chunk_blocks) % together
        self.own = self.rank[:, None] * self.per + np.arange(
            self.per
        )  # (B, per): a block's own warps
        self.at: dict[int, _Made] = {}
        self.uses: dict | None = (
            {} if ends else None
        )  # offset -> when, and by what; (B, warps) each
        self.barred = None  # by granule: whether an mbarrier stands there
        warps = shadow.known.shape[1]
        self.begun = np.zeros((chunk_blocks, warps), bool)  # a block has begun, as a warp knows
        np.put_along_axis(self.begun, self.own, True, axis=1)
        self.met = np.zeros(
            (chunk_blocks // together, warps), np.int32
        )  # passed a cluster's barrier

    # --- mbarriers ---

    def init(self, offset: int, lanes: np.ndarray, instruction) -> None:
        """Lanes, (B, T) bool, make the mbarriers at `offset` of their blocks."""
        shadow, made = self.shadow, self._of(offset)
        now = shadow.tick(instruction, "init")
        for block in np.flatnonzero(lanes.any(axis=1)).tolist():
            thread = int(lanes[block].argmax())
            if made.time[block]:
                self._tell("remade-barrier", instruction, made.by[block], block, thread, offset)
            elif np.count_nonzero(lanes[block]) > 1:
                self._tell(
                    "remade-barrier", instruction, instruction, block, thread, offset, "lanes"
                )
            self._over(offset, block, thread, instruction)
            made.time[block], made.thread[block], made.by[block] = now, thread, instruction
            made.fenced[block] = made.came[block] = made.met[block] = False
            made.learned[block] = 0
            made.knows[block] = False
            made.knows[block, self.own[block, thread >> 5]] = True
            self._mark(block, offset, True)

    def inval(self, offset: int, lanes: np.ndarray, instruction) -> None:
        made = self._of(offset)
        for block in np.flatnonzero(lanes.any(axis=1)).tolist():
            made.time[block] = 0
            self._mark(block, offset, False)
            self._over(offset, block, int(lanes[block].argmax()), instruction)

    def _use(self, offset: int, owner, warp, instruction) -> None:
        """Warps (n,) of the cluster use the mbarriers at `offset` of blocks `owner`, (n,)."""
        shape = (self.B, self.shadow.known.shape[1])
        when, by = self.uses.setdefault(
            offset, (np.zeros(shape, np.int32), np.empty(shape, object))
        )
        when[owner, warp] = self.shadow.now + 1
        by[owner, warp] = instruction

    def _over(self, offset: int, block: int, thread: int, instruction) -> None:
        """A thread ends or makes an mbarrier: reports who may still use it, and counts as its only user."""
        if self.uses is None:
            return
        warp = self.own[block, thread >> 5]
        if offset in self.uses:
            when, by = self.uses[offset]
            known = self.shadow.known[block // self.together, warp]
            late = np.flatnonzero(when[block] > known)
            late = late[late != warp]
            if len(late):
                earlier = by[block, late[0]]
                self._tell("remade-barrier", instruction, earlier, block, thread, offset, "used")
            when[block] = 0
        self._use(offset, block, warp, instruction)

    def used(self, offset: int, lanes: np.ndarray, owners, instruction) -> None:
        """Lanes, (B, T) bool, name the mbarriers at `offset` of their own blocks, or of `owners`, (B, T)."""
        made = self.at.get(offset)
        if made is None:
            return
        if self.uses is not None:
            block, thread = np.nonzero(lanes)
            owner = block if owners is None else owners[block, thread]
            self._use(offset, owner, self.own[block, thread >> 5], instruction)
        if owners is None:
            warps = lanes.reshape(self.B, self.per, 32).any(axis=2)
            unknown = warps & ~np.take_along_axis(made.knows, self.own, axis=1)
            if not unknown.any():
                return
            block, warp = np.nonzero(unknown)
            self._look(made, offset, block, self.own[block, warp], instruction, lanes, block)
            return
        block, thread = np.nonzero(lanes)
        self._afar(made, offset, owners[block, thread], block, thread, instruction)

    def surplus(self, offset: int, lanes: np.ndarray, count, instruction) -> None:
        block = int(lanes.any(axis=1).argmax())
        words.tell(
            self.shadow.report, "surplus-arrival",
            Seen(instruction, None, block, int(lanes[block].argmax()), offset, self.shadow.places), "", did=int(count),
        )  # fmt: skip

    def unchecked(self, offset: int, lanes: np.ndarray, instruction) -> None:
        block = int(lanes.any(axis=1).argmax())
        detail = instruction.parts[1]
        self._tell(
            "unchecked-wait", instruction, None, block, int(lanes[block].argmax()), offset, detail
        )

    def _afar(self, made, offset, owner, block, thread, instruction) -> None:
        warp = self.own[block, thread >> 5]
        unknown = np.flatnonzero(~made.knows[owner, warp])
        if len(unknown):
            pairs, first = np.unique(
                np.stack([owner[unknown], warp[unknown]]), axis=1, return_index=True
            )
            at = unknown[first]
            self._look(made, offset, pairs[0], pairs[1], instruction, None, block[at], thread[at])

    def counts(self, offsets, owner, block, thread, instruction) -> None:
        """Copies of threads (R,) of blocks (R,) count at the mbarriers at offsets (R,) of blocks `owner`, (R,)."""
        for offset in np.unique(offsets).tolist():
            made, here = self.at.get(offset), offsets == offset
            if made is not None:
                self._afar(made, offset, owner[here], block[here], thread[here], instruction)

    def _look(self, made, offset, owner, warp, instruction, lanes, block, thread=None) -> None:
        for i in range(len(owner)):
            one, by = int(owner[i]), int(warp[i])
            if made.time[one] and not self._informed(
                one // self.together, by, made.learned[one], made, one
            ):
                which = int(block[i])
                if thread is None:
                    first = int(self.own[which, 0])
                    mine = lanes[which, (by - first) * 32 : (by - first + 1) * 32]
                    by_thread = (by - first) * 32 + int(mine.argmax())
                else:
                    by_thread = int(thread[i])
                detail = self._target(one, which)
                self._tell(
                    "unmade-barrier", instruction, made.by[one], which, by_thread, offset, detail
                )
            made.knows[one, by] = True

    def _informed(self, cluster, warp, learned, made, owner) -> bool:
        """Whether a warp is ordered after the making of `owner`'s mbarrier."""
        known = self.shadow.known[cluster, warp]
        maker = self.own[owner, made.thread[owner] >> 5]
        told = learned > 0
        return bool(
            known[maker] >= made.time[owner]
            or learned[warp]
            or (known[told] >= learned[told]).any()
        )

    def fence(self, lanes: np.ndarray) -> None:
        """Lanes executed fence.mbarrier_init, or a fence that includes it."""
        blocks = np.arange(self.B)
        for made in self.at.values():
            made.fenced |= (made.time > 0) & lanes[blocks, made.thread]

    def cluster_arrive(self, lanes: np.ndarray) -> None:
        blocks = np.arange(self.B)
        for made in self.at.values():
            made.came |= made.fenced & lanes[blocks, made.thread]

    def cluster_complete(self, clusters: np.ndarray) -> None:
        for made in self.at.values():
            made.met |= made.came & np.repeat(clusters, self.together)

    def cluster_wait(self, warps: np.ndarray) -> None:
        """Warps, (clusters, warps) bool, go on behind the barrier of their cluster."""
        now = self.shadow.now
        self.met[warps & (self.met == 0)] = now
        self.begun |= np.repeat(warps, self.together, axis=0)
        for made in self.at.values():
            fresh = (
                np.repeat(warps, self.together, axis=0) & made.met[:, None] & (made.learned == 0)
            )
            made.learned[fresh] = now

    # --- Blocks that have begun ---

    def reached(self, owner, block, thread, instruction) -> None:
        """Threads (n,) of blocks (n,) reach into the shared memory of blocks `owner`, (n,)."""
        warp = self.own[block, thread >> 5]
        unknown = np.flatnonzero(~self.begun[owner, warp])
        if not len(unknown):
            return
        pairs, first = np.unique(
            np.stack([owner[unknown], warp[unknown]]), axis=1, return_index=True
        )
        for (one, by), at in zip(pairs.T.tolist(), unknown[first].tolist(), strict=True):
            cluster = one // self.together
            known, met = self.shadow.known[cluster, by], self.met[cluster]
            told = met > 0
            here = (
                known[self.own[one]].max() > self.shadow.start or (known[told] >= met[told]).any()
            )
            if not here and not self._by_flag(block[at], thread[at]):
                which, who = int(block[at]), int(thread[at])
                self._tell(
                    "unstarted-block", instruction, None, which, who, 0, self._target(one, which)
                )
            self.begun[one, by] = True

    def _by_flag(self, block, thread) -> bool:
        """Whether a flag in global memory has told this warp anything: quiet then."""
        joined = self.shadow.device
        return joined is not None and bool(joined.device.acquired[block, thread >> 5])

    # --- Writes over an mbarrier ---

    def overwritten(self, index, lanes, instruction) -> None:
        """Granules are written; index: (n,), lanes: the access."""
        if self.barred is None:
            return
        hit = np.flatnonzero(self.barred[index])
        if len(hit):
            granules, at = self.shadow.granules, int(hit[0])
            cluster, thread = int(lanes.block[at]), int(lanes.thread[at])
            address = int(index[at] - cluster * granules.count) << granules.shift
            stride = getattr(self.shadow, "stride", 0)
            rank, offset = divmod(address, stride) if stride else (0, address)
            owner, offset = cluster * self.together + rank, offset // BYTES * BYTES
            by = self.at[offset].by[owner] if offset in self.at else None
            thread = min(thread, self.together * self.threads - 1)
            block = cluster * self.together + thread // self.threads
            self._tell("overwritten-barrier", instruction, by, block, thread, offset)
            self.barred[index[hit]] = False

    def refine(self) -> None:
        if self.barred is not None:
            self.barred = np.repeat(self.barred, 2)

    def _mark(self, block: int, offset: int, stands: bool) -> None:
        granules = self.shadow.granules
        if self.barred is None:
            self.barred = np.zeros(self.shadow.blocks * granules.count, bool)
        cluster, rank = divmod(block, self.together)
        first = cluster * granules.count
        first += (offset + rank * getattr(self.shadow, "stride", 0)) >> granules.shift
        self.barred[first : first + (BYTES >> granules.shift)] = stands

    # ---

    def _of(self, offset: int) -> _Made:
        made = self.at.get(offset)
        if made is None:
            no = [np.zeros(self.B, bool) for _ in range(3)]
            warps = (self.B, self.shadow.known.shape[1])
            made = self.at[offset] = _Made(
                np.zeros(self.B, np.int32), np.zeros(self.B, np.int64), [None] * self.B, *no,
                np.zeros(warps, bool), np.zeros(warps, np.int32),
            )  # fmt: skip
        return made

    def _target(self, owner: int, block: int) -> str:
        return "" if owner == block else f" of block {self.shadow.places.block_of(owner)}"

    def _tell(self, kind, instruction, earlier, block, thread, address, detail="") -> None:
        seen = Seen(instruction, earlier, block, thread, address, self.shadow.places)
        words.tell(self.shadow.report, kind, seen, detail)
