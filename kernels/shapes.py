"""Threads, blocks and bytes of shared memory of a launch, from a rung's macros, and which macros make sense.

Every function takes the macros as keyword arguments, and leaves out of account those that it does not name.
"""

from collections.abc import Mapping

from .occupancy import LIMITS

STATIC_RESERVE = 1024  # bytes left for what a kernel with dynamic tiles declares beside them
WARP = 32  # threads
MAX_THREADS = 1024  # of a block
FLOAT, HALF = 4, 2  # bytes
STATIC_SHARED = 48 * 1024  # bytes of shared memory that a kernel has without asking for more
STAGE_BARRIERS = 24  # bytes of cuda::pipeline_shared_state per stage, at most
SUMS = 256 * 128  # of an FP32 product, that the registers of a multiprocessor hold beside the rest
H100_SMS, B200_SMS = 132, 148  # a persistent kernel has one block on each; H200 has as many as H100


def ceil_div(a: int, b: int) -> int:
    """Blocks of size `b` that cover `a`."""
    return -(-a // b)


def tile_grid(M: int, N: int, *, BM: int, BN: int, **_: int) -> tuple[int, int, int]:
    """One block per `BM x BN` tile of C: x along N, y along M."""
    return ceil_div(N, BN), ceil_div(M, BM), 1


def divides(part: int, *wholes: int) -> bool:
    """Whether every one of `wholes` is a multiple of `part`."""
    return all(whole % part == 0 for whole in wholes)


def square_block(*, BLOCK: int, **_: int) -> tuple[int, int]:
    """One thread per output of a `BLOCK x BLOCK` tile."""
    return BLOCK, BLOCK


def square_grid(M: int, N: int, *, BLOCK: int, **_: int) -> tuple[int, int, int]:
    """One block per `BLOCK x BLOCK` tile of C."""
    return tile_grid(M, N, BM=BLOCK, BN=BLOCK)


def thread_tiles(*, BM: int, BN: int, TM: int, TN: int = 1, **_: int) -> int:
    """One thread per `TM x TN` tile of the block's."""
    return BM * BN // (TM * TN)


def warp_threads(*, BM: int, BN: int, WM: int, WN: int, SLICES: int = 1, **_: int) -> int:
    """A warp per `WM x WN` tile of the block's, for each slice of its k."""
    return WARP * (BM // WM) * (BN // WN) * SLICES


def warp_tiles_fit(
    *,
    BM: int,
    BN: int,
    BK: int,
    WM: int,
    WN: int,
    TM: int,
    TN: int,
    MIN_BLOCKS: int,
    SLICES: int = 1,
    **_: int,
) -> bool:
    """Whether an FP32 block splits into warps of 32 thread tiles that load as much each, and its sums fit registers.

    An SM's 65536 registers hold 256 threads of 128 sums, or 512 of 64, beside what else a thread needs.
    """
    if BM % WM or BN % WN or (WM // TM) * (WN // TN) != WARP or WN // TN < 2 or TM * TN > 128:
        return False
    threads = warp_threads(BM=BM, BN=BN, WM=WM, WN=WN, SLICES=SLICES)
    rows = threads // 2  # of A, that a block fetches at a time
    return (
        threads * MIN_BLOCKS == SUMS // (TM * TN)
        and divides(4 * threads, BM * BK, BK * BN)
        and (4 * threads) % BN == 0
        and (BM % rows == 0 or rows % BM == 0)
    )


def sums_fit(*, BM: int, BN: int, WM: int, WN: int, MIN_BLOCKS: int = 1, **_: int) -> bool:
    """Whether a tensor-core block has 4 or 8 warps whose sums take at most half of the registers."""
    warps = (BM // WM) * (BN // WN)
    return divides(WM, BM) and divides(WN, BN) and warps in (4, 8) and BM * BN * MIN_BLOCKS <= SUMS


def tiles_nest(*, BM: int, BN: int, WM: int, WN: int, **_: int) -> bool:
    """Whether warp tiles fill the block's."""
    return divides(WM, BM) and divides(WN, BN)


# What a source does not refuse by itself, in words, and the test of it.
THREAD_TILES = {
    "BM to be a multiple of TM, BN of TN": lambda BM, BN, TM, TN=1, **_: BM % TM == BN % TN == 0
}
WMMA_TILES = {
    "BM to be a multiple of WM, BN of WN": tiles_nest,
    "WM and WN to be multiples of 16": lambda WM, WN, **_: divides(16, WM, WN),
}
WMMA_SHARED = {
    **WMMA_TILES,
    "BK to be a multiple of 16, PAD of 8": lambda BK, PAD, **_: divides(16, BK) and divides(8, PAD),
}
TWO_STAGES = {"two STAGES or more": lambda STAGES, **_: STAGES >= 2}

WGMMA_TILES = {
    "BM to be a multiple of 64": lambda BM, **_: divides(64, BM),
    "BN to be 64, 128, 192 or 256": lambda BN, **_: BN in (64, 128, 192, 256),
    "one type of output": lambda HALF_OUTPUT, BF16_OUTPUT, **_: HALF_OUTPUT + BF16_OUTPUT <= 1,
}


def consumers_and_producer(*, BM: int, **_: int) -> int:
    """A warpgroup per 64 rows of the tile, and one that copies."""
    return 128 * (BM // 64 + 1)


TWO_CONSUMERS = {
    **WGMMA_TILES,
    **TWO_STAGES,
    "BM of 64 or 128, a consumer per 64 rows": lambda BM, **_: BM in (64, 128),
}
HOPPER_SHARED = LIMITS[90].shared_per_block - STATIC_RESERVE
STORE_BYTES = 16 * 128  # of shared memory: a panel of C, which a warp stores at a time


def store_boxes(
    *, BM: int, HALF_OUTPUT: int, BF16_OUTPUT: int, A_PARTS: int = 1, **_: int
) -> Mapping[str, tuple[int, int]]:
    """What TMA moves at a time: A in parts of a tile, B in panels of 64 columns, C in 16 rows of 128 bytes."""
    return {
        "A": (BM // A_PARTS, 64),
        "B": (64, 64),
        "C": (16, 64 if HALF_OUTPUT or BF16_OUTPUT else 32),
    }


def persistent_shared(
    *, BM: int, BN: int, STAGES: int, BUFFERS: int, PINGPONG: int = 0, **_: int
) -> int:
    """Stages of 64 of k, and BUFFERS panels of C for each warp that computes."""
    warps = 4 * (2 if PINGPONG else BM // 64)
    return 128 * (BM + BN) * STAGES + STORE_BYTES * BUFFERS * warps


def persistent_grid(
    M: int,
    N: int,
    *,
    BM: int,
    BN: int,
    BLOCKS: int,
    CLUSTER_M: int = 1,
    CLUSTER_N: int = 1,
    **_: int,
) -> tuple[int, int, int]:
    """As few blocks as finish in as many rounds as BLOCKS of them would, in whole clusters.

    An H200 computes 8192 cubed 1.7% faster with 128 blocks in 16 full rounds than with 132 in 15.5: at the power limit,
    a multiprocessor that idles saves the others' watts, and blocks that start a round together share more of L2.
    """
    size = CLUSTER_M * CLUSTER_N
    tiles = ceil_div(M, BM * CLUSTER_M) * ceil_div(N, BN * CLUSTER_N)
    rounds = ceil_div(tiles, BLOCKS // size)
    return ceil_div(tiles, rounds) * size, 1, 1


def pair_grid(
    M: int, N: int, *, BM: int, BN: int, TAKE_OVER: int, **macros: int
) -> tuple[int, int, int]:
    """Two blocks for each tile where pairs take over those that have not begun, else those of `persistent_grid`."""
    if TAKE_OVER:
        return 2 * ceil_div(M, 2 * BM) * ceil_div(N, BN), 1, 1
    return persistent_grid(M, N, BM=BM, BN=BN, CLUSTER_M=2, **macros)


def eight_warps(*, BM: int, BN: int, WM: int, **_: int) -> bool:
    """Whether the tile of tma_mma is that of two warpgroups."""
    return BM * BN == 8 * WM * 64 and divides(WM, BM)


def boxes_fill_tile(*, BM: int, A_BOX: int, **_: int) -> bool:
    """Whether copies of A_BOX rows fill a tile of A, in whole groups of eight swizzled rows."""
    return divides(A_BOX, BM) and divides(8, A_BOX)


def slices_are_panels(*, BN: int, SPLIT: int, HALF_OUTPUT: int, BF16_OUTPUT: int, **_: int) -> bool:
    """Whether the part of a tile that a block of a cluster finishes is stored in rows of 128 bytes."""
    return SPLIT < 2 or divides(SPLIT * (64 if HALF_OUTPUT or BF16_OUTPUT else 32), BN)


def split_shared(*, BM: int, BN: int, STAGES: int, SPLIT: int, **_: int) -> int:
    """Bytes of shared memory of wgmma_split: the stages, then what other blocks send, or panels of C."""
    sums = BM * (BN // SPLIT) * (SPLIT - 1) * FLOAT if SPLIT > 1 else 2 * STORE_BYTES * (BM // 16)
    return 128 * (BM + BN) * STAGES + sums


def split_is_worth_trying(
    *, BM: int, BN: int, STAGES: int, SPLIT: int, A_BOX: int, PER_SM: int, CLUSTER_M: int, CLUSTER_N: int, **macros: int
) -> bool:  # fmt: skip
    """Whether this can win somewhere: two blocks on a multiprocessor where tiles take few k-steps, clusters of tiles
    where K is deep, wide tiles where none is shared.
    """
    if BN == 256 and (BM, SPLIT, PER_SM, CLUSTER_M) != (128, 1, 1, 1):
        return False
    if A_BOX * CLUSTER_N != BM and (A_BOX != 16 or BM != 64):
        return False
    if CLUSTER_M > 1 and (SPLIT or BM != 128 or PER_SM > 1):
        return False
    fits = (
        split_shared(BM=BM, BN=BN, STAGES=STAGES, SPLIT=SPLIT, **macros) * PER_SM <= HOPPER_SHARED
    )
    return fits and (STAGES == 2) == (PER_SM == 2) and (PER_SM == 1 or SPLIT == 1)


def bytes_of_input(*, TF32_INPUT: int = 0, BF16_INPUT: int = 0, **_: int) -> int:
    """Bytes of an element of A or B of wgmma_fp8."""
    return 4 if TF32_INPUT else 2 if BF16_INPUT else 1


def split_grid(
    M: int, N: int, K: int, *, BM: int, BN: int, SPLIT: int, BLOCKS: int, PER_SM: int,
    CLUSTER_M: int, CLUSTER_N: int, **_: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Blocks of wgmma_split: SPLIT per tile; where no tile is shared, or any, as many as run at a time and have work."""
    tiles = ceil_div(M, BM * CLUSTER_M) * ceil_div(N, BN * CLUSTER_N)
    if SPLIT > 1:
        return tiles * SPLIT, 1, 1
    size = CLUSTER_M * CLUSTER_N
    clusters = min(BLOCKS * PER_SM // size, tiles if SPLIT else tiles * ceil_div(K, 64))
    return clusters * size, 1, 1


TENSOR_MEMORY = {
    "BM of 128 and BN of 64, 128 or 256": lambda BM, BN, **_: BM == 128 and BN in (64, 128, 256)
}
SCALE_TILES = {
    "BM of 128 and BN of 128 or 256, as scales come in tiles of 128 rows": lambda BM, BN, **_: (
        BM == 128 and BN in (128, 256)
    )
}


HOPPER_TYPES = (
    ({"HALF_OUTPUT": 1}, {"output": "float16"}),
    ({"BF16_INPUT": 1}, {"inputs": "bfloat16"}),
    ({"BF16_OUTPUT": 1}, {"output": "bfloat16"}),
    ({"BF16_INPUT": 1, "BF16_OUTPUT": 1}, {"inputs": "bfloat16", "output": "bfloat16"}),
)
