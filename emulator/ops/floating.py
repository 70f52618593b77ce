"""Floating-point instructions, PTX ISA 9.7.3 to 9.7.6, and `cvt`: operands and modifiers to `floats`.

f16 and bf16 live in 16-bit registers, their pairs (`f16x2`, `bf16x2`) in 32-bit ones.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from emulator.machine.values import SIGNED, UNSIGNED, exact, signed
from emulator.numbers import approximations, comparisons, conversions, floats, fp8
from emulator.ops import elementwise, select
from emulator.ops.fast import FAST_FLOATS
from emulator.ops.forms import FLOAT, HALF, INT, LOGIC, ROUND, WORD
from emulator.text.program import SINK, WIDTHS
from emulator.text.rows import Row

ROUNDING = {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"}
FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64", "tf32"}
STORAGE = {
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "tf32": np.float32,
}


def rounding(ins, default: str = "rn") -> str:
    return next((part for part in ins.parts if part in ROUNDING), default)


def operands(bind, operand_list, kind: str):
    """(getters, single format, a function that undoes the packing) for operands of one type."""
    if kind.endswith("x2"):
        form = kind[:-2]
        whole = np.uint64 if form == "f32" else np.uint32
        gets = [_pairs(bind.array(op, whole), STORAGE[form]) for op in operand_list]
        return gets, form, lambda out: np.ascontiguousarray(out).view(whole)[..., 0]
    return [bind.array(op, STORAGE[kind]) for op in operand_list], kind, None


def _pairs(get, half):
    """(..., 2) of the elements that fill a register, the low half first."""

    def read(m):
        array = np.ascontiguousarray(get(m))
        return array.view(half).reshape(*array.shape, 2)

    return read


# Modifiers that the functions take by another name, or with a value.
_FLAGS = {"NaN": "nan", "xorsign": "xorsign_abs"}


def arithmetic(count, function, *flags: str) -> Row:
    """`d = function(a, b, ..., format, **flags)` of `count` operands of the instruction's type.

    flags: the modifiers that `function` takes by name; "rounding" for the one among them that rounds.
    """

    def factory(ins, bind):
        shorter = FAST_FLOATS.get(ins.opcode)
        kind = ins.parts[-1]
        gets, form, repack = operands(bind, ins.operands[1:], kind)
        if shorter is not None:
            return bind.pure(ins.operands[0], shorter, *gets)
        options = {_FLAGS.get(flag, flag): True for flag in flags if flag in ins}
        if "rounding" in flags:
            options["rounding"] = rounding(ins)

        def run(*arrays):
            shape = arrays[0].shape
            if any(array.shape != shape for array in arrays):
                arrays = np.broadcast_arrays(*arrays)
            out = function(*arrays, form, **options)
            return repack(out) if repack else out

        return bind.pure(ins.operands[0], run, *gets)

    return Row(factory, (count + 1,), types=("own " * (count + 1)).strip(), spread="any")


def _division(full: bool):
    return lambda a, b, form, **more: approximations.div_approx(a, b, full=full, **more)


def _approximate(name: str) -> Row:
    """rcp, sqrt, ex2 ...: NumPy's function rounded to the type."""
    return arithmetic(1, partial(approximations.approximate, name), "ftz")


def extremum(function) -> Row:
    """min and max, of two or three operands."""
    flags = ("ftz", "NaN", "xorsign")
    two = arithmetic(2, function, *flags)
    three = arithmetic(
        3,
        lambda a, b, c, form, **more: function(function(a, b, form, **more), c, form, **more),
        *flags,
    )

    def factory(ins, bind):
        return (three if len(ins.operands) == 4 else two).factory(ins, bind)

    return Row(factory, (3, 4), types="own own own own", spread="any")


def _comparison(ins, bind, kind: str):
    """comparison(m) -> array of bool, for setp and set."""
    gets, form, repack = operands(bind, ins.operands[1:3], kind)
    operator, ftz = ins.parts[1], "ftz" in ins.parts

    def compare(m):
        return comparisons.compare(
            operator, *np.broadcast_arrays(*(get(m) for get in gets)), form, ftz
        )

    return compare, repack is not None


def setp(ins, bind):
    comparison, packed = _comparison(ins, bind, ins.parts[-1])
    if not packed:
        return select.setp(ins, bind, comparison)
    low, high = (bind.put(op) for op in bind.pair(ins.operands[0]))
    if len(ins.operands) > 3:
        raise bind.unsupported("a boolean operator on two halves")

    def step(m, mask):
        holds = comparison(m)
        low(m, holds[..., 0], mask)
        high(m, holds[..., 1], mask)

    return step


def set_(ins, bind):
    result, kind = ins.parts[-2:]
    if kind not in FLOATS:
        return select.set_(ins, bind)
    comparison, packed = _comparison(ins, bind, kind)
    if not packed:
        return select.set_(ins, bind, comparison)
    true = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(result, 0xFFFF)
    put = bind.put(ins.operands[0])

    def step(m, mask):
        halves = np.where(comparison(m), np.uint16(true), np.uint16(0))
        put(m, halves.view(np.uint32)[..., 0], mask)

    return step


def testp(ins, bind):
    kind = ins.parts[-1]
    get = bind.array(ins.operands[1], STORAGE[kind])
    return bind.pure(ins.operands[0], lambda x: comparisons.testp(ins.parts[1], x, kind), get)


# --- cvt --------------------------------------------------------------------------------------------


def cvt(ins, bind):
    parts = ins.parts
    to, source = parts[-2:]
    if to in _FP8_PAIRS or source in _FP8_PAIRS:
        return _fp8_pair(ins, bind, to, source)
    if len(ins.operands) == 3:
        return _pair_of(ins, bind, to, source)
    if to in elementwise.INTEGERS and source in elementwise.INTEGERS:
        return _integer_to_integer(ins, bind, to, source)
    for kind in (to, source):
        if kind not in STORAGE and kind not in elementwise.INTEGERS:
            raise bind.unsupported(f".{kind}")
    options = {name: True for name in ("ftz", "sat", "satfinite", "relu") if name in parts}
    mode = next((part for part in parts if part in ROUNDING), None)
    held = STORAGE.get(source) or elementwise.dtype_of(source)
    get, destination = bind.array(ins.operands[1], held), ins.operands[0]
    widen = None
    if destination != SINK and to in elementwise.INTEGERS and bind.width(destination) > WIDTHS[to]:
        widen = np.dtype((SIGNED if to[0] == "s" else UNSIGNED)[bind.width(destination)])

    def run(x):
        with np.errstate(all="ignore"):
            out = conversions.convert(x, to, source, mode, **options)
        return out if widen is None else out.astype(widen)

    return bind.pure(destination, run, get)


def _integer_to_integer(ins, bind, to: str, source: str):
    width, destination = WIDTHS[source], ins.operands[0]
    target, held = WIDTHS[to], bind.width(destination)
    get, is_signed, result_signed = (
        bind.integer(ins.operands[1], source),
        source[0] == "s",
        to[0] == "s",
    )
    if "sat" in ins.parts:
        low, high = (np.iinfo(elementwise.dtype_of(to)).min, np.iinfo(elementwise.dtype_of(to)).max)

        def saturated(value):
            array = elementwise.as_array(value, source)
            info = np.iinfo(array.dtype)
            clipped = np.clip(array, max(low, info.min), min(high, info.max)).astype(
                elementwise.dtype_of(to)
            )
            return elementwise.as_value(clipped)

        return bind.pure(destination, saturated, get)
    mask = (1 << 8 * held) - 1

    def run(value):
        if type(value) is int:
            number = signed(value, width) if is_signed else value
            number &= (1 << 8 * target) - 1
            return (signed(number, target) if result_signed else number) & mask
        if target > width:
            value = exact(value, width, is_signed)
        if held > target:
            value = exact(value, target, result_signed)
        return value

    return bind.pure(destination, run, get)


def _pair_of(ins, bind, to: str, source: str):
    """cvt.f16x2.f32 d, high, low and its kin."""
    form = to.removesuffix("x2")
    if form not in ("f16", "bf16") or source != "f32" or not to.endswith("x2"):
        raise bind.unsupported()
    options = {name: True for name in ("ftz", "sat", "satfinite", "relu") if name in ins.parts}
    mode = rounding(ins)
    high, low = (bind.array(op, np.float32) for op in ins.operands[1:])

    def run(a, b):
        a, b = np.broadcast_arrays(a, b)
        with np.errstate(all="ignore"):
            return conversions.pack(
                *(conversions.convert(x, form, "f32", mode, **options) for x in (a, b))
            )

    return bind.pure(ins.operands[0], run, high, low)


_FP8_PAIRS = {f"{type}x2": type for type in fp8.TYPES}


def _fp8_pair(ins, bind, to: str, source: str):
    """cvt.rn.satfinite{.relu}.e4m3x2.f32 d, high, low; .e4m3x2.f16x2 d, a; and .f16x2.e4m3x2 d, a."""
    modes, relu = [part for part in ins.parts[1:-2] if part != "relu"], "relu" in ins.parts
    back = source in _FP8_PAIRS
    expected = {("f32", False): 3, ("f16x2", False): 2, ("f16x2", True): 2}
    count = expected.get((to if back else source, back))
    if count is None:
        raise bind.unsupported(f"{to} of {source}: fp8 goes from .f32 or .f16x2 and back to .f16x2")
    if sorted(modes) != (["rn"] if back else ["rn", "satfinite"]):
        raise bind.error(f"cvt between these types is written cvt.rn{'' if back else '.satfinite'}")
    if len(ins.operands) != count:
        raise bind.error(f"{count} operands expected, found {len(ins.operands)}")
    type = _FP8_PAIRS[source if back else to]
    if back:
        get = _pairs(bind.array(ins.operands[1], np.uint16), np.uint8)

        def widened(codes):
            return fp8.as_f16(codes, type, relu).view(np.uint32)[..., 0]

        return bind.pure(ins.operands[0], widened, get)
    if source == "f16x2":
        gets = [_pairs(bind.array(ins.operands[1], np.uint32), np.float16)]
    else:
        gets = [bind.array(op, np.float32) for op in (ins.operands[2], ins.operands[1])]

    def narrowed(*values):
        pairs = values[0] if len(values) == 1 else np.stack(np.broadcast_arrays(*values), axis=-1)
        return fp8.encode(pairs, type, relu).view(np.uint16)[..., 0]

    return bind.pure(ins.operands[0], narrowed, *gets)


def _pack_saturated(ins, bind):
    """cvt.pack.sat.{u8,s8,u16,s16}.s32[.b32] d, a, b[, c]: a above b (above the low part of c)."""
    to = ins.parts[3]
    bits, target = 8 * WIDTHS[to], np.iinfo(elementwise.dtype_of(to))
    gets = [bind.integer(op, "s32") for op in ins.operands[1:]]
    ones = np.uint32((1 << bits) - 1)

    def run(a, b, c=0):
        a, b = (
            np.clip(elementwise.as_array(x, "s32"), target.min, target.max).view(np.uint32) & ones
            for x in (a, b)
        )
        low = (a << np.uint32(bits)) | b
        if bits == 8:
            low = low | (elementwise.as_array(c, "u32") << np.uint32(16))
        return elementwise.as_value(low)

    return bind.pure(ins.operands[0], run, *gets)


_APPROXIMATE = {name: _approximate(name) for name in approximations.FUNCTIONS}
_COMPARISONS = "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan"
_CONVERTED = f"u8|s8|{INT}|{FLOAT}|tf32|e4m3x2|e5m2x2"

OPCODES = {
    "add": {f"{ROUND} ftz sat {FLOAT}!": arithmetic(2, floats.add, "ftz", "sat", "rounding")},
    "sub": {f"{ROUND} ftz sat {FLOAT}!": arithmetic(2, floats.sub, "ftz", "sat", "rounding")},
    "mul": {f"{ROUND} ftz sat {FLOAT}!": arithmetic(2, floats.mul, "ftz", "sat", "rounding")},
    "fma": {
        f"{ROUND}! ftz sat relu {FLOAT}!": arithmetic(
            3, floats.fma, "ftz", "sat", "relu", "rounding"
        )
    },
    "mad": {f"{ROUND}! ftz sat f32|f64!": arithmetic(3, floats.fma, "ftz", "sat", "rounding")},
    "div": {
        "approx! ftz f32!": arithmetic(2, _division(full=False), "ftz"),
        "full! ftz f32!": arithmetic(2, _division(full=True), "ftz"),
        f"{ROUND}! ftz f32|f64!": arithmetic(2, floats.div, "ftz", "rounding"),
    },
    "rcp": {
        "approx! ftz f32|f64!": _APPROXIMATE["rcp"],
        f"{ROUND}! ftz f32|f64!": arithmetic(1, floats.rcp, "ftz", "rounding"),
    },
    "sqrt": {
        "approx! ftz f32|f64!": _APPROXIMATE["sqrt"],
        f"{ROUND}! ftz f32|f64!": arithmetic(1, floats.sqrt, "ftz", "rounding"),
    },
    "rsqrt": {"approx! ftz f32|f64!": _APPROXIMATE["rsqrt"]},
    "ex2": {f"approx! ftz f32|{HALF}!": _APPROXIMATE["ex2"]},
    "tanh": {f"approx! ftz f32|{HALF}!": _APPROXIMATE["tanh"]},
    "lg2": {"approx! ftz f32!": _APPROXIMATE["lg2"]},
    "sin": {"approx! ftz f32!": _APPROXIMATE["sin"]},
    "cos": {"approx! ftz f32!": _APPROXIMATE["cos"]},
    "min": {f"ftz NaN xorsign abs {FLOAT}!": extremum(comparisons.minimum)},
    "max": {f"ftz NaN xorsign abs {FLOAT}!": extremum(comparisons.maximum)},
    "neg": {f"ftz {FLOAT}!": arithmetic(1, floats.neg, "ftz")},
    "abs": {f"ftz {FLOAT}!": arithmetic(1, floats.absolute, "ftz")},
    "copysign": {"f32|f64!": arithmetic(2, floats.copysign)},
    "testp": {
        "finite|infinite|number|notanumber|normal|subnormal! f32|f64!": Row(
            testp, (2,), types="pred own", spread="any"
        )
    },
    "setp": {
        f"{_COMPARISONS}! {LOGIC} ftz {FLOAT}!": Row(
            setp, (3, 4), types="pred own own pred", spread="compares"
        )
    },
    "set": {
        f"{_COMPARISONS}|lo|ls|hi|hs! {LOGIC} ftz {WORD}|{INT}|{FLOAT}*!": Row(
            set_, (3, 4), types="first own own pred", spread="any"
        )
    },
    "cvt": {
        f"{ROUND}|rna|rni|rzi|rmi|rpi ftz sat|satfinite relu {_CONVERTED}*!": Row(
            cvt, (2, 3), types="~first ~own", spread="converts"
        ),
        "pack! sat! b32|u8|s8|u16|s16|u32|s32*!": Row(
            _pack_saturated, (3, 4), types="~s32 ~s32 ~s32 ~b32", spread="any"
        ),
    },
}
