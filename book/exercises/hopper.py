"""The launches of the Hopper exercises, and the outputs of their usual mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from emulator import TensorMap
from kernels.shapes import ceil_div

from .attempt import attempt
from .cases import EPSILON, poisoned, product
from .exercise import Case

ARCH = "90a"
SPAN = 128  # bytes of the swizzle
STEP = 64  # halves in it
B_TILE = 64 * 128  # where B's tile begins, in bytes behind A's


def _mapped(array, box) -> TensorMap:
    return TensorMap(array, box, swizzle=SPAN)


def tile_products(sizes, tile, block, *, alpha=1.0, beta=0.0, with_k=False):
    """Launches `(A, B, C, M, N[, K])` with tensor maps of A (M, K) and B (K, N); C = alpha * A @ B + beta * C.

    sizes: (M, N, K); a last size is drawn. K and N are multiples of 8, because the rows begin at multiples of 16 bytes.
    """

    def cases(rng) -> tuple[Case, ...]:
        longest = 4 if with_k else 1
        drawn = (
            int(rng.integers(1, 130)), 8 * int(rng.integers(1, 20)), 8 * int(rng.integers(1, 8 * longest)),
        )  # fmt: skip
        made = []
        for size in (*sizes, drawn):
            case = product(
                rng, size, tile, (block,), dtype=np.float16, scalars=(alpha, beta) if beta else None
            )
            A, B, C = case.args[:3]
            maps = _mapped(A, (64, STEP)), _mapped(B, (STEP, STEP))
            numbers = [np.int32(n) for n in (size if with_k else size[:2])]
            special = case.special
            if size[2] % STEP:
                special += " and " * bool(special) + f"K={size[2]} is no multiple of {STEP}"
            made.append(
                replace(
                    case,
                    label=f"M={size[0]}, N={size[1]}, K={size[2]}",
                    args=(*maps, C, *numbers),
                    special=special,
                )
            )
        return tuple(made)

    return cases


def _tile(matrix, row: int, column: int) -> np.ndarray:
    """64 x 64 from here, zeros beyond the matrix."""
    found = np.zeros((64, 64))
    part = matrix[row : row + 64, column : column + 64]
    found[: part.shape[0], : part.shape[1]] = part
    return found


def described(a=None, b=None) -> Callable:
    """A suspect: the product if descriptors name other places of the tiles.

    a: k -> (start, stride) in bytes, relative to A's tile; b: k -> (start, leading, stride), to B's. The swizzle is an exclusive
    or of address bits, on the way in and on the way out, so it plays no part in which element is found.
    """
    a = a or (lambda k: (2 * k, 1024))
    b = b or (lambda k: (128 * k, 8192, 1024))

    def guess(case):
        A, B = case.product.A, case.product.B
        M, N = case.expected.shape
        C = np.zeros((ceil_div(M, 64) * 64, ceil_div(N, 128) * 128))
        for row in range(0, M, 64):
            for col in range(0, N, 128):
                tiles = _tile(A, row, 0), _tile(B, 0, col), _tile(B, 0, col + 64)
                memory = np.concatenate([one.reshape(-1) for one in tiles])
                for k in range(0, 64, 16):
                    C[row : row + 64, col : col + 128] += _read_a(memory, *a(k)) @ _read_b(
                        memory, *b(k)
                    )
        return C[:M, :N]

    return guess


def _read_a(memory, start: int, stride: int) -> np.ndarray:
    row, k = np.indices((64, 16))
    return memory[(start + row // 8 * stride + row % 8 * 128) // 2 + k]


def _read_b(memory, start: int, leading: int, stride: int) -> np.ndarray:
    k, n = np.indices((16, 128))
    return memory[
        (B_TILE + start + n // 64 * leading + k // 8 * stride + k % 8 * 128) // 2 + n % 64
    ]


DESCRIPTOR_SUSPECTS = {
    "Every product of A begins at element 0: A's start does not move along k": described(
        a=lambda k: (0, 1024)
    ),
    "Every product of B begins at row 0: B's start does not move along k": described(
        b=lambda k: (0, 8192, 1024)
    ),
    "Neither start moves along k: every product is that of elements 0 to 15": described(
        lambda k: (0, 1024), lambda k: (0, 8192, 1024)
    ),
    "A's start moves by k bytes, and an element has two": described(a=lambda k: (k, 1024)),
    "B's start moves along its row. Its rows are k, so it has to move by k rows of 128 bytes": (
        described(b=lambda k: (2 * k, 8192, 1024))
    ),
    "B's start moves by k rows of 64 bytes, and a row has 128": described(
        b=lambda k: (64 * k, 8192, 1024)
    ),
    "B's leading offset is 0 bytes, so both panels are read from the first one": described(
        b=lambda k: (128 * k, 0, 1024)
    ),
    "B's leading offset is 16 bytes: that is not where its second panel begins": described(
        b=lambda k: (128 * k, 16, 1024)
    ),
    "B's leading offset is 128 bytes: that is not where its second panel begins": described(
        b=lambda k: (128 * k, 128, 1024)
    ),
    "B's leading offset is 1,024 bytes, that of eight rows. It has to lead from panel to panel": (
        described(b=lambda k: (128 * k, 1024, 1024))
    ),
    "B's leading offset and stride offset are the wrong way round": described(
        b=lambda k: (128 * k, 1024, 8192)
    ),
    "The stride offsets are 128 bytes, from one row to the next. They have to lead from eight rows to the next eight": (
        described(lambda k: (2 * k, 128), lambda k: (128 * k, 8192, 128))
    ),
    "A's stride offset is 128 bytes, from one row to the next. It has to lead from eight rows to the next eight": (
        described(a=lambda k: (2 * k, 128))
    ),
    "B's stride offset is 128 bytes, from one row to the next. It has to lead from eight rows to the next eight": (
        described(b=lambda k: (128 * k, 8192, 128))
    ),
    "The stride offsets are 0, so rows 0 to 7 are read again and again": described(
        lambda k: (2 * k, 0), lambda k: (128 * k, 8192, 0)
    ),
    "A's stride offset is 0, so rows 0 to 7 are read again and again": described(
        a=lambda k: (2 * k, 0)
    ),
    "B's stride offset is 0, so rows 0 to 7 of each 16 are read twice": described(
        b=lambda k: (128 * k, 8192, 0)
    ),
}


for _n in (1, 4, 8, 16, 64, 128, 256, 32):
    DESCRIPTOR_SUSPECTS.setdefault(
        f"A's start moves by {_n} x k bytes. The next elements of k lie 2 bytes further each, in the same row",
        described(a=lambda k, n=_n: (n * k, 1024)),
    )
for _n in (1, 4, 8, 16, 32, 256):
    DESCRIPTOR_SUSPECTS.setdefault(
        f"B's start moves by {_n} x k bytes. The next row of k lies 128 bytes further",
        described(b=lambda k, n=_n: (n * k, 8192, 1024)),
    )
for _n in (32, 64, 256, 512, 2048, 4096):
    DESCRIPTOR_SUSPECTS[
        f"B's leading offset is {_n:,} bytes: that is not where its second panel begins"
    ] = described(b=lambda k, n=_n: (128 * k, n, 1024))
for _n in (8, 16, 32, 64, 256, 512, 2048, 4096):
    DESCRIPTOR_SUSPECTS |= {
        f"The stride offsets are {_n:,} bytes. They have to lead from eight rows to the next eight": (
            described(lambda k, n=_n: (2 * k, n), lambda k, n=_n: (128 * k, 8192, n))
        ),
        f"A's stride offset is {_n:,} bytes. It has to lead from eight rows to the next eight": (
            described(a=lambda k, n=_n: (2 * k, n))
        ),
        f"B's stride offset is {_n:,} bytes. It has to lead from eight rows to the next eight": (
            described(b=lambda k, n=_n: (128 * k, 8192, n))
        ),
    }
DESCRIPTOR_SUSPECTS |= {
    "A's descriptor names the tile of B, and B's names the tile of A": described(
        lambda k: (B_TILE + 2 * k, 1024), lambda k: (128 * k - B_TILE, 8192, 1024)
    ),
    "The leading and the stride offset are the other way round in both descriptors": described(
        lambda k: (2 * k, 0), lambda k: (128 * k, 1024, 8192)
    ),
    "A's descriptor names the tile of B, and B's that of A, with each other's offsets": described(
        lambda k: (B_TILE + 128 * k, 1024), lambda k: (2 * k - B_TILE, 0, 1024)
    ),
    "B's descriptor names the tile of A": described(b=lambda k: (128 * k - B_TILE, 8192, 1024)),
    "A's descriptor names the tile of B": described(a=lambda k: (B_TILE + 2 * k, 1024)),
    "All offsets count elements. They have to be in bytes, two for each element": described(
        lambda k: (2 * k, 512), lambda k: (128 * k, 4096, 512)
    ),
    "Nothing but the code of the swizzle is left in the descriptors: start and offsets are 0 (`=` sets, `|=` adds)": described(
        lambda k: (0, 0), lambda k: (-B_TILE, 0, 0)
    ),
    "The starts are missing in the descriptors: every operand begins where shared memory does": described(
        lambda k: (0, 1024), lambda k: (-B_TILE, 8192, 1024)
    ),
}


FENCE_SUSPECTS = {
    "A is not doubled": lambda case: case.product.A @ case.product.B + case.product.old,
    "A is doubled twice": lambda case: 4 * case.product.A @ case.product.B + case.product.old,
    "Nothing is added: C holds what it held before": lambda case: case.product.old,
    "The old C is not added": lambda case: case.expected - case.product.old,
}


def _steps(pick) -> Callable:
    """A suspect from how often each step of 64 along K is summed: pick(steps) gives that many weights."""

    def guess(case):
        A, B = case.product.A, case.product.B
        weights = np.repeat(pick(np.arange(ceil_div(A.shape[1], STEP))), STEP)[: A.shape[1]]
        return A * weights @ B

    return guess


STEP_SUSPECTS = {
    "Only the steps of warpgroup 0 arrive (0, 2, 4 ...): nobody adds the sums of warpgroup 1, or these are of no step": (
        _steps(lambda s: s % 2 == 0)
    ),
    "Only the steps of warpgroup 1 arrive (1, 3, 5 ...): its sums replace those of warpgroup 0": (
        _steps(lambda s: s % 2 == 1)
    ),
    "Both warpgroups take steps 0, 2, 4 ..., and nobody takes the others; or warpgroup 0 adds its own sums once more": _steps(
        lambda s: 2 * (s % 2 == 0)
    ),
    "Both warpgroups take steps 1, 3, 5 ..., and nobody takes the others": _steps(
        lambda s: 2 * (s % 2 == 1)
    ),
    "Both warpgroups take the first half of the steps, and nobody takes the others": _steps(
        lambda s: 2 * (s < len(s) // 2)
    ),
    "Only half of warpgroup 1's registers are added: each thread has 32 sums": lambda case: (
        np.where(
            np.arange(case.expected.shape[1]) % 64 < 32,
            case.expected,
            _steps(lambda s: s % 2 == 0)(case),
        )
    ),
    "Both warpgroups take all steps, so everything is added twice": _steps(lambda s: 2 + 0 * s),
    "The first half of the steps is summed, and the sums of warpgroup 1 are lost": _steps(
        lambda s: s < ceil_div(len(s), 2)
    ),
    "The first half of the steps is summed, and the sums of the others are lost": _steps(
        lambda s: s < len(s) // 2
    ),
    "The last step is left out where the number of steps is odd": _steps(
        lambda s: s < len(s) // 2 * 2
    ),
    "The middle step is summed by both warpgroups where the number of steps is odd": _steps(
        lambda s: 1 + ((s == len(s) // 2) & (len(s) % 2 == 1))
    ),
    "The last step is left out": _steps(lambda s: s < len(s) - 1),
    "The first step is left out": _steps(lambda s: s > 0),
    "The first step is summed by both warpgroups": _steps(lambda s: 1 + (s == 0)),
    "Steps 1, 3, 5 ... are summed twice, by both warpgroups or by adding the sums of warpgroup 1 twice": _steps(
        lambda s: 1 + s % 2
    ),
    "Steps 0, 2, 4 ... are summed twice, by both warpgroups or by adding the sums of warpgroup 0 twice": _steps(
        lambda s: 2 - s % 2
    ),
    "The sums of warpgroup 1 are added twice": _steps(lambda s: 1 + s % 2),
    "The sums are subtracted from one another, not added": _steps(lambda s: 1 - 2 * (s % 2)),
}


def row_sums(rng) -> tuple[Case, ...]:
    """Sums of the rows of X (M, K), 64 rows per block, by a tensor map of tiles of 64 x 32 floats."""
    cases = []
    for M, K in (
        (64, 32),
        (64, 64),
        (128, 256),
        (70, 180),
        (int(rng.integers(1, 150)), 4 * int(rng.integers(1, 60))),
    ):
        x = rng.standard_normal((M, K)).astype(np.float32)
        wide = x.astype(float)
        special = "the stages are used again" if K > 64 else ""
        if M % 64 or K % 32:
            special += " and " * bool(special) + "the last tile hangs over the edge of X"
        cases.append(
            Case(
                f"M={M}, K={K}", (TensorMap(x, (64, 32)), poisoned((M,)), np.int32(M), np.int32(K)), 1, wide.sum(1),
                (ceil_div(M, 64),), (96,), tolerance=(K + 4) * EPSILON[x.dtype], scale=np.abs(wide).sum(1), special=special,
            )
        )  # fmt: skip
    return tuple(cases)


def _turned_tiles(case) -> np.ndarray:
    """The sums if tile i of block b is taken from row 32 * i and column 64 * b."""
    x = np.asarray(case.args[0].array, float)
    M, K = x.shape
    blocks, tiles = ceil_div(M, 64), ceil_div(K, 32)
    whole = np.zeros((max(M, 32 * tiles) + 64, max(K, 64 * blocks) + 32))
    whole[:M, :K] = x
    sums = np.zeros((blocks, 64))
    for b in range(blocks):
        for i in range(tiles):
            sums[b] += whole[32 * i : 32 * i + 64, 64 * b : 64 * b + 32].sum(1)
    return sums.reshape(-1)[:M]


def _of_tiles(pick) -> Callable:
    """A suspect from how often each tile of 32 columns is summed."""

    def guess(case):
        x = np.asarray(case.args[0].array, float)
        weights = np.repeat(pick(np.arange(ceil_div(x.shape[1], 32))), 32)[: x.shape[1]]
        return (x * weights).sum(1)

    return guess


PARITY_SUSPECTS = {
    "The two coordinates of tma_load are the other way round: x, the column, comes first": _turned_tiles,
    "The last tile is left out": _of_tiles(lambda t: t < len(t) - 1),
    "Only the first tile is summed": _of_tiles(lambda t: t == 0),
    "Only the first two tiles are summed": _of_tiles(lambda t: t < 2),
    "Tiles 0, 2, 4 ... are summed, and the others are not": _of_tiles(lambda t: t % 2 == 0),
}


HEAVY = 4096.0  # its square is 2 ** 24, from where a float cannot hold odd numbers


def sums_astray(case: Case, out) -> str | None:
    """Whether the sums of the other warpgroup are all there, and not where they belong."""
    if not np.isfinite(out).all() or out.shape[0] % 64 or out.shape[1] % 64:
        return None
    close = 40 * case.tolerance * float(np.max(case.scale))
    for mine in (lambda s: s % 2 == 0, lambda s: s % 2 == 1, lambda s: s < ceil_div(len(s), 2)):
        part = _steps(mine)(case)
        found, right = out - part, case.expected - part
        if (np.abs(found - right) <= close).all():
            return None
        if (np.abs(np.sort(found, axis=None) - np.sort(right, axis=None)) <= close).all():
            return (
                "The sums of the other warpgroup are all added, but to other elements. What thread t stores of its register i "
                "has to be added by the thread with the same t to its own register i."
            )
    return None


def steps_by_groups(built, trace) -> list[str]:
    """Are the steps shared, and does a warpgroup meet before its tiles are filled again?"""
    return shared_steps(built, trace) or _group_meets(built, trace)


STEPS_TAKEN, GROUP_WARPS = 3, 4  # at K = 192, by both warpgroups together; warps of one of them


def _group_meets(built, trace) -> list[str]:
    """At K = 192 warpgroup 0 has two steps and warpgroup 1 one. Counted is who comes to barriers that order its warps."""
    meetings = sum(
        row.warps
        for row in trace.instructions
        if row.opcode.startswith(("bar.", "barrier.sync", "mbarrier.arrive"))
        and "expect_tx" not in row.opcode
        and "warp" not in row.opcode
        and (
            row.opcode.startswith("mbarrier") or "," in row.text
        )  # one operand: the whole block meets
    )
    if meetings < GROUP_WARPS:
        return [
            "Nothing keeps thread 0 of a warpgroup from asking for the next tiles while another of its warps still multiplies "
            "these. After wgmma_wait<0>() all four warps have to meet, as named_barrier(1 + group, 128) makes them."
        ]
    constants = dict(re.findall(r"mov\.[bus]32\s+(%\w+), (\d+);", built.ptx))
    for row in trace.rows("bar.sync"):
        operands = re.findall(r"%\w+|\b\d+\b", row.text.split(None, 1)[1])
        number, threads = [constants.get(x, x) for x in (*operands, "", "")[:2]]
        if number.isdigit() and threads == "128" and row.warps > (STEPS_TAKEN - 1) * GROUP_WARPS:
            return [
                f"Both warpgroups meet at barrier {number}, which lets go when any 128 threads have come: some of each. Each "
                "warpgroup needs a barrier of its own number."
            ]
    return []


def shared_steps(built, trace) -> list[str]:
    """Do two warpgroups have two of four steps each? The rounding of their sums tells.

    Step 0 contributes 2 ** 24 to every sum, each of the others 1. A 1 that is added to 2 ** 24 is lost, and two of them that
    are added up first are not. So the sums tell how many steps were added up apart from step 0.
    """
    A, B = np.zeros((64, 4 * STEP), np.float16), np.zeros((4 * STEP, 64), np.float16)
    A[:, ::STEP], B[::STEP] = 1, 1
    A[:, 0], B[0] = HEAVY, HEAVY
    maps = _mapped(A, (64, STEP)), _mapped(B, (STEP, STEP))
    args = (*maps, poisoned((64, 64)), np.int32(64), np.int32(64), np.int32(4 * STEP))
    done = attempt(built, "split_steps", Case("", args, 2, poisoned((64, 64)), (1, 1), (256,)))
    if done.error is None and (done.output == HEAVY**2 + 2).all():
        return []
    apart = {
        0: "all four were added into the same sum as step 0",
        4: "three were added into another sum than step 0",
    }.get(
        float(done.output[0, 0]) - HEAVY**2,
        "the number of those that were added into another sum than step 0 is not two",
    )
    return [
        f"In a trial with four steps along K, {apart}. Each warpgroup should add up two of the four in a sum of its own, and "
        "the two sums should meet at the end."
    ]
