"""Which registers and constants an instruction takes: what ptxas refuses is refused here, with its reason.

PTX ISA 9.4 ("Type Information for Instructions and Operands"): an operand has the instruction's type's size; bits go with
everything, signed with unsigned, a float with its own type alone. Loads, stores and conversions
take wider registers, too. A row of the opcode table (`text.rows`) says it with a word for each operand:

    own, first    the instruction's last type, and the one before it
    wide          the last type, twice as wide
    u32, pred ... that type
    ~own          as above, and the register may be wider
    -             no register of one type: an address, a fragment, a constant; the factory looks at it

Operands beyond the last word are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.errors import PtxError
from emulator.text.program import (
    SINK,
    WIDTHS,
    Address,
    Imm,
    Instruction,
    Not,
    Pair,
    Reg,
    Special,
    Vector,
)

_ROUNDINGS = {"rn", "rz", "rm", "rp", "rna", "rs"}
_TO_INTEGER = {"rni", "rzi", "rmi", "rpi"}
_INTEGERS = {f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64)}
_BITS = {f"b{bits}" for bits in (8, 16, 32, 64)}
_FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"}
_PAIRS = {"u16x2", "s16x2"}
_KNOWN = _INTEGERS | _BITS | _FLOATS | _PAIRS | {"pred"}


def _type_of(word: str, parts: tuple[str, ...]) -> str:
    """The type that a word of `Row.types` stands for in an instruction."""
    kind = parts[-1]
    if word == "wide":
        return f"{kind[0]}{2 * int(kind[1:])}"
    return {"own": kind, "first": parts[-2] if len(parts) > 2 else ""}.get(word, word)


_VECTORS = {"v2", "v4", "v8"}
_PREDICATE, _NUMBER = "is a predicate, not a number", "is not a predicate"
_ORDERED = {"lt", "le", "gt", "ge"}
_UNSIGNED_ONLY = {"lo", "ls", "hi", "hs"}


def check(ins: Instruction, words: str, types: dict[str, str], verdicts: dict) -> None:
    """Raises PtxError for operands that the instruction does not take.

    words: its row's `types`. types: unique register name -> its type. verdicts: remembers what has been found of
    instructions that look alike.
    """
    kinds = [types.get(x.name) if type(x) is Reg else _kind(x, types) for x in ins.operands]
    key = (ins.parts, tuple(kinds))
    verdict = verdicts.get(key)
    if verdict is None:
        verdict = verdicts[key] = _problem(ins.parts, words, key[1]) or ""
    if verdict:
        names = (getattr(getattr(x, "item", x), "name", "this") for x in ins.operands)
        raise PtxError(f"{ins.opcode}: {verdict.format(*names)}", ins.line, ins.text)


def _kind(operand, types: dict[str, str]):
    """What matters of an operand: a register's type, or what else it is."""
    if type(operand) is Reg:
        return types.get(operand.name, "") if operand != SINK else ""
    if type(operand) is Imm:
        if isinstance(operand.value, float):
            return (float, operand.bits is not None)
        return (int, operand.value)
    if type(operand) is Address:
        return ("address", _kind(operand.base, types) if type(operand.base) is Reg else "")
    if type(operand) is Vector or type(operand) is Pair:
        items = operand.items if type(operand) is Vector else (operand.first, operand.second)
        return (type(operand).__name__, *[_kind(item, types) for item in items])
    if type(operand) is Not:
        return _kind(operand.item, types)
    return "special" if type(operand) is Special else ""


def _problem(parts: tuple[str, ...], words: str, kinds: tuple) -> str | None:
    bases = (kind[1] for kind in kinds if type(kind) is tuple and kind[0] == "address" and kind[1])
    for base in bases:
        if base[0] not in "bus" or WIDTHS[base] < 4:
            return (
                f"an address is in an integer register of 32 or 64 bits, not in one of type .{base}"
            )
    combination = _COMBINATIONS.get(parts[0])
    problem = combination and combination(parts, kinds)
    if problem:
        return problem
    vectors = parts[0] == "mov" or not _VECTORS.isdisjoint(parts)
    for number, (word, kind) in enumerate(zip(words.split(), kinds, strict=False), 1):
        relaxed = word[0] == "~"
        wanted = _type_of(word.removeprefix("~"), parts)
        if wanted not in _KNOWN | {"tf32"}:
            continue
        if type(kind) is tuple and kind[0] == "Vector":
            if parts[0] == "mov":
                return None
            if not (relaxed or vectors):
                return f"operand {number} is a vector of registers, and it takes one register"
        problem = _misfit(wanted, kind, relaxed, parts[0])
        if problem in (_PREDICATE, _NUMBER):
            return f"{{{number - 1}}} {problem}"
        if problem:
            return f"operand {number} {problem}"
    return None


def _misfit(wanted: str, kind, relaxed: bool, opcode: str) -> str | None:
    if type(kind) is tuple and kind[0] == "Pair":  # d|p, or the p|q of a comparison
        first = _misfit(wanted, kind[1], relaxed, opcode)
        return first or _misfit("pred", kind[2], relaxed, opcode)
    if type(kind) is tuple and kind[0] == "Vector":
        parts = (_misfit(wanted, item, relaxed, opcode) for item in kind[1:])
        return next(filter(None, parts), None)
    if type(kind) is tuple and kind[0] is float:
        exact = kind[1] or opcode in ("mov", "st")  # 0f3F800000, which has 32 bits
        fits = wanted in ("f32", "f64", "b64") or (wanted == "b32" and exact)
        return None if fits else f"is of type .{wanted}, not a float constant"
    if type(kind) is tuple:
        fits = kind[0] is not int or wanted not in ("f16", "f32", "f64")
        return None if fits else f"is of type .{wanted}, not an integer constant"
    if not kind or kind == "special" or kind == wanted:
        return None
    if "pred" in (wanted, kind):
        return _NUMBER if wanted == "pred" else _PREDICATE
    wide, held = WIDTHS[wanted], WIDTHS[kind]
    same, bits = held == wide, kind in _BITS
    sizes = held >= wide if relaxed else same
    if wanted in _BITS:
        fits = same or (sizes and kind not in _FLOATS)
    elif wanted in _INTEGERS:
        fits = sizes and (bits or kind in _INTEGERS)
    elif wanted in ("f16", "f32", "f64"):
        fits = sizes and bits
    else:
        fits = sizes and (bits or kind in _INTEGERS)
    return None if fits else f"is of type .{wanted}, and its register of type .{kind}"


def _vote(parts, kinds):
    wanted = "b32" if "ballot" in parts else "pred"
    mode = next((p for p in parts if p in ("all", "any", "uni", "ballot")), "")
    return None if parts[-1] == wanted else f".{mode} gives a .{wanted}"


def _signed(parts, kinds):
    return (
        f"takes signed numbers and floats, not .{parts[-1]}"
        if parts[-1] in _INTEGERS and parts[-1][0] == "u"
        else None
    )


def _atomic(parts, kinds):
    kind = parts[-1]
    op = next((p for p in parts[1:] if p in _ATOMICS), "")
    if not op or kind not in _BITS | _INTEGERS:
        return None
    wants_bits = op in ("and", "or", "xor", "cas", "exch")
    if wants_bits != (kind in _BITS):
        return f".{op} is of type {'.b' if wants_bits else '.u, .s or a float of '}{kind[1:]}, not .{kind}"
    return None


_ATOMICS = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "cas", "exch"}


def _comparison(parts, kinds):
    kind, operator = parts[-1], parts[1]
    if operator in _UNSIGNED_ONLY and (kind in _FLOATS or kind[0] != "u"):
        return f".{operator} compares unsigned numbers, not .{kind}"
    if operator in _ORDERED and kind in _BITS:
        return f".{operator} compares numbers, not .{kind}"
    return None


def _conversion(parts, kinds):
    if len(parts) < 3 or "pack" in parts:
        return None
    to, source = parts[-2:]
    words = set(parts[1:-2])
    if to in _INTEGERS and source in _INTEGERS and words & (_ROUNDINGS | _TO_INTEGER):
        return "takes no rounding between integers"
    if to in _INTEGERS and source in _FLOATS and not words & _TO_INTEGER:
        return "needs a rounding from a float to an integer: .rni, .rzi, .rmi or .rpi"
    if to in _FLOATS and source in _INTEGERS and not words & _ROUNDINGS:
        return "needs a rounding from an integer to a float: .rn, .rz, .rm or .rp"
    return None


def _barrier(parts, kinds):
    if "warp" in parts or "cluster" in parts:
        return None
    constants = [kind[1] if type(kind) is tuple and kind[0] is int else None for kind in kinds]
    if "red" in parts:
        constants = constants[1:]
    if constants and constants[0] is not None and not 0 <= constants[0] <= 15:
        return f"barriers are numbered 0 to 15, and this is {constants[0]}"
    if len(constants) > 1 and constants[1] is not None and constants[1] % 32:
        return f"counts threads of whole warps, a multiple of 32, not {constants[1]}"
    return None


def _elect(parts, kinds):
    return None if type(kinds[0]) is tuple and kinds[0][0] == "Pair" else "has two results, d|p"


_COMBINATIONS: dict[str, Callable] = {
    "vote": _vote,
    "neg": _signed,
    "abs": _signed,
    "atom": _atomic,
    "red": _atomic,
    "setp": _comparison,
    "set": lambda parts, kinds: _comparison(parts, kinds),
    "cvt": _conversion,
    "bar": _barrier,
    "barrier": _barrier,
    "elect": _elect,
}
