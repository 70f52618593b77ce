"""Bulk copies and TMA: cp.async.bulk, its tensor and reducing forms, prefetches (PTX ISA 9.7.9.25.4 to 6).

`bulk_operands` reads and checks what they are given, `bulk_loads` and `bulk_stores` say when their data
land, `counts.copies` what they cost: requests are those to L2, and the bytes of a multicast are counted once.
"""

from __future__ import annotations

import numpy as np

from emulator.counts.copies import LINE, Rows, cost
from emulator.errors import ExecutionError
from emulator.machine import boxes
from emulator.machine.boxes import Mapped
from emulator.numbers.reductions import of_format, reduction
from emulator.ops.bulk_loads import CHUNK, Load, loads
from emulator.ops.bulk_operands import (
    Issuers,
    by_rows,
    check_dimensions,
    check_first,
    check_inside,
    coordinates_of,
    corners,
    global_bytes,
    in_shared,
    map_at,
    maps_of,
    plain_address,
    sizes_of,
)
from emulator.ops.bulk_stores import Store, stores
from emulator.text.rows import Row


def _commit_group(ins, bind):
    def step(m, mask):
        found = stores(m)
        found.commits = found.commits + m.lanes_of(mask)

    return step


def _wait_group(ins, bind):
    left, reading = bind.constant(ins.operands[0], 4), "read" in ins
    return lambda m, mask: stores(m).wait(m, mask, left, reading)


# --- Counting ---------------------------------------------------------------------------------------


def _count(m, ins, rows, kind: str) -> None:
    """One copy of these `copies.Rows`; of None, for a copy that is not seen."""
    if m.counting and rows is not None:
        row, (requests, sectors, moved) = m.rows[ins.index], cost(rows, kind)
        row.global_requests += requests
        row.global_sectors += sectors
        row.bytes += moved


def _one_row(shared: int, start: int, size: int) -> Rows:
    return Rows(shared % LINE, start % LINE, size, 0, size)


# --- Loads ------------------------------------------------------------------------------------------


def _load(ins, bind):
    """Into shared memory, from global memory or from the block's own; completes on an mbarrier."""
    spaces = [part for part in ins.parts if part.split("::")[0] in ("shared", "global")]
    source, operands = spaces[1], list(ins.operands)
    target = bind.address(operands.pop(0), "shared")
    tensor, origin = "tensor" in ins, operands.pop(0)
    if tensor:
        check_dimensions(ins, bind, origin)
        coordinates, map_of = coordinates_of(origin, bind), plain_address(origin, bind)
        size_of = None
    else:
        space = "shared" if source.startswith("shared") else "global"
        from_of, size_of = bind.address(origin, space), bind.integer(operands.pop(0), "u32")
    barrier_of = bind.address(operands.pop(0), "shared")
    ranks_of = bind.integer(operands.pop(0), "u16") if "multicast::cluster" in ins else None
    if "L2::cache_hint" in ins:
        bind.integer(operands.pop(0), "u64")
    if operands:
        raise bind.error("more operands than this copy takes")
    combine = reduction(ins, bind) if ins.parts[1] == "reduce" else None
    unit, pair = 128 if tensor else 16, "cta_group::2" in ins
    kind = "multicast" if ranks_of else "load"

    def step(m, mask):
        rows = Issuers(m, mask)
        offset, owner = in_shared(m, rows, target, ins, "the destination", unit)
        barrier, barrier_owner = in_shared(m, rows, barrier_of, ins, "the mbarrier", 8)
        apart = owner // 2 != barrier_owner // 2 if pair else owner != barrier_owner
        if apart.any():
            at = int(apart.argmax())
            text = f"the destination and the mbarrier of a copy must be in the same {'pair of blocks' if pair else 'block'}"
            m.fail(ExecutionError, text, ins, int(rows.block[at]), int(rows.thread[at]))
        if tensor:
            pieces = _boxes(m, rows, map_of, coordinates, offset, kind, ins)
        else:
            pieces = _runs(m, rows, from_of, size_of, source, offset, kind, ins)
        ranks = rows.of(ranks_of(m)) if ranks_of else None
        by_shape: dict = {}
        # cta_group::2: the bytes are counted by the block of each pair that the mbarrier's address names
        counts = (
            (lambda i, t: t - t % m.cluster % 2 + int(barrier_owner[i]) % m.cluster % 2)
            if pair
            else (lambda i, t: t)
        )
        for i, (data, swizzle, reads) in enumerate(pieces):
            targets = [int(owner[i])]
            if ranks is not None:
                targets = _reached(m, rows, i, int(ranks[i]), ins)
            by_shape.setdefault((len(data), swizzle), []).extend(
                (i, t, data, reads) for t in targets
            )
        for (size, swizzle), members in by_shape.items():
            if size:
                whose = np.array([counts(i, target) for i, target, *_ in members])
                _issue(m, ins, rows, members, offset, barrier, whose, size, swizzle, combine)
        m.progress()

    return step


def _boxes(m, rows: Issuers, map_of, coordinates, offset, kind: str, ins) -> list:
    first = coordinates(m, rows)
    found = []
    rank = 2 if by_rows(ins) else first.shape[1]
    for i, mapped in enumerate(maps_of(m, rows, rows.of(map_of(m)), rank, ins)):
        place, data, reads = (int(rows.block[i]), int(rows.thread[i])), [], []
        for at in corners(m, ins, mapped, tuple(first[i].tolist()), *place):
            check_first(m, mapped, at, ins, *place, True)
            _count(m, ins, boxes.rows_of(mapped, at, int(offset[i]) + sum(map(len, data))), kind)
            data.append(boxes.gather(mapped, at))
            if _watched(m, ins):
                places = boxes.places(mapped, at)
                reads.append(m.device.bulk.read(ins, *place, places, mapped.map.itemsize))
        whole = np.concatenate(data) if len(data) > 1 else data[0]
        found.append((whole, mapped.map.swizzle, reads))
    return found


def _runs(m, rows: Issuers, from_of, size_of, source: str, to, kind: str, ins) -> list:
    size = sizes_of(m, rows, size_of, ins)
    found = []
    if source.startswith("shared"):
        offset, owner = in_shared(m, rows, from_of, ins, "the source", 16)
        for i, count in enumerate(size.tolist()):
            check_inside(m, rows, offset[i : i + 1], count, ins, "the source")
            start = int(owner[i]) * m.shared.stride + int(offset[i])
            found.append((m.shared.buffer.bytes[start : start + count].copy(), None, []))
            if m.sanitizer is not None and count:
                chunks = np.arange(start >> 4, start + count >> 4)
                at = int(rows.block[i]), int(rows.thread[i])
                ticket = m.sanitizer.bulk_read(ins, int(owner[i]), *at, chunks)
                m.sanitizer.bulk_read_done(ticket, int(owner[i]), at[1], chunks)
            if m.counting:
                m.rows[ins.index].bytes += count
        return found
    address = rows.of(from_of(m))
    for i, count in enumerate(size.tolist()):
        at, reads = int(address[i]), []
        data = global_bytes(m, rows, i, at, count, ins, "a bulk copy reads").copy()
        found.append((data, None, reads))
        if _watched(m, ins):
            place = int(rows.block[i]), int(rows.thread[i])
            reads.append(m.device.bulk.read(ins, *place, np.arange(at, at + count, 4), 4))
        _count(m, ins, _one_row(int(to[i]), at, count), kind)
    return found


def _watched(m, ins) -> bool:
    """Whether somebody looks at what this copy does to global memory."""
    return m.device is not None and ins.index in m.device.watched


def _reached(m, rows: Issuers, i: int, ranks: int, ins) -> list[int]:
    """The blocks of the chunk that a multicast reaches."""
    base = int(rows.block[i]) // m.cluster * m.cluster
    bits = [rank for rank in range(16) if ranks >> rank & 1]
    if not bits or bits[-1] >= m.cluster:
        text = f"a multicast to blocks {bits} of a cluster of {m.cluster}"
        m.fail(ExecutionError, text, ins, int(rows.block[i]), int(rows.thread[i]))
    return [base + rank for rank in bits]


def _issue(m, ins, rows, members, offset, barrier, whose, size: int, swizzle, combine) -> None:
    row = np.array([i for i, *_ in members])
    block = np.array([target for _, target, *_ in members])
    check_inside(m, rows, offset[row], size, ins, "the destination")
    chunks = np.stack([boxes.chunks(int(at), size, swizzle or 0) for at in offset[row].tolist()])
    data = np.stack([data for _, _, data, _ in members]).view(CHUNK)
    whole = chunks + (block * m.shared.stride >> 4)[:, None]
    ticket = 0
    if m.sanitizer is not None:
        ticket = m.sanitizer.bulk_issue(
            ins, block, whole, rows.block[row], rows.thread[row], barrier[row], swizzle,
            reduces=combine is not None, whose=whose,
        )  # fmt: skip
    left = np.ones(len(row), bool)
    reads = [reads for *_, reads in members]
    load = Load(ins, block, barrier[row], whole, data, size, left, ticket, combine, whose, reads)
    loads(m).append(load)


# --- Stores -----------------------------------------------------------------------------------------


def _store(ins, bind):
    """From shared to global memory, or added to what is there; belongs to a bulk group."""
    operands = list(ins.operands)
    target, tensor = operands.pop(0), "tensor" in ins
    if tensor:
        check_dimensions(ins, bind, target)
        coordinates, map_of = coordinates_of(target, bind), plain_address(target, bind)
    else:
        to_of = bind.address(target, "global")
    source = bind.address(operands.pop(0), "shared")
    size_of = None if tensor else bind.integer(operands.pop(0), "u32")
    if "L2::cache_hint" in ins:
        bind.integer(operands.pop(0), "u64")
    bytes_of = bind.integer(operands.pop(0), "u16") if "cp_mask" in ins else None
    if operands:
        raise bind.error("more operands than this copy takes")
    combine = reduction(ins, bind) if ins.parts[1] == "reduce" else None
    of_tensor = _of_tensor(ins, bind) if combine is not None and tensor else None

    def step(m, mask):
        rows = Issuers(m, mask)
        found = stores(m)
        offset, owner = in_shared(m, rows, source, ins, "the source", 128 if tensor else 16)
        if tensor:
            first = coordinates(m, rows)
            rank = 2 if by_rows(ins) else first.shape[1]
            maps = maps_of(m, rows, rows.of(map_of(m)), rank, ins)
        else:
            size, address = sizes_of(m, rows, size_of, ins), rows.of(to_of(m))
            masks = rows.of(bytes_of(m)) if bytes_of else None
        for i in range(len(rows)):
            if tensor:
                mapped, place = maps[i], (int(rows.block[i]), int(rows.thread[i]))
                at = corners(m, ins, mapped, tuple(first[i].tolist()), *place)
                one, swizzle = mapped.map.box_bytes, mapped.map.swizzle
                count = one * len(at)
                how = of_tensor(m, mapped.map.format, ins) if of_tensor else None
                for number, corner in enumerate(at):
                    check_first(m, mapped, corner, ins, *place, False)
                    shared = int(offset[i]) + one * number
                    _count(m, ins, boxes.rows_of(mapped, corner, shared), "store")
                write = _box_writer(mapped, at, how)
            else:
                count, swizzle, at = int(size[i]), 0, int(address[i])
                view = global_bytes(m, rows, i, at, count, ins, "a bulk copy writes")
                write = _run_writer(view, combine, None if masks is None else int(masks[i]))
                _count(m, ins, _one_row(int(offset[i]), at, count), "store")
            check_inside(m, rows, offset[i : i + 1], count, ins, "the source")
            block, thread = int(rows.block[i]), int(rows.thread[i])
            chunks = boxes.chunks(int(offset[i]), count, swizzle)
            whole = chunks + (int(owner[i]) * m.shared.stride >> 4)
            seen = _seen(mapped, at, whole) if tensor else whole
            ticket = 0
            if m.sanitizer is not None and len(seen):
                ticket = m.sanitizer.bulk_read(ins, int(owner[i]), block, thread, seen, swizzle)
            group, going = int(found.commits[block, thread]), 0
            if _watched(m, ins):
                places = (
                    np.concatenate([boxes.places(mapped, corner) for corner in at])
                    if tensor
                    else np.arange(at, at + count, 4)
                )
                element = mapped.map.itemsize if tensor else 4
                adds = combine is not None
                going = m.device.bulk.write(ins, block, thread, places, element, adds)
            found.pending.append(
                Store(ins, block, thread, group, whole, seen, write, ticket, going)
            )

    return step


def _seen(mapped: Mapped, at: list[tuple[int, ...]], whole: np.ndarray) -> np.ndarray:
    """Of a store's chunks (n,), those that reach the array."""
    parts = zip(at, whole.reshape(len(at), -1), strict=True)
    found = [part[boxes.inside(mapped, corner)] for corner, part in parts]
    return found[0] if len(found) == 1 else np.concatenate(found)


def _box_writer(mapped: Mapped, at: list[tuple[int, ...]], combine):
    def write(data):
        for corner, part in zip(at, data.reshape(len(at), -1), strict=True):
            boxes.scatter(mapped, corner, part, combine)

    return write


def _run_writer(view: np.ndarray, combine, byte_mask: int | None):
    def write(data):
        if combine is not None:
            view[:] = combine(view.view(), data)
        elif byte_mask is None:
            view[:] = data
        else:
            chosen = np.resize([byte_mask >> i & 1 == 1 for i in range(16)], len(data))
            view[chosen] = data[chosen]

    return write


def _of_tensor(ins, bind):
    """combine(old, new) on a tensor's elements, by the map's format."""
    op = reduction(ins, bind)

    def choose(m, format: str, ins):
        found = of_format(op, format)
        if found is None:
            m.fail(ExecutionError, f"there is no reduction {op} of {format} elements", ins)
        return found

    return choose


# --- Prefetches -------------------------------------------------------------------------------------


def _prefetch(ins, bind):
    """Into L2: checked like a copy, without effect on values."""
    operands = list(ins.operands)
    origin = operands.pop(0)
    if "tensor" in ins:
        check_dimensions(ins, bind, origin)
        coordinates, map_of = coordinates_of(origin, bind), plain_address(origin, bind)

        def of_tensor(m, mask):
            rows = Issuers(m, mask)
            first = coordinates(m, rows)
            for i, mapped in enumerate(maps_of(m, rows, rows.of(map_of(m)), first.shape[1], ins)):
                at = tuple(first[i].tolist())
                check_first(m, mapped, at, ins, int(rows.block[i]), int(rows.thread[i]), True)

        return of_tensor
    from_of, size_of = bind.address(origin, "global"), bind.integer(operands.pop(0), "u32")

    def step(m, mask):
        rows = Issuers(m, mask)
        address, size = rows.of(from_of(m)), sizes_of(m, rows, size_of, ins)
        for i, (at, count) in enumerate(zip(address.tolist(), size.tolist(), strict=True)):
            global_bytes(m, rows, i, at, count, ins, "a bulk prefetch reads")

    return step


def prefetch_map(ins, bind):
    """prefetch.tensormap: there must be a map."""
    get = bind.address(ins.operands[0], "generic")

    def step(m, mask):
        rows = Issuers(m, mask)
        for at in np.unique(rows.of(get(m))).tolist():
            map_at(m, at, ins, int(rows.block[0]), int(rows.thread[0]))

    return step


_TENSOR = "tensor! 1d|2d|3d|4d|5d! tile"
_BYTES = "mbarrier::complete_tx::bytes!"
_INTO_SHARED = f"shared::cluster|shared::cta! global! {_BYTES} multicast::cluster L2::cache_hint"
_OF_PAIR = "cta_group::1|cta_group::2"
_OUT = "global! shared::cta! bulk_group! L2::cache_hint"
_OPS = "add|min|max|inc|dec|and|or|xor!"
_OF_MEMORY = "f16|bf16|b32|u32|s32|b64|u64|s64|f32|f64!"

OPCODES = {
    "cp": {
        f"async! bulk! {_INTO_SHARED}": Row(_load, (4, 5, 6), types="-", spread="none"),
        f"async! bulk! shared::cluster! shared::cta! {_BYTES}": Row(
            _load, (4,), types="-", spread="none"
        ),
        f"async! bulk! {_OUT} cp_mask": Row(_store, (3, 4, 5), types="-", spread="none"),
        "async! bulk! prefetch! L2! global! L2::cache_hint": Row(
            _prefetch, (2, 3), types="-", spread="none"
        ),
        "async! bulk! commit_group!": Row(_commit_group, (0,), types="-", spread="none"),
        "async! bulk! wait_group! read": Row(_wait_group, (1,), types="-", spread="none"),
        f"async! bulk! {_TENSOR} {_INTO_SHARED} {_OF_PAIR}": Row(
            _load, (3, 4, 5), types="-", spread="none"
        ),
        f"async! bulk! {_TENSOR} {_OUT}": Row(_store, (2, 3), types="-", spread="none"),
        f"async! bulk! tensor! 2d! tile::gather4! {_INTO_SHARED} {_OF_PAIR}": Row(
            _load, (3, 4, 5), types="-", spread="none"
        ),
        f"async! bulk! tensor! 2d! tile::scatter4! {_OUT}": Row(
            _store, (2, 3), types="-", spread="none"
        ),
        f"async! bulk! prefetch! {_TENSOR} L2! global! L2::cache_hint": Row(
            _prefetch, (1, 2), types="-", spread="none"
        ),
        f"reduce! async! bulk! shared::cluster! shared::cta! {_BYTES} {_OPS} {_OF_MEMORY}": Row(
            _load, (4,), types="-", spread="none"
        ),
        f"reduce! async! bulk! {_OUT} {_OPS} noftz {_OF_MEMORY}": Row(
            _store, (3, 4), types="-", spread="none"
        ),
        f"reduce! async! bulk! {_TENSOR} {_OUT} {_OPS}": Row(
            _store, (2, 3), types="-", spread="none"
        ),
    },
    "prefetch": {"param tensormap!": Row(prefetch_map, (1,), types="-", spread="none")},
}
