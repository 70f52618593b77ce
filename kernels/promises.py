"""What rungs promise of their accesses: at most so many wavefronts and sectors per instruction. `check` holds them to it."""

from collections.abc import Callable

from .rung import Promise


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
