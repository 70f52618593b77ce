"""tcgen05.mma, .cp and .shift: what a tensor core does on its own (PTX ISA 9.7.16.8 to 9.7.16.10).

One thread issues them for its block or, with cta_group::2, for a pair of blocks: each holds its half of A's rows, of
B's columns, and of D. When they are done: `machine.tensor_memory`.
"""

from __future__ import annotations

import numpy as np

from emulator.errors import ExecutionError, OutOfBounds
from emulator.machine.tensor_memory import UNWRITTEN, Operation, tensor_memory
from emulator.numbers import block_scaled, tcgen05, warpgroup
from emulator.numbers.tensor_sums import product
from emulator.ops.bulk_loads import CHUNK
from emulator.ops.bulk_operands import Issuers
from emulator.ops.tcgen05 import is_pair
from emulator.text.program import Address, Imm, Vector
from emulator.text.rows import Row

# kind, what follows it -> scales in each row of k elements
_SCALES = {
    ("mxf8f6f4", ""): 1, ("mxf8f6f4", "scale_vec::1X"): 1, ("mxf8f6f4", "block32"): 1,
    ("mxf4", ""): 2, ("mxf4", "scale_vec::2X"): 2, ("mxf4", "block32"): 2,
    ("mxf4nvf4", "scale_vec::2X"): 2, ("mxf4nvf4", "block32"): 2,
    ("mxf4nvf4", "scale_vec::4X"): 4, ("mxf4nvf4", "block16"): 4,
}  # fmt: skip


def _fields(ins, bind):
    """The operands by what they are; refuses what is not modelled."""
    kind = next(part for part in ins.parts if part.startswith("kind::")).removeprefix("kind::")
    sized = next((p for p in ins.parts if p.startswith(("scale_vec", "block1", "block3"))), "")
    scales = 0
    if kind in tcgen05.SCALED:
        scales = _SCALES.get((kind, sized))
        if scales is None or "block_scale" not in ins:
            raise bind.unsupported(
                f"kind::{kind} goes with .block_scale and the size of its blocks"
            )
    elif "block_scale" in ins or sized:
        raise bind.unsupported(f"kind::{kind} has no block scales")
    operands = list(ins.operands)
    d, a, b, idesc = operands[:4]
    rest = operands[4:]
    scale_at = [rest.pop(0), rest.pop(0)] if scales else []
    lanes = rest.pop(0) if rest and isinstance(rest[0], Vector) else None
    if not rest:
        raise bind.error("enable-input-d, a predicate, is missing")
    enable = rest.pop(0)
    if rest:
        shift = rest[0]
        if not isinstance(shift, Imm) or shift.value:
            raise bind.unsupported("scale-input-d other than 0")
    if not isinstance(d, Address) or any(not isinstance(x, Address) for x in scale_at):
        raise bind.error("D and the scales are addresses in brackets")
    wanted = 8 if is_pair(ins) else 4
    if lanes is not None and len(lanes.items) != wanted:
        raise bind.error(f"disable-output-lane is a vector of {wanted} registers")
    return kind, scales, d, a, b, idesc, scale_at, lanes, enable


def _mma(ins, bind):
    kind, scales, d, a, b, idesc, scale_at, lanes, enable = _fields(ins, bind)
    pair, a_in_tensor = is_pair(ins), isinstance(a, Address)
    d_of, b_of = bind.address(d, "tensor"), bind.integer(b, "u64")
    a_of = bind.address(a, "tensor") if a_in_tensor else bind.integer(a, "u64")
    idesc_of, enable_of = bind.integer(idesc, "u32"), bind.predicate(enable)
    scale_of = [bind.address(one, "tensor") for one in scale_at]
    masks_of = [bind.integer(one, "u32") for one in lanes.items] if lanes is not None else []

    def step(m, mask):
        rows, memory = Issuers(m, mask), tensor_memory(m)
        memory.check_group(ins, pair)
        enabled = np.broadcast_to(np.atleast_2d(enable_of(m)), (m.B, m.T))
        values = [rows.of(get(m)) for get in (d_of, a_of, b_of, idesc_of, *scale_of)]
        masks = [rows.of(get(m)) for get in masks_of]
        for i, block, thread in rows:
            where = Where(m, ins, block, thread)
            d_at, a_at, b_at, bits, *scale = (int(value[i]) for value in values)
            shape = where.read(
                "the instruction descriptor", tcgen05.shape_of, bits & 0xFFFFFFFF, kind, pair
            )
            disabled = None
            if masks:
                disabled = [int(value[i]) & 0xFFFFFFFF for value in masks]
            one = _Product(
                where, shape, d_at & 0xFFFFFFFF, a_at, b_at & (1 << 64) - 1, a_in_tensor,
                bool(enabled[block, thread]), scales, [x & 0xFFFFFFFF for x in scale], disabled,
            )  # fmt: skip
            one.issue(memory)

    return step


class Where:
    """The thread that issues, and the blocks that take part: its own, or its pair, the even one first."""

    def __init__(self, m, ins, block: int, thread: int):
        self.m, self.ins, self.block, self.thread = m, ins, block, thread
        first = block - block % m.cluster % 2
        self.blocks = [first, first + 1] if is_pair(ins) else [block]

    def fail(self, text: str, error=ExecutionError, **more):
        self.m.fail(error, text, self.ins, self.block, self.thread, **more)

    def read(self, what: str, function, *given):
        """function(*given), whose ValueError is told as one of `what`."""
        try:
            return function(*given)
        except ValueError as problem:
            self.fail(f"{what} ({given[0]:#x}): {problem}")

    def chunks(self, name: str, bits: int, rows: int, mn_major: int, k: int, along_k: int = 2):
        """(chunk numbers in a block, swizzle) of a matrix in shared memory."""
        m, tables = self.m, tensor_memory(self.m).tables
        key = (bits, rows, mn_major, k, along_k)
        known = tables.get(key)
        if known is None:
            found = self.read(f"the descriptor of {name}", tcgen05.descriptor, bits)
            place = warpgroup.chunks(found, rows, mn_major, k, along_k)
            if place.max() + 16 > m.shared.size:
                self.fail(
                    f"the descriptor of {name} reaches byte {int(place.max()) + 15} (start {found.start}, leading "
                    f"{found.leading}, stride {found.stride} bytes, swizzle {found.swizzle}); shared memory has "
                    f"{m.shared.size} bytes here",
                    OutOfBounds,
                    address=int(place.max()),
                )
            known = tables[key] = (place >> 4, found.swizzle)
        return known


class _Product:
    """One tcgen05.mma, from its issue to its end."""

    def __init__(self, where, shape, d, a, b, a_in_tensor, adds, scales, scale_at, disabled):
        self.where, self.shape, self.adds, self.scales = where, shape, adds, scales
        self.lane, self.column = d >> 16, d & 0xFFFF
        self.scale_at, self.disabled = scale_at, disabled
        bases = (0, 16) if shape.rows == 64 and not shape.pair else (0,)
        if self.lane not in bases:
            where.fail(
                f"D at lane {self.lane} of tensor memory; {shape.rows} rows begin at lane "
                f"{' or '.join(map(str, bases))}"
            )
        self.a_column = None
        self.reads: list[tuple[np.ndarray, int]] = []
        if a_in_tensor:
            self._a_in_tensor(a & 0xFFFFFFFF)
        else:
            self.a = self._operand(
                "A", a & (1 << 64) - 1, shape.rows, shape.a_mn_major, shape.a_type
            )
        self.b = self._operand("B", b, shape.b_rows, shape.b_mn_major, shape.b_type)

    def _operand(self, name, bits, rows, mn_major, type):
        per = 128 // tcgen05.BITS[type] if mn_major else 0
        if mn_major and rows % per:
            self.where.fail(f"{name} has {rows} rows; MN-major they come by {per}")
        chunks, swizzle = self.where.chunks(name, bits, rows, per, self.shape.k)
        self.reads.append((chunks, swizzle))
        return chunks

    def _a_in_tensor(self, address: int) -> None:
        shape = self.shape
        if shape.a_mn_major:
            self.where.fail("A in tensor memory is K-major")
        if shape.padded and tcgen05.BITS[shape.a_type] < 8:
            self.where.fail(
                f"A of {shape.a_type} in tensor memory is not modelled for kind::{shape.kind}"
            )
        if address >> 16 != self.lane:
            self.where.fail(
                f"A at lane {address >> 16} of tensor memory, D at lane {self.lane}: one lane for both"
            )
        self.a_column = address & 0xFFFF

    # --- Issue ---

    def issue(self, memory) -> None:
        where, shape, m = self.where, self.shape, self.where.m
        regions = []
        d_halves = tcgen05.lane_halves(shape, self.lane)[:, None]
        for block in where.blocks:
            columns = np.arange(self.column, self.column + shape.columns)[None]
            memory.check_columns(
                where.ins,
                block,
                where.thread,
                self.column,
                shape.columns,
                "the D of a tcgen05.mma has",
            )
            if self.adds:
                regions.append((block, d_halves, columns, False))
            regions.append((block, d_halves, columns, True))
            if self.a_column is not None:
                memory.check_columns(
                    where.ins, block, where.thread, self.a_column, 8, "the A of a tcgen05.mma has"
                )
                columns = np.arange(self.a_column, self.a_column + 8)[None]
                regions.append((block, d_halves, columns, False))
            for at, count in zip(self.scale_at, (shape.rows, shape.n), strict=False):
                first, wide = at & 0xFFFF, -(-count // 32)
                memory.check_columns(
                    where.ins, block, where.thread, first, wide, "the scales of a tcgen05.mma have"
                )
                columns = np.arange(first, first + wide)[None]
                regions.append((block, np.arange(8)[:, None], columns, False))
        tickets, pieces = (0, 0), None
        stride = m.shared.stride >> 4
        if m.sanitizer is not None:
            parts = [
                (chunks.reshape(-1) + block * stride, swizzle)
                for block in where.blocks
                for chunks, swizzle in self.reads
            ]
            pieces = np.concatenate([chunks for chunks, _ in parts])
            swizzles = np.concatenate([np.full(len(c), s, np.int16) for c, s in parts])
            read = m.sanitizer.tensor_read(where.ins, where.block, where.thread, pieces, swizzles)
            tickets = read, memory.shadow.issue(where.ins, where.block, where.thread, regions)
        if m.counting:
            row = m.rows[where.ins.index]
            count = sum(chunks.size for chunks, _ in self.reads) * len(where.blocks)
            row.shared_wavefronts += count // 8
            row.shared_wavefronts_ideal += count // 8
            row.bytes += 16 * count

        def run():
            self.compute(memory)
            if m.sanitizer is not None:
                m.sanitizer.tensor_done(tickets[0], where.block, pieces)
                memory.shadow.done(tickets[1], where.block, regions)

        memory.issue(Operation(where.ins, where.block, where.thread, run))

    # --- What it does ---

    def compute(self, memory) -> None:
        shape, where = self.shape, self.where
        m = where.m
        shared = m.shared.buffer.view(CHUNK)
        stride = m.shared.stride >> 4
        parts = [
            tcgen05.matrix(
                shared[self.b + block * stride],
                shape.b_type,
                shape.b_rows,
                shape.b_mn_major,
                shape.padded,
            )
            for block in where.blocks
        ]
        b = np.concatenate(parts) if len(parts) > 1 else parts[0]
        b = _negated(b, shape.b_type, shape.negate_b)
        for number, block in enumerate(where.blocks):
            cells = memory.cells[block]
            if self.a_column is None:
                a = tcgen05.matrix(
                    shared[self.a + block * stride], shape.a_type, shape.rows, shape.a_mn_major,
                    shape.padded,
                )  # fmt: skip
            else:
                a = self._a_of(cells)
            a = _negated(a, shape.a_type, shape.negate_a)
            if self.adds:
                c = tcgen05.load_accumulators(cells, shape, self.lane, self.column)
            else:
                c = np.zeros((shape.rows, shape.n), np.uint32)
            d = self._multiply(cells, a, b, c)
            keep = None
            if self.disabled is not None:
                words = np.array(self.disabled[4 * number : 4 * number + 4], np.uint32)
                keep = (
                    words[np.arange(128) // 32] >> (np.arange(128) % 32).astype(np.uint32) & 1
                ) == 1
            tcgen05.store_accumulators(cells, shape, self.lane, self.column, d, keep)

    def _a_of(self, cells):
        shape = self.shape
        lanes = tcgen05.lanes_of_rows(shape.rows, shape.pair, self.lane)
        words = cells[lanes, self.a_column : self.a_column + 8]
        twice = shape.pair and shape.m == 128  # both halves of the lanes hold A
        if twice and (cells[lanes + 64, self.a_column : self.a_column + 8] != words).any():
            self.where.fail(
                "A in tensor memory, for 128 rows of a pair, must stand in lanes 64 to 127 once more"
            )
        data = np.ascontiguousarray(words).view(np.uint8)
        return tcgen05.row_elements(data, shape.a_type, shape.padded)

    def _multiply(self, cells, a, b, c):
        shape = self.shape
        if not self.scales:
            half = shape.d_type == "f16"
            c = (c & 0xFFFF).astype(np.uint16) if half else c
            found = product(
                a[None], b.T[None], np.ascontiguousarray(c)[None], shape.a_type, shape.b_type,
                shape.d_type, shape.d_type, kind="tcgen05", arch=100, satfinite=shape.satfinite,
            )[0]  # fmt: skip
            return found.astype(np.uint32)
        a_scale = self._scales_of(cells, "A", self.scale_at[0], shape.rows, shape.a_byte)
        b_scale = self._scales_of(cells, "B", self.scale_at[1], shape.n, shape.b_byte)
        return block_scaled.product(
            a, b, c, a_scale, b_scale, shape.a_type, shape.b_type, shape.scale_type
        )

    def _scales_of(self, cells, name: str, at: int, count: int, byte: int) -> np.ndarray:
        """(count, scales) codes: row r's stand in lane r % 32 of each 32 lanes, column r // 32 (PTX ISA 9.7.16.10.7)."""
        if byte + self.scales > 4 or byte % self.scales:
            self.where.fail(
                f"the scales of {name} begin at byte {byte} of their column; {self.scales} of them "
                f"begin at a multiple of {self.scales}"
            )
        columns = -(-count // 32)
        words = cells[:, at & 0xFFFF : (at & 0xFFFF) + columns].reshape(4, 32, columns)
        if (words != words[:1]).any():
            self.where.fail(
                f"the scales of {name} differ between the four quarters of tensor memory's lanes: each "
                "quarter needs all of them (tcgen05.cp.32x128b.warpx4 writes all four)"
            )
        bytes_ = np.ascontiguousarray(words[0].T).view(np.uint8).reshape(columns * 32, 4)
        return bytes_[:count, byte : byte + self.scales]


def _negated(bits: np.ndarray, type: str, negate: bool) -> np.ndarray:
    if not negate:
        return bits
    return bits ^ bits.dtype.type(1 << tcgen05.BITS[type] - 1)


# --- Copies -----------------------------------------------------------------------------------------


def _cp(ins, bind):
    shape = next(part for part in ins.parts if part in _CP_SHAPES)
    how = next((part for part in ins.parts if part.startswith("warpx")), "")
    if how not in _CP_SHAPES[shape]:
        raise bind.unsupported(f"{shape} goes with {' or '.join(_CP_SHAPES[shape]) or 'no .warpx'}")
    rows_, along, lanes = tcgen05.copy_lanes(shape, how)
    pair = is_pair(ins)
    to, from_ = bind.address(ins.operands[0], "tensor"), bind.integer(ins.operands[1], "u64")

    def step(m, mask):
        rows, memory = Issuers(m, mask), tensor_memory(m)
        memory.check_group(ins, pair)
        targets, sources = rows.of(to(m)), rows.of(from_(m))
        for i, block, thread in rows:
            where = Where(m, ins, block, thread)
            at = int(targets[i]) & 0xFFFFFFFF
            if at >> 16 and (rows_ != 4 or at >> 16 > 31):
                known = "lanes 0 to 31" if rows_ == 4 else "lane 0"
                where.fail(f"tcgen05.cp.{shape} to lane {at >> 16}; this machine has it to {known}")
            bits = int(sources[i]) & (1 << 64) - 1
            chunks, swizzle = where.chunks("the source", bits, rows_, 0, 0, along)
            _issue_copy(memory, where, at & 0xFFFF, chunks, swizzle, lanes + (at >> 16))

    return step


def _issue_copy(memory, where, column: int, chunks, swizzle: int, lanes) -> None:
    m, stride = where.m, where.m.shared.stride >> 4
    words = 4 * chunks.shape[1]
    regions = []
    for block in where.blocks:
        memory.check_columns(where.ins, block, where.thread, column, words, "a tcgen05.cp writes")
        halves = np.unique(lanes // 16)[:, None]
        regions.append((block, halves, np.arange(column, column + words)[None], True))
    tickets, pieces = (0, 0), None
    if m.sanitizer is not None:
        pieces = np.concatenate([chunks.reshape(-1) + block * stride for block in where.blocks])
        swizzles = np.full(len(pieces), swizzle, np.int16)
        read = m.sanitizer.tensor_read(where.ins, where.block, where.thread, pieces, swizzles)
        tickets = read, memory.shadow.issue(where.ins, where.block, where.thread, regions)
    if m.counting:
        row, count = m.rows[where.ins.index], chunks.size * len(where.blocks)
        row.shared_wavefronts += count // 8
        row.shared_wavefronts_ideal += count // 8
        row.bytes += 16 * count

    def run():
        shared = m.shared.buffer.view(CHUNK)
        for block in where.blocks:
            data = np.ascontiguousarray(shared[chunks + block * stride]).view(np.uint32)
            for copy in lanes:
                memory.cells[block][copy, column : column + words] = data.reshape(len(copy), words)
        if m.sanitizer is not None:
            m.sanitizer.tensor_done(tickets[0], where.block, pieces)
            memory.shadow.done(tickets[1], where.block, regions)

    memory.issue(Operation(where.ins, where.block, where.thread, run))


# --- Shifts -----------------------------------------------------------------------------------------


def _shift(ins, bind):
    """Row r of 32 takes what row r + 1 has, 32 bytes of it, and the last row stays.

    PTX ISA 9.7.16.9.3 (9.7.16.2.3: 31 rows of 256 bits): "across all the rows, except the last, by one row", from a lane
    that is a multiple of 32. Which way is down says NVIDIA's CuTe DSL, of the same shift in tcgen05.mma.ashift
    (`primitives.tcgen05_mma`): shifted[r] = A[r + 1] unless r % 32 is 31. Whether the other quarters of the lanes
    move along, neither says: a shift next to anything in them is refused.
    """
    pair, at_of = is_pair(ins), bind.address(ins.operands[0], "tensor")

    def step(m, mask):
        rows, memory = Issuers(m, mask), tensor_memory(m)
        memory.check_group(ins, pair)
        targets = rows.of(at_of(m))
        for i, block, thread in rows:
            where = Where(m, ins, block, thread)
            lane, column = int(targets[i]) >> 16 & 0xFFFF, int(targets[i]) & 0xFFFF
            if lane % 32 or lane >= tcgen05.LANES:
                where.fail(f"tcgen05.shift at lane {lane}: a multiple of 32 below {tcgen05.LANES}")
            _issue_shift(memory, where, lane, column)

    return step


def _issue_shift(memory, where, lane: int, column: int) -> None:
    wide = tcgen05.ROW_BYTES // 4
    halves, regions = np.arange(lane // 16, lane // 16 + 2)[:, None], []
    for block in where.blocks:
        memory.check_columns(where.ins, block, where.thread, column, wide, "a tcgen05.shift moves")
        across = np.arange(column, column + wide)[None]
        regions += [(block, halves, across, False), (block, halves, across, True)]
    ticket = 0
    if memory.shadow is not None:
        ticket = memory.shadow.issue(where.ins, where.block, where.thread, regions)

    def run():
        for block in where.blocks:
            cells = memory.cells[block][:, column : column + wide]
            if (np.delete(cells, slice(lane, lane + 32), axis=0) != UNWRITTEN).any():
                where.fail(
                    f"tcgen05.shift of lanes {lane} to {lane + 31}, columns {column} to {column + wide - 1}: other lanes of "
                    "these columns hold data, and whether they are shifted too, the PTX ISA does not say"
                )
            cells[lane : lane + 31] = cells[lane + 1 : lane + 32].copy()
        if memory.shadow is not None:
            memory.shadow.done(ticket, where.block, regions)

    memory.issue(Operation(where.ins, where.block, where.thread, run))


_CP_SHAPES = {
    "128x256b": ("",), "128x128b": ("",), "4x256b": ("",), "32x128b": ("warpx4",),
    "64x128b": ("warpx2::02_13", "warpx2::01_23"),
}  # fmt: skip
_KINDS = "|".join(f"kind::{kind}" for kind in tcgen05.KINDS)
_SIZES = "scale_vec::1X|scale_vec::2X|scale_vec::4X|block16|block32"
_GROUP = "cta_group::1|cta_group::2!"
# Hints: what the tensor core is to do with A once it has read it, which changes no result.
_COLLECTOR = "|".join(f"collector::a::{word}" for word in ("discard", "fill", "use", "lastuse"))

OPCODES = {
    "tcgen05": {
        f"mma! {_GROUP} {_KINDS}! block_scale {_SIZES} {_COLLECTOR}": Row(
            _mma, (5, 6, 7), types="-", spread="none"
        ),
        f"cp! {_GROUP} {'|'.join(_CP_SHAPES)}! warpx4|warpx2::02_13|warpx2::01_23": Row(
            _cp, (2,), types="-", spread="none"
        ),
        f"shift! {_GROUP} down!": Row(_shift, (1,), types="-", spread="none"),
    }
}
