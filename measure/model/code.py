"""The main loop of a kernel, read from its machine code: how many instructions a warp executes per product, and how long
a warp takes for a turn on its own.

A product is what the kernel multiplies with: an FFMA, an mma.sync (HMMA, IMMA) or a wgmma (HGMMA, QGMMA, IGMMA).
NVIDIA documents neither the opcodes nor a branch's place of its offset; what is read here agrees with nvdisasm 13.5
on the ladder's kernels for sm_90. Each instruction also says how many clocks its warp pauses behind it, and which of six
scoreboards it sets or waits for (Z. Jia et al., arXiv:1804.06826).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernels.build import Build
from measure.machine_code import BYTES, NEVER, words

from .rates import latencies

BRANCH, MAIN = 0x947, 0xFFF
BARRIER = 0xB1D
WAITS = (BARRIER, 0x91A, 0x5A7, 0x9A7)  # BAR, DEPBAR, SYNCS: what stands once in a k-step
PRODUCTS = {
    "wgmma": (0x9F0, 0x5F0, 0xDF0, 0x9F1, 0x9F3, 0x5F1, 0x5F3),
    "mma": (0x23C, 0x237, 0x27A, 0x47C),
    "fma": (0x223, 0x423, 0x623, 0x823, 0xA23, 0xC23),
}
FLOATS = (0x020, 0x021, 0x023)  # FMUL, FADD, FFMA in the low nine bits of an opcode
SCOREBOARDS = 6
# What sets a scoreboard, by the name of its latency (`rates.latencies`). Loads from global memory and copies are waited
# for as tiles, which `prediction` counts.
LATENCY = {0x984: "shared memory", 0x83B: "ldmatrix", 0xF89: "shfl", 0x389: "shfl"}
TURNS = 4  # after which each turn takes as long as the one before


@dataclass(frozen=True)
class MainLoop:
    """The innermost loop with the most products: what it multiplies with, and counts of its instructions for one turn
    of a warp. alone: clocks of a turn of a warp that is never kept waiting by another.
    """

    kind: str
    products: int
    instructions: int
    floats: int
    body: tuple[int, ...]
    alone: float
    outer: MainLoop | None = None

    @property
    def per_product(self) -> float:
        """Machine instructions per product in the innermost loop."""
        return self.instructions / self.products

    def per_step(self, products: float) -> float:
        """The same with the loop around it. products: of a warp between two barriers (0: there are none in the loop)."""
        if not self.outer or not products:
            return self.per_product
        barriers = sum(low & MAIN == BARRIER for low in self.outer.body)
        own = self.outer.instructions - self.instructions
        return self.per_product + (own / (products * barriers) if barriers else 0)


def main_loop(build: Build, entry: str | None = None) -> MainLoop:
    """The main loop of a kernel for sm_70 or newer. ValueError when no loop multiplies."""
    code = words(build, entry)
    kind, start, end = _densest(code)
    inner = _loop(code, start, end, kind)
    around = [
        (a, b) for a, b in backward(code) if (a <= start and b > end) or (a < start and b >= end)
    ]
    if any(low & MAIN in WAITS for low in inner.body) or not around:
        return inner
    first, last = min(around, key=lambda pair: pair[1] - pair[0])
    return replace(inner, outer=_loop(code, first, last, kind))


def main_span(build: Build, entry: str | None = None) -> tuple[int, int]:
    """The first and the last instruction of the main loop, counted from 0."""
    return _densest(words(build, entry))[1:]


def _densest(code: Sequence[tuple[int, int]]) -> tuple[str, int, int]:
    """What the loop with the most products per instruction multiplies with, and where it stands."""
    loops = backward(code)
    for kind, opcodes in PRODUCTS.items():
        counted = [
            (sum(low & MAIN in opcodes for low, _ in code[a : b + 1]) / (b - a + 1), a, b)
            for a, b in loops
        ]
        if any(dense for dense, _, _ in counted):
            return kind, *max(counted)[1:]
    raise ValueError("no loop of this kernel multiplies: neither FFMA, mma.sync nor wgmma")


def _loop(code, start: int, end: int, kind: str) -> MainLoop:
    turn = code[start : end + 1]
    body = tuple(low for low, _ in turn if low >> 12 & 15 != NEVER)
    return MainLoop(
        kind,
        sum(low & MAIN in PRODUCTS[kind] for low in body),
        len(body),
        sum(low & 0x1FF in FLOATS for low in body),
        body,
        alone(turn, latencies()),
    )


def alone(turn: Sequence[tuple[int, int]], known: Mapping[str, float]) -> float:
    """Clocks of a turn of a loop for one warp: it issues in order, pauses as each instruction says, and waits for
    scoreboards that loads set. known: latencies in clocks, by name.
    """
    now, before, ready = 0.0, 0.0, [0.0] * SCOREBOARDS
    for _ in range(TURNS):
        before = now
        for low, high in turn:
            waits, sets = high >> 52 & 63, high >> 46 & 7
            issued = max([now, *(ready[n] for n in range(SCOREBOARDS) if waits >> n & 1)])
            now = issued + max(1, high >> 41 & 15)
            if sets < SCOREBOARDS:
                brings = issued + known.get(LATENCY.get(low & MAIN, ""), 0.0)
                ready[sets] = max(ready[sets], brings)
    return now - before


def backward(code: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(first, last instruction) of every loop: a branch to an instruction before it."""
    found = []
    for number, (low, _) in enumerate(code):
        if low & MAIN == BRANCH:
            target = number + 1 + offset(low) // BYTES
            if 0 <= target < number:
                found.append((target, number))
    return found


def offset(low: int) -> int:
    """How many bytes a branch goes from the instruction behind it: bits 34 to 63, then bits 16 to 23, in units of
    four bytes.
    """
    high = low >> 34
    return ((high - (1 << 30) if high >> 29 else high) << 8 | low >> 16 & 255) * 4
