"""Warp-level matrix instructions: ldmatrix, stmatrix, movmatrix, mma, mma.sp and wmma (PTX ISA 9.7.14).

How memory traffic is counted. `ldmatrix` and `stmatrix` read or write 16 bytes for each row. A
`wmma.load` of f16 or bf16 operands from shared memory counts as the `ldmatrix` instructions that
ptxas makes of it on sm_75 and later; any other `wmma` access as one access for each run of a lane's
elements that lie side by side, of up to 8 bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from emulator.errors import BarrierDivergence, ExecutionError
from emulator.machine.access import deliver, fetch, resolve, space_of, watch_global
from emulator.machine.values import Affine, Pattern, add
from emulator.numbers import fragments
from emulator.numbers.sparse import SparseProduct
from emulator.numbers.tensor import Product, transpose_8x8
from emulator.numbers.tensor_sums import ARCHITECTURES
from emulator.ops.forms import SHARED
from emulator.text.program import Imm, Vector
from emulator.text.rows import Row

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
_ROW = np.dtype(np.complex128)  # 16 bytes moved as one element, bits untouched
_TYPES = {
    "f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "s32", "e4m3", "e5m2", "s4", "u4", "b1",
}  # fmt: skip
_NARROW = {
    "s4": 8,
    "u4": 8,
    "b1": 32,
}  # elements of a 32-bit word, which is what is addressed of them
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_MATRICES_AT_ONCE = 128  # of A, B and C: so many stay in the cache


def _items(operand) -> tuple:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _shape(ins, bind) -> tuple[int, int, int]:
    found = next((_SHAPE.match(part) for part in ins.parts if _SHAPE.match(part)), None)
    if found is None:
        raise bind.unsupported("its shape")
    return tuple(int(x) for x in found.groups())


def _all_lanes(m, mask, ins) -> None:
    """`.aligned`: all 32 lanes of a warp execute the instruction together, or it is undefined."""
    if mask is not None:
        known = m.masks.get("whole warps")
        if known is None or known[0] is not mask:
            lanes = m.lanes_of(mask).reshape(m.W, 32)
            there = lanes.sum(1)
            partial = (there > 0) & (there < 32)
            if partial.any():
                warp = int(partial.argmax())
                at = 32 * warp + int(lanes[warp].argmax())
                text = f"{ins.parts[0]} is for all 32 lanes of a warp together, and only {there[warp]} came to it"
                m.fail(BarrierDivergence, text, ins, at // m.T, at % m.T)
            m.masks["whole warps"] = (mask,)


def _meet(m, mask, ins) -> None:
    """The warp's lanes come together before the instruction does its work."""
    _all_lanes(m, mask, ins)
    if m.sanitizer is not None:
        m.sanitizer.warp_barrier(mask)


# --- 8x8 matrices
# -----------------------------------------------------------------------------------


def _first_lanes(m, mask, lanes: int):
    """The lanes of `mask` whose addresses count: the first `lanes` of each warp."""
    if lanes == 32:
        return mask
    key = ("first lanes", lanes)
    known = m.masks.get(key)
    if known is None or known[0] is not mask:
        picked = m.lanes_of(mask) & (np.arange(m.T) % 32 < lanes)
        known = m.masks[key] = (mask, picked)
    return known[1]


def load_matrices(m, ins, space, address, mask, count: int, turned: bool) -> np.ndarray:
    """`ldmatrix` of 1, 2 or 4 matrices: registers (count, W, 32)."""
    lanes = _first_lanes(m, mask, 8 * count)
    ((memory, where, lanes, name),) = resolve(m, space, address, lanes)
    if name != "shared":
        m.fail(ValueError, f"{ins.parts[0]} works on shared memory", ins)
    (rows,) = fetch(m, memory, where, lanes, _ROW, 1, ins)
    m.count_shared(ins, where, lanes, 16, "ldmatrix", count)
    if m.sanitizer is not None:
        m.sanitizer.read(where, lanes, 16, ins)
    rows = np.broadcast_to(rows, (m.B, m.T)).reshape(m.W, 32)[:, : 8 * count]
    words = np.ascontiguousarray(rows).view(np.uint32).reshape(m.W, count, 32)
    registers = np.ascontiguousarray(words.transpose(1, 0, 2))
    return transpose_8x8(registers) if turned else registers


def _matrices(ins, bind) -> int:
    if "m8n8" not in ins or ins.parts[-1] != "b16":
        raise bind.unsupported("8x8 matrices of 16-bit elements only")
    return next((n for name, n in _COUNTS.items() if name in ins), 1)


def ldmatrix(ins, bind):
    """PTX ISA 9.7.14.5.15: lanes 8i to 8i + 7 give the row addresses of matrix i."""
    count, turned, space = _matrices(ins, bind), "trans" in ins, space_of(ins)
    destinations = _items(ins.operands[0])
    if len(destinations) != count:
        raise bind.error(f"{count} destinations expected")
    put, get = bind.put_lanes(destinations), bind.address(ins.operands[1], space)

    def step(m, mask):
        _meet(m, mask, ins)
        put(m, load_matrices(m, ins, space, get(m), mask, count, turned), mask)

    return step


def stmatrix(ins, bind):
    """PTX ISA 9.7.14.5.16: the reverse of ldmatrix."""
    count, turned, space = _matrices(ins, bind), "trans" in ins, space_of(ins)
    sources = _items(ins.operands[1])
    if len(sources) != count:
        raise bind.error(f"{count} sources expected")
    get, registers = bind.address(ins.operands[0], space), bind.lanes(sources, np.uint32)

    def step(m, mask):
        _meet(m, mask, ins)
        words = registers(m)
        if turned:
            words = transpose_8x8(words)
        rows = np.zeros((m.W, 32, 4), np.uint32)
        rows[:, : 8 * count] = words.transpose(1, 0, 2).reshape(m.W, 8 * count, 4)
        rows = rows.view(_ROW).reshape(m.B, m.T)
        lanes = _first_lanes(m, mask, 8 * count)
        ((memory, where, lanes, name),) = resolve(m, space, get(m), lanes)
        if name != "shared":
            m.fail(ValueError, "stmatrix works on shared memory", ins)
        deliver(m, memory, where, lanes, _ROW, [rows], ins)
        m.count_shared(ins, where, lanes, 16, "stmatrix", count)
        if m.sanitizer is not None:
            m.sanitizer.write(where, lanes, 16, ins)
        m.progress()

    return step


def movmatrix(ins, bind):
    """PTX ISA 9.7.14.5.17: an 8x8 matrix transposed across the lanes that hold it."""
    put, get = bind.put_lanes([ins.operands[0]]), bind.lanes([ins.operands[1]], np.uint32)

    def step(m, mask):
        put(m, transpose_8x8(get(m)), mask)

    return step


# --- Products
# ---------------------------------------------------------------------------------------


class Products:
    """The step D = A @ B + C on the registers of four vector operands, of one instruction or of several.

    Products that stand in a row and do not need each other's results are done as one, over more
    matrices: NumPy then works on longer arrays.
    """

    def __init__(self, ins, bind, product: Product):
        parts = (product.d, product.a, product.b, product.c)
        for operand, fragment in zip(ins.operands, parts, strict=True):
            if len(_items(operand)) != fragment.registers:
                raise bind.error(f"{fragment.registers} registers expected in {operand}")
        self.word = np.uint64 if product.a_type == "f64" else np.uint32
        put = bind.put_lanes(_items(ins.operands[0]))
        gets = [[bind.array(r, self.word) for r in _items(part)] for part in ins.operands[1:]]
        self.ins, self.product, self.parts = ins, product, [(put, gets)]
        self.reads, self.writes = bind.uses, bind.defs

    def join(self, other) -> bool:
        """Takes the next step in, where it is such a product and reads nothing that is written here."""
        fits = type(other) is Products and other.product == self.product
        if not fits or self.writes & other.reads:
            return False
        self.parts += other.parts
        self.reads, self.writes = self.reads | other.reads, self.writes | other.writes
        return True

    def __call__(self, m, mask):
        _all_lanes(m, mask, self.ins)
        at_once = max(1, _MATRICES_AT_ONCE // m.W)
        for first in range(0, len(self.parts), at_once):
            parts = self.parts[first : first + at_once]
            a, b, c = (self._registers(m, [gets[i] for _, gets in parts]) for i in range(3))
            d = self.product(a, b, c).reshape(-1, len(parts), m.W, 32)
            for at, (put, _) in enumerate(parts):
                put(m, d[:, at], mask)

    def _registers(self, m, gets) -> np.ndarray:
        """(registers, instructions * W, 32) of one operand of these instructions."""
        found = np.empty((len(gets[0]), len(gets), m.B, m.T), self.word)
        for at, registers in enumerate(gets):
            for number, get in enumerate(registers):
                found[number, at] = get(m)
        return found.reshape(len(gets[0]), -1, 32)


def _architecture(bind) -> int:
    """The newest architecture of `tensor_sums` that is not newer than the module's `.target`."""
    target = bind.names.program.target
    number = int(re.search(r"\d+", target).group())
    older = [arch for arch in ARCHITECTURES if arch <= number]
    if not older:
        raise bind.unsupported(f".target {target} has no tensor cores; sm_70 is the first that has")
    return older[-1]


def mma_product(ins, bind) -> Product:
    """PTX ISA 9.7.14.5.14: mma.sync.aligned.shape.alayout.blayout{.satfinite}.dtype.atype.btype.ctype."""
    types = [part for part in ins.parts if part in _TYPES]
    layouts = [part for part in ins.parts if part in ("row", "col")]
    try:
        d, a, b, c = types
        return Product(
            *_shape(ins, bind), a, b, c, d, *layouts,
            satfinite="satfinite" in ins, arch=_architecture(bind), bits=_of_bits(ins),
        )  # fmt: skip
    except ValueError as problem:
        raise bind.unsupported(str(problem)) from problem


def _of_bits(ins) -> str:
    return next((part for part in ins.parts if part in ("and", "or", "xor")), "")


def mma(ins, bind):
    return Products(ins, bind, mma_product(ins, bind))


def is_sparse(ins) -> bool:
    return ins.parts[1].startswith("sp")


def sparse_product(ins, bind) -> SparseProduct:
    """PTX ISA 9.7.14.6.3: mma.sp{::ordered_metadata}.sync.aligned..., with metadata e and a selector f."""
    types = [part for part in ins.parts if part in _TYPES]
    layouts = [part for part in ins.parts if part in ("row", "col")]
    if not isinstance(ins.operands[5], Imm):
        raise bind.error("the sparsity selector is a constant")
    try:
        d, a, b, c = types
        return SparseProduct(
            *_shape(ins, bind), a, b, c, d, *layouts,
            satfinite="satfinite" in ins, arch=_architecture(bind),
            selector=bind.constant(ins.operands[5], 4), ordered=ins.parts[1] != "sp",
        )  # fmt: skip
    except ValueError as problem:
        raise bind.unsupported(str(problem)) from problem


def _sparse_mma(ins, bind):
    product = sparse_product(ins, bind)
    parts = (product.d, product.a, product.b, product.c)
    for operand, fragment in zip(ins.operands, parts, strict=False):
        if len(_items(operand)) != fragment.registers:
            raise bind.error(f"{fragment.registers} registers expected in {operand}")
    put = bind.put_lanes(_items(ins.operands[0]))
    a, b, c, e = (bind.lanes(_items(operand), np.uint32) for operand in ins.operands[1:5])

    def step(m, mask):
        _all_lanes(m, mask, ins)
        metadata = e(m)
        wrong = product.invalid(product.chunks(metadata[0]))
        wrong &= m.lanes_of(mask).reshape(m.W, 32)[:, :1, None]
        if wrong.any():
            warp, row, chunk = np.argwhere(wrong)[0].tolist()
            bits = int(product.chunks(metadata[0])[warp, row, chunk])
            block, thread = divmod(32 * warp, m.T)
            form = ".".join(ins.parts[:2])
            text = f"the metadata of row {row}, chunk {chunk} are 0b{bits:04b}, to which {form} gives no meaning"
            m.fail(ExecutionError, text, ins, block, thread)
        put(m, product(a(m), b(m), c(m), metadata), mask)

    return step


# --- wmma
# -------------------------------------------------------------------------------------------


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


def _wmma_fragment(ins, bind, which: str):
    """(fragment, element type, layout in memory) of a wmma.load or wmma.store."""
    m, n, k = _shape(ins, bind)
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
            m.fail(ValueError, "the stride of a wmma access differs between threads", ins)
        stride = int(lanes[0, 0])
    key = ("wmma tile", id(fragment), layout, stride)
    return m.state(key, lambda: _Tile(fragment, layout, stride, m.T))


def _wmma_load(ins, bind):
    which = ins.parts[2]
    fragment, layout = _wmma_fragment(ins, bind, which)
    space = space_of(ins)
    destinations = _items(ins.operands[0])
    if len(destinations) != fragment.registers:
        raise bind.error(f"{fragment.registers} destinations expected")
    put, get = bind.put_lanes(destinations), bind.address(ins.operands[1], space)
    stride_of = _stride(ins, bind, fragment, layout, 2)
    as_matrices = which in "ab" and fragment.bits == 16

    def step(m, mask):
        _meet(m, mask, ins)
        tile = _tile(m, fragment, layout, stride_of(m), ins)
        base = get(m)
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
        m.fail(ValueError, "the stride of a wmma access differs between threads", ins)
    words, rest = divmod(int(lanes[0]), per)
    if rest:
        m.fail(ValueError, f"the stride of this wmma access is a multiple of {per} elements", ins)
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


def _wmma_store(ins, bind):
    fragment, layout = _wmma_fragment(ins, bind, "d")
    space = space_of(ins)
    sources = _items(ins.operands[1])
    if len(sources) != fragment.registers:
        raise bind.error(f"{fragment.registers} sources expected")
    word = np.uint64 if fragment.bits == 64 else np.uint32
    get, registers = bind.address(ins.operands[0], space), bind.lanes(sources, word)
    stride_of = _stride(ins, bind, fragment, layout, 2)

    def step(m, mask):
        _meet(m, mask, ins)
        tile = _tile(m, fragment, layout, stride_of(m), ins)
        dtype = np.dtype(f"u{tile.size}")
        words = np.ascontiguousarray(registers(m)).view(dtype)
        per = max(1, 4 // tile.size)
        elements = words.reshape(-1, m.W, 32, per).transpose(0, 3, 1, 2).reshape(-1, m.B, m.T)
        first = add(get(m), tile.first, 8)
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
    layouts = [part for part in ins.parts if part in ("row", "col")]
    types = [part for part in ins.parts if part in _TYPES]
    if len(types) == 2:  # f16 operands go without saying
        types = [types[0], "f16", "f16", types[1]]
    try:
        d, a, b, c = types
        return Product(
            *_shape(ins, bind), a, b, c, d, *layouts, wmma=True,
            satfinite="satfinite" in ins, arch=_architecture(bind), bits=_of_bits(ins),
        )  # fmt: skip
    except ValueError as problem:
        raise bind.unsupported(str(problem)) from problem


def _wmma_mma(ins, bind):
    return Products(ins, bind, wmma_product(ins, bind))


_SHAPES = (
    "m8n8k4|m8n8k16|m8n8k32|m8n8k128|m16n8k4|m16n8k8|m16n8k16|m16n8k32|m16n8k64|m16n8k128|m16n8k256|"
    "m16n16k16|m32n8k16|m8n32k16|m16n16k8"
)
_SPARSE_SHAPES = "m16n8k8|m16n8k16|m16n8k32|m16n8k64|m16n8k128"
_OF = "|".join(sorted(_TYPES))
_PLACED = f"sync aligned row|col! {_SHAPES}! global|{SHARED} {_OF}!"
_MATRICES = f"sync! aligned! m8n8|m16n8|m16n16|m8n16! x1|x2|x4 trans {SHARED} b16|b8!"


def _together(factory, *operands: int) -> Row:
    return Row(factory, operands, meets="warp")


OPCODES = {
    "ldmatrix": {_MATRICES: _together(ldmatrix, 2)},
    "stmatrix": {_MATRICES: _together(stmatrix, 2)},
    "movmatrix": {"sync! aligned! m8n8! trans! b16!": _together(movmatrix, 2)},
    "mma": {
        f"sync! aligned! {_SHAPES}! row|col* satfinite {_OF}*!": _together(mma, 4),
        f"sync! aligned! {_SHAPES}! row|col* b1|s32*! xor|and! popc!": _together(mma, 4),
        f"sp|sp::ordered_metadata! sync! aligned! {_SPARSE_SHAPES}! row|col* satfinite {_OF}*!": _together(
            _sparse_mma, 6
        ),
    },
    "wmma": {
        f"load! a|b|c! {_PLACED}": _together(_wmma_load, 2, 3),
        f"store! d! {_PLACED}": _together(_wmma_store, 2, 3),
        f"mma! sync aligned row|col* {_SHAPES}! rn satfinite {_OF}*!": _together(_wmma_mma, 4),
        "mma! xor|and! popc! sync aligned row|col* m8n8k128! b1|s32*!": _together(_wmma_mma, 4),
    },
}
