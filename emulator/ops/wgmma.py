"""wgmma: matrix products of a warpgroup, four warps (PTX ISA 9.7.15).

`machine.warpgroup` says when results come into registers, `numbers.warpgroup` where operands lie, and
`numbers.tensor_sums` how they are added.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from emulator.errors import Accessed, BarrierDivergence, ExecutionError, OutOfBounds
from emulator.machine.values import raw
from emulator.machine.warpgroup import Product, flight
from emulator.numbers import warpgroup
from emulator.numbers.tensor_sums import product
from emulator.ops.bulk_loads import CHUNK
from emulator.text.program import Vector
from emulator.text.rows import Row

_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
_FP8, _INTEGER = ("e4m3", "e5m2"), ("s8", "u8")
# Operand types -> k, accumulator types (PTX ISA 9.7.15.2).
_KINDS = {
    **{(a, a): (16, accumulators) for a, accumulators in (("f16", ("f16", "f32")), ("bf16", ("f32",)))},
    ("tf32", "tf32"): (8, ("f32",)),
    **{(a, b): (32, ("f16", "f32")) for a in _FP8 for b in _FP8},
    **{(a, b): (32, ("s32",)) for a in _INTEGER for b in _INTEGER},
}  # fmt: skip
_INTEGER_N = {8, 16, 24, 32, *range(48, 257, 16)}


@dataclass(frozen=True)
class Form:
    """One wgmma.mma_async: D (64, n) = A (64, k) @ B (k, n) + D."""

    n: int
    k: int
    d_type: str
    a_type: str
    b_type: str
    a_m_major: bool
    b_n_major: bool
    negate_a: bool
    negate_b: bool
    satfinite: bool

    @property
    def half(self) -> bool:
        return self.d_type == "f16"

    @property
    def registers(self) -> int:
        return self.n // 4 if self.half else self.n // 2


def _groups(m, mask, ins) -> np.ndarray:
    """(G, 4): the warps, flat, of the warpgroups that execute; all 128 lanes of each must be there."""
    key = "warpgroups"
    known = m.masks.get(key)
    if known is not None and known[0] is mask:
        return known[1]
    lanes = m.lanes_of(mask).reshape(m.W, 32)
    per = m.T // 32
    warps = lanes.any(axis=1).reshape(m.B, per)
    whole = lanes.all(axis=1).reshape(m.B, per)
    found = []
    for block, first in zip(*np.nonzero(_by_four(warps)), strict=True):
        members = whole[block, 4 * first : 4 * first + 4]
        if len(members) < 4 or not members.all():
            here = int(lanes.reshape(m.B, -1, 32)[block, 4 * first : 4 * first + 4].sum())
            text = f"{ins.opcode.split('.sync')[0]} is for all 128 threads of a warpgroup together, and only {here} came to it"
            m.fail(
                BarrierDivergence, text, ins, int(block), int(128 * first), reason="whole warpgroup"
            )
        found.append(block * per + 4 * first + np.arange(4))
    result = np.array(found, np.int64).reshape(-1, 4)
    m.masks[key] = (mask, result)
    return result


def _by_four(warps: np.ndarray) -> np.ndarray:
    blocks, per = warps.shape
    padded = np.zeros((blocks, -(-per // 4) * 4), bool)
    padded[:, :per] = warps
    return padded.reshape(blocks, -1, 4).any(axis=2)


def warps_of_groups(m, mask, ins) -> np.ndarray:
    """(W,) bool: the warps of the executing warpgroups."""
    found = np.zeros(m.W, bool)
    found[_groups(m, mask, ins)] = True
    return found


# --- Fence, commit, wait ----------------------------------------------------------------------------


def _fence(ins, bind):
    def step(m, mask):
        flight(m).fence(warps_of_groups(m, mask, ins))

    return step


def _commit(ins, bind):
    def step(m, mask):
        flight(m).commits += warps_of_groups(m, mask, ins)

    return step


def _wait(ins, bind):
    left = bind.constant(ins.operands[0], 4)

    def step(m, mask):
        for done in flight(m).wait(warps_of_groups(m, mask, ins), left):
            if m.sanitizer is not None and done.ticket:
                block, group = _place(m, done.warps)
                m.sanitizer.wgmma_done(done.ticket, block, group, done.details["read"])

    return step


def _place(m, warps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(block, warpgroup in the block) of (G, 4) warps."""
    per = m.T // 32
    return warps[:, 0] // per, warps[:, 0] % per // 4


# --- Products ---------------------------------------------------------------------------------------


def _form(ins, bind) -> Form:
    found = next((_SHAPE.match(part) for part in ins.parts if _SHAPE.match(part)), None)
    at = next(i for i, part in enumerate(ins.parts) if _SHAPE.match(part))
    types = [part for part in ins.parts[at + 1 :] if part != "satfinite"]
    if found is None or len(types) != 3:
        raise bind.unsupported("its shape or types")
    n, k = (int(x) for x in found.groups())
    d_type, a_type, b_type = types
    kind = _KINDS.get((a_type, b_type))
    if kind is None or d_type not in kind[1]:
        raise bind.unsupported(f"no wgmma adds {a_type} times {b_type} to {d_type}")
    if k != kind[0]:
        raise bind.unsupported(f"k is {kind[0]} for {a_type} operands, not {k}")
    integer = a_type in _INTEGER
    if integer and n not in _INTEGER_N:
        raise bind.unsupported(f"n = {n} does not exist for integers")
    if "satfinite" in ins and not integer:
        raise bind.unsupported(".satfinite is for integers")
    immediates = [bind.constant(operand, 4) for operand in ins.operands[4:]]
    signed = [x - (1 << 32) if x >> 31 else x for x in immediates]
    in_registers = isinstance(ins.operands[1], Vector)
    turnable = a_type in ("f16", "bf16")
    expected = 0 if integer else 2 + (turnable and (1 if in_registers else 2))
    if len(signed) != expected:
        raise bind.error(f"{expected} immediates expected after scale-d, found {len(signed)}")
    scales, turns = signed[:2], signed[2:]
    if any(s not in (1, -1) for s in scales) or any(t not in (0, 1) for t in turns):
        raise bind.error("scale-a and scale-b are 1 or -1, trans-a and trans-b 0 or 1")
    return Form(
        n, k, d_type, a_type, b_type,
        bool(turns[0]) if len(turns) == 2 else False, bool(turns[-1]) if turns else False,
        scales[:1] == [-1], scales[1:] == [-1], "satfinite" in ins,
    )  # fmt: skip


def _mma(ins, bind):
    form = _form(ins, bind)
    d, a, b, scale = ins.operands[:4]
    if not isinstance(d, Vector) or len(d.items) != form.registers:
        raise bind.error(f"{form.registers} registers expected for D")
    slots = tuple(bind.names.slot(item) for item in d.items)
    if len(set(slots)) != len(slots):
        raise bind.error("D names a register twice")
    for item in d.items:
        bind.read(item)  # whether its value counts is scale-d's to say: `undefined` asks it
        bind.put(item)
    bind.partial |= bind.defs  # what it writes comes later
    fragment = None
    if isinstance(a, Vector):
        if len(a.items) != 4:
            raise bind.error("4 registers expected for A")
        fragment = [bind.array(item, np.uint32) for item in a.items]
        held = tuple(bind.names.slot(item) for item in a.items)
    else:
        a_of = bind.integer(a, "u64")
        held = ()
    b_of, scale_of = bind.integer(b, "u64"), bind.predicate(scale)
    bits = sum(1 << slot for slot in set(held))
    tables = {
        "unpack": lambda words: _State(form, words=words),
        "pack": lambda state: state.words(),
    }

    def step(m, mask):
        warps = _groups(m, mask, ins)
        if not len(warps):
            return
        if m.sanitizer is not None:
            m.sanitizer.warp_barrier(mask)
        found = flight(m)
        found.check_fence(ins, mask, warps, slots + held)
        details = dict(tables)
        read = []
        if fragment is None:
            where = _operand(m, warps, a_of(m), ins, 64, form.a_m_major, "A")
            details["a"] = where[0]
            read.append(where)
        else:
            parts = [
                np.broadcast_to(get(m), (m.B, m.T)).reshape(m.W, 32)[warps] for get in fragment
            ]
            details["fragment"] = np.stack(parts, axis=1)  # (G, 4 registers, 4 warps, 32)
        where = _operand(m, warps, b_of(m), ins, form.n, form.b_n_major, "B")
        details["b"] = where[0]
        read.append(where)
        details["scale"] = _uniform(m, warps, np.atleast_2d(scale_of(m)), ins, "scale-d").astype(
            bool
        )
        if m.counting:
            _count(m, ins, sum(chunks.size for chunks, _ in read))
        ticket = 0
        if m.sanitizer is not None:
            ticket = _watch(m, ins, warps, read, details)
        rows = warps[:, 0]
        found.start(
            Product(
                ins,
                rows,
                warps,
                slots,
                bits,
                found.commits[rows],
                _computed(m, form),
                details,
                ticket,
            )
        )

    return step


def _uniform(m, warps: np.ndarray, array: np.ndarray, ins, what: str) -> np.ndarray:
    """(G,): an operand that must be the same in all threads of a warpgroup."""
    if array.size == 1:
        return np.full(len(warps), array.reshape(-1)[0])
    lanes = np.broadcast_to(array, (m.B, m.T)).reshape(m.W, 32)[warps].reshape(len(warps), 128)
    other = (lanes != lanes[:, :1]).any(axis=1)
    if other.any():
        block, group = (int(x[other.argmax()]) for x in _place(m, warps))
        text = f"{what} of a wgmma differs between the threads of a warpgroup"
        m.fail(ExecutionError, text, ins, block, 128 * group)
    return lanes[:, 0]


def _operand(m, warps, value, ins, rows: int, mn_major: bool, name: str):
    """(chunk numbers (G, ...) in all shared memory, swizzles (G,)) of an operand in shared memory."""
    if type(value) is int:
        bits = np.full(len(warps), value, np.uint64)
    else:
        bits = _uniform(m, warps, raw(value, np.dtype(np.uint64)), ins, f"the descriptor of {name}")
    blocks, _ = _place(m, warps)
    tables = m.state("wgmma operands", dict)
    found, swizzles = [], []
    for i, one in enumerate(bits.tolist()):
        key = (one, rows, mn_major)
        known = tables.get(key)
        if known is None:
            known = tables[key] = _located(
                m, warpgroup.descriptor(one), rows, mn_major, ins, warps[i], name
            )
        chunks, swizzle = known
        found.append(chunks)
        swizzles.append(swizzle)
    start = blocks * m.shared.stride >> 4
    chunks = np.stack(found)
    return chunks + start.reshape(-1, *[1] * (chunks.ndim - 1)), np.array(swizzles)


def _located(m, descriptor, rows: int, mn_major: bool, ins, warps, name: str):
    block, group = divmod(int(warps[0]), m.T // 32)
    if descriptor.base_offset:
        text = f"the descriptor of {name} has a base offset, which this machine does not model"
        m.fail(ExecutionError, text, ins, block, 32 * group)
    place = warpgroup.chunks(descriptor, rows, 8 * mn_major)
    if place.max() + 16 > m.shared.size:
        text = (
            f"the descriptor of {name} reaches byte {int(place.max()) + 15} (start {descriptor.start}, "
            f"leading {descriptor.leading}, stride {descriptor.stride} bytes, swizzle "
            f"{descriptor.swizzle}); shared memory has {m.shared.size} bytes here"
        )
        accessed = Accessed("reads", 16, "shared memory", int(place.max()), m.shared.size)
        m.fail(
            OutOfBounds, text, ins, block, 32 * group, address=int(place.max()), accessed=accessed
        )
    return place >> 4, descriptor.swizzle


def _count(m, ins, chunks: int) -> None:
    """Operands are read 128 bytes per wavefront, A once for all four warps, B once. No layout that a
    descriptor can name has conflicts (measured: tests/data/README.md).
    """
    row, wavefronts = m.rows[ins.index], chunks // 8
    row.shared_wavefronts += wavefronts
    row.shared_wavefronts_ideal += wavefronts
    row.bytes += 16 * chunks


def _watch(m, ins, warps, read, details) -> int:
    """Tells the sanitizer what is read from now on."""
    block, group = _place(m, warps)
    pieces = np.concatenate([chunks.reshape(len(warps), -1) for chunks, _ in read], axis=1)
    swizzle = np.concatenate(
        [np.broadcast_to(s[:, None], (len(warps), chunks[0].size)) for chunks, s in read], axis=1
    )
    details["read"] = pieces
    return m.sanitizer.wgmma_read(ins, block, group, pieces, swizzle)


class _State:
    """Accumulators as registers or as matrices of bits (G, 64, n), whichever was made last."""

    def __init__(self, form: Form, words=None, matrix=None):
        self.form, self._words, self._matrix = form, words, matrix

    def matrix(self) -> np.ndarray:
        if self._matrix is None:
            self._matrix = warpgroup.accumulators(self._words, self.form.half)
        return self._matrix

    def words(self) -> np.ndarray:
        return warpgroup.registers(self._matrix, self.form.half)


def _computed(m, form: Form):
    """compute(product, state) -> state."""
    a_storage, b_storage = (np.dtype(warpgroup.STORAGE[t]) for t in (form.a_type, form.b_type))

    def compute(one: Product, state: _State) -> _State:
        shared = m.shared.buffer.view(CHUNK)
        details = one.details
        if "a" in details:
            a = warpgroup.matrix(shared[details["a"]], 64, form.a_m_major, a_storage)
        else:
            words = np.ascontiguousarray(details["fragment"].transpose(1, 0, 2, 3))
            a = warpgroup.fragment_of_a(words, a_storage)
        b = warpgroup.matrix(shared[details["b"]], form.n, form.b_n_major, b_storage)
        a, b = _negated(a, form.a_type, form.negate_a), _negated(b, form.b_type, form.negate_b)
        c = state.matrix()
        adds = details["scale"]
        if not adds.all():
            c = np.where(adds[:, None, None], c, c.dtype.type(0))
        b = b.swapaxes(1, 2)
        d = product(
            a, b, c, form.a_type, form.b_type, form.d_type, form.d_type,
            kind="wgmma", satfinite=form.satfinite,
        )  # fmt: skip
        return _State(form, matrix=d)

    return compute


def _negated(bits: np.ndarray, kind: str, negate: bool) -> np.ndarray:
    return bits ^ bits.dtype.type(1 << 8 * bits.itemsize - 1) if negate else bits


_SHAPES = "|".join(f"m64n{n}k{k}" for n in range(8, 257, 8) for k in (8, 16, 32))
_TYPES = "f16|f32|s32|bf16|tf32|e4m3|e5m2|s8|u8*!"


def _together(factory, *operands: int, spread: str = "none") -> Row:
    return Row(factory, operands, meets="warpgroup", types="-", spread=spread)


OPCODES = {
    "wgmma": {
        f"mma_async! sync! aligned! {_SHAPES}! satfinite {_TYPES}": _together(
            _mma, 4, 6, 7, 8, spread="warpgroup product"
        ),
        "fence! sync! aligned!": _together(_fence, 0),
        "commit_group! sync! aligned!": _together(_commit, 0),
        "wait_group! sync! aligned!": _together(_wait, 1),
    }
}
