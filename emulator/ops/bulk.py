"""Bulk copies and TMA: cp.async.bulk, its tensor and reducing forms, prefetches (PTX ISA 9.7.9.25.4 to 6).

`bulk_loads` and `bulk_stores` say when their data land, `counts.copies` what they cost: requests are
those to L2, and the bytes of a multicast are counted once.
"""

from __future__ import annotations

import numpy as np

from emulator.counts.copies import LINE, Rows, cost
from emulator.errors import ExecutionError, Misaligned, OutOfBounds
from emulator.machine import boxes
from emulator.machine.boxes import Mapped
from emulator.machine.cluster import RANK_BITS, REMOTE
from emulator.machine.memory import SHARED_WINDOW
from emulator.numbers.reductions import of_format, reduction
from emulator.ops.bulk_loads import CHUNK, Load, loads
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


# --- Operands ---------------------------------------------------------------------------------------


class _Rows:
    """The threads that execute a copy: a row for each, `block` and `thread` (R,)."""

    def __init__(self, m, mask):
        self.m = m
        self.block, self.thread = np.nonzero(m.lanes_of(mask))

    def __len__(self) -> int:
        return len(self.block)

    def of(self, value) -> np.ndarray:
        """(R,) int64 of an integer operand."""
        if type(value) is int:
            return np.full(len(self), value, np.int64)
        return self.m.addresses(value)[self.block, self.thread]


def _signed(values: np.ndarray) -> np.ndarray:
    return ((values + (1 << 31)) & ((1 << 32) - 1)) - (1 << 31)


def _coordinates(operand, bind):
    """get(m, rows) -> (R, rank), slowest dimension first; and the rank."""
    if len(operand.further) != 1 or not hasattr(operand.further[0], "items"):
        raise bind.error("a tensor copy names its box as [map, {coordinates}]")
    gets = [bind.integer(item, "s32") for item in operand.further[0].items]
    return lambda m, rows: np.stack([_signed(rows.of(get(m))) for get in reversed(gets)], axis=1)


def _dimensions(ins, bind, operand) -> None:
    said = next((int(p[0]) for p in ins.parts if len(p) == 2 and p[1] == "d" and p[0].isdigit()), 0)
    given = len(operand.further[0].items) if operand.further else 0
    if not 1 <= said <= 5 or said != given:
        raise bind.error(f"a copy of {said} dimensions with {given} coordinates")


def _plain(operand, bind):
    """An address operand without its coordinates."""
    return bind.address(type(operand)(operand.base, operand.offset), "generic")


def map_at(m, address: int, ins, block: int, thread: int) -> Mapped:
    """The tensor map whose 128 bytes are at a generic address."""
    buffer = m.launch.space.find(address)
    if address % 64:
        text = f"a tensor map at {address:#x}: it must stand at a multiple of 64 bytes"
        m.fail(Misaligned, text, ins, block, thread, address=address)
    number = None
    if buffer is not None and address + boxes.BYTES <= buffer.end:
        start = address - buffer.start
        number = boxes.number_of(buffer.bytes[start : start + boxes.BYTES].tobytes())
    if number is None or number >= len(m.launch.tensor_maps):
        text = (
            f"there is no tensor map at {address:#x}; pass an emulator.TensorMap for a parameter "
            "of 128 bytes (const __grid_constant__ CUtensorMap) and take that parameter's address"
        )
        m.fail(ExecutionError, text, ins, block, thread, address=address)
    found = m.launch.tensor_maps[number]
    if found.map.interleave:
        text = (
            f"a tensor map with interleave {found.map.interleave}: this machine does not model it"
        )
        m.fail(ExecutionError, text, ins, block, thread)
    return found


def _maps(m, rows: _Rows, address: np.ndarray, rank: int, ins) -> list[Mapped]:
    known, found = {}, []
    for at, block, thread in zip(
        address.tolist(), rows.block.tolist(), rows.thread.tolist(), strict=True
    ):
        if at not in known:
            known[at] = one = map_at(m, at, ins, block, thread)
            if one.rank != rank:
                text = f"a copy of {rank} dimensions by a tensor map of {one.rank}"
                m.fail(ExecutionError, text, ins, block, thread)
        found.append(known[at])
    return found


def _shared_rows(m, rows: _Rows, get, ins, what: str, unit: int) -> tuple[np.ndarray, np.ndarray]:
    """(offset, owner) of each row's address in shared memory, (R,) each."""
    where = rows.of(get(m))
    where = np.where(where >= SHARED_WINDOW, where - SHARED_WINDOW, where)
    rank, offset = where >> RANK_BITS, where & (REMOTE - 1)
    own = rows.block
    owner = np.where(rank > 0, own // m.cluster * m.cluster + rank - 1, own)
    bad = np.flatnonzero((rank < 0) | (rank > m.cluster) | (offset % unit != 0))
    if len(bad):
        at = int(bad[0])
        place = {"block": int(rows.block[at]), "thread": int(rows.thread[at])}
        value = int(offset[at])
        if offset[at] % unit:
            text = f"{what} at byte {value} of shared memory, which is not a multiple of {unit}"
            m.fail(Misaligned, text, ins, **place, address=value)
        m.fail(OutOfBounds, f"{what} is not in the cluster's shared memory", ins, **place)
    return offset, owner


def _check_inside(m, rows: _Rows, offset: np.ndarray, size: int, ins, what: str) -> None:
    bad = np.flatnonzero(offset + size > m.shared.size)
    if len(bad):
        at = int(bad[0])
        text = f"{what}: {size} bytes at byte {int(offset[at])}; shared memory has {m.shared.size} bytes here"
        block, thread = int(rows.block[at]), int(rows.thread[at])
        m.fail(OutOfBounds, text, ins, block, thread, address=int(offset[at]))


def _sizes(m, rows: _Rows, get, ins) -> np.ndarray:
    size = rows.of(get(m))
    bad = np.flatnonzero((size % 16 != 0) | (size < 0))
    if len(bad):
        at = int(bad[0])
        text = f"a bulk copy of {int(size[at])} bytes: a multiple of 16"
        m.fail(ExecutionError, text, ins, int(rows.block[at]), int(rows.thread[at]))
    return size


def _global_bytes(m, rows: _Rows, row: int, address: int, size: int, ins, what: str) -> np.ndarray:
    """A view of `size` bytes of global memory."""
    block, thread = int(rows.block[row]), int(rows.thread[row])
    if address % 16:
        text = f"{what} at address {address:#x}, which is not a multiple of 16"
        m.fail(Misaligned, text, ins, block, thread, address=address)
    buffer = m.launch.space.find(address)
    if buffer is None or address + size > buffer.end:
        text = f"{what} {size} bytes at address {address:#x}: {m.launch.space.describe(address + size - 1)}"
        m.fail(OutOfBounds, text, ins, block, thread, address=address)
    return buffer.bytes[address - buffer.start : address - buffer.start + size]


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


def _check_first(
    m, mapped: Mapped, first: tuple[int, ...], ins, block: int, thread: int, load: bool
):
    """What an H200 faults on (tests/data/README.md): a start within 16 bytes, a store that starts below 0."""
    if first[-1] * mapped.map.itemsize % boxes.CHUNK:
        text = (
            f"a tensor copy starts at element {first[-1]} of {mapped.map.itemsize} bytes: the first "
            f"coordinate must be at a multiple of {boxes.CHUNK} bytes"
        )
        m.fail(Misaligned, text, ins, block, thread)
    if not load and min(first) < 0:
        text = f"a tensor copy into global memory starts at {tuple(reversed(first))}, below 0"
        m.fail(OutOfBounds, text, ins, block, thread)


# --- Loads ------------------------------------------------------------------------------------------


def _load(ins, bind):
    """Into shared memory, from global memory or from the block's own; completes on an mbarrier."""
    spaces = [part for part in ins.parts if part.split("::")[0] in ("shared", "global")]
    source, operands = spaces[1], list(ins.operands)
    target = bind.address(operands.pop(0), "shared")
    tensor, origin = "tensor" in ins, operands.pop(0)
    if tensor:
        _dimensions(ins, bind, origin)
        coordinates, map_of = _coordinates(origin, bind), _plain(origin, bind)
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
    unit = 128 if tensor else 16
    kind = "multicast" if ranks_of else "load"

    def step(m, mask):
        rows = _Rows(m, mask)
        offset, owner = _shared_rows(m, rows, target, ins, "the destination", unit)
        barrier, barrier_owner = _shared_rows(m, rows, barrier_of, ins, "the mbarrier", 8)
        if (owner != barrier_owner).any():
            at = int((owner != barrier_owner).argmax())
            text = "the destination and the mbarrier of a copy must be in the same block"
            m.fail(ExecutionError, text, ins, int(rows.block[at]), int(rows.thread[at]))
        if tensor:
            pieces = _boxes(m, rows, map_of, coordinates, offset, kind, ins)
        else:
            pieces = _runs(m, rows, from_of, size_of, source, offset, kind, ins)
        ranks = rows.of(ranks_of(m)) if ranks_of else None
        by_shape: dict = {}
        for i, (data, swizzle) in enumerate(pieces):
            targets = [int(owner[i])]
            if ranks is not None:
                targets = _reached(m, rows, i, int(ranks[i]), ins)
            by_shape.setdefault((len(data), swizzle), []).extend((i, t, data) for t in targets)
        for (size, swizzle), members in by_shape.items():
            if size:
                _issue(m, ins, rows, members, offset, barrier, size, swizzle, combine)
        m.progress()

    return step


def _boxes(m, rows: _Rows, map_of, coordinates, offset, kind: str, ins) -> list:
    first = coordinates(m, rows)
    found = []
    for i, mapped in enumerate(_maps(m, rows, rows.of(map_of(m)), first.shape[1], ins)):
        at = tuple(first[i].tolist())
        _check_first(m, mapped, at, ins, int(rows.block[i]), int(rows.thread[i]), True)
        data = boxes.gather(mapped, at)
        _count(m, ins, boxes.rows_of(mapped, at, int(offset[i])), kind)
        found.append((data, mapped.map.swizzle))
    return found


def _runs(m, rows: _Rows, from_of, size_of, source: str, to, kind: str, ins) -> list:
    size = _sizes(m, rows, size_of, ins)
    found = []
    if source.startswith("shared"):
        offset, owner = _shared_rows(m, rows, from_of, ins, "the source", 16)
        for i, count in enumerate(size.tolist()):
            _check_inside(m, rows, offset[i : i + 1], count, ins, "the source")
            start = int(owner[i]) * m.shared.stride + int(offset[i])
            found.append((m.shared.buffer.bytes[start : start + count].copy(), None))
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
        at = int(address[i])
        found.append((_global_bytes(m, rows, i, at, count, ins, "a bulk copy reads").copy(), None))
        _count(m, ins, _one_row(int(to[i]), at, count), kind)
    return found


def _reached(m, rows: _Rows, i: int, ranks: int, ins) -> list[int]:
    """The blocks of the chunk that a multicast reaches."""
    base = int(rows.block[i]) // m.cluster * m.cluster
    bits = [rank for rank in range(16) if ranks >> rank & 1]
    if not bits or bits[-1] >= m.cluster:
        text = f"a multicast to blocks {bits} of a cluster of {m.cluster}"
        m.fail(ExecutionError, text, ins, int(rows.block[i]), int(rows.thread[i]))
    return [base + rank for rank in bits]


def _issue(m, ins, rows, members, offset, barrier, size: int, swizzle, combine) -> None:
    row = np.array([i for i, _, _ in members])
    block = np.array([target for _, target, _ in members])
    _check_inside(m, rows, offset[row], size, ins, "the destination")
    chunks = np.stack([boxes.chunks(int(at), size, swizzle or 0) for at in offset[row].tolist()])
    data = np.stack([data for _, _, data in members]).view(CHUNK)
    whole = chunks + (block * m.shared.stride >> 4)[:, None]
    ticket = 0
    if m.sanitizer is not None:
        ticket = m.sanitizer.bulk_issue(
            ins, block, whole, rows.block[row], rows.thread[row], barrier[row], swizzle,
            reduces=combine is not None,
        )  # fmt: skip
    left = np.ones(len(row), bool)
    load = Load(ins, block, barrier[row], whole, data, size, left, ticket, combine)
    loads(m).append(load)


# --- Stores -----------------------------------------------------------------------------------------


def _store(ins, bind):
    """From shared to global memory, or added to what is there; belongs to a bulk group."""
    operands = list(ins.operands)
    target, tensor = operands.pop(0), "tensor" in ins
    if tensor:
        _dimensions(ins, bind, target)
        coordinates, map_of = _coordinates(target, bind), _plain(target, bind)
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
        rows = _Rows(m, mask)
        found = stores(m)
        offset, owner = _shared_rows(m, rows, source, ins, "the source", 128 if tensor else 16)
        if tensor:
            first = coordinates(m, rows)
            maps = _maps(m, rows, rows.of(map_of(m)), first.shape[1], ins)
        else:
            size, address = _sizes(m, rows, size_of, ins), rows.of(to_of(m))
            masks = rows.of(bytes_of(m)) if bytes_of else None
        for i in range(len(rows)):
            if tensor:
                mapped, at = maps[i], tuple(first[i].tolist())
                count, swizzle = mapped.map.box_bytes, mapped.map.swizzle
                how = of_tensor(m, mapped.map.format, ins) if of_tensor else None
                _check_first(m, mapped, at, ins, int(rows.block[i]), int(rows.thread[i]), False)
                write = _box_writer(mapped, at, how)
                _count(m, ins, boxes.rows_of(mapped, at, int(offset[i])), "store")
            else:
                count, swizzle, at = int(size[i]), 0, int(address[i])
                view = _global_bytes(m, rows, i, at, count, ins, "a bulk copy writes")
                write = _run_writer(view, combine, None if masks is None else int(masks[i]))
                _count(m, ins, _one_row(int(offset[i]), at, count), "store")
            _check_inside(m, rows, offset[i : i + 1], count, ins, "the source")
            block, thread = int(rows.block[i]), int(rows.thread[i])
            chunks = boxes.chunks(int(offset[i]), count, swizzle)
            whole = chunks + (int(owner[i]) * m.shared.stride >> 4)
            ticket = 0
            if m.sanitizer is not None and count:
                ticket = m.sanitizer.bulk_read(ins, int(owner[i]), block, thread, whole, swizzle)
            group = int(found.commits[block, thread])
            found.pending.append(Store(ins, block, thread, group, whole, write, ticket))

    return step


def _box_writer(mapped: Mapped, at: tuple[int, ...], combine):
    return lambda data: boxes.scatter(mapped, at, data, combine)


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
        _dimensions(ins, bind, origin)
        coordinates, map_of = _coordinates(origin, bind), _plain(origin, bind)

        def of_tensor(m, mask):
            rows = _Rows(m, mask)
            first = coordinates(m, rows)
            for i, mapped in enumerate(_maps(m, rows, rows.of(map_of(m)), first.shape[1], ins)):
                at = tuple(first[i].tolist())
                _check_first(m, mapped, at, ins, int(rows.block[i]), int(rows.thread[i]), True)

        return of_tensor
    from_of, size_of = bind.address(origin, "global"), bind.integer(operands.pop(0), "u32")

    def step(m, mask):
        rows = _Rows(m, mask)
        address, size = rows.of(from_of(m)), _sizes(m, rows, size_of, ins)
        for i, (at, count) in enumerate(zip(address.tolist(), size.tolist(), strict=True)):
            _global_bytes(m, rows, i, at, count, ins, "a bulk prefetch reads")

    return step


def prefetch_map(ins, bind):
    """prefetch.tensormap: there must be a map."""
    get = bind.address(ins.operands[0], "generic")

    def step(m, mask):
        rows = _Rows(m, mask)
        for at in np.unique(rows.of(get(m))).tolist():
            map_at(m, at, ins, int(rows.block[0]), int(rows.thread[0]))

    return step


_TENSOR = "tensor! 1d|2d|3d|4d|5d! tile"
_BYTES = "mbarrier::complete_tx::bytes!"
_INTO_SHARED = f"shared::cluster|shared::cta! global! {_BYTES} multicast::cluster L2::cache_hint"
_OUT = "global! shared::cta! bulk_group! L2::cache_hint"
_OPS = "add|min|max|inc|dec|and|or|xor!"
_OF_MEMORY = "f16|bf16|b32|u32|s32|b64|u64|s64|f32|f64!"

OPCODES = {
    "cp": {
        f"async! bulk! {_INTO_SHARED}": Row(_load, (4, 5, 6)),
        f"async! bulk! shared::cluster! shared::cta! {_BYTES}": Row(_load, (4,)),
        f"async! bulk! {_OUT} cp_mask": Row(_store, (3, 4, 5)),
        "async! bulk! prefetch! L2! global! L2::cache_hint": Row(_prefetch, (2, 3)),
        "async! bulk! commit_group!": Row(_commit_group, (0,)),
        "async! bulk! wait_group! read": Row(_wait_group, (1,)),
        f"async! bulk! {_TENSOR} {_INTO_SHARED}": Row(_load, (3, 4, 5)),
        f"async! bulk! {_TENSOR} {_OUT}": Row(_store, (2, 3)),
        f"async! bulk! prefetch! {_TENSOR} L2! global! L2::cache_hint": Row(_prefetch, (1, 2)),
        f"reduce! async! bulk! shared::cluster! shared::cta! {_BYTES} {_OPS} {_OF_MEMORY}": Row(
            _load, (4,)
        ),
        f"reduce! async! bulk! {_OUT} {_OPS} noftz {_OF_MEMORY}": Row(_store, (3, 4)),
        f"reduce! async! bulk! {_TENSOR} {_OUT} {_OPS}": Row(_store, (2, 3)),
    },
    "prefetch": {"param tensormap!": Row(prefetch_map, (1,))},
}
