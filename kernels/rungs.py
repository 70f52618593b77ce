"""The ladder: one row per rung, in reading order.

A row holds the macros of the rung's `.cu` file with their defaults; `build` passes every one of
them with `-D`, so the launch geometry computed here and the compiled kernel cannot disagree. To
change a rung, edit its own row. `rung` says what each field means, `shapes` computes what a row names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from .rung import NATURAL, Promise, Rung
from .shapes import (
    FLOAT,
    H100_SMS,
    HALF,
    HOPPER_SHARED,
    MAX_THREADS,
    STAGE_BARRIERS,
    STATIC_SHARED,
    STORE_BYTES,
    THREAD_TILES,
    TWO_CONSUMERS,
    TWO_STAGES,
    WARP,
    WGMMA_TILES,
    WMMA_SHARED,
    WMMA_TILES,
    boxes_fill_tile,
    bytes_of_input,
    ceil_div,
    consumers_and_producer,
    divides,
    eight_warps,
    persistent_grid,
    persistent_shared,
    slices_are_panels,
    split_grid,
    split_is_worth_trying,
    split_shared,
    square_block,
    square_grid,
    store_boxes,
    sums_fit,
    thread_tiles,
    tiles_nest,
    warp_threads,
    warp_tiles_fit,
)

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)


def promise(*rows: tuple) -> Callable[..., tuple[Promise, ...]]:
    """The same promises under all macros: (opcode, wavefronts, sectors) each."""
    return lambda **_: tuple(Promise(*row) for row in rows)


LOAD, STORE = r"ld\.global", r"st\.global"
FROM_SHARED, TO_SHARED = r"ld\.shared", r"st\.shared"
SCALARS, VECTORS = r"st\.shared\.[bfu]32", r"st\.shared\.v4"
COPIES = r"cp\.async\.c[ag]"
SWIZZLED = promise(("ldmatrix", 4), (COPIES, 8, 16), (STORE, None, 16))
CONFLICTED = promise(("ldmatrix", 16), (COPIES, 8, 16), (STORE, None, 16))
# Panels of C on their way through shared memory, and whole lines of 128 bytes by TMA.
PANELS = (r"st\.shared\.v2", 2), ("stmatrix", 4)
BY_TMA = r"cp\.async\.bulk\.tensor", None, 4


def of_wgmma(*rows: tuple) -> Callable[..., tuple[Promise, ...]]:
    """The same, and what a warp's share of a wgmma takes from shared memory: 16 rows of A, and a part of B's columns."""
    return lambda BN, **_: (
        Promise(r"wgmma\.mma", 4 + BN / 16),
        *(Promise(*row) for row in (BY_TMA, *rows)),
    )


TENSOR_MEMORY = {
    "BM of 128 and BN of 64, 128 or 256": lambda BM, BN, **_: BM == 128 and BN in (64, 128, 256)
}


def of_tcgen05(blocks: int = 1) -> Callable[..., tuple[Promise, ...]]:
    """Whole sectors to C, whole lines by TMA; an instruction of so many blocks reads 32 bytes of each row of A and each
    column of B.
    """
    return lambda BM, BN, **_: (
        Promise(r"tcgen05\.mma", (blocks * BM + BN) / 4),
        Promise(STORE, None, 16),
        Promise(*BY_TMA),
    )


def copies_of(*, COPY: int, PAD: int, **_: int) -> tuple[Promise, ...]:
    """async_copy's: of one 4, 8 or 16 bytes per lane; rows of A start PAD floats further along."""
    wavefronts, sectors = {1: (1, 4), 2: (2, 8), 4: (10.5, 24)}[COPY]
    wide = {1: 1, 2: 1, 4: 2}[COPY]
    return (
        Promise(COPIES, wavefronts, sectors),
        Promise(FROM_SHARED, wide),
        Promise(STORE, None, 16),
    )


HOPPER_TYPES = (
    ({"HALF_OUTPUT": 1}, {"output": "float16"}),
    ({"BF16_INPUT": 1}, {"inputs": "bfloat16"}),
    ({"BF16_OUTPUT": 1}, {"output": "bfloat16"}),
    ({"BF16_INPUT": 1, "BF16_OUTPUT": 1}, {"inputs": "bfloat16", "output": "bfloat16"}),
)


LADDER = (
    Rung("cpu", None, "triple loop, then every core, then BLAS", machine="cpu"),
    Rung(
        "uncoalesced", 1, "one thread per output; the warp runs down a column of C",
        macros={"BLOCK": 32},
        threads=square_block,
        grid=square_grid,
        promises=promise((LOAD, None, 16.5), (STORE, None, 32)),
    ),
    Rung(
        "naive", 2, "one thread per output; the warp runs along a row of C",
        macros={"BLOCK": 32},
        threads=square_block,
        grid=square_grid,
        promises=promise((LOAD, None, 2.5), (STORE, None, 4)),
    ),
    Rung(
        "tiled", 3, "a block shares its tiles of A and B in shared memory",
        macros={"BLOCK": 32, "HALF_INPUT": 0},
        threads=square_block,
        grid=square_grid,
        variants=(({"HALF_INPUT": 1}, {"inputs": "float16", "macros": {"BLOCK": 16}}),),
        promises=promise((LOAD, None, 4), (STORE, None, 4), (FROM_SHARED, 1), (TO_SHARED, 1)),
    ),
    Rung(
        "coarsened_1d", 4, "a thread computes a column of TM outputs",
        macros={"BM": 64, "BN": 64, "BK": 8, "TM": 8},
        needs=THREAD_TILES,
        threads=thread_tiles,
        tile=("BM", "BN", "BK"),
        space={"BM": (64, 128), "BN": (32, 64, 128), "BK": (8, 16), "TM": (4, 8, 16)},
        valid=lambda BM, BN, BK, TM, **_: divides(BM * BN // TM, BM * BK, BK * BN) and BM * BN // TM <= MAX_THREADS,
        promises=promise((LOAD, None, 4), (STORE, None, 4), (FROM_SHARED, 1), (TO_SHARED, 1)),
    ),
    Rung(
        "coarsened_2d", 5, "a thread computes a TM x TN tile from registers",
        macros={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
        needs=THREAD_TILES,
        threads=thread_tiles,
        tile=("BM", "BN", "BK"),
        space={"BM": (64, 128), "BN": (64, 128), "BK": (8, 16), "TM": (4, 8), "TN": (4, 8)},
        valid=lambda BM, BN, BK, TM, TN, **_: divides(BM * BN // (TM * TN), BM * BK, BK * BN),
        promises=promise((LOAD, None, 4), (STORE, None, 4), (FROM_SHARED, 1), (TO_SHARED, 1)),
    ),
    Rung(
        "vectorized", 6, "128-bit loads and stores",
        macros={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
        needs=THREAD_TILES,
        threads=thread_tiles,
        tile=("BM", "BN", "BK"), alignment=4,
        space={"BM": (64, 128), "BN": (64, 128), "BK": (8, 16), "TM": (4, 8), "TN": (4, 8)},
        valid=lambda BM, BN, BK, TM, TN, **_: divides(4 * BM * BN // (TM * TN), BM * BK, BK * BN),
        # BK / 4 lanes have quads of one row, whose scalars they store below each other, into one bank.
        promises=lambda BK, **_: promise(
            (LOAD, None, 16), (STORE, None, 16), (FROM_SHARED, 3), (SCALARS, BK // 4), (VECTORS, 4)
        )(),
    ),
    Rung(
        "warp_tiled", 7, "block, warp and thread tiles; the next tile fetched while this one multiplies",
        macros={"BM": 128, "BN": 128, "BK": 8, "WM": 64, "WN": 64, "TM": 16, "TN": 8, "MIN_BLOCKS": 2},
        threads=warp_threads,
        tile=("BM", "BN", "BK"), alignment=4,
        space={"BM": (64, 128, 256), "BN": (64, 128, 256), "BK": (8, 16), "WM": (32, 64, 128), "WN": (32, 64, 128),
               "TM": (8, 16), "TN": (8, 16), "MIN_BLOCKS": (1, 2, 4)},
        valid=lambda BM, BN, BK, **m: (
            warp_tiles_fit(BM=BM, BN=BN, BK=BK, **m) and 2 * FLOAT * BK * (BM + 4 + BN) <= STATIC_SHARED
        ),
        promises=promise((LOAD, None, 16), (STORE, None, 16), (FROM_SHARED, 2), (SCALARS, 1), (VECTORS, 4)),
    ),
    Rung(
        "async_copy", 8, "cp.async moves a tile without registers",
        counted_on=80,
        macros={"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 32, "TM": 8, "TN": 8, "COPY": 4, "PAD": 4},
        threads=warp_threads,
        tile=("BM", "BN", "BK"), alignment=4, a_major="M",
        needs={"warp tiles of whole thread tiles": lambda WM, WN, TM, TN, **_: divides(TM, WM) and divides(TN, WN)},
        domains={"COPY": (1, 2, 4), "PAD": NATURAL},
        variants=(({"COPY": 1}, {"macros": {"PAD": 1}}), ({"COPY": 2}, {"macros": {"PAD": 2}})),
        promises=copies_of,
    ),
    Rung(
        "async_pipeline", 9, "N stages in flight, each thread waiting for its own copies",
        counted_on=80,
        macros={"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 64, "TM": 16, "TN": 8, "STAGES": 3, "MIN_BLOCKS": 2},
        threads=warp_threads,
        tile=("BM", "BN", "BK"), alignment=4, a_major="M",
        space={"BM": (64, 128, 256), "BN": (64, 128, 256), "BK": (8, 16), "WM": (64,), "WN": (32, 64),
               "TM": (8, 16), "TN": (8, 16), "STAGES": (2, 3, 4), "MIN_BLOCKS": (1, 2)},
        valid=lambda BM, BN, BK, STAGES, **m: (
            warp_tiles_fit(BM=BM, BN=BN, BK=BK, **m) and STAGES * FLOAT * BK * (BM + BN) <= STATIC_SHARED
        ),
        promises=promise((COPIES, 4, 16), (STORE, None, 16), (FROM_SHARED, 2)),
    ),
    Rung(
        "warp_specialized", 10, "producer warps copy, consumer warps compute",
        counted_on=80,
        macros={"BM": 256, "BN": 64, "BK": 8, "WM": 64, "WN": 64, "TM": 16, "TN": 8, "STAGES": 4, "PRODUCERS": 64,
                "MIN_BLOCKS": 1},
        needs={
            "BM to be a multiple of WM, BN of WN": tiles_nest,
            "PRODUCERS to be whole warps": lambda PRODUCERS, **_: divides(WARP, PRODUCERS),
            "BM * BK and BK * BN to be multiples of 4 * PRODUCERS": lambda BM, BN, BK, PRODUCERS, **_: divides(
                4 * PRODUCERS, BM * BK, BK * BN
            ),
        },
        threads=lambda PRODUCERS, **macros: warp_threads(**macros) + PRODUCERS,
        tile=("BM", "BN", "BK"), alignment=4, a_major="M",
        space={"BM": (64, 128, 256), "BN": (64, 128, 256), "BK": (8, 16), "STAGES": (2, 3, 4), "PRODUCERS": (32, 64),
               "MIN_BLOCKS": (1, 2)},
        valid=lambda BM, BN, BK, STAGES, PRODUCERS, **m: (
            warp_tiles_fit(BM=BM, BN=BN, BK=BK, **m) 
            and STAGES * (FLOAT * BK * (BM + BN) + STAGE_BARRIERS) <= STATIC_SHARED
        ),
        promises=promise((COPIES, 4, 16), (STORE, None, 16), (FROM_SHARED, 2)),
    ),
    Rung(
        "wmma", 11, "a warp multiplies 16x16x16 on the tensor cores, from global memory",
        inputs="float16",
        macros={"BM": 128, "BN": 64, "WM": 64, "WN": 32},
        needs=WMMA_TILES,
        threads=warp_threads,
        tile=("BM", "BN", 16),
        space={"BM": (64, 128), "BN": (64, 128), "WM": (32, 64), "WN": (32, 64)},
        promises=promise((r"wmma\.load", None, 8), (r"wmma\.store", None, 8)),
    ),
    Rung(
        "wmma_shared", 12, "the fragments come from shared memory",
        inputs="float16",
        macros={"BM": 128, "BN": 128, "BK": 32, "WM": 64, "WN": 32, "PAD": 8},
        needs=WMMA_SHARED,
        threads=warp_threads,
        shared=lambda BM, BN, BK, PAD, **_: HALF * (BM * (BK + PAD) + BK * (BN + PAD)),
        tile=("BM", "BN", "BK"),
        domains={"PAD": NATURAL},
        space={"BM": (64, 128), "BN": (64, 128), "BK": (16, 32, 64), "WM": (32, 64), "WN": (32, 64), "PAD": (0, 8)},
        promises=promise((LOAD, None, 16), (r"wmma\.load", 4), (TO_SHARED, 6), (r"wmma\.store", None, 8)),
    ),
    Rung(
        "wmma_async", 13, "double-buffered tiles through cuda::pipeline",
        counted_on=80,
        inputs="float16",
        macros={"BM": 128, "BN": 128, "BK": 32, "WM": 64, "WN": 32, "STAGES": 2, "PAD": 8},
        needs={**WMMA_SHARED, **TWO_STAGES},
        threads=warp_threads,
        shared=lambda BM, BN, BK, STAGES, PAD, **_: STAGES * HALF * (BM * (BK + PAD) + BK * (BN + PAD)),
        tile=("BM", "BN", "BK"),
        domains={"PAD": NATURAL},
        space={"BM": (64, 128), "BN": (64, 128), "BK": (16, 32, 64), "WM": (32, 64), "WN": (32, 64), "STAGES": (2, 3)},
        promises=promise((COPIES, 13, 24), (r"wmma\.load", 4), (r"wmma\.store", None, 8)),
    ),
    Rung(
        "mma_atoms", 14, "one warp, one instruction: who holds what",
        counted_on=80,
        inputs="float16",
        macros={},
        threads=lambda **_: WARP,
        grid=lambda M, N, **_: (ceil_div(N, 8), ceil_div(M, 16), 1),
        tile=(16, 8, 16),
        promises=promise((LOAD, None, 8), (STORE, None, 8)),
    ),
    Rung(
        "mma_sync", 15, "ldmatrix feeds mma.sync",
        counted_on=80,
        inputs="float16",
        macros={"BM": 64, "BN": 64},
        threads=lambda BM, BN, **_: warp_threads(BM=BM, BN=BN, WM=16, WN=32),
        tile=("BM", "BN", 32),
        space={"BM": (64, 128), "BN": (64, 128)},
        promises=CONFLICTED,
    ),
    Rung(
        "mma_tiled", 16, "larger warp tiles, accumulators in registers",
        counted_on=80,
        inputs="float16",
        macros={"BM": 128, "BN": 128, "WM": 64, "WN": 64, "MIN_BLOCKS": 2},
        threads=warp_threads,
        tile=("BM", "BN", 32),
        space={"BM": (64, 128, 192), "BN": (64, 128), "WM": (32, 64, 96), "WN": (32, 64), "MIN_BLOCKS": (1, 2)},
        promises=CONFLICTED,
    ),
    Rung(
        "mma_padded", 17, "padding moves rows to other banks",
        counted_on=80,
        inputs="float16",
        macros={"BM": 128, "BN": 128, "WM": 64, "WN": 64, "MIN_BLOCKS": 2},
        threads=warp_threads,
        tile=("BM", "BN", 32),
        space={"BM": (64, 128), "BN": (64, 128), "WM": (32, 64), "WN": (32, 64)},
        promises=promise(("ldmatrix", 4), (COPIES, 15, 24), (STORE, None, 16)),
    ),
    Rung(
        "mma_swizzled", 18, "an XOR moves rows to other banks at no cost in space",
        counted_on=80,
        inputs="float16",
        macros={"BM": 128, "BN": 128, "WM": 64, "WN": 64, "MIN_BLOCKS": 2},
        threads=warp_threads,
        tile=("BM", "BN", 32),
        space={"BM": (64, 128), "BN": (64, 128), "WM": (32, 64), "WN": (32, 64)},
        promises=SWIZZLED,
    ),
    Rung(
        "mma_tf32", 19, "TF32, A M-major, shared memory and registers double-buffered",
        inputs="tf32",
        macros={"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 64, "STAGES": 2, "MIN_BLOCKS": 1},
        needs={**TWO_STAGES, "BK to be a multiple of 16": lambda BK, **_: divides(16, BK)},
        threads=warp_threads,
        shared=lambda BM, BN, BK, STAGES, **_: STAGES * FLOAT * BK * (BM + 8 + BN + 8),
        tile=("BM", "BN", "BK"),
        a_major="M",
        min_arch=80,
        space={"BM": (64, 128, 256), "BN": (64, 128, 256), "BK": (16, 32), "WM": (32, 64), "WN": (32, 64),
               "STAGES": (2, 3, 4), "MIN_BLOCKS": (1, 2)},
        valid=lambda WM, WN, **m: sums_fit(WM=WM, WN=WN, **m),
        promises=promise((COPIES, 7, 16), (FROM_SHARED, 4), (STORE, None, 32)),
    ),
    Rung(
        "mma_multistage", 20, "swizzle, N stages, register double buffering, rasterised blocks, guarded edges",
        counted_on=80,
        inputs="float16",
        macros={"BM": 128, "BN": 256, "BK": 64, "WM": 64, "WN": 64, "STAGES": 4, "GROUP": 8, "BLOCKS": H100_SMS,
                "HALF_OUTPUT": 0},
        needs=TWO_STAGES,
        threads=warp_threads,
        shared=lambda BM, BN, BK, STAGES, **_: STAGES * HALF * BK * (BM + BN),
        grid=lambda M, N, BM, BN, BLOCKS, **_: (min(ceil_div(M, BM) * ceil_div(N, BN), BLOCKS), 1, 1),
        alignment=8,
        variants=(({"HALF_OUTPUT": 1}, {"output": "float16"}),),
        fallbacks=({"STAGES": 3}, {"BK": 32}, {"BN": 128, "BK": 32}, {"BN": 128, "BK": 32, "STAGES": 3}),
        space={"BM": (64, 128, 256), "BN": (64, 128, 256), "BK": (32, 64), "WM": (32, 64), "WN": (32, 64),
               "STAGES": (2, 3, 4, 6), "GROUP": (1, 4, 8, 16), "BLOCKS": (1, 2)},
        late=("GROUP", "BLOCKS"),
        valid=lambda WM, WN, **m: sums_fit(WM=WM, WN=WN, **m),
        promises=promise(("ldmatrix", 4), (COPIES, 4, 16), (STORE, None, 16)),
    ),
    Rung(
        "tma_mma", 21, "one thread moves whole tiles, in and out; barriers count what has landed",
        inputs="float16",
        macros={"BM": 256, "BN": 128, "WM": 64, "STAGES": 3, "BUFFERS": 4, "GROUP": 8, "BLOCKS": 132,
                "HALF_OUTPUT": 0},
        needs={**TWO_STAGES, "eight warps, WM by 64 each": eight_warps},
        threads=lambda BM, BN, WM, **_: 32 * (BM // WM) * (BN // 64) + 128,
        shared=lambda BM, BN, WM, STAGES, BUFFERS, **_: (
            128 * (BM + BN) * STAGES + STORE_BYTES * BUFFERS * (BM // WM) * (BN // 64)
        ),
        grid=persistent_grid,
        boxes=lambda **macros: store_boxes(BF16_OUTPUT=0, **macros),
        alignment=8,
        promises=promise(("ldmatrix", 4), BY_TMA, *PANELS),
        min_arch=90, max_arch=90,
        variants=(({"HALF_OUTPUT": 1}, {"output": "float16"}),),
        space={"BM": (128, 256), "BN": (128, 256), "STAGES": (3, 4), "BUFFERS": (2, 4), "GROUP": (4, 8, 16)},
        late=("GROUP",),
        valid=eight_warps,
    ),
    Rung(
        "wgmma", 22, "a warpgroup multiplies straight from shared memory",
        inputs="float16",
        macros={"BM": 128, "BN": 128, "BF16_INPUT": 0, "HALF_OUTPUT": 0, "BF16_OUTPUT": 0},
        needs=WGMMA_TILES,
        threads=lambda BM, **_: BM // 64 * 128,
        shared=lambda BM, BN, **_: 128 * (BM + BN),
        boxes=lambda BM, **_: {"A": (BM, 64), "B": (64, 64)},
        alignment=8,
        promises=of_wgmma((STORE, None, 16)),
        min_arch=90, max_arch=90,
        variants=HOPPER_TYPES,
        space={"BM": (64, 128, 192, 256), "BN": (64, 128, 192, 256)},
    ),
    Rung(
        "wgmma_pipelined", 23, "a producer fills N stages, consumers multiply, barriers in between",
        inputs="float16",
        macros={"BM": 128, "BN": 256, "STAGES": 4, "BF16_INPUT": 0, "HALF_OUTPUT": 0, "BF16_OUTPUT": 0},
        needs=TWO_CONSUMERS,
        threads=consumers_and_producer,
        shared=lambda BM, BN, STAGES, **_: 128 * (BM + BN) * STAGES,
        boxes=lambda BM, **_: {"A": (BM, 64), "B": (64, 64)},
        alignment=8,
        promises=of_wgmma((STORE, None, 16)),
        min_arch=90, max_arch=90,
        variants=HOPPER_TYPES,
        space={"BM": (64, 128), "BN": (64, 128, 192, 256), "STAGES": (3, 4, 5, 6)},
        valid=lambda BM, BN, STAGES, **_: 128 * (BM + BN) * STAGES <= HOPPER_SHARED,
    ),
    Rung(
        "wgmma_persistent", 24, "blocks stay; a tile is stored while the next one is loaded",
        inputs="float16",
        macros={"BM": 128, "BN": 256, "STAGES": 3, "BUFFERS": 4, "GROUP": 16, "HELD": 0, "PINGPONG": 0, "BLOCKS": 132,
                "BF16_INPUT": 0, "HALF_OUTPUT": 0, "BF16_OUTPUT": 0},
        needs={
            **TWO_CONSUMERS,
            "BM of 64 for PINGPONG=1": lambda BM, PINGPONG, **_: PINGPONG == 0 or BM == 64,
        },
        threads=lambda BM, PINGPONG, **_: 384 if PINGPONG else consumers_and_producer(BM=BM),
        shared=persistent_shared,
        grid=persistent_grid,
        boxes=store_boxes,
        alignment=8,
        promises=of_wgmma(*PANELS),
        min_arch=90, max_arch=90,
        variants=HOPPER_TYPES,
        domains={"HELD": NATURAL, "PINGPONG": (0, 1)},
        space={"BM": (64, 128), "BN": (64, 128, 192, 256), "STAGES": (3, 4, 6, 8), "BUFFERS": (2, 4), "GROUP": (8, 16),
               "HELD": (0, 4)},
        late=("GROUP", "HELD"),
        valid=lambda **macros: persistent_shared(**macros) <= HOPPER_SHARED,
    ),
    Rung(
        "wgmma_cluster", 25, "blocks side by side load parts of shared tiles for one another",
        inputs="float16",
        macros={"BM": 128, "BN": 256, "STAGES": 4, "BUFFERS": 2, "GROUP": 8, "HELD": 0, "CLUSTER_M": 2, "CLUSTER_N": 1,
                "BLOCKS": 132, "BF16_INPUT": 0, "HALF_OUTPUT": 0, "BF16_OUTPUT": 0},
        needs={
            **TWO_CONSUMERS,
            "BN to be a multiple of 64 * CLUSTER_M": lambda BN, CLUSTER_M, **_: divides(64 * CLUSTER_M, BN),
            "CLUSTER_M * CLUSTER_N of at most 8": lambda CLUSTER_M, CLUSTER_N, **_: CLUSTER_M * CLUSTER_N <= 8,
        },
        threads=consumers_and_producer,
        shared=persistent_shared,
        grid=persistent_grid,
        boxes=lambda CLUSTER_N, **macros: store_boxes(**macros, A_PARTS=CLUSTER_N),
        alignment=8,
        promises=of_wgmma(*PANELS),
        min_arch=90, max_arch=90,
        variants=HOPPER_TYPES,
        domains={"HELD": NATURAL},
        space={"BM": (64, 128), "BN": (128, 256), "STAGES": (3, 4, 6), "BUFFERS": (2, 4), "GROUP": (4, 8), "HELD": (0, 4),
               "CLUSTER_M": (1, 2)},
        late=("GROUP", "HELD"),
        valid=lambda **macros: (
            persistent_shared(**macros) <= HOPPER_SHARED
            # 64 rows only where there is too little for the GPU
            and (macros["BM"] == 128 or (macros["BN"] == 128 and macros["STAGES"] == 6 and not macros["HELD"]))
        ),
    ),
    Rung(
        "wgmma_split", 26, "blocks share tiles: split-K and stream-K",
        inputs="float16",
        macros={"BM": 128, "BN": 128, "STAGES": 5, "SPLIT": 2, "A_BOX": 128, "BLOCKS": 132, "PER_SM": 1,
                "CLUSTER_M": 1, "TOGETHER": 1,
                "BF16_INPUT": 0, "HALF_OUTPUT": 0, "BF16_OUTPUT": 0},
        needs={
            **WGMMA_TILES,
            **TWO_STAGES,
            "A_BOX to divide BM in groups of 8 rows": boxes_fill_tile,
            "slices of whole panels of C (128 bytes), where SPLIT is above 1": slices_are_panels,
            "SPLIT of 0 or 1 for clusters of several tiles": lambda SPLIT, CLUSTER_M, **_: SPLIT < 2 or CLUSTER_M == 1,
            "fewer k-steps together than stages": lambda STAGES, TOGETHER, **_: 0 < TOGETHER < STAGES,
        },
        threads=lambda BM, **_: BM // 64 * 128 + 32,
        shared=split_shared,
        grid=split_grid,
        boxes=lambda A_BOX, **_: {"A": (A_BOX, 64), "B": (64, 64)},
        alignment=8,
        early=True,
        promises=of_wgmma((FROM_SHARED, 4), (STORE, None, 16), *PANELS),
        min_arch=90, max_arch=90,
        variants=HOPPER_TYPES,
        domains={"SPLIT": (0, 1, 2, 4, 8)},
        space={"BM": (64, 128), "BN": (128, 256), "STAGES": (2, 3, 4, 5, 6), "SPLIT": (0, 1, 2),
               "A_BOX": (16, 64, 128), "PER_SM": (1, 2), "CLUSTER_M": (1, 2), "TOGETHER": (1, 3)},
        valid=lambda **macros: split_is_worth_trying(**macros),
    ),
    Rung(
        "wgmma_fp8", 27, "8-bit operands, and sums promoted to fp32; any K-major operands",
        inputs="float8_e4m3fn", output="bfloat16",
        macros={"BN": 256, "STAGES": 4, "BUFFERS": 2, "CLUSTER": 2, "GROUP": 8, "BLOCKS": 132, "PROMOTE": 0, "TF32_INPUT": 0,
                "INT8_INPUT": 0, "BF16_INPUT": 0, "FLOAT_OUTPUT": 0},
        needs={
            **TWO_STAGES,
            "one type of input": lambda TF32_INPUT, INT8_INPUT, BF16_INPUT, **_: TF32_INPUT + INT8_INPUT + BF16_INPUT <= 1,
            "PROMOTE to be a multiple of the k-step": lambda PROMOTE, **m: divides(128 // bytes_of_input(**m), PROMOTE),
        },
        threads=lambda **_: 384,
        shared=lambda BN, **macros: persistent_shared(BM=128, BN=BN, **macros),
        grid=lambda M, N, CLUSTER, **macros: persistent_grid(M, N, BM=128, CLUSTER_M=CLUSTER, **macros),
        boxes=lambda BN, CLUSTER, FLOAT_OUTPUT, **m: {
            "A": (128, 128 // bytes_of_input(**m)), "B": (BN // CLUSTER, 128 // bytes_of_input(**m)),
            "C": (16, 32 if FLOAT_OUTPUT else 64),
        },
        alignment=16,
        promises=of_wgmma(*PANELS),
        min_arch=90, max_arch=90,
        b_major="K",
        domains={"PROMOTE": NATURAL},
        variants=(
            ({"TF32_INPUT": 1}, {"inputs": "tf32", "output": "float32", "macros": {"FLOAT_OUTPUT": 1}}),
            ({"INT8_INPUT": 1}, {"inputs": "int8", "accumulator": "int32", "output": "float32", "macros": {"FLOAT_OUTPUT": 1}}),
            ({"BF16_INPUT": 1}, {"inputs": "bfloat16"}),
            ({"FLOAT_OUTPUT": 1}, {"output": "float32"}),
            ({"PROMOTE": 128}, {"macros": {"BN": 192}}),
        ),
        space={"BN": (128, 192, 256), "STAGES": (3, 4, 5, 6), "CLUSTER": (1, 2), "GROUP": (4, 8, 16)},
        late=("GROUP",),
    ),
    # Blackwell's own rungs. Nobody has timed them here.
    Rung(
        "tcgen05", 28, "one thread multiplies 128 x 256; the sums stay in tensor memory",
        inputs="float16",
        macros={"BM": 128, "BN": 256, "BF16_INPUT": 0, "HALF_OUTPUT": 0, "BF16_OUTPUT": 0},
        needs=TENSOR_MEMORY,
        threads=lambda **_: 128,
        shared=lambda BM, BN, **_: 128 * (BM + BN),
        boxes=lambda BM, **_: {"A": (BM, 64), "B": (64, 64)},
        alignment=8,
        promises=of_tcgen05(),
        min_arch=100, max_arch=100, timed=False,
        variants=HOPPER_TYPES,
    ),
    Rung(
        "tcgen05_pipelined", 29, "one warp copies, one multiplies, four store; two sets of sums in tensor memory",
        inputs="float16",
        macros={"BM": 128, "BN": 256, "STAGES": 4, "BLOCKS": 148, "BF16_INPUT": 0, "HALF_OUTPUT": 0, "BF16_OUTPUT": 0},
        needs=TENSOR_MEMORY,
        threads=lambda **_: 192,
        shared=lambda BM, BN, STAGES, **_: 128 * (BM + BN) * STAGES,
        grid=persistent_grid,
        boxes=lambda BM, **_: {"A": (BM, 64), "B": (64, 64)},
        alignment=8,
        promises=of_tcgen05(),
        min_arch=100, max_arch=100, timed=False,
        variants=HOPPER_TYPES,
    ),
    Rung(
        "tcgen05_pair", 30, "two blocks multiply as one: 256 rows, each brings half of B",
        inputs="float16",
        macros={"BM": 128, "BN": 256, "STAGES": 6, "BLOCKS": 148, "BF16_INPUT": 0, "HALF_OUTPUT": 0, "BF16_OUTPUT": 0},
        needs={**TENSOR_MEMORY, "BN of 128 or 256": lambda BN, **_: BN in (128, 256)},
        threads=lambda **_: 192,
        shared=lambda BM, BN, STAGES, **_: 128 * (BM + BN // 2) * STAGES,
        grid=lambda M, N, **macros: persistent_grid(M, N, CLUSTER_M=2, **macros),
        boxes=lambda BM, **_: {"A": (BM, 64), "B": (64, 64)},
        alignment=8,
        promises=of_tcgen05(blocks=2),
        min_arch=100, max_arch=100, timed=False,
        variants=HOPPER_TYPES,
    ),
    Rung("cublas", None, "the library, called properly", machine="gpu"),
)  # fmt: skip

RUNGS: Mapping[str, Rung] = MappingProxyType({rung.name: rung for rung in LADDER})


def find(rung: str | Rung) -> Rung:
    """The rung of this name. ValueError lists the names there are."""
    if isinstance(rung, Rung):
        return rung
    if rung not in RUNGS:
        raise ValueError(f"no rung {rung!r}; the ladder is {', '.join(RUNGS)}")
    return RUNGS[rung]
