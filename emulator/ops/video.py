"""Video instructions: arithmetic on bytes and halves of registers (PTX ISA 9.7.18).

The scalar ones pick a byte, a half or a whole register of each operand, compute without overflow, clamp the
result with `.sat`, and then either combine it with a third operand or put it into a part of that. Those that
end in 2 or 4 compute on two halves or four bytes at a time, which they pick from both operands.

Compared with an H200 word by word (tests/data/README.md). All that end in 2 or 4 do what the PTX ISA says. Of
the scalar ones, what ptxas 13.0 writes for sm_90 does not always: where it differs for some operands, the form
is refused (`_differs`), so that no answer is one that the GPU would not give.
"""

from __future__ import annotations

import numpy as np

from emulator.ops.elementwise import as_value
from emulator.text.program import Negative, Part
from emulator.text.rows import Row

_WHOLE = (0, 32)
_SCALAR = {f"b{i}": (8 * i, 8) for i in range(4)} | {f"h{i}": (16 * i, 16) for i in range(2)}
_MASKS = {
    2: {"h0", "h1", "h10"},
    4: {f"b{''.join(str(i) for i in (3, 2, 1, 0) if bits >> i & 1)}" for bits in range(1, 16)},
}
_SECOND = {"add": np.add, "min": np.minimum, "max": np.maximum}
_COMPARED = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _average(a, b):
    """Half the sum, a half rounded away from zero."""
    total = a + b
    return (total + (total >= 0)) >> 1


_ARITHMETIC = {
    "vadd": np.add, "vsub": np.subtract, "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum, "vmax": np.maximum, "vavrg": _average,
}  # fmt: skip


def _cut(words: np.ndarray, place: tuple[int, int], signed: bool) -> np.ndarray:
    """A part, (first bit, bits), of 32-bit words as int64."""
    first, bits = place
    found = (words.astype(np.int64) >> first) & ((1 << bits) - 1)
    if signed:
        half = 1 << (bits - 1)
        found = (found ^ half) - half
    return found


def _limits(bits: int, signed: bool) -> tuple[int, int]:
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def _kinds(ins, bind, count: int) -> list[bool]:
    """Which of the instruction's types are signed: of the result, of a and of b."""
    kinds = [part == "s32" for part in ins.parts if part in ("u32", "s32")]
    if len(kinds) != count:
        raise bind.unsupported(f"it has {count} types")
    return kinds


def _split(bind, operand, selectors) -> tuple:
    """(register or constant, selector) of an operand; "" for the whole."""
    if not isinstance(operand, Part):
        return operand, ""
    if operand.selector not in selectors:
        raise bind.error(f"{bind.ins.parts[0]} takes no .{operand.selector} here")
    return operand.item, operand.selector


def _words(bind, operands) -> list:
    return [bind.array(operand, np.uint32) for operand in operands]


# --- Scalar ---


def _shifted(left: bool, clamp: bool, a, b):
    """a shifted by b; of what is shifted to the left, the low 32 bits are right."""
    b = np.minimum(b, 32) if clamp else b & 31
    return np.where(b > 31, 0, a << np.minimum(b, 31)) if left else a >> b


DIFFERS = "ptxas 13.0 writes code for it that does not do what the PTX ISA says"


def _differs(root: str, kinds: list[bool], clamps: bool, second: str | None, into: str) -> bool:
    """Whether a GPU's result is not the PTX ISA's for some operands. kinds: which types are signed: of d, a, b."""
    if into == "h1" or (clamps and into) or (clamps and root == "vshl"):
        return True
    signed, plain = kinds[0], not any(kinds)
    if clamps and root not in ("vmin", "vmax") and not signed:
        return True
    if second not in ("min", "max") or root in ("vabsdiff", "vset") or clamps:
        return False
    return root in ("vadd", "vsub", "vshl") or not (signed or plain)


def _scalar(ins, bind):
    """vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr and vset (PTX ISA 9.7.18.1)."""
    root = ins.parts[0]
    compares = next((_COMPARED[part] for part in ins.parts if part in _COMPARED), None)
    signed, of_a, of_b = (False, *_kinds(ins, bind, 2)) if compares else _kinds(ins, bind, 3)
    shifts = root in ("vshl", "vshr")
    if shifts and of_b:
        raise bind.unsupported("a shift is by a .u32")
    second = next((part for part in ins.parts if part in _SECOND), None)
    destination, into = _split(bind, ins.operands[0], _SCALAR)
    if second and into:
        raise bind.error("it combines its result with c or merges it into c, not both")
    if (len(ins.operands) == 4) != bool(second or into):
        raise bind.error("c goes with .add, .min, .max or a selector of the destination")
    (a, a_part), (b, b_part) = (_split(bind, op, _SCALAR) for op in ins.operands[1:3])
    if _differs(root, [signed, of_a, of_b], "sat" in ins, second, into):
        raise bind.unsupported(DIFFERS)
    places = [_SCALAR.get(part, _WHOLE) for part in (a_part, b_part, into)]
    of_c = of_a if compares else signed
    bounds = _limits(places[2][1], signed) if "sat" in ins else None
    first, bits = places[2]
    hole = ~(((1 << bits) - 1) << first)

    def compute(x, y):
        if compares:
            return compares(x, y).astype(np.int64)
        if shifts:
            return _shifted(root == "vshl", "clamp" in ins, x, y)
        return _ARITHMETIC[root](x, y)

    def run(x, y, z=None):
        value = compute(_cut(x, places[0], of_a), _cut(y, places[1], of_b))
        if bounds is not None:
            value = np.clip(value, *bounds)
        if second:
            value = _SECOND[second](value, _cut(z, _WHOLE, of_c))
        if into:
            value = (value << first) & ~hole | z.astype(np.int64) & hole
        return as_value(value.astype(np.uint32))

    return bind.pure(destination, run, *_words(bind, (a, b, *ins.operands[3:])))


def _vmad(ins, bind):
    """vmad: (a b + c) >> 0, 7 or 15, a product or c negated, or one more added (PTX ISA 9.7.18.1.4)."""
    _, of_a, of_b = _kinds(ins, bind, 3)
    minus = [isinstance(operand, Negative) for operand in ins.operands[1:]]
    a, b, c = (op.item if isinstance(op, Negative) else op for op in ins.operands[1:])
    of_product, of_c = minus[0] != minus[1], minus[2]
    if of_product and of_c:
        raise bind.error("either the product or c is negated")
    if "po" in ins and any(minus):
        raise bind.error(".po goes with no negated operand")
    (a, a_part), (b, b_part) = (_split(bind, op, _SCALAR) for op in (a, b))
    places = [_SCALAR.get(part, _WHOLE) for part in (a_part, b_part)]
    signed = of_a or of_b or of_product or of_c
    shift = next((int(part[3:]) for part in ins.parts if part in ("shr7", "shr15")), 0)
    bounds = _limits(32, signed) if "sat" in ins else None
    if (bounds or shift) and not (of_a and of_b):
        raise bind.unsupported(DIFFERS)

    def run(x, y, z):
        x, y = _cut(x, places[0], of_a), _cut(y, places[1], of_b)
        z = _cut(z, _WHOLE, signed)
        x, z = -x if of_product else x, -z if of_c else z
        # up to 66 bits: high * 2**16 + low
        low = x * (y & 0xFFFF) + z + ("po" in ins)
        high = x * (y >> 16) + (low >> 16)
        if bounds is not None:
            high = np.clip(high, -(1 << 40), 1 << 40)
        value = (high << (16 - shift)) + ((low & 0xFFFF) >> shift)
        if bounds is not None:
            value = np.clip(value, *bounds)
        return as_value(value.astype(np.uint32))

    return bind.pure(ins.operands[0], run, *_words(bind, (a, b, c)))


# --- Two or four at a time ---


def _at_once(ins, bind):
    """vadd2 ... vset4: elements picked from those of a and b, with merging or a sum (PTX ISA 9.7.18.2)."""
    root, count = ins.parts[0][:-1], int(ins.parts[0][-1])
    compares = next((_COMPARED[part] for part in ins.parts if part in _COMPARED), None)
    signed, *of = (False, *_kinds(ins, bind, 2)) if compares else _kinds(ins, bind, 3)
    sums = "add" in ins
    if sums and "sat" in ins:
        raise bind.error(".sat does not go with .add")
    bits, letter = 32 // count, "h" if count == 2 else "b"
    everything = letter + "".join(str(i) for i in reversed(range(count)))
    beside = letter + "".join(str(count + i) for i in reversed(range(count)))
    destination, mask = _split(bind, ins.operands[0], _MASKS[count])
    picks = []
    for operand, usual in zip(ins.operands[1:3], (everything, beside), strict=True):
        register, selector = operand, usual
        if isinstance(operand, Part):
            register, selector = operand.item, operand.selector
        good = selector[0] == letter and len(selector) == count + 1
        if not good or max(selector[1:]) >= str(2 * count):
            raise bind.error(f"{ins.parts[0]} takes no .{selector} here")
        picks.append((register, [int(i) for i in reversed(selector[1:])]))
    chosen = [int(i) for i in (mask or everything)[1:]]
    bounds = _limits(bits, signed) if "sat" in ins else None
    operation = compares or _ARITHMETIC[root]

    def element(words, at: int, is_signed: bool):
        return _cut(words[at // count], (at % count * bits, bits), is_signed)

    def run(x, y, z):
        total = z.astype(np.int64)
        for i in chosen:
            u, v = (element((x, y), pick[i], s) for (_, pick), s in zip(picks, of, strict=True))
            value = operation(u, v).astype(np.int64)
            if bounds is not None:
                value = np.clip(value, *bounds)
            if sums:
                total = total + value
            else:
                inside = ((1 << bits) - 1) << bits * i
                total = total & ~inside | (value << bits * i) & inside
        return as_value(total.astype(np.uint32))

    return bind.pure(destination, run, *_words(bind, (picks[0][0], picks[1][0], ins.operands[3])))


_TYPES = "u32|s32*!"
_COMBINED = f"{_TYPES} sat add|min|max"
_COMPARISON = "eq|ne|lt|le|gt|ge!"

OPCODES = {
    **{
        root: {_COMBINED: Row(_scalar, (3, 4), types="u32 u32 u32 u32", spread="any")}
        for root in ("vadd", "vsub", "vabsdiff", "vmin", "vmax")
    },
    **{
        root: {
            f"{_COMBINED} clamp|wrap!": Row(_scalar, (3, 4), types="u32 u32 u32 u32", spread="any")
        }
        for root in ("vshl", "vshr")
    },
    "vmad": {
        f"{_TYPES} po sat shr7|shr15": Row(_vmad, (4,), types="u32 u32 u32 u32", spread="any")
    },
    "vset": {
        f"{_TYPES} {_COMPARISON} add|min|max": Row(
            _scalar, (3, 4), types="u32 u32 u32 u32", spread="any"
        )
    },
    **{
        f"{root}{count}": {
            f"{_TYPES} sat add": Row(_at_once, (4,), types="u32 u32 u32 u32", spread="any")
        }
        for count in (2, 4)
        for root in _ARITHMETIC
    },
    **{
        f"vset{count}": {
            f"{_TYPES} {_COMPARISON} add": Row(
                _at_once, (4,), types="u32 u32 u32 u32", spread="any"
            )
        }
        for count in (2, 4)
    },
}
