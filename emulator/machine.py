"""Runs one chunk of blocks: who is where, who waits for whom, and what has been counted.

Threads stand in *groups*, one for each basic block where any of them are; running a group runs its
block's instructions for all its threads. As long as nobody has branched apart there is one group and
no mask. Otherwise the group whose block comes first in the flow order runs first, so paths that
diverged meet again; threads that poll (a `try_wait`, a spin lock) go to the back of the queue each
time, so the threads they wait for get to run; and threads at a barrier stand still until everyone it
expects is there. When no group can run, that is a deadlock, and it is reported.
"""

from __future__ import annotations

import numpy as np

from . import sanitizer
from .barriers import BarrierState, ranges
from .decode import Code, CodeBlock
from .errors import BarrierDivergence, Deadlock, ExecutionError, Trap
from .memory import Globals, Rows
from .specials import special
from .trace import Sample
from .values import Pattern, Value, merge
from .wavefronts import global_sectors, shared_wavefronts, shared_wavefronts_ideal

PATIENCE = (
    4000  # polls in a row, by everyone who can run, without any change, before it is a deadlock
)


class Group:
    """Threads about to run one block. mask: (B, T) bool, or None for every lane. turn: place in the queue."""

    __slots__ = ("blocked", "count", "mask", "turn")

    def __init__(self, mask, count: int, turn: int = 0):
        self.mask, self.count, self.turn = mask, count, turn
        self.blocked = False  # waiting for lanes of its warps; new arrivals wake it


class Chunk:
    """The state of B resident blocks of T lanes; see `decode` for what steps use of it.

    blocks: (B, 3) int64 block coordinates; threads: of the T lanes, the first so many exist.
    """

    def __init__(self, launch, code: Code, blocks: np.ndarray, is_first: bool):
        self.launch, self.code, self.blocks, self.is_first = launch, code, blocks, is_first
        block = launch.block
        self.threads = block[0] * block[1] * block[2]
        self.B, self.T = len(blocks), -(-self.threads // 32) * 32
        self.W = self.B * self.T // 32
        self.rows, self.counting, self.sanitizer = launch.rows, launch.counting, None
        self.regs: list[Value] = [0] * len(code.widths)
        self.params = launch.params
        self.keep, self.active = 0, self.B * self.threads
        self.clock, self.changes, self.spun = 0, 0, False
        self.nowhere = Pattern(np.zeros((1, 1), np.int64), 0, 0)
        self.everyone = np.zeros((self.B, self.T), bool)
        self.everyone[:, : self.threads] = True
        self.alive = None if self.threads == self.T else self.everyone
        self.alive_count = self.active
        shared_row = np.arange(self.B)[:, None]
        self.shared = Rows("shared", shared_row, self.B, launch.shared_bytes)
        self.local = Rows("local", np.arange(self.B * self.T).reshape(self.B, self.T), self.B * self.T,
                          code.local_bytes) if code.local_bytes else None  # fmt: skip
        self.globals = Globals(launch.space)
        self.specials: dict[str, Value] = {}
        self.states: dict[str, object] = {}
        self.masks: dict = {}
        self.guarded_threads = dict.fromkeys((i for b in code.blocks for i in b.guarded), 0)
        self.runs = [[0, 0] for _ in code.blocks]  # executions of each block by warps, by threads
        self.groups: dict[int, Group] = {0: Group(self.alive, self.active)}
        self.barriers: dict[int, BarrierState] = {}
        self.queue, self.stalled = 0, 0
        self.group: Group = self.groups[0]
        if launch.report is not None:
            self.sanitizer = sanitizer.watch(self, launch.report)

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
            known = self.specials[name] = special(self, name)
        return known

    # --- Counting -----------------------------------------------------------------------------------

    def count_shared(
        self, ins, address, mask, width: int, kind: str, matrices: int = 4, sources=None
    ) -> None:
        """Adds one execution's shared wavefronts and bytes to the instruction's row, and samples it."""
        row = self.rows[ins.index]
        if self.counting:
            pattern, offset = (
                (self.nowhere, address)
                if type(address) is int
                else (address.pattern, address.offset)
            )
            key = ("waves", kind, width, offset & 127, matrices, mask is None)
            known = pattern.facts.get(key) if sources is None else None
            if known is None or known[0] is not mask:
                known = (
                    mask,
                    *self._shared_cost(pattern, offset, mask, width, kind, matrices, sources),
                )
                if sources is None:
                    pattern.remember(key, known)
            row.shared_wavefronts += known[1]
            row.shared_wavefronts_ideal += known[2]
            row.bytes += known[3]
        if self.is_first and row.room > 0:
            self.sample(row, "shared", address, mask, width, kind)

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
        if self.is_first and row.room > 0:
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

    def sample(self, row, space: str, address, mask, width: int, kind: str) -> None:
        """Keeps what each warp of the launch's first block did."""
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

    def finish(self) -> None:
        """Adds what blocks and guards counted to the rows."""
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

    # --- Running ------------------------------------------------------------------------------------

    def run(self) -> None:
        """Runs every thread to its end."""
        blocks, rank = self.code.blocks, self.code.rank
        while self.groups or self.alive_count:
            at = self._pick(rank)
            group = self.groups.pop(at)
            self.group = group
            others = 0
            for other in self.groups:
                others |= blocks[other].live
            for barrier in self.barriers.values():
                for other in barrier.standing:
                    others |= blocks[other].live
            self.keep, self.active = others, group.count
            self._run_group(at, group, group.count == self.alive_count)

    def _pick(self, rank: list[int]) -> int:
        """The block whose group runs next: the earliest turn, then the first in flow order."""
        if self.stalled > PATIENCE:
            self._deadlock("every warp that can run is polling, and nothing changes any more")
        best = None
        for at, group in self.groups.items():
            if not group.blocked:
                key = (group.turn, rank[at])
                if best is None or key < best[0]:
                    best = (key, at)
        if best is None:
            if self._meet_at_warp_barriers():
                return self._pick(rank)
            self._deadlock("no warp can make progress")
        return best[1]

    def _run_group(self, at: int, group: Group, converged: bool) -> None:
        """Runs blocks for one group until it has to be compared with the others again."""
        blocks, mask = self.code.blocks, group.mask
        warps = self.W if mask is None else self.warps_of(mask)
        while True:
            block: CodeBlock = blocks[at]
            if block.head:
                if block.head == "barrier":
                    if not block.head_step.arrive(self, block, group, converged):
                        return
                elif not converged and not self._whole(block, group):
                    return self._split_by_warp(at, group)
            counted = self.runs[at]
            counted[0] += warps
            counted[1] += group.count
            self.clock += len(block.steps)
            for step in block.steps:
                step(self, mask)
            polled = self.spun
            if polled:
                self._poll(group)
            ends = block.ends
            if ends == "jump":
                at = block.targets[0]
            elif ends == "branch":
                slot, negated = block.predicate
                holds = self.regs[slot]
                if type(holds) is np.ndarray:
                    taken, count = self.narrow(slot, negated, holds, mask)
                    if count and count < group.count:
                        return self._split(block, group, taken, count)
                    at = block.targets[0 if count else 1]
                else:
                    at = block.targets[0 if bool(holds) is not negated else 1]
            elif ends == "switch":
                targets = self._switch(block, group)
                if len(targets) > 1:
                    for target, lanes in targets.items():
                        self.stand(target, Group(lanes, int(np.count_nonzero(lanes)), group.turn))
                    return
                (at,) = targets
            elif ends == "exit":
                return self._exit(group)
            else:
                lane = int(self.lanes_of(mask).reshape(-1).argmax())
                text = "the program trapped"
                if "call" in block.last.text:
                    text = "a device-side assertion failed"
                self.fail(Trap, text, block.last, *divmod(lane, self.T))
            if polled or not (converged or self._stays_first(at, group)):
                return self.stand(at, group)

    def _stays_first(self, at: int, group: Group) -> bool:
        """Whether a group that has reached block `at` would be picked again, alone."""
        if at in self.groups:
            return False
        rank = self.code.rank
        key = (group.turn, rank[at])
        return all(
            other.blocked or key < (other.turn, rank[there]) for there, other in self.groups.items()
        )

    def _poll(self, group: Group) -> None:
        """Someone polled: to the back of the queue with them, and patience has an end."""
        self.spun = False
        self.queue += 1
        group.turn = self.queue
        self.stalled = 0 if self.changes else self.stalled + 1
        self.changes = 0

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

    def _split(self, block: CodeBlock, group: Group, taken: np.ndarray, count: int) -> None:
        self.stand(block.targets[0], Group(taken, count, group.turn))
        rest = self.lanes_of(group.mask) & ~taken
        self.stand(block.targets[1], Group(rest, group.count - count, group.turn))

    def _switch(self, block: CodeBlock, group: Group) -> dict[int, np.ndarray]:
        """{target: lanes} of a `brx.idx`."""
        index = block.selector(self)
        if type(index) is int:
            self._check_switch(block, index < len(block.targets))
            return {block.targets[index]: group.mask}
        lanes, mask = self.addresses(index), self.lanes_of(group.mask)
        self._check_switch(block, bool(((lanes >= 0) & (lanes < len(block.targets)))[mask].all()))
        found: dict[int, np.ndarray] = {}
        for value in np.unique(lanes[mask]).tolist():
            target = block.targets[value]
            picked = mask & (lanes == value)
            found[target] = found[target] | picked if target in found else picked
        return found

    def _check_switch(self, block: CodeBlock, holds: bool) -> None:
        if not holds:
            self.fail(
                ExecutionError,
                "brx.idx: the index is past the end of its .branchtargets",
                block.last,
            )

    def _exit(self, group: Group) -> None:
        self.alive_count -= group.count
        self.changes += 1
        if self.alive_count:
            self.alive = self.lanes_of(self.alive) & ~self.lanes_of(group.mask)
            for barrier in list(self.barriers.values()):
                barrier.complete(self)
            for other in self.groups.values():
                other.blocked = False

    def warps_of(self, mask: np.ndarray) -> int:
        return int(np.count_nonzero(mask.reshape(self.W, 32).any(axis=1)))

    # --- Meeting in a warp --------------------------------------------------------------------------

    def _needed(self, block: CodeBlock) -> np.ndarray:
        """(W, 32) bool: the living lanes that each lane's warp waits for at this instruction."""
        alive = self.lanes_of(self.alive).reshape(self.W, 32)
        if block.head_step is None:
            return alive
        member = block.head_step(self)
        if type(member) is int:
            bits = (member >> np.arange(32)) & 1 == 1
            return alive & bits
        mask = self.lanes_of(self.group.mask).reshape(self.W, 32)
        values = self.addresses(member).reshape(self.W, 32)
        needed = np.zeros((self.W, 32), bool)
        for lane in range(32):
            named = ((values[:, lane : lane + 1] >> np.arange(32)) & 1 == 1) & mask[
                :, lane : lane + 1
            ]
            named &= named[:, lane : lane + 1]  # a lane outside its own mask waits for nobody
            needed |= named
        return needed & alive

    def _incomplete(self, block: CodeBlock, group: Group) -> np.ndarray:
        """(W,) bool: warps with a lane in the group that lack a lane they wait for."""
        mask = group.mask.reshape(self.W, 32)
        return mask.any(axis=1) & (self._needed(block) & ~mask).any(axis=1)

    def _whole(self, block: CodeBlock, group: Group) -> bool:
        known = self.masks.get("whole")
        if known is not None and known[0] is group.mask and known[1] is self.alive:
            return True
        mask = group.mask.reshape(self.W, 32)
        missing = self.lanes_of(self.alive).reshape(self.W, 32) & ~mask
        if not (mask.any(axis=1) & missing.any(axis=1)).any():
            self.masks["whole"] = (group.mask, self.alive)
            return True
        return not self._incomplete(block, group).any()

    def _split_by_warp(self, at: int, group: Group) -> None:
        """The warps that are all here may go on; the others' lanes wait."""
        waiting = np.repeat(self._incomplete(self.code.blocks[at], group), 32).reshape(
            self.B, self.T
        )
        mask = group.mask
        stay, go = mask & waiting, mask & ~waiting
        if go.any():
            leaving = Group(go, int(np.count_nonzero(go)), group.turn)
            staying = Group(stay, int(np.count_nonzero(stay)), group.turn)
            staying.blocked = True
            self.groups[at] = staying
            for other in self.code.blocks[at : at + 1]:
                self.keep |= other.live
            self.group, self.active = leaving, leaving.count
            self._run_group(at, leaving, False)
        else:
            group.blocked = True
            self.groups[at] = group

    def _meet_at_warp_barriers(self) -> bool:
        """Lanes of one warp may wait at different `bar.warp.sync`; lets those go that are complete together."""
        here = {
            at: group
            for at, group in self.groups.items()
            if group.blocked
            and self.code.blocks[at].code
            and self.code.blocks[at].code[0].parts[:2] == ("bar", "warp")
        }
        if len(here) < 2:
            return False
        together = np.logical_or.reduce([group.mask for group in here.values()]).reshape(self.W, 32)
        moved = False
        for at, group in here.items():
            self.group = group
            mask = group.mask.reshape(self.W, 32)
            ready = mask.any(axis=1) & ~(self._needed(self.code.blocks[at]) & ~together).any(axis=1)
            go = group.mask & np.repeat(ready, 32).reshape(self.B, self.T)
            if not go.any():
                continue
            moved = True
            stay = group.mask & ~go
            del self.groups[at]
            if stay.any():
                self.groups[at] = Group(stay, int(np.count_nonzero(stay)), group.turn)
                self.groups[at].blocked = True
            count = int(np.count_nonzero(go))
            self.runs[at][0] += self.warps_of(go)
            self.runs[at][1] += count
            if self.sanitizer is not None:
                self.sanitizer.warp_barrier(go)
            self.stand(self.code.blocks[at].targets[0], Group(go, count, group.turn))
        return moved

    # --- Deadlock -----------------------------------------------------------------------------------

    def _next_instruction(self, at: int):
        """The first instruction that a group standing before block `at` comes to, or None."""
        for _ in self.code.blocks:  # empty blocks fall through to others
            block = self.code.blocks[at]
            item = block.code[0] if block.code else block.last
            if item is not None or not block.targets:
                return item
            at = block.targets[0]
        return None

    def _deadlock(self, why: str) -> None:
        """Raises Deadlock, or BarrierDivergence when one warp's lanes wait at a barrier that others never reach."""
        places: dict[int, np.ndarray] = {}
        for at, group in self.groups.items():
            places[at] = self.lanes_of(group.mask)
        at_barrier = np.zeros((self.B, self.T), bool)
        for barrier in self.barriers.values():
            for at, mask in barrier.standing.items():
                places[at] = places[at] | mask if at in places else mask
                at_barrier |= mask
        lines, first = [], None
        warps_at_barrier = at_barrier.reshape(self.W, 32).any(axis=1)
        divided = np.zeros(self.W, bool)
        for warp in range(self.W):
            block, number = divmod(warp, self.T // 32)
            for at, mask in sorted(places.items()):
                lanes = mask.reshape(self.W, 32)[warp]
                if not lanes.any():
                    continue
                divided[warp] |= not (
                    lanes | ~self.lanes_of(self.alive).reshape(self.W, 32)[warp]
                ).all()
                item = self._next_instruction(at)
                first = first or (item, block)
                text = f"PTX line {item.line}: {item.text}{_cited(item)}" if item else "its end"
                coordinates = tuple(int(x) for x in self.blocks[block])
                lines.append(f"block {coordinates}, warp {number}, lanes {ranges(lanes)}: {text}")
        more = [f"... and {len(lines) - 32} more"] if len(lines) > 32 else []
        item, block = first if first else (None, None)
        where = self.place_of(item, block) if item else {}
        if (divided & warps_at_barrier).any():
            raise BarrierDivergence(
                "threads of one warp wait at a barrier that others of the warp never reach",
                lines[:32] + more,
                **where,
            )
        raise Deadlock(why, lines[:32] + more, **where)


def _cited(item) -> str:
    """` (file:line)` of an instruction; where it was inlined, of the kernel's own line that called it as well."""
    if item.location is None:
        return ""
    frames = item.location.frames()
    inner, own = (f"{file}:{line}" for file, line in (frames[0], frames[-1]))
    return f" ({own})" if inner == own else f" ({inner}, called from {own})"
