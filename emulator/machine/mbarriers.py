"""mbarriers: 64-bit words in shared memory that count arrivals and bytes (PTX ISA 9.7.13.15).

Bits 0-19 hold the arrivals still pending, 20-39 the expected count, 40-60 the transaction bytes
outstanding, 63 the parity of the current phase. The token of an arrival is the word as it stood before.
Programs must not look inside either.

What an error message needs beyond that word is kept beside it (`History`): how many phases have ended,
and how many bytes were announced and brought since.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.errors import ExecutionError, Lack
from emulator.machine.access import resolve
from emulator.machine.cluster import offsets as without_rank
from emulator.machine.cluster import owners

COUNT = (1 << 20) - 1  # the largest number of arrivals
_TX = (1 << 21) - 1
MOST_BYTES = (1 << 20) - 1  # that a phase may wait for (PTX ISA 9.7.13.15.2)


@dataclass
class History:
    """What the mbarriers at one offset went through, (B,) int64 each.

    phases: phases ended since it was initialised. announced, brought: bytes of the current phase.
    """

    phases: np.ndarray
    announced: np.ndarray
    brought: np.ndarray


def histories(m) -> dict[int, History]:
    """The mbarriers that this chunk has initialised, by their offset."""
    return m.state("mbarriers", dict)


class MBarrier:
    """The mbarriers at one offset in each block's shared memory. Fields are (B,) int64."""

    def __init__(self, m, offset: int):
        self.m, self.offset = m, offset
        self.word = m.shared.buffer.view(np.dtype(np.uint64))
        self.index = (np.arange(m.B) * m.shared.stride + offset) >> 3
        word = self.word[self.index].astype(np.uint64)
        self.pending = (word & np.uint64(COUNT)).astype(np.int64)
        self.expected = (word >> np.uint64(20) & np.uint64(COUNT)).astype(np.int64)
        tx = (word >> np.uint64(40) & np.uint64(_TX)).astype(np.int64)
        self.tx = np.where(tx > _TX >> 1, tx - _TX - 1, tx)
        self.phase = (word >> np.uint64(63)).astype(np.int64)
        self.history = histories(m).get(offset)
        if self.history is None:
            nothing = [np.zeros(m.B, np.int64) for _ in range(3)]
            self.history = histories(m)[offset] = History(*nothing)

    @staticmethod
    def pack(pending, expected, tx, phase) -> np.ndarray:
        """The word (uint64) of these fields."""
        fields = ((pending & COUNT, 0), (expected & COUNT, 20), (tx & _TX, 40), (phase & 1, 63))
        return sum(np.asarray(f).astype(np.uint64) << np.uint64(at) for f, at in fields)

    def store(self, blocks: np.ndarray) -> None:
        word = self.pack(self.pending, self.expected, self.tx, self.phase)
        self.word[self.index[blocks]] = word[blocks]
        self.m.progress()

    def complete(self, blocks: np.ndarray) -> None:
        """Ends the phase where nothing is pending any more."""
        done = blocks & (self.pending == 0) & (self.tx == 0)
        self._turn(done, np.ones_like(self.phase))

    def _turn(self, done: np.ndarray, phases: np.ndarray) -> None:
        if done.any():
            self.phase = np.where(done, self.phase ^ (phases & 1), self.phase)
            self.pending = np.where(done & (self.pending == 0), self.expected, self.pending)
            self.history.phases += np.where(done, phases, 0)
            self.history.announced[done] = self.history.brought[done] = 0
            if self.m.sanitizer is not None:
                now, past = keys(self.offset)
                self.m.sanitizer.transfer(now, past, done)

    def expect(self, count: np.ndarray) -> None:
        """`count` bytes more, (B,), will be brought in this phase."""
        self.tx = self.tx + count
        self.history.announced += count

    def bring(self, count: np.ndarray) -> None:
        """`count` bytes, (B,), have landed."""
        self.tx = self.tx - count
        self.history.brought += count

    def check_room(self, count: np.ndarray, ins, lanes: np.ndarray) -> None:
        """An error for arrivals, (B,), at a phase that has all of its own and waits for bytes."""
        bad = (count > self.pending) & (self.tx != 0)
        if bad.any():
            block, m = int(bad.argmax()), self.m
            symbol, start = m.code.shared_symbol(self.offset)
            text = (
                f"{int(count[block])} more arrivals at the mbarrier at byte {self.offset - start} of {symbol}, "
                f"whose phase lacks {max(int(self.pending[block]), 0)} of {int(self.expected[block])} and waits "
                f"for {int(self.tx[block])} bytes: wait for a phase before arriving for the next"
            )
            by = lanes[block] if lanes[block].any() else lanes.any(axis=0)
            by = int(by.argmax())
            m.fail(ExecutionError, text, ins, block, by, address=self.offset, reason="arrivals")

    def beyond(self, name: Named, each) -> np.ndarray:
        """Of lanes that arrive with `each`, (B, T) bool: those for which the running phase has no room."""
        block, thread = np.nonzero(name.lanes)
        owner = name.owners[block, thread]
        count = np.broadcast_to(each, name.lanes.shape)[block, thread]
        before = np.zeros(len(owner), np.int64)
        for one in np.unique(owner).tolist():
            here = owner == one
            before[here] = np.cumsum(count[here]) - count[here]
        late = (before >= self.pending[owner]) & (self.tx[owner] == 0)
        found = np.zeros_like(name.lanes)
        found[block[late], thread[late]] = True
        return found

    def arrive_from_afar(self, count: np.ndarray) -> None:
        """`count` arrivals, (B,), by threads of other blocks, which get no token."""
        blocks = count > 0
        waiting = self.tx != 0
        left = self.pending - count
        expected = np.maximum(self.expected, 1)
        phases = np.where(waiting | (left > 0), 0, -left // expected + 1)
        self.pending = np.where(blocks, left + phases * self.expected, self.pending)
        self._turn(blocks & (phases > 0), phases)
        self.store(blocks)

    def arrive(self, lanes: np.ndarray, count, ins=None) -> np.ndarray:
        """Lanes, (B, T) bool, arrive with `count` each. Returns each lane's token, (B, T) uint64."""
        m = self.m
        blocks = lanes.any(axis=1)
        each = np.where(lanes, count, 0)
        before = np.cumsum(each, axis=1) - each  # arrivals of the lanes ahead, in lane order
        total = each.sum(axis=1)
        expected = np.maximum(self.expected, 1)
        beyond = before - self.pending[:, None]  # arrivals into later phases
        waiting = self.tx != 0  # the phase cannot end before its bytes are there
        weak = ins is not None and "relaxed" in ins
        later = (beyond >= 0) & ~waiting[:, None]
        passed = np.where(later, beyond // expected[:, None] + 1, 0)
        if m.sanitizer is not None:
            m.sanitizer.release(keys(self.offset)[0], warps_of(m, lanes & (passed == 0)), weak)
        left = np.where(later, expected[:, None] - beyond % expected[:, None], -beyond)
        token = self.pack(
            left, self.expected[:, None], self.tx[:, None], self.phase[:, None] + passed
        )
        left = self.pending - total
        phases = np.where(waiting | (left > 0), 0, -left // expected + 1)
        self.pending = np.where(blocks, left + phases * self.expected, self.pending)
        self._turn(blocks & (phases > 0), phases)
        if m.sanitizer is not None and (passed > 0).any():
            # these belong to the phase that now runs
            surplus = lanes & (passed > 0)
            m.sanitizer.release(keys(self.offset)[0], warps_of(m, surplus), weak)
            surplus &= (lanes & (passed == 0)).any(axis=1)[:, None]
            if ins is not None and surplus.any():
                m.sanitizer.surplus(self.offset, surplus, self.expected.max(), ins)
        self.store(blocks)
        return token

    def check(self, lanes: np.ndarray, ins) -> None:
        self.check_blocks(lanes.any(axis=1), ins, lanes)

    def check_blocks(self, blocks: np.ndarray, ins, lanes: np.ndarray) -> None:
        """An error if the mbarrier is not initialised in one of these blocks, (B,) bool."""
        bad = blocks & (self.expected == 0) & (self.pending == 0)
        if bad.any():
            by = lanes[int(bad.argmax())] if lanes[int(bad.argmax())].any() else lanes.any(axis=0)
            thread = int(by.argmax())
            text = f"the mbarrier at byte {self.offset} of shared memory is not initialised"
            self.m.fail(ExecutionError, text, ins, int(bad.argmax()), thread, address=self.offset)

    def check_tx(self, ins, lanes: np.ndarray) -> None:
        """An error if the bytes outstanding leave the range of the counter (PTX ISA 9.7.13.15.2)."""
        bad = np.abs(self.tx) > MOST_BYTES
        if bad.any():
            block = int(bad.argmax())
            text = (
                f"the mbarrier at byte {self.offset} would wait for {int(self.tx[block])} bytes; "
                f"the most is {MOST_BYTES}"
            )
            self.m.fail(ExecutionError, text, ins, block, int(lanes.any(axis=0).argmax()))


def keys(offset: int) -> tuple:
    """What the sanitizer calls the arrivals of an mbarrier's current and of its finished phases."""
    return ("mbarrier", offset, "now"), ("mbarrier", offset, "past")


def warps_of(m, lanes: np.ndarray) -> np.ndarray:
    return lanes.reshape(m.B, m.T // 32, 32).any(axis=2)


@dataclass(frozen=True)
class Named:
    """The mbarriers at one offset that lanes, (B, T) bool, name. owners: (B, T), the block of the chunk
    whose mbarrier each lane names; None where it is the lane's own.
    """

    offset: int
    lanes: np.ndarray
    owners: np.ndarray | None = None

    def sum(self, m, each) -> np.ndarray:
        """(B,): what lanes bring (an int, or (B, T)), summed for each block whose mbarrier they name."""
        each = np.where(self.lanes, each, 0)
        if self.owners is None:
            return each.sum(axis=1)
        total = np.zeros(m.B, np.int64)
        np.add.at(total, self.owners[self.lanes], each[self.lanes])
        return total


def named(m, ins, space: str, address, mask, afar: bool = False) -> list[Named]:
    """The mbarriers that an instruction names. afar: those of other blocks of the cluster too."""
    found = []
    for memory, where, lanes, name in resolve(m, space, address, mask):
        if name != "shared" and not (afar and name == "cluster"):
            text = "an mbarrier must be in shared memory"
            if name == "cluster":
                text = "a thread can wait only for an mbarrier of its own block, not of another one"
            m.fail(ExecutionError, text, ins)
        memory.places(m, where, lanes, 8, 8, ins)
        lanes, whose = m.lanes_of(lanes), None
        if name == "cluster":
            whose, where = owners(m, where), without_rank(where)
        if type(where) is int:
            found.append(Named(where, lanes, whose))
            continue
        offsets = m.addresses(where)
        distinct = np.unique(offsets[lanes]).tolist()
        if len(distinct) == 1:
            found.append(Named(distinct[0], lanes, whose))
        else:
            found += [Named(at, lanes & (offsets == at), whose) for at in distinct]
    return found


# --- Who waits, for an error message ----------------------------------------------------------------


def waiters(m) -> dict:
    """(offset, instruction's index) -> (instruction, lanes that still wait, the parity they wait for)."""
    return m.state("mbarrier waiters", dict)


def describe(m, most: int = 12) -> list[str]:
    """A line for each mbarrier that somebody waits for: what its phase lacks."""
    unique = [_in_words(one) for one in lacks(m)]
    more = [f"... and {len(unique) - most} more mbarriers"] if len(unique) > most else []
    return unique[:most] + more


def lacks(m) -> tuple[Lack, ...]:
    """The same as values, one for each mbarrier and block."""
    found = []
    for (offset, _), (_, lanes, wanted) in waiters(m).items():
        barrier = MBarrier(m, offset)
        symbol, start = m.code.shared_symbol(offset)
        history = barrier.history
        for block in np.flatnonzero((lanes & m.lanes_of(m.alive)).any(axis=1)).tolist():
            numbers = (
                history.phases, barrier.pending, barrier.expected, barrier.tx, history.announced, history.brought
            )  # fmt: skip
            found.append(
                Lack(
                    tuple(m.blocks[block].tolist()),
                    symbol,
                    barrier.offset - start,
                    *(int(one[block]) for one in numbers),
                    int(wanted[block, lanes[block].argmax()]),
                )
            )
    return tuple(dict.fromkeys(found))


def _in_words(one: Lack) -> str:
    pending, expected, phases, missing = one.pending, one.expected, one.phase, one.missing
    announced, brought, wanted = one.announced, one.brought, one.wanted
    text = (
        f"block {one.block}: the mbarrier at byte {one.offset} of {one.symbol} is in phase {phases} "
        f"(parity {phases & 1}) and lacks {pending} of {expected} arrivals"
    )
    if missing > 0:
        text += f" and {missing} bytes: {announced} were announced, copies brought {brought}"
    elif missing < 0:
        text += f"; copies brought {brought} bytes, {-missing} more than the {announced} announced"
    else:
        text += " and no bytes"
    if missing and not pending:
        text += ". Announce (expect_tx) what the copies bring, boxes counted whole"
    elif phases and pending == expected and not missing:
        text += f". If phase {phases - 1} was meant, the parity to wait for is {1 - wanted}"
    return text
