"""The rows of Blackwell's own rungs (`rungs.LADDER` holds them): compiled and executed here, timed by nobody yet."""

from __future__ import annotations

from .promises import of_tcgen05
from .rung import Rung
from .shapes import B200_SMS, HOPPER_TYPES, SCALE_TILES, TENSOR_MEMORY, pair_grid, persistent_grid

SCALED_TYPES = (
    ({"HALF_OUTPUT": 1}, {"output": "float16"}),
    ({"BF16_OUTPUT": 1}, {"output": "bfloat16"}),
    ({"BN": 256}, {}),
)
ROWS = (
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
        macros={"BM": 128, "BN": 256, "STAGES": 4, "BLOCKS": B200_SMS, "BF16_INPUT": 0, "HALF_OUTPUT": 0, "BF16_OUTPUT": 0},
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
        macros={"BM": 128, "BN": 256, "STAGES": 6, "BLOCKS": B200_SMS, "TAKE_OVER": 0, "BF16_INPUT": 0, "HALF_OUTPUT": 0,
                "BF16_OUTPUT": 0},
        needs={**TENSOR_MEMORY, "BN of 128 or 256": lambda BN, **_: BN in (128, 256)},
        threads=lambda **_: 192,
        shared=lambda BM, BN, STAGES, **_: 128 * (BM + BN // 2) * STAGES,
        grid=pair_grid,
        boxes=lambda BM, **_: {"A": (BM, 64), "B": (64, 64)},
        alignment=8,
        promises=of_tcgen05(blocks=2),
        min_arch=100, max_arch=100, timed=False,
        domains={"TAKE_OVER": (0, 1)},
        variants=(*HOPPER_TYPES, ({"TAKE_OVER": 1}, {})),
    ),
    Rung(
        "tcgen05_mxfp8", 31, "8-bit operands with a power of two for 32 of them, multiplied in by the tensor core",
        inputs="mxfp8",
        macros={"BM": 128, "BN": 128, "STAGES": 4, "BLOCKS": B200_SMS, "HALF_OUTPUT": 0, "BF16_OUTPUT": 0},
        needs=SCALE_TILES,
        threads=lambda **_: 192,
        shared=lambda BM, BN, STAGES, **_: (128 + 4) * (BM + BN) * STAGES,
        grid=persistent_grid,
        boxes=lambda BM, BN, **_: {"A": (BM, 128), "B": (BN, 128)},
        alignment=16,
        promises=of_tcgen05(),
        min_arch=100, max_arch=100, timed=False,
        b_major="K",
        variants=SCALED_TYPES,
    ),
    Rung(
        "tcgen05_nvfp4", 32, "4-bit operands with a scale for 16 of them, and a factor for each matrix",
        inputs="nvfp4",
        macros={"BM": 128, "BN": 128, "STAGES": 4, "BLOCKS": B200_SMS, "HALF_OUTPUT": 0, "BF16_OUTPUT": 0},
        needs=SCALE_TILES,
        threads=lambda **_: 192,
        shared=lambda BM, BN, STAGES, **_: (128 + 16) * (BM + BN) * STAGES,
        grid=persistent_grid,
        boxes=lambda BM, BN, **_: {"A": (BM, 256), "B": (BN, 256)},
        alignment=32,
        promises=of_tcgen05(),
        min_arch=100, max_arch=100, timed=False,
        b_major="K",
        variants=SCALED_TYPES,
    ),
)  # fmt: skip
