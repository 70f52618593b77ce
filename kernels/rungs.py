"""The ladder: one row per rung, in reading order, and what a launcher must know of each.

A row holds the macros of the rung's `.cu` file with their defaults; `build` passes every one of
them with `-D`, so the launch geometry computed here and the compiled kernel cannot disagree. To
change a rung, edit its own row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from types import MappingProxyType

from . import formats
from .occupancy import LIMITS

FOLDER = Path(__file__).resolve().parent
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
STATIC_RESERVE = 1024  # bytes left for what a kernel with dynamic tiles declares beside them

Macros = Mapping[str, int]
Extent = Callable[..., int]


def ceil_div(a: int, b: int) -> int:
    """Blocks of size `b` that cover `a`."""
    return -(-a // b)


def tile_grid(M: int, N: int, *, BM: int, BN: int, **_: int) -> tuple[int, int, int]:
    """One block per `BM x BN` tile of C: x along N, y along M."""
    return ceil_div(N, BN), ceil_div(M, BM), 1


@dataclass(frozen=True)
class Types:
    """The number formats of one configuration of a rung. `inputs` "tf32" is stored as float32."""

    inputs: str = "float32"
    accumulator: str = "float32"
    output: str = "float32"

    @property
    def input_dtype(self) -> str:
        """NumPy dtype name of A and B. What NumPy lacks is stored as its bits (`kernels.formats`)."""
        return formats.stored(self.inputs)

    @property
    def output_dtype(self) -> str:
        """NumPy dtype name of C."""
        return formats.stored(self.output)

    def __str__(self) -> str:
        return f"{self.inputs}->{self.output}"


@dataclass(frozen=True)
class Promise:
    """What a rung promises of the instructions that `opcode` (a pattern, matched at the beginning)
    names, on average over a launch on whole tiles: at most so many wavefronts of shared memory per
    execution by a warp, and so many 32-byte sectors per request to global memory. None: no promise.
    """

    opcode: str
    wavefronts: float | None = None
    sectors: float | None = None


@dataclass(frozen=True)
class Rung:
    """One rung of the ladder.

    `threads` gives the block (an int, or (x, y)), `shared` the bytes of dynamic shared memory and
    `grid` the blocks, all from the macros as keyword arguments. `tile` names the macros (or gives
    the numbers) that M, N and K are padded to, None when the kernel guards its own edges.
    `variants` maps a macro setting to the fields of `Types` and the macro defaults it changes.
    `fallbacks` are smaller settings for GPUs with less shared memory than the defaults need.
    `space` lists what the autotuner may try (of BLOCKS, how many per multiprocessor); those of
    `late` order the work without changing the tiles, and are tried on the best tiles only. `valid`
    drops the combinations that make no sense.
    `needs` says in words what settings must fulfil where the source itself does not refuse them.
    `counted_on` is the oldest architecture whose instructions it is about: on an older one it runs by other
    means (sm_75 has no cp.async), and the emulator's counts would be of those.
    `min_arch` and `max_arch` are the oldest and the newest architecture that it runs on (wgmma is sm_90's
    alone). `boxes` gives, for a kernel that copies by TMA, the tile (rows, columns) of one copy of A and B,
    and of C where it stores by TMA: such a kernel takes tensor maps (`tensor_map`), 128-byte
    swizzled, for A and B, and one for C before C itself. `promises` is what `check` holds its
    accesses to, besides no spills.
    """

    name: str
    number: int | None
    idea: str
    inputs: str = "float32"
    accumulator: str = "float32"
    output: str = "float32"
    macros: Macros = field(default_factory=dict)
    threads: Callable[..., int | tuple[int, int]] | None = None
    shared: Extent = lambda **_: 0
    grid: Callable[..., tuple[int, int, int]] = tile_grid
    tile: tuple[str | int, str | int, str | int] | None = None
    min_arch: int = 75
    max_arch: int | None = None
    counted_on: int = 75
    alignment: int = 1
    a_major: str = "K"
    b_major: str = "N"
    variants: tuple[tuple[Macros, Mapping], ...] = ()
    space: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    late: tuple[str, ...] = ()
    valid: Callable[..., bool] = lambda **_: True
    needs: Mapping[str, Callable[..., bool]] = field(default_factory=dict)
    fallbacks: tuple[Macros, ...] = ()
    boxes: Callable[..., Mapping[str, tuple[int, int]]] | None = None
    machine: str = "any"
    promises: Callable[..., tuple[Promise, ...]] = lambda **_: ()

    @property
    def file(self) -> str | None:
        """File name in `kernels/`, None for a rung written in Python."""
        return None if self.number is None else f"{self.number:02d}_{self.name}.cu"

    @property
    def path(self) -> Path | None:
        """Where the CUDA source is, None for a rung written in Python."""
        return None if self.file is None else FOLDER / self.file

    @property
    def entry(self) -> str:
        """Name of the `extern "C"` entry point."""
        return f"gemm_{self.name}"

    @property
    def exists(self) -> bool:
        """False while the CUDA source has not been written."""
        return self.path is None or self.path.exists()

    def runs_on(self, arch: int | str) -> bool:
        """Whether an architecture, 90 or "90a", has the instructions that this rung needs."""
        number = int(str(arch).removeprefix("sm_").rstrip("af"))
        return self.min_arch <= number <= (self.max_arch or number)

    def target(self, arch: str) -> str:
        """What to compile for on `arch`: sm_90a for a kernel that copies by TMA on sm_90, where
        wgmma and setmaxnreg are for that architecture alone.
        """
        return "90a" if self.boxes and arch == "90" else arch

    def resolve(
        self, macros: Macros | None = None, arch: int | str | None = None
    ) -> dict[str, int]:
        """All macros: the given ones over the variant's over the defaults.

        With `arch`, the defaults are the first of `macros` and `fallbacks` whose shared memory fits
        that architecture. ValueError for a name the rung lacks.
        """
        given = dict(macros or {})
        unknown = sorted(set(given) - set(self.macros))
        if unknown:
            known = ", ".join(self.macros) or "none"
            raise ValueError(f"{self.name} has no macro {', '.join(unknown)}; it has {known}")
        for name, value in given.items():
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise ValueError(f"{self.name}: {name} is an integer, not {value!r}")
            if name.startswith("HALF_") and value not in (0, 1):
                raise ValueError(f"{self.name}: {name} is 0 or 1, not {value}")
            if value < (0 if self.macros[name] == 0 or name in ("PAD", "SPLIT") else 1):
                raise ValueError(f"{self.name}: {name} is positive, not {value}")
        choices = [self._filled(given, fallback) for fallback in ({}, *self.fallbacks)]
        if arch is not None and self.threads is not None:
            known = LIMITS.get(int(str(arch).rstrip("af")), LIMITS[75])
            limit = known.shared_per_block - STATIC_RESERVE
            choices = [c for c in choices if self.shared(**c) <= limit] or choices[-1:]
        return choices[0]

    def check_needs(self, macros: Macros) -> None:
        """ValueError, which says what would be right, for settings that would give wrong answers."""
        for words, holds in self.needs.items():
            if not holds(**macros):
                given = ", ".join(f"{name}={value}" for name, value in macros.items())
                raise ValueError(f"{self.name} needs {words}; these are {given}")

    def types(self, macros: Macros | None = None) -> Types:
        """Number formats under these macros."""
        formats = {"inputs": self.inputs, "accumulator": self.accumulator, "output": self.output}
        for _, changes in self._chosen({**self.macros, **(macros or {})}):
            formats |= {k: v for k, v in changes.items() if k != "macros"}
        return Types(**formats)

    def padding(self, macros: Macros | None = None) -> tuple[int, int, int]:
        """Multiples that the launcher pads M, N and K to."""
        values = self.resolve(macros)
        m, n, k = (values.get(t, t) for t in self.tile or (1, self.alignment, self.alignment))
        return m, n, k

    def geometry(self, macros: Macros | None, M: int, N: int, K: int):
        """`(grid, block, shared_bytes)` of a launch that computes an `(M, N)` output."""
        values = self.resolve(macros)
        threads = self.threads(**values)
        block = (threads, 1, 1) if isinstance(threads, int) else (*threads, 1)
        sizes = (M, N, K) if self.grid is split_grid else (M, N)
        return self.grid(*sizes, **values), block, self.shared(**values)

    def configurations(self) -> list[dict[str, int]]:
        """The settings worth checking: the default, then each variant."""
        return [{}, *(dict(setting) for setting, _ in self.variants)]

    def _filled(self, given: Macros, fallback: Macros) -> dict[str, int]:
        resolved = {**self.macros, **fallback}
        for setting, changes in self._chosen({**resolved, **given}):
            resolved |= {**setting, **changes.get("macros", {})}
        return resolved | given

    def _chosen(self, values: Macros) -> list[tuple[Macros, Mapping]]:
        return [
            (setting, changes)
            for setting, changes in self.variants
            if all(values.get(name) == value for name, value in setting.items())
        ]


WARP = 32  # threads
MAX_THREADS = 1024  # of a block
FLOAT, HALF = 4, 2  # bytes
STATIC_SHARED = 48 * 1024  # bytes of shared memory that a kernel has without asking for more
STAGE_BARRIERS = 24  # bytes of cuda::pipeline_shared_state per stage, at most
SUMS = 256 * 128  # of an FP32 product, that the registers of a multiprocessor hold beside the rest
H100_SMS = 132  # a persistent kernel has one block on each


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


def warp_threads(*, BM: int, BN: int, WM: int, WN: int, **_: int) -> int:
    """One warp per `WM x WN` tile of the block's."""
    return WARP * (BM // WM) * (BN // WN)


def warp_tiles_fit(
    *, BM: int, BN: int, BK: int, WM: int, WN: int, TM: int, TN: int, MIN_BLOCKS: int, **_: int
) -> bool:
    """Whether an FP32 block splits into warps of 32 thread tiles that load as much each, and its sums fit registers.

    An SM's 65536 registers hold 256 threads of 128 sums, or 512 of 64, beside what else a thread needs.
    """
    if BM % WM or BN % WN or (WM // TM) * (WN // TN) != WARP or WN // TN < 2 or TM * TN > 128:
        return False
    threads = warp_threads(BM=BM, BN=BN, WM=WM, WN=WN)
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


def promise(*rows: tuple) -> Callable[..., tuple[Promise, ...]]:
    """The same promises under all macros: (opcode, wavefronts, sectors) each."""
    return lambda **_: tuple(Promise(*row) for row in rows)


LOAD, STORE = r"ld\.global", r"st\.global"
FROM_SHARED, TO_SHARED = r"ld\.shared", r"st\.shared"
SCALARS, VECTORS = r"st\.shared\.[bfu]32", r"st\.shared\.v4"
COPIES = r"cp\.async\.c[ag]"
SWIZZLED = promise(("ldmatrix", 4), (COPIES, 8, 16), (STORE, None, 16))
CONFLICTED = promise(("ldmatrix", 16), (COPIES, 8, 16), (STORE, None, 16))


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
    *, BM: int, STAGES: int, SPLIT: int, A_BOX: int, PER_SM: int, CLUSTER_M: int, TOGETHER: int, **macros: int
) -> bool:  # fmt: skip
    """Whether this can win somewhere: two blocks on a multiprocessor where tiles take few k-steps, clusters of tiles
    and copies of several k-steps where K is deep.
    """
    if A_BOX != BM and (A_BOX != 16 or BM != 64):
        return False
    if CLUSTER_M * TOGETHER > 1 and (SPLIT or BM != 128 or PER_SM > 1 or STAGES <= TOGETHER):
        return False
    fits = split_shared(BM=BM, STAGES=STAGES, SPLIT=SPLIT, **macros) * PER_SM <= HOPPER_SHARED
    return fits and (STAGES == 2) == (PER_SM == 2) and (PER_SM == 1 or SPLIT == 1)


def bytes_of_input(*, TF32_INPUT: int = 0, BF16_INPUT: int = 0, **_: int) -> int:
    """Bytes of an element of A or B of wgmma_fp8."""
    return 4 if TF32_INPUT else 2 if BF16_INPUT else 1


def split_grid(
    M: int, N: int, K: int, *, BM: int, BN: int, SPLIT: int, BLOCKS: int, PER_SM: int,
    CLUSTER_M: int, **_: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Blocks of wgmma_split: SPLIT per tile; where no tile is shared, or any, as many as run at a time and have work."""
    tiles = ceil_div(M, BM * CLUSTER_M) * ceil_div(N, BN)
    if SPLIT > 1:
        return tiles * SPLIT, 1, 1
    clusters = min(BLOCKS * PER_SM // CLUSTER_M, tiles if SPLIT else tiles * ceil_div(K, 64))
    return clusters * CLUSTER_M, 1, 1


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
            "PINGPONG of 0, or of 1 with BM=64": lambda BM, PINGPONG, **_: PINGPONG == 0 or (PINGPONG, BM) == (1, 64),
        },
        threads=lambda BM, PINGPONG, **_: 384 if PINGPONG else consumers_and_producer(BM=BM),
        shared=persistent_shared,
        grid=persistent_grid,
        boxes=store_boxes,
        alignment=8,
        min_arch=90, max_arch=90,
        variants=HOPPER_TYPES,
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
        min_arch=90, max_arch=90,
        variants=HOPPER_TYPES,
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
            "SPLIT to be 0, 1, 2, 4 or 8": lambda SPLIT, **_: SPLIT in (0, 1, 2, 4, 8),
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
        min_arch=90, max_arch=90,
        variants=HOPPER_TYPES,
        space={"BM": (64, 128), "STAGES": (2, 4, 5, 6), "SPLIT": (0, 1, 2), "A_BOX": (16, 64, 128), "PER_SM": (1, 2),
               "CLUSTER_M": (1, 2), "TOGETHER": (1, 3)},
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
        min_arch=90, max_arch=90,
        b_major="K",
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
