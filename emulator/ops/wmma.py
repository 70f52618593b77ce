"""wmma: fragments loaded from and stored to memory, and their products (PTX ISA 9.7.14.4).

How memory traffic is counted. A `wmma.load` of f16 or bf16 operands from shared memory counts as the
`ldmatrix` instructions that ptxas makes of it on sm_75 and later; any other access as one access for
each run of a lane's elements that lie side by side, of up to 8 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.errors import ExecutionError
from emulator.machine.access import deliver, fetch, resolve, space_of, watch_global
from emulator.machine.values import Affine, Pattern, add
from emulator.numbers import fragments
from emulator.numbers.tensor import Product
from emulator.ops.forms import SHARED
from emulator.ops.matrices import load_matrices, meet, together
from emulator.ops.tensor import (
    OF_TYPES,
    SHAPES,
    Products,
    named_product,
    of_bits,
    shape_of,
    types_in,
)

_NARROW = {
    "s4": 8,
    "u4": 8,
    "b1": 32,
}  # elements of a 32-bit word, which is what is addressed of them


_STRIDES = "the stride of a wmma access differs between threads"


@dataclass(frozen=True)
class _Run:
    """Elements of a lane's fragment that lie side by side in memory: first element, how many."""

    element: int
    count: int


class _Tile:
    """A fragment and where its elements lie in memory, for one leading dimension.

    For each run, `deltas` gives the distance in bytes from the first run, the same for all lanes.
    """

    def __init__(self, fragment, layout: str, stride: int, threads: int):
        size = fragment.bits // 8
        rows, cols = fragment.rows, fragment.cols
        place = (rows * stride + cols if layout == "row" else cols * stride + rows) * size
        self.fragment, self.size = fragment, size
        self.unique = _unique(fragment)
        most = max(8 // size if size == 4 else 4 // size, 1)
        self.runs, at = [], 0
        while at < self.unique:
            count = 1
            while count < most and at + count < self.unique:
                if not (place[at + count] == place[at] + count * size).all():
                    break
                count += 1
            self.runs.append(_Run(at, count))
            at += count
        self.deltas = [self._delta(place[run.element] - place[0]) for run in self.runs]
        self.first = self._pattern(place[0], threads)
        along_cols = bool((cols[1] != cols[0]).any()) if len(cols) > 1 else True
        self.turned = along_cols != (layout == "row")
        self.matrices, self.matrix_deltas = self._rows(rows, cols, layout, stride, threads)

    @staticmethod
    def _delta(distances: np.ndarray) -> int:
        if (distances != distances[0]).any():
            raise ValueError("this fragment's runs differ from lane to lane")
        return int(distances[0])

    @staticmethod
    def _pattern(offsets: np.ndarray, threads: int) -> Affine:
        array = np.tile(offsets.astype(np.int64), threads // 32)[None]
        return Affine(Pattern(array, int(array.min()), int(array.max())))

    def _rows(self, rows, cols, layout, stride, threads):
        """Row addresses for `ldmatrix`, four matrices (registers) at a time: patterns and deltas."""
        if self.size != 2:
            return None, []
        top = rows[: self.unique : 2].min(axis=1)
        left = cols[: self.unique : 2].min(axis=1)
        i = np.arange(8)
        lines = (
            np.stack(
                [
                    (t + i) * stride + c if layout == "row" else (c + i) * stride + t
                    for t, c in zip(top, left, strict=True)
                ]
            )
            * self.size
        )
        count = min(len(lines), 4)
        groups = lines.reshape(-1, count * 8)
        offsets = np.resize(groups[0], 32)
        deltas = [self._delta(group - groups[0]) for group in groups]
        return self._pattern(offsets, threads), deltas


def _unique(fragment) -> int:
    """Elements before the fragment repeats itself."""
    return fragment.shape[0] * fragment.shape[1] // 32


def _fragment(ins, bind, which: str):
    """(fragment, element type, layout in memory) of a wmma.load or wmma.store."""
    m, n, k = shape_of(ins, bind)
    type = ins.parts[-1]
    layout = next((part for part in ins.parts if part in ("row", "col")), "")
    operands = {
        shape: operand for *shape, operand in fragments.WMMA_SHAPES for shape in [tuple(shape)]
    }
    if (m, n, k) not in operands or not layout:
        raise bind.unsupported()
    if which in "ab":
        if fragments.shape_key(m, n, k, type) not in fragments.WMMA_SHAPES:
            raise bind.unsupported()
        if type in _NARROW:
            if layout != ("row" if which == "a" else "col"):
                raise bind.unsupported("A is row-major and B column-major here")
            words = fragments.mma_a if which == "a" else fragments.mma_b
            return words(8, k // _NARROW[type], "tf32"), layout
        make = fragments.wmma_a if which == "a" else fragments.wmma_b
    else:
        accumulators = {a for s, a in fragments.WMMA_SHAPES.items() if s[:3] == (m, n, k)}
        if not any(type in a for a in accumulators):
            raise bind.unsupported()
        make = fragments.wmma_c
    return make(m, n, k, type), layout


def _tile(m, fragment, layout: str, stride, ins) -> _Tile:
    if type(stride) is not int:
        lanes = m.addresses(stride)
        if (lanes != lanes[0, 0]).any():
            m.fail(ExecutionError, _STRIDES, ins, reason="lanes disagree")
        stride = int(lanes[0, 0])
    key = ("wmma tile", id(fragment), layout, stride)
    return m.state(key, lambda: _Tile(fragment, layout, stride, m.T))


def _one_pointer(m, base, mask, ins):
    """The pointer, which has to be the same in all lanes of a warp (PTX ISA 9.7.14.4.3)."""
    if type(base) is int:
        return base
    lanes = m.addresses(base)
    if (lanes == lanes[:1, :1]).all():
        return base
    warps, active = lanes.reshape(-1, 32), m.lanes_of(mask).reshape(-1, 32)
    apart = (warps != warps[:, :1]) & active
    if apart.any():
        place = int(np.flatnonzero(apart.reshape(-1))[0])
        block, thread = divmod(place, m.T)
        text = f"the pointer of a wmma access differs between lanes 0 and {place % 32} of a warp"
        m.fail(ExecutionError, text, ins, block, thread, reason="lanes disagree")
    return base


def _load(ins, bind):
    which = ins.parts[2]
    fragment, layout = _fragment(ins, bind, which)
    space = space_of(ins)
    destinations = bind.vector(ins.operands[0], fragment.registers, "destinations")
    put, get = bind.put_lanes(destinations), bind.address(ins.operands[1], space)
    stride_of = _stride(ins, bind, fragment, layout, 2)
    as_matrices = which in "ab" and fragment.bits == 16

    def step(m, mask):
        meet(m, mask, ins)
        tile = _tile(m, fragment, layout, stride_of(m), ins)
        base = _one_pointer(m, get(m), mask, ins)
        if as_matrices and all(t[3] == "shared" for t in resolve(m, space, base, mask)):
            count = min(tile.unique // 2, 4)
            rows = add(base, tile.matrices, 8)
            parts = [
                load_matrices(m, ins, space, add(rows, delta, 8), mask, count, tile.turned)
                for delta in tile.matrix_deltas
            ]
            registers = np.concatenate(parts)
        else:
            registers = _read_runs(m, ins, space, add(base, tile.first, 8), mask, tile)
        times = fragment.registers // len(registers)
        put(m, np.tile(registers, (times, 1, 1)) if times > 1 else registers, mask)

    return step


def _stride(ins, bind, fragment, layout: str, position: int):
    """get(m) -> elements between rows (row-major) or columns; the matrix's own width by default."""
    if len(ins.operands) > position:
        get, per = bind.integer(ins.operands[position], "u32"), _NARROW.get(ins.parts[-1], 1)
        return get if per == 1 else lambda m: _in_words(m, get(m), per, ins)
    width = fragment.shape[1] if layout == "row" else fragment.shape[0]
    return lambda m: width


def _in_words(m, stride, per: int, ins) -> int:
    """A stride in elements of less than a byte, in 32-bit words."""
    lanes = np.unique(m.addresses(stride))
    if len(lanes) > 1:
        m.fail(ExecutionError, _STRIDES, ins, reason="lanes disagree")
    words, rest = divmod(int(lanes[0]), per)
    if rest:
        m.fail(
            ExecutionError, f"the stride of this wmma access is a multiple of {per} elements", ins
        )
    return words


def _read_runs(m, ins, space: str, first, mask, tile: _Tile) -> np.ndarray:
    """Registers (n, W, 32) of the elements, one access for each run."""
    dtype = np.dtype(f"u{tile.size}")
    elements = np.empty((tile.unique, m.B, m.T), dtype)
    for run, delta in zip(tile.runs, tile.deltas, strict=True):
        for memory, where, lanes, name in resolve(m, space, add(first, delta, 8), mask):
            found = fetch(m, memory, where, lanes, dtype, run.count, ins)
            for i, values in enumerate(found):
                elements[run.element + i] = values
            _count(m, ins, name, where, lanes, run.count * tile.size, "load")
    if tile.size >= 4:
        return elements.reshape(tile.unique, m.W, 32)
    per = 4 // tile.size
    packed = elements.reshape(-1, per, m.W, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(packed).view(np.uint32)[..., 0]


def _store(ins, bind):
    fragment, layout = _fragment(ins, bind, "d")
    space = space_of(ins)
    sources = bind.vector(ins.operands[1], fragment.registers, "sources")
    word = np.uint64 if fragment.bits == 64 else np.uint32
    get, registers = bind.address(ins.operands[0], space), bind.lanes(sources, word)
    stride_of = _stride(ins, bind, fragment, layout, 2)

    def step(m, mask):
        meet(m, mask, ins)
        tile = _tile(m, fragment, layout, stride_of(m), ins)
        dtype = np.dtype(f"u{tile.size}")
        words = np.ascontiguousarray(registers(m)).view(dtype)
        per = max(1, 4 // tile.size)
        elements = words.reshape(-1, m.W, 32, per).transpose(0, 3, 1, 2).reshape(-1, m.B, m.T)
        first = add(_one_pointer(m, get(m), mask, ins), tile.first, 8)
        for run, delta in zip(tile.runs, tile.deltas, strict=True):
            values = list(elements[run.element : run.element + run.count])
            for memory, where, lanes, name in resolve(m, space, add(first, delta, 8), mask):
                deliver(m, memory, where, lanes, dtype, values, ins)
                _count(m, ins, name, where, lanes, run.count * tile.size, "store")
        m.progress()

    return step


def _count(m, ins, name: str, address, mask, width: int, kind: str) -> None:
    if name == "global":
        watch_global(m, ins, address, mask, width, kind)
        m.count_global(ins, address, mask, width, kind)
    elif name == "shared":
        m.count_shared(ins, address, mask, width, kind)
        if m.sanitizer is not None:
            access = m.sanitizer.read if kind == "load" else m.sanitizer.write
            access(address, mask, width, ins)


def wmma_product(ins, bind) -> Product:
    """PTX ISA 9.7.14.4.5: wmma.mma.sync.aligned.alayout.blayout.shape.dtype{.atype.btype}.ctype."""
    types = types_in(ins)
    if len(types) == 2:  # f16 operands go without saying
        types = [types[0], "f16", "f16", types[1]]
    return named_product(ins, bind, types, wmma=True, bits=of_bits(ins))


def _mma(ins, bind):
    return Products(ins, bind, wmma_product(ins, bind))


_PLACED = f"sync aligned row|col! {SHAPES}! global|{SHARED} {OF_TYPES}!"

OPCODES = {
    "wmma": {
        f"load! a|b|c! {_PLACED}": together(_load, 2, 3, spread="loads"),
        f"store! d! {_PLACED}": together(_store, 2, 3, spread="none"),
        f"mma! sync aligned row|col* {SHAPES}! rn satfinite {OF_TYPES}*!": together(
            _mma, 4, spread="product"
        ),
        "mma! xor|and! popc! sync aligned row|col* m8n8k128! b1|s32*!": together(
            _mma, 4, spread="product"
        ),
    },
}
