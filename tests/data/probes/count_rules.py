"""The rules behind `results/accesses/h200_hopper_accesses.json`: counts of a copy or a wgmma from its operands.

    python tests/data/probes/count_rules.py results/accesses/h200_hopper_accesses.json

prints the rows that a rule does not reproduce. How the copy engine cuts a copy:

- into rows of the box (a bulk copy is one row), packed in shared memory one after the other;
- each row at every 128-byte line of *shared* memory;
- each of these pieces at every 128-byte line of *global* memory, into segments.

A segment costs one L2 request, and the 32-byte sectors that it touches. A load asks for a sector
of which it needs 16 bytes by a request of its own. A multicast load does not, but asks for two
sectors at least, and its sectors arrive once in every block of the mask. Beyond a tensor's edges a
load still asks: for whole sectors of one line where a piece lies outside entirely, else as if all
lay inside. A store leaves out what lies outside. Coordinates are those of PTX, innermost first.
"""

import json
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from emulator.counts.wavefronts import shared_wavefronts, shared_wavefronts_ideal

SIZES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "f16": 2, "f32": 4, "bf16": 2}
LINE, SECTOR = 128, 32


def cut(start, length, at):
    """Ranges (offset within, length) of [start, start + length) between multiples of `at`."""
    offset = 0
    while offset < length:
        step = min(length - offset, at - (start + offset) % at)
        yield offset, step
        offset += step


def touched(start, length):
    """Sectors that a range of bytes touches."""
    return (start + length - 1) // SECTOR - start // SECTOR + 1


def requests(start, length, kind):
    """(L2 requests, sectors) of one segment. kind: `load`, `multicast` or `store`."""
    sectors = touched(start, length)
    if kind == "multicast":
        return 1, max(2, sectors)
    if kind == "store":
        return 1, sectors
    head, tail = start % SECTOR != 0, (start + length) % SECTOR != 0
    partial = 1 if sectors == 1 and (head or tail) else head + tail
    return partial + (sectors > partial), sectors


def rows_of(row):
    """(shared offset, global start, bytes, first and last byte inside) of each row of a copy.

    A row that lies outside in an outer dimension has an empty range inside.
    """
    shape = row.get("tensor")
    if not shape:
        size = row["bytes"]
        shared = 0 if "multicast" in row["kernel"] else row.get("shared_offset", 0)
        yield shared, row.get("global_offset", 0), size, 0, size
        return
    size = SIZES[shape["type"]]
    sizes, box, start = shape["sizes"], shape["box"], shape["start"]
    strides = [shape["pitch"]]
    for extent in sizes[1:-1]:
        strides.append(strides[-1] * extent)
    width = box[0] * size
    outer = product(*(range(extent) for extent in reversed(box[1:])))
    for index, place in enumerate(outer):
        at = [s + i for s, i in zip(start[1:], reversed(place), strict=True)]
        begin = start[0] * size + sum(i * stride for i, stride in zip(at, strides, strict=False))
        inside = all(0 <= i < extent for i, extent in zip(at, sizes[1:], strict=True))
        first = max(0, -start[0] * size)
        last = min(width, (sizes[0] - start[0]) * size)
        yield index * width, begin, width, first, last if inside and last > first else first


def copy_counts(row):
    """Counts of a bulk or tensor copy between global and shared memory."""
    load = "load" in row["kernel"] or "multicast" in row["kernel"]
    kind = "multicast" if "multicast" in row["kernel"] else "load" if load else "store"
    asked = sectors = moved = 0
    for shared, begin, width, first, last in rows_of(row):
        for offset, length in cut(shared, width, LINE):
            low, high = max(offset, first), min(offset + length, last)
            if load and low >= high:
                asked += 1
                sectors += -(-length // SECTOR)
                continue
            if not load:
                offset, length = low, max(0, high - low)
            for within, step in cut(begin + offset, length, LINE):
                more = requests(begin + offset + within, step, kind)
                asked, sectors = asked + more[0], sectors + more[1]
            moved += length
    if load:
        moved = sum(width for _, _, width, _, _ in rows_of(row))
        blocks = bin(row.get("mask", 1)).count("1")
        counts = {
            "bank_words_written": moved // 4 * blocks,
            "tma_sectors_loaded": sectors * blocks,
            "l2_requests_read": asked,
            "l2_sectors_read": sectors,
        }
        if kind == "multicast":
            counts |= {"tma_sectors_multicast": sectors * blocks, "multicast_requests": asked}
    else:
        verb, done = ("reduced",) * 2 if "reduce" in row["kernel"] else ("stored", "written")
        counts = {
            "bank_words_read": moved // 4,
            f"tma_sectors_{verb}": sectors,
            f"l2_requests_{done}": asked,
            f"l2_sectors_{done}": sectors,
        }
    return counts | {"tma_instructions": 1}


def prefetch_counts(row):
    """A prefetch to L2 moves nothing through the SM."""
    return {"tma_instructions": 1}


def sent(written):
    """Sectors that writes to another block's shared memory cost. written: {16-byte unit: bytes}.

    In each 128-byte line, units that are written in full travel two to a sector if there are four
    or more; fewer, or units written in part, travel one to a sector.
    """
    lines = {}
    for unit, count in written.items():
        lines.setdefault(unit // 8, []).append(count)
    return sum(
        -(-len(units) // 2) if len(units) >= 4 and set(units) == {16} else len(units)
        for units in lines.values()
    )


def remote_counts(row):
    """A bulk copy from a block's shared memory to another's."""
    first = row.get("shared_offset", 0) // 16
    sectors = sent(dict.fromkeys(range(first, first + row["bytes"] // 16), 16))
    words = row["bytes"] // 4
    return {
        "bank_words_read": words,
        "bank_words_written": words,
        "remote_sectors_in": sectors,
        "remote_sectors_out": sectors,
        "tma_instructions": 1,
    }


def wgmma_counts(row):
    """m64nNk of 32 bytes: A is read once for all four warps' rows, B once; no mode conflicts."""
    name = row["kernel"]
    n = int(name.split("_")[1][1:])
    wavefronts = n // 4 + (0 if "_rs_" in name else 16)
    return {
        "shared_wavefronts": wavefronts,
        "bank_words_read": 32 * wavefronts,
        "shared_bytes": 128 * wavefronts,
        "lsu_requests": 4,
        "wgmma_instructions": 4,
        "tensor_cycles": 2 * n,
    }


def lanes_of(row):
    """Byte offsets (1, 32) of a warp's lanes, and which are active."""
    active = row.get("active", 0xFFFFFFFF) >> np.arange(32) & 1 == 1
    return np.array([row["offsets"]], np.int64), active[None]


def matrix_counts(row):
    """ldmatrix and stmatrix: the emulator's wavefronts."""
    kind, count = (
        ("ldmatrix" if "ldm" in row["kernel"] else "stmatrix"),
        int(row["kernel"].split("_x")[1][0]),
    )
    offsets, active = lanes_of(row)
    cost = int(shared_wavefronts(offsets, active, 16, kind, count)[0])
    ideal = int(shared_wavefronts_ideal(active, 16, kind, count)[0])
    words = "bank_words_read" if kind == "ldmatrix" else "bank_words_written"
    return {
        words: 32 * count,
        "wavefronts": cost,
        "shared_wavefronts": cost,
        "bank_conflicts": cost - ideal,
        "lsu_requests": 1,
        "lsu_instructions": 1,
    }


def load_counts(row):
    """An ordinary load from shared memory."""
    offsets, active = lanes_of(row)
    cost = int(shared_wavefronts(offsets, active, 4)[0])
    return {
        "wavefronts": cost,
        "shared_wavefronts": cost,
        **_UNSAID,
        "lsu_requests": 1,
        "lsu_instructions": 1,
    }


_UNSAID = dict.fromkeys(("bank_words_read", "bank_words_written", "bank_conflicts"))


def atomic_counts(row):
    """Atomics on 32-bit integers: lanes on one bank go one after the other, also at one address.

    Compare-and-swap takes two wavefronts each.
    """
    offsets, active = lanes_of(row)
    cost = int(np.bincount(offsets[active] // 4 % 32).max()) * (2 if "cas" in row["kernel"] else 1)
    return {
        "wavefronts": cost,
        "shared_wavefronts": cost,
        **_UNSAID,
        "lsu_requests": 1,
        "lsu_instructions": 1,
    }


def remote_access_counts(row):
    """Loads, stores and st.async in another block's shared memory.

    Wavefronts as in a block's own memory, without its broadcast of 8 and 16 bytes. A load brings
    each sector that the lanes touch once; what a store sends, `sent` says.
    """
    offsets, active = lanes_of(row)
    width = 4 * int([*row["kernel"].split("_v"), "1"][1])
    cost = 0
    for group in np.arange(32).reshape(width // 4, -1):
        words = {int(o) // 4 for o in offsets[0, group][active[0, group]]}
        cost += max(Counter(word % 32 for word in words).values(), default=0)
    touched_words = {int(o) // 4 + w for o in offsets[active] for w in range(width // 4)}
    if "ld_" in row["kernel"]:
        sectors = len({word // 8 for word in touched_words})
    else:
        sectors = sent({unit: 4 * n for unit, n in Counter(w // 4 for w in touched_words).items()})
    return {
        **_UNSAID,
        "wavefronts": cost,
        "remote_sectors_in": sectors,
        "remote_sectors_out": sectors,
        "lsu_requests": 1,
        "lsu_instructions": 1,
        "adu_instructions": int("ld_" in row["kernel"]),
    }


def remote_atomic_counts(row):
    """atom, red and red.async there: lanes on one bank take turns, each with its own sectors.

    atom and red are answered, in as many sectors; red.async tells only the barrier.
    """
    offsets, active = lanes_of(row)
    turn, sectors = Counter(), set()
    for offset in offsets[active].tolist():
        bank = offset // 4 % 32
        sectors.add((turn[bank], offset // SECTOR))
        turn[bank] += 1
    turns, answered = max(turn.values()), "async" not in row["kernel"]
    counts = {
        **_UNSAID,
        "wavefronts": 1 + 2 * turns if answered else turns,
        "remote_sectors_in": len(sectors) * (1 + answered),
        "remote_sectors_out": len(sectors) * (1 + answered),
        "lsu_requests": 1,
        "lsu_instructions": 1,
    }
    return counts | ({"shared_wavefronts": 1} if answered else {})


def barrier_counts(row):
    """mbarrier operations on the block's own barrier: no wavefront, one instruction for all lanes."""
    return {"adu_instructions": 1}


def barrier_init_counts(row):
    """mbarrier.init: one lane after the other."""
    lanes = int(lanes_of(row)[1].sum())
    names = (
        "wavefronts",
        "shared_wavefronts",
        "lsu_requests",
        "lsu_instructions",
        "adu_instructions",
    )
    return dict.fromkeys(names, lanes)


def constant(**counts):
    """A rule of an instruction that always counts the same."""
    return lambda row: counts


def clocks(n, a):
    """Clocks between wgmmas m64nN of 32 bytes of k on one multiprocessor, of any type.

    a: `shared` or `registers`. The longer of the tensor cores' n / 2 and the operands' way in: a
    wavefront a clock from shared memory, 13 clocks at least with A in registers.
    """
    return max(n / 2, 16 + n / 4 if a == "shared" else 13)


RULES = (
    ("wgmma", wgmma_counts),
    ("bulk_remote", remote_counts),
    ("bulk_prefetch", prefetch_counts),
    ("tensor_prefetch", prefetch_counts),
    ("bulk_", copy_counts),
    ("tensor_", copy_counts),
    ("warp_mbarrier_arrive", barrier_counts),
    ("warp_mbarrier_expect_tx", barrier_counts),
    ("warp_mbarrier_test_wait", barrier_counts),
    ("warp_mbarrier_try_wait_done", barrier_counts),
    ("warp_mbarrier_init", barrier_init_counts),
    ("warp_ldmatrix", matrix_counts),
    ("warp_stmatrix", matrix_counts),
    ("warp_ld_shared", load_counts),
    ("warp_atom_shared_add_u32", atomic_counts),
    ("warp_red_shared_add_u32", atomic_counts),
    ("warp_atom_shared_cas", atomic_counts),
    ("warp_ld_cluster", remote_access_counts),
    ("warp_st_cluster", remote_access_counts),
    ("warp_st_async", remote_access_counts),
    ("warp_atom_cluster", remote_atomic_counts),
    ("warp_red_cluster", remote_atomic_counts),
    ("warp_red_async", remote_atomic_counts),
    # arrivals elsewhere carry the fences of their .release
    (
        "warp_mbarrier_remote",
        constant(
            wavefronts=6,
            shared_wavefronts=2,
            lsu_requests=2,
            lsu_instructions=2,
            adu_instructions=2,
        ),
    ),
    ("warp_cp_async_mbarrier", constant(wavefronts=1, lsu_requests=1, lsu_instructions=1)),
    (
        "warp_fence_proxy_async",
        constant(wavefronts=4, shared_wavefronts=2, lsu_requests=2, lsu_instructions=2),
    ),
)


def expected(row):
    """Counts of a row by its rule; None where there is no rule. A count of None is left open."""
    for start, rule in RULES:
        if row["kernel"].startswith(start):
            return rule(row)
    return None


def differences(row):
    """{count: (measured, by the rule)} where a row and its rule differ; {} without a rule."""
    rule, counts = expected(row) or {}, row["counts"]
    names = [name for name in {**rule, **counts} if rule and rule.get(name, 0) is not None]
    pairs = {name: (counts.get(name, 0), rule.get(name, 0)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def main(path):
    rows = json.loads(Path(path).read_text(encoding="utf-8"))["rows"]
    ruled = sum(expected(row) is not None for row in rows)
    print(f"{len(rows)} rows, {ruled} with a rule; not reproduced:")
    for row in rows:
        if differences(row):
            print({k: v for k, v in row.items() if k != "counts"}, differences(row))
    without = sorted({row["kernel"] for row in rows if expected(row) is None})
    print("without a rule:", *without)


if __name__ == "__main__":
    main(sys.argv[1])
