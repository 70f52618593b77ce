"""One chunk of resident blocks: its registers, its memories, who stands where, and what has been counted.

This is what the steps of instructions see of the machine (`binder` lists what they may ask for);
`schedule` decides who runs.
"""

from __future__ import annotations

import numpy as np

from emulator import sanitizer
from emulator.counts.sectors import global_sectors
from emulator.counts.trace import Sample, UnevenBarrier
from emulator.counts.wavefronts import shared_wavefronts, shared_wavefronts_ideal
from emulator.errors import ExecutionError
from emulator.machine.cluster import REMOTE, ClusterShared, owners
from emulator.machine.code import Code
from emulator.machine.memory import RESERVED_BYTES, Globals, Rows, reserved_start
from emulator.machine.specials import special
from emulator.machine.values import Pattern, Value, merge


class Group:
    """Threads about to run one block. mask: (B, T) bool, or None for every lane. turn: place in the queue."""

    __slots__ = ("blocked", "count", "mask", "turn")

    def __init__(self, mask, count: int, turn: int = 0):
        self.mask, self.count, self.turn = mask, count, turn
        self.blocked = False  # waiting for lanes of its warps; new arrivals wake it


class Chunk:
    """The state of B resident blocks of T lanes; see `binder` for what steps use of it.

    blocks: (B, 3) int64 block coordinates; first: the number of the first of them in the launch;
    threads: of the T lanes, the first so many exist.
    """

    def __init__(self, launch, code: Code, blocks: np.ndarray, first: int):
        self.launch, self.code, self.blocks, self.is_first = launch, code, blocks, first == 0
        block = launch.block
        self.threads = block[0] * block[1] * block[2]
        self.B, self.T = len(blocks), -(-self.threads // 32) * 32
        self.W = self.B * self.T // 32
        self.cluster = int(np.prod(launch.cluster))  # blocks of a cluster; they lie side by side
        self.rows, self.counting, self.sanitizer = launch.rows, launch.counting, None
        self.regs: list[Value] = [0 if width else False for width in code.widths]
        self.params = launch.params
        self.keep, self.active = 0, self.B * self.threads
        self.clock, self.changes, self.spun = 0, 0, False
        self.first, self.next_look = first, launch.limits.first_look
        self.nowhere = Pattern(np.zeros((1, 1), np.int64), 0, 0)
        self.everyone = np.zeros((self.B, self.T), bool)
        self.everyone[:, : self.threads] = True
        self.alive = None if self.threads == self.T else self.everyone
        self.alive_count = self.active
        shared_row = np.arange(self.B)[:, None]
        size = launch.shared_bytes
        self.reserved_start = reserved_start(size)
        if code.reserved:
            size = self.reserved_start + RESERVED_BYTES
        self.shared = Rows("shared", shared_row, self.B, size)
        self.local = Rows("local", np.arange(self.B * self.T).reshape(self.B, self.T), self.B * self.T,
                          code.local_bytes) if code.local_bytes else None  # fmt: skip
        self.remote = ClusterShared(self) if self.cluster > 1 or code.maps_addresses else None
        self.globals = Globals(launch.space)
        self.endings: list = []  # called, in order, when every thread has come to its end
        self.specials: dict[str, Value] = {}
        self.states: dict[str, object] = {}
        self.masks: dict = {}
        self.guarded_threads = dict.fromkeys((i for b in code.blocks for i in b.guarded), 0)
        self.runs = [[0, 0] for _ in code.blocks]  # executions of each block by warps, by threads
        self.groups: dict[int, Group] = {0: Group(self.alive, self.active)}
        self.barriers: dict = {}  # number -> barriers.BarrierState, while threads are at it
        self.passed: dict[int, np.ndarray] = {}  # number -> how often each lane went through it
        self.queue, self.stalled = 0, 0
        self.group: Group = self.groups[0]
        if launch.report is not None:
            self.sanitizer = sanitizer.watch(self, launch.report)
        self.device = launch.device.beside(self, first) if launch.device else None

    # --- What steps ask for ---------------------------------------------------------------------------

    def lanes_of(self, mask) -> np.ndarray:
        """(B, T) bool; None means every lane."""
        return self.everyone if mask is None else mask

    def addresses(self, address) -> np.ndarray:
        """(B, T) int64."""
        if type(address) is int:
            return np.full(
                (self.B, self.T), address - (1 << 64) if address >> 63 else address, np.int64
            )
        return np.broadcast_to(address.pattern.array + address.offset, (self.B, self.T))

    def merge(self, slot: int, value: Value, mask: np.ndarray) -> Value:
        return merge(mask, value, self.regs[slot], self.code.widths[slot])

    def narrow(self, slot: int, negated: bool, holds: np.ndarray, mask) -> tuple[np.ndarray, int]:
        """The lanes of `mask` whose predicate holds, and how many; the same array while neither changes."""
        key = (slot, negated)
        known = self.masks.get(key)
        if known is None or known[0] is not holds or known[1] is not mask:
            picked = ~holds if negated else holds
            full = np.broadcast_to(picked, (self.B, self.T))
            lanes = np.ascontiguousarray(full) if mask is None else mask & full
            known = self.masks[key] = (holds, mask, lanes, int(np.count_nonzero(lanes)))
        return known[2], known[3]

    def state(self, name: str, make):
        """An object that an instruction family keeps for this chunk, made by `make()` when first asked for."""
        if name not in self.states:
            self.states[name] = make()
        return self.states[name]

    def progress(self) -> None:
        self.changes += 1

    def spin(self, mask=None) -> None:
        self.spun = True

    def special(self, name: str) -> Value:
        """A special register."""
        if name.startswith(("clock", "globaltimer")):
            self.clock += 1
            time = self.clock if name.startswith("clock") else self.clock * 32
            return time >> 32 if name.endswith("_hi") else time
        known = self.specials.get(name)
        if known is None:
            known = self.specials[name] = special(
                name, self.launch, self.blocks, self.threads, self.T
            )
        return known

    # --- Counting -----------------------------------------------------------------------------------

    def count_shared(
        self, ins, address, mask, width: int, kind: str, matrices: int = 4, sources=None
    ) -> None:
        """Adds one execution's shared wavefronts and bytes to the instruction's row, and samples it."""
        row = self.rows[ins.index]
        if kind != "store" and "copies" in self.states and not kind.startswith("cp.async"):
            ahead = self.states["copies"].under_way()
            row.copies_ahead[ahead] = row.copies_ahead.get(ahead, 0) + 1
        if self.counting:
            cost = self._known_shared_cost(address, mask, width, kind, matrices, sources)
            row.shared_wavefronts += cost[0]
            row.shared_wavefronts_ideal += cost[1]
            row.bytes += cost[2]
            if row.machine_size:
                merged = self._known_shared_cost(address, mask, row.machine_size, kind)
                row.merged_wavefronts += merged[0]
        self.sample(row, "shared", address, mask, width, kind)

    def _known_shared_cost(
        self, address, mask, width, kind, matrices: int = 4, sources=None
    ) -> tuple[int, int, int]:
        """`_shared_cost`, remembered on the address's pattern where it depends on nothing else."""
        pattern, offset = (
            (self.nowhere, address) if type(address) is int else (address.pattern, address.offset)
        )
        key = ("waves", kind, width, offset & 127, matrices, mask is None)
        known = pattern.facts.get(key) if sources is None else None
        if known is None or known[0] is not mask:
            cost = self._shared_cost(pattern, offset, mask, width, kind, matrices, sources)
            known = (mask, cost)
            if sources is None:
                pattern.remember(key, known)
        return known[1]

    def _shared_cost(
        self, pattern, offset, mask, width, kind, matrices, sources
    ) -> tuple[int, int, int]:
        lanes = self.lanes_of(mask).reshape(self.W, 32)
        lines = np.broadcast_to(pattern.array + offset, (self.B, self.T)).reshape(self.W, 32)
        if (
            mask is None and pattern.array.shape[0] == 1 and sources is None
        ):  # the same in every block
            few = self.T // 32
            waves = (
                shared_wavefronts(lines[:few], lanes[:few], width, kind, matrices).sum() * self.B
            )
            ideal = shared_wavefronts_ideal(lanes[:few], width, kind, matrices).sum() * self.B
        else:
            extra = {} if sources is None else {"sources": sources}
            waves = shared_wavefronts(lines, lanes, width, kind, matrices, **extra).sum()
            ideal = shared_wavefronts_ideal(lanes, width, kind, matrices).sum()
        threads = np.count_nonzero(lanes)
        return int(waves), min(int(ideal), int(waves)), int(threads) * width

    def count_global(
        self, ins, address, mask, width: int, kind: str = "load", destinations=None
    ) -> None:
        """Adds one execution's requests, sectors and bytes to the instruction's row, and samples it."""
        row = self.rows[ins.index]
        if self.counting:
            pattern, offset = (
                (self.nowhere, address)
                if type(address) is int
                else (address.pattern, address.offset)
            )
            key = ("sectors", width, offset & 31, mask is None)
            known = pattern.facts.get(key) if destinations is None else None
            if known is None or known[0] is not mask:
                known = (mask, *self._global_cost(pattern, offset, mask, width, kind, destinations))
                if destinations is None:
                    pattern.remember(key, known)
            row.global_requests += known[1]
            row.global_sectors += known[2]
            row.bytes += known[3]
        self.sample(row, "global", address, mask, width, kind)

    def _global_cost(
        self, pattern, offset, mask, width, kind, destinations
    ) -> tuple[int, int, int]:
        lanes = self.lanes_of(mask).reshape(self.W, 32)
        threads = int(np.count_nonzero(lanes))
        lines = np.broadcast_to(pattern.array + offset, (self.B, self.T)).reshape(self.W, 32)
        if mask is None and pattern.array.shape[0] == 1 and destinations is None:
            few = self.T // 32
            sectors = int(global_sectors(lines[:few], lanes[:few], width, kind).sum()) * self.B
            return self.W, sectors, threads * width
        extra = {} if destinations is None else {"destinations": destinations}
        sectors = global_sectors(lines, lanes, width, kind, **extra)
        requests = self.W if mask is None else int(lanes.any(axis=1).sum())
        return requests, int(sectors.sum()), threads * width

    def count_wavefronts(self, ins, mask, by_warp: int, by_lane: int = 0) -> None:
        """Adds what an instruction always costs in shared memory (tests/data/README.md)."""
        if self.counting:
            lanes, row = self.lanes_of(mask), self.rows[ins.index]
            waves = by_warp * self.warps_of(lanes) + by_lane * int(np.count_nonzero(lanes))
            row.shared_wavefronts += waves
            row.shared_wavefronts_ideal += waves

    def count_cluster(self, ins, address, mask, width: int, kind: str) -> None:
        """An access to other blocks' shared memory: its bytes, and a look by the sanitizer.

        It costs no wavefront here but for the answer to an atomic (tests/data/README.md).
        """
        if self.counting:
            self.rows[ins.index].bytes += int(np.count_nonzero(self.lanes_of(mask))) * width
            self.count_wavefronts(ins, mask, int(kind == "atomic"))
        if self.sanitizer is not None:
            strong = kind == "atomic" or not sanitizer.STRONG.isdisjoint(ins.parts)
            whose, inside = owners(self, address), self.addresses(address) & (REMOTE - 1)
            lanes = self.lanes_of(mask)
            self.sanitizer.remote(lanes, whose, inside, width, ins, kind, strong)

    def sample(self, row, space: str, address, mask, width: int, kind: str) -> None:
        """Keeps what each warp of the launch's first block did, while there is room for it."""
        if not self.is_first or row.room <= 0:
            return
        active = self.lanes_of(mask)[0]
        if mask is not None and not active.any():
            return
        if type(address) is int:
            where = np.full(self.T, address, np.int64)
        else:
            array = address.pattern.array
            where = np.broadcast_to(array[0] + address.offset, (self.T,))
        block = tuple(self.blocks[0].tolist())
        row.samples.append(Sample(space, block, active.copy(), where, width, kind))
        row.room -= int(np.count_nonzero(active.reshape(-1, 32).any(axis=1)))

    def passed_barrier(self, number: int, lanes: np.ndarray) -> None:
        """These lanes, (B, T) bool, went through a barrier that is for all threads of their block."""
        if number not in self.passed:
            self.passed[number] = np.zeros((self.B, self.T), np.int32)
        self.passed[number] += lanes

    def finish(self) -> None:
        """Ends what is still under way, adds what blocks and guards counted to the rows, and blocks that passed
        barriers unevenly to the launch.
        """
        for ending in self.endings:
            ending(self)
        for number, times in self.passed.items():
            times = times[:, : self.threads]
            for block in np.flatnonzero((times != times[:, :1]).any(axis=1)).tolist():
                where = tuple(self.blocks[block].tolist())
                self.launch.uneven.append(UnevenBarrier(number, where, times[block].copy()))
        for block, (warps, threads) in zip(self.code.blocks, self.runs, strict=True):
            if not warps:
                continue
            for index in block.plain:
                row = self.rows[index]
                row.warps += warps
                row.threads += threads
            for index in block.guarded:
                self.rows[index].warps += warps
        for index, threads in self.guarded_threads.items():
            self.rows[index].threads += threads

    def release(self) -> None:
        """Lets go of all that it and its shadows hold: they refer to each other, and would wait for a collection."""
        if self.device is not None:
            self.device.close()
        for held in (self.device, self.sanitizer, self):
            if held is not None:
                vars(held).clear()

    # --- Standing before a block of code ------------------------------------------------------------

    def stand(self, at: int, group: Group) -> None:
        """Puts a group before a block, joining whoever stands there."""
        there = self.groups.get(at)
        if there is not None:
            mask = there.mask | group.mask
            group = Group(mask, there.count + group.count, max(group.turn, there.turn))
        if group.count == self.alive_count:
            group.mask = self.alive
            group.turn = 0
        self.groups[at] = group

    def stand_at(self, at: int, mask, count: int) -> None:
        """Puts these lanes, so many, before a block."""
        self.stand(at, Group(mask, count))

    def warps_of(self, mask: np.ndarray) -> int:
        return int(np.count_nonzero(mask.reshape(self.W, 32).any(axis=1)))

    # --- Errors -------------------------------------------------------------------------------------

    def place_of(self, ins, block: int | None = None, thread: int | None = None) -> dict:
        """The keyword arguments that an ExecutionError wants."""
        where = {"instruction": ins.text, "ptx_line": ins.line}
        if ins.location is not None:
            where["source"] = ins.location.frames()[0]
        if block is not None:
            where["block"] = tuple(int(x) for x in self.blocks[block])
        if thread is not None:
            bx, by, _ = self.launch.block
            where["thread"] = (thread % bx, thread // bx % by, thread // (bx * by))
        return where

    def fail(
        self, error: type[ExecutionError], text: str, ins, block=None, thread=None, **more
    ) -> None:
        raise error(text, **self.place_of(ins, block, thread), **more)
