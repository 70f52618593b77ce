"""wgmma under way: which registers it holds, and when its results come into them.

A `wgmma.mma_async` is done when its warpgroup waits for its group (`wgmma.wait_group`): then it reads its
operands in shared memory, and its accumulators get their new values, as late as the program allows. A
program that reads them before finds the old ones. `mov` of an accumulator under way, which compilers
write where a loop's variables change names, moves the claim to the other register, as ptxas does.

Which instructions touch such registers is known when an entry is decoded (`under_way.tracked`, `Flight.touch`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from emulator.machine.values import raw
from emulator.sanitizer import words
from emulator.sanitizer.report import Places, Seen
from emulator.text.program import Instruction, Vector

NEVER = -1


@dataclass
class Product:
    """One wgmma of G warpgroups. rows: their numbers in the chunk; `warps`: (G, 4), flat.

    slots: the accumulators' registers; fragments: those of A, a set of bits. group: (G,) how many groups
    the warps had committed before. compute(product, accumulators) -> accumulators, (R, G, 4, 32).
    """

    ins: Instruction
    rows: np.ndarray
    warps: np.ndarray
    slots: tuple[int, ...]
    fragments: int
    group: np.ndarray
    compute: Callable
    details: dict
    ticket: int = 0

    @property
    def bits(self) -> int:
        found = 0
        for slot in self.slots:
            found |= 1 << slot
        return found

    def part(self, which: np.ndarray) -> Product:
        """The same for some of its warpgroups, (G,) bool."""
        details = {
            name: value[which] if isinstance(value, np.ndarray) else value
            for name, value in self.details.items()
        }
        return Product(
            self.ins, self.rows[which], self.warps[which], self.slots, self.fragments,
            self.group[which], self.compute, details, self.ticket,
        )  # fmt: skip


class Flight:
    """The products under way of one chunk, oldest first, and what has touched their registers."""

    def __init__(self, m):
        self.m = m
        self.pending: list[Product] = []
        self.commits = np.zeros(m.W, np.int64)
        self.accumulators = 0  # registers under way, a set of bits
        self.fragments = 0
        self.now = 0
        self.fences = np.full(m.W, NEVER, np.int64)
        self.touched = np.zeros((len(m.code.widths), m.W), np.int64)  # when, by slot and warp
        self.by: dict[int, Instruction] = {}  # slot -> who touched it last
        m.endings.append(self._check_end)

    def fence(self, warps: np.ndarray) -> None:
        self.now += 1
        self.fences[warps] = self.now

    def start(self, product: Product) -> None:
        self.pending.append(product)
        self._sum_up()

    def _sum_up(self) -> None:
        self.accumulators = self.fragments = 0
        for product in self.pending:
            self.accumulators |= product.bits
            self.fragments |= product.fragments

    def wait(self, warps: np.ndarray, left: int) -> list[Product]:
        """Ends the groups of these warps, (W,) bool, but for the newest `left`. Returns what ended."""
        ended, rest = [], []
        for product in self.pending:
            first = product.warps[:, 0]
            done = warps[first] & (product.group < self.commits[first] - left)
            if done.any():
                ended.append(product if done.all() else product.part(done))
            if not done.all():
                rest.append(product.part(~done) if done.any() else product)
        self.pending = rest
        self._sum_up()
        self._compute(ended)
        return ended

    def _compute(self, products: list[Product]) -> None:
        """In order; accumulators that the next one uses again stay as they are between."""
        held = None  # (slots, rows, state)
        for product in products:
            key = (product.slots, product.rows.tobytes())
            if held is not None and held[0] != key:
                self._put(held[1], held[2])
                held = None
            if held is None:
                held = (key, product, self._get(product))
            held = (key, product, product.compute(product, held[2]))
        if held is not None:
            self._put(held[1], held[2])

    def _get(self, product: Product):
        m, warps = self.m, product.warps
        found = np.empty((len(product.slots), *warps.shape, 32), np.uint32)
        for i, slot in enumerate(product.slots):
            value = raw(m.regs[slot], np.dtype(np.uint32))
            if value.shape == (1, 1):
                found[i] = value[0, 0]
            else:
                if value.shape != (m.B, m.T):
                    value = np.broadcast_to(value, (m.B, m.T))
                found[i] = value.reshape(m.W, 32)[warps]
        return product.details["unpack"](found)

    def _put(self, product: Product, state) -> None:
        m, warps = self.m, product.warps.reshape(-1)
        words_ = product.details["pack"](state)
        whole = len(warps) == m.W
        for i, slot in enumerate(product.slots):
            if whole:
                fresh = np.empty((m.W, 32), np.uint32)
            else:
                old = raw(m.regs[slot], np.dtype(np.uint32))
                fresh = np.empty((m.B, m.T), np.uint32)
                fresh[...] = old
                fresh = fresh.reshape(m.W, 32)
            fresh[warps] = words_[i].reshape(-1, 32)
            m.regs[slot] = fresh.reshape(m.B, m.T)

    # --- Who touches registers under way ---

    def touch(self, mask, ins: Instruction, reads: int, writes: int, move: tuple | None) -> None:
        """An instruction reads and writes these tracked registers. move: (from, to) slots of a mov."""
        m = self.m
        warps = np.ones(m.W, bool)
        if mask is not None:
            known = m.masks.get("warps")
            if known is None or known[0] is not mask:
                known = m.masks["warps"] = (mask, mask.reshape(m.W, 32).any(axis=1))
            warps = known[1]
        if (reads | writes) & self.accumulators or writes & self.fragments:
            if move is not None and self._rename(warps, *move):
                return
            self._collide(mask, warps, ins, reads, writes)
        self.now += 1
        left = reads | writes
        while left:
            bit = left & -left
            slot = bit.bit_length() - 1
            self.touched[slot, warps] = self.now
            self.by[slot] = ins
            left ^= bit

    def _rename(self, warps: np.ndarray, source: int, target: int) -> bool:
        """Products of these warps that hold `source` hold `target` from now on. Were there any?"""
        renamed, found = [], False
        for product in self.pending:
            here = warps[product.warps[:, 0]]
            if source not in product.slots or not here.any():
                renamed.append(product)
                continue
            found = True
            if not here.all():
                renamed.append(product.part(~here))
                product = product.part(here)
            product.slots = tuple(target if slot == source else slot for slot in product.slots)
            renamed.append(product)
        if found:
            self.pending = renamed
            self.touched[target, warps] = self.touched[source, warps]
            self._sum_up()
        return found

    def _collide(self, mask, warps, ins: Instruction, reads: int, writes: int) -> None:
        for product in self.pending:
            here = warps[product.warps].any(axis=1)
            if not here.any():
                continue
            bits = product.bits
            if (reads | writes) & bits:
                did = "reads" if reads & bits else "writes"
                self.report("unfinished-wgmma", ins, product.ins, mask, product.warps[here], did)
            elif writes & product.fragments:
                self.report("overwritten-fragment", ins, product.ins, mask, product.warps[here])

    def check_fence(self, ins: Instruction, mask, warps: np.ndarray, slots) -> None:
        """Registers of a new product must not have been touched since its warps' last wgmma.fence."""
        flat = warps.reshape(-1)
        late = self.touched[np.ix_(slots, flat)] > self.fences[flat]
        if late.any():
            slot, warp = np.unravel_index(int(late.argmax()), late.shape)
            by = self.by.get(slots[int(slot)], ins)
            self.report("missing-wgmma-fence", ins, by, mask, flat[int(warp) : int(warp) + 1, None])

    def report(self, kind: str, ins, earlier, mask, warps: np.ndarray, detail=None) -> None:
        m = self.m
        if m.launch.report is None:
            return
        warp = int(warps.reshape(-1)[0])
        x, y, _ = m.launch.block
        places = Places(
            block_of=lambda b: tuple(int(i) for i in m.blocks[b]),
            thread_of=lambda t: (t % x, t // x % y, t // (x * y)),
        )
        block, thread = divmod(warp * 32, m.T)
        seen = Seen(ins, earlier, block, thread, 0, places)
        words.tell(m.launch.report, kind, seen, detail)

    def _check_end(self, m) -> None:
        for product in self.pending:
            self.report("uncommitted-wgmma", product.ins, None, None, product.warps)


def flight(m) -> Flight:
    return m.state("wgmma", lambda: Flight(m))


def under_way(m) -> Flight:
    return m.states.get("wgmma") or flight(m)


def held(item: Instruction):
    """The registers that a wgmma holds."""
    vectors = item.operands[:2] if "mma_async" in item.parts else ()
    return [reg for operand in vectors if isinstance(operand, Vector) for reg in operand.items]
