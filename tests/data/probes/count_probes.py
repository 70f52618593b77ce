"""The probes of `counts`: which single Hopper instructions are counted, with which operands and counters."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import wgmma
from cuda_driver import SIZES

# Short names of what is counted, by family; few at a time, since ncu replays a launch for each few.
_WAVEFRONTS, _LTS = "l1tex__data_pipe_lsu_wavefronts", "lts__t"
_READ, _WRITE = "l1tex__m_xbar2l1tex_read_sectors", "l1tex__m_l1tex2xbar_write_sectors"
_MULTICAST = "mem_global_op_tma_ld_dest_multicast"
_BANKS = {
    "bank_words_read": "l1tex__data_bank_reads",
    "bank_words_written": "l1tex__data_bank_writes",
}
_REMOTE = {
    "remote_sectors_in": _READ + "_mem_dshared",
    "remote_sectors_out": _WRITE + "_mem_dshared",
}
METRICS = {
    "copies": {
        **_BANKS,
        **_REMOTE,
        "tma_sectors_loaded": _READ + "_mem_global_op_tma_ld",
        "tma_sectors_multicast": _READ + "_" + _MULTICAST,
        "tma_sectors_stored": _WRITE + "_mem_global_op_tma_st",
        "tma_sectors_reduced": _WRITE + "_mem_global_op_tma_red",
        "multicast_requests": "l1tex__m_l1tex2xbar_read_requests_" + _MULTICAST,
        **{
            f"l2_{what}_{name}": f"{_LTS}_{what}_srcunit_tex_op_{op}"
            for what in ("requests", "sectors")
            for name, op in (("read", "read"), ("written", "write"), ("reduced", "red"))
        },
        "tma_instructions": "smsp__inst_executed_pipe_tma",
    },
    "warp": {
        **_BANKS,
        **_REMOTE,
        "wavefronts": _WAVEFRONTS,
        "shared_wavefronts": _WAVEFRONTS + "_mem_shared",
        "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared",
        "lsu_requests": "l1tex__lsuin_requests",
        "lsu_instructions": "smsp__inst_executed_pipe_lsu",
        "adu_instructions": "smsp__inst_executed_pipe_adu",
    },
    "wgmma": {
        "shared_wavefronts": _WAVEFRONTS + "_mem_shared_op_gmma",
        "bank_words_read": "l1tex__data_bank_reads",
        "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_gmma",
        "shared_bytes": "sm__sass_data_bytes_mem_shared_op_gmma",
        "lsu_requests": "l1tex__lsuin_requests_op_gmma",
        "wgmma_instructions": "smsp__inst_executed_pipe_tensor_op_gmma",
        "tensor_cycles": "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active",
    },
}


@dataclass(frozen=True)
class Probe:
    """One instruction with its operands: kernel, and what it was given.

    `tensor`: type, sizes and box in elements, swizzle, start (first coordinates) of a tensor copy.
    """

    kernel: str
    module: str = "counts"
    bytes: int = 0
    global_offset: int = 0
    shared_offset: int = 0
    tensor: dict = field(default_factory=dict)
    cluster: int = 1
    mask: int = 0
    offsets: tuple = ()
    active: int = 0xFFFFFFFF
    block: int = 32


def bulk_probes():
    sizes = (
        16,
        32,
        48,
        64,
        96,
        112,
        128,
        144,
        160,
        256,
        272,
        512,
        1024,
        2048,
        4096,
        16384,
        32768,
        65536,
    )
    for kernel in ("bulk_load", "bulk_store"):
        for size in sizes:
            yield Probe(kernel, bytes=size)
        for offset in (16, 32, 48, 64, 96, 112, 128):
            for size in (16, 32, 64, 128, 256, 1024):
                if size in (16, 32, 128) or offset in (16, 32, 112):
                    yield Probe(kernel, bytes=size, global_offset=offset)
        for size in (16, 128, 1024):
            yield Probe(kernel, bytes=size, shared_offset=16)
            yield Probe(kernel, bytes=size, shared_offset=64, global_offset=64)
    for kernel in (
        "bulk_reduce_add_u32",
        "bulk_reduce_add_f32",
        "bulk_reduce_add_f16",
        "bulk_reduce_add_u64",
    ):
        for size in (16, 32, 128, 1024, 4096):
            yield Probe(kernel, bytes=size)
    yield Probe("bulk_reduce_add_u32", bytes=128, global_offset=16)
    for size in (16, 128, 4096, 65536):
        yield Probe("bulk_prefetch", bytes=size)
    for size in (16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 256, 1024, 4096, 16384):
        yield Probe("bulk_remote", bytes=size, cluster=2)
    for size, offset in ((32, 16), (32, 32), (32, 64), (64, 32), (96, 32), (16, 112), (32, 112)):
        yield Probe("bulk_remote", bytes=size, shared_offset=offset, cluster=2)
    yield Probe("bulk_remote", bytes=128, shared_offset=16, cluster=2)
    for cluster, mask in ((2, 1), (2, 2), (2, 3), (4, 1), (4, 3), (4, 5), (4, 15)):
        for size in (128, 4096):
            yield Probe("bulk_multicast", bytes=size, cluster=cluster, mask=mask)
    for size, offset in (
        (16, 0),
        (32, 0),
        (48, 0),
        (64, 0),
        (96, 0),
        (112, 0),
        (16, 16),
        (32, 16),
        (64, 16),
        (128, 16),
        (64, 96),
        (1024, 16),
    ):
        yield Probe("bulk_multicast", bytes=size, global_offset=offset, cluster=2, mask=3)


def tile(type, sizes, box, swizzle=0, start=None, pitch=None, base=0):
    """A tensor's shape; `pitch`: bytes between rows where more than its elements need."""
    return {
        "type": type,
        "sizes": list(sizes),
        "box": list(box),
        "swizzle": swizzle,
        "start": list(start or [0] * len(sizes)),
        "pitch": pitch or sizes[0] * SIZES[type],
        "base": base,
    }


def tensor_probes():
    wide = (4096, 4096)
    shapes = [tile("u8", (65536,), (box,)) for box in (16, 32, 64, 128, 256)]
    shapes += [
        tile("f32", (65536,), (box,), start=(s,))
        for box, s in ((32, 0), (256, 0), (32, 4), (256, 4), (8, 4), (8, 2), (32, 1))
    ]
    # rows of many widths; the second number is rows
    for columns in (8, 16, 24, 32, 40, 48, 64, 72, 96, 128, 192, 256):
        shapes.append(tile("f16", wide, (columns, 8)))
    for rows in (1, 2, 4, 16, 32, 64, 128, 256):
        shapes.append(tile("f16", wide, (64, rows)))
    for swizzle in (32, 64, 128):
        for columns in (8, 16, 32, 64):
            if columns * 2 <= swizzle:
                shapes.append(tile("f16", wide, (columns, 64), swizzle))
    # starts within a sector or a line, and pitches that are not whole lines
    for start in (8, 16, 24, 32, 48, 56):
        shapes.append(tile("f16", wide, (64, 8), 128, (start, 0)))
        shapes.append(tile("f16", wide, (16, 8), 0, (start, 0)))
    for start in (1, 2, 3, 4, 5, 7, 63):
        shapes.append(tile("f16", wide, (64, 8), 128, (start, 0)))
    for pitch in (8208, 8224, 8256, 8304):
        shapes.append(tile("f16", (4096, 1024), (64, 16), 128, pitch=pitch))
        shapes.append(tile("f16", (4096, 1024), (16, 16), 0, pitch=pitch))
    for pitch in (16, 32, 48, 64, 80, 128, 256):
        shapes.append(tile("f16", (8, 1024), (8, 64), 0, pitch=pitch))
        if pitch >= 64:
            shapes.append(tile("f16", (32, 1024), (32, 64), 64, pitch=pitch))
    # boxes that hang over an edge
    for start in (
        (-8, 0),
        (-32, 0),
        (-64, 0),
        (0, -4),
        (0, -8),
        (-200, 0),
        (4096 - 32, 0),
        (4096 - 8, 0),
        (4096, 0),
        (4080, 4092),
        (-16, -4),
        (-3, 0),
        (4096 - 3, 0),
    ):
        shapes.append(tile("f16", wide, (64, 8), 128, start))
    for type in ("u8", "u16", "u32", "u64", "bf16", "f32"):
        shapes.append(tile(type, (4096, 1024), (64 // SIZES[type], 32)))
    shapes.append(tile("f32", (1024, 1024), (32, 128), 128))
    for dim in (3, 4, 5):
        sizes = (256, 64, 16, 16, 8)[:dim]
        shapes.append(tile("f16", sizes, (64, 8, 4, 2, 2)[:dim]))
        shapes.append(tile("f16", sizes, (64, 8, 4, 2, 2)[:dim], 128))
        shapes.append(tile("f16", sizes, (16, 4, 4, 2, 2)[:dim]))
        shapes.append(tile("f16", sizes, (64, 8, 4, 2, 2)[:dim], 128, (8, -2, 1, 0, 0)[:dim]))
        shapes.append(tile("f16", sizes, (64, 8, 4, 2, 2)[:dim], 128, (224, 60, 1, 0, 0)[:dim]))
    for shape in shapes:
        dim = len(shape["sizes"])
        yield Probe(f"tensor_load_{dim}", tensor=shape)
        if len(shape["box"]) != 2 or shape["swizzle"] != 64:
            yield Probe(f"tensor_store_{dim}", tensor=shape)
    for box, swizzle in (
        ((8, 8), 0),
        ((16, 8), 0),
        ((64, 8), 128),
        ((64, 64), 128),
        ((256, 16), 0),
    ):
        yield Probe("tensor_reduce_add_2", tensor=tile("f16", wide, box, swizzle))
        yield Probe("tensor_reduce_min_2", tensor=tile("f16", wide, box, swizzle))
        yield Probe("tensor_prefetch_2", tensor=tile("f16", wide, box, swizzle))
    yield Probe("tensor_reduce_add_2", tensor=tile("f16", wide, (64, 8), 128, (8, 0)))
    yield Probe("tensor_reduce_add_2", tensor=tile("f16", wide, (64, 8), 128, (4080, -4)))
    yield Probe("tensor_reduce_add_2", tensor=tile("f32", (1024, 1024), (32, 8), 128))
    for cluster, mask in ((2, 1), (2, 2), (2, 3), (4, 1), (4, 3), (4, 9), (4, 15)):
        for box in ((64, 8), (64, 64)):
            yield Probe(
                "tensor_multicast_2", tensor=tile("f16", wide, box, 128), cluster=cluster, mask=mask
            )
    yield Probe(
        "tensor_multicast_2", tensor=tile("f16", wide, (16, 8), 0, (8, 0)), cluster=4, mask=15
    )
    yield Probe(
        "tensor_multicast_2", tensor=tile("f16", wide, (64, 8), 128, (8, 0)), cluster=4, mask=15
    )
    yield Probe(
        "tensor_multicast_2", tensor=tile("f16", wide, (64, 8), 128, (4080, -4)), cluster=4, mask=15
    )


PATTERNS = {
    "rows16": tuple(16 * i for i in range(32)),
    "rows32": tuple(32 * i for i in range(32)),
    "rows64": tuple(64 * i for i in range(32)),
    "rows128": tuple(128 * i for i in range(32)),
    "rows144": tuple(144 * i for i in range(32)),
    "swizzled": tuple(128 * i + 16 * (i % 8) for i in range(32)),
    "words": tuple(4 * i for i in range(32)),
    "pairs": tuple(8 * i for i in range(32)),
    "strided": tuple(128 * i for i in range(32)),
    "same": (0,) * 32,
    "reversed": tuple(16 * (31 - i) for i in range(32)),
}


def warp_probes():
    for kernel in (
        "ldmatrix_x1",
        "ldmatrix_x2",
        "ldmatrix_x4",
        "ldmatrix_x4_trans",
        "stmatrix_x1",
        "stmatrix_x2",
        "stmatrix_x4",
        "stmatrix_x4_trans",
    ):
        for pattern in ("rows16", "rows64", "rows128", "rows144", "swizzled"):
            yield Probe(f"warp_{kernel}", offsets=PATTERNS[pattern])
    for kernel in (
        "mbarrier_arrive",
        "mbarrier_expect_tx",
        "mbarrier_arrive_expect_tx",
        "mbarrier_test_wait",
        "mbarrier_try_wait_done",
        "cp_async_mbarrier_arrive",
        "fence_proxy_async",
    ):
        for active in (1, 3, 0xFFFFFFFF):
            yield Probe(f"warp_{kernel}", offsets=PATTERNS["same"], active=active)
    yield Probe("warp_mbarrier_init", offsets=PATTERNS["pairs"], active=1)
    yield Probe("warp_mbarrier_init", offsets=PATTERNS["pairs"])
    for kernel in (
        "ld_shared_b32",
        "atom_shared_add_u32",
        "red_shared_add_u32",
        "atom_shared_add_f32",
        "atom_shared_cas_b32",
    ):
        for pattern in ("words", "same", "strided", "pairs"):
            yield Probe(f"warp_{kernel}", offsets=PATTERNS[pattern])
    for kernel, patterns in (
        ("ld_cluster_b32", ("words", "same", "strided", "pairs", "rows32")),
        ("ld_cluster_v2", ("pairs", "same", "strided")),
        ("ld_cluster_v4", ("rows16", "same", "strided")),
        ("st_cluster_b32", ("words", "same", "strided", "pairs", "rows32")),
        ("st_cluster_v2", ("pairs", "strided")),
        ("st_cluster_v4", ("rows16", "strided")),
        ("atom_cluster_add_u32", ("words", "same", "strided")),
        ("red_cluster_add_u32", ("words", "same", "strided")),
        ("st_async_b32", ("words", "strided", "pairs")),
        ("st_async_v2", ("pairs", "strided")),
        ("st_async_v4", ("rows16", "strided")),
        ("red_async_add_u32", ("words", "same", "strided")),
        ("mbarrier_remote_arrive", ("same",)),
        ("mbarrier_remote_expect_tx", ("same",)),
    ):
        for pattern in patterns:
            yield Probe(f"warp_{kernel}", offsets=PATTERNS[pattern], cluster=2)
        yield Probe(f"warp_{kernel}", offsets=PATTERNS[patterns[0]], cluster=2, active=1)
    for kernel in ("st_cluster_b32", "st_async_b32", "ld_cluster_b32", "red_async_add_u32"):
        for active in (3, 5, 0x11, 0x21, 0xF, 0xF0, 0x3C, 0xFF, 0x55, 0x7F, 0x101, 0x1FF):
            yield Probe(f"warp_{kernel}", offsets=PATTERNS["words"], cluster=2, active=active)
        for pattern in ("rows16", "reversed"):
            yield Probe(f"warp_{kernel}", offsets=PATTERNS[pattern], cluster=2)
    yield Probe("warp_cp_async_16", offsets=PATTERNS["rows16"])
    yield Probe("warp_cp_async_16", offsets=PATTERNS["rows128"])


def table():
    """Every probe, in launch order."""
    probes = [*bulk_probes(), *tensor_probes(), *warp_probes()]
    probes += [Probe(w.name, "wgmma", block=128) for w in wgmma.counted()]
    return [probe for probe in probes if sound(probe)]


def sound(probe):
    """Whether a tensor copy starts at a multiple of 16 bytes, and a store not below 0: see `faults`."""
    if not probe.tensor:
        return True
    start = probe.tensor["start"]
    below = min(start) < 0 and ("store" in probe.kernel or "reduce" in probe.kernel)
    return start[0] * SIZES[probe.tensor["type"]] % 16 == 0 and not below


def family(probe):
    """The key of `METRICS`."""
    return "wgmma" if probe.module == "wgmma" else "warp" if probe.offsets else "copies"
