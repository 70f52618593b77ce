"""Video instructions against PTX ISA 9.7.18, written down with Python's integers, one thread at a time."""

import re

import numpy as np
import pytest
from probed import load

import emulator
from emulator.ops.video import DIFFERS

uncommon = load("uncommon")
MASK = 0xFFFFFFFF
FORMS = sorted(set(uncommon.video_forms()))
ROOTS = sorted({body.split(".")[0] for body in FORMS})


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def picked(word, selector, kind):
    """partSelectSignExtend: a byte, a half or all of a register, as a number of the type's sign."""
    bits = {"b": 8, "h": 16, "": 32}[selector[:1]]
    value = word >> bits * int(selector[1:] or 0) & ((1 << bits) - 1)
    return signed(value, bits) if kind == "s32" else value


def clamped(value, bits, is_signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def merged(value, selector, c):
    bits = {"b": 8, "h": 16}[selector[0]]
    at, part = bits * int(selector[1:]), (1 << bits) - 1
    return c & ~(part << at) & MASK | (value & part) << at


def average(a, b):
    return a + b + 1 >> 1 if a + b >= 0 else a + b >> 1


OPERATIONS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "absdiff": lambda a, b: abs(a - b), "min": min,
    "max": max, "avrg": average,
}  # fmt: skip
COMPARED = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def parsed(body):
    """(opcode's words, [(negative, register number or None, selector), ...]) of an instruction."""
    opcode, operands = body.rstrip(";").split(" ", 1)
    found = []
    for text in operands.split(","):
        match = re.fullmatch(r"\s*(-?)%[xy](\d)\.?(\w*)", text)
        found.append((match[1] == "-", int(match[2]), match[3]))
    return opcode.split("."), found


def expected(body, words):
    (root, *parts), operands = parsed(body)
    types = [part for part in parts if part in ("u32", "s32")]
    compare = next((COMPARED[p] for p in parts if p in COMPARED), None)
    of_d, of_a, of_b = ["u32", *types] if compare else types
    (_, _, into), (minus_a, a, part_a), (minus_b, b, part_b), *third = operands
    c = words[third[0][1]] if third else 0
    if root[-1] in "24":
        operation = compare or OPERATIONS[root[1:-1]]
        return at_once(int(root[-1]), operation, of_d, of_a, of_b, parts, into, (words[a], part_a),
                       (words[b], part_b), c)  # fmt: skip
    a, b = picked(words[a], part_a, of_a), picked(words[b], part_b, of_b)
    if root == "vmad":
        return multiplied(a, b, c, of_a, of_b, parts, minus_a != minus_b, third[0][0])
    if root in ("vshl", "vshr"):
        by = min(b, 32) if "clamp" in parts else b & 31
        value = a << by if root == "vshl" else a >> by
    else:
        value = compare(a, b) if compare else OPERATIONS[root[1:]](a, b)
    value = int(value)
    if "sat" in parts:
        value = clamped(value, {"b": 8, "h": 16, "": 32}[into[:1]], of_d == "s32")
    second = next((p for p in parts if p in ("add", "min", "max")), None)
    if second:  # of vset, c has the sign of a's type: measured
        value = OPERATIONS[second](
            value, signed(c, 32) if (of_a if compare else of_d) == "s32" else c
        )
    return merged(value, into, c) if into else value & MASK


def multiplied(a, b, c, of_a, of_b, parts, minus_product, minus_c):
    final = "s32" in (of_a, of_b) or minus_product or minus_c
    value = a * b
    more = int("po" in parts)
    if minus_product:
        value, more = ~value, 1
    if minus_c:
        c, more = ~c & MASK, 1
    value += (signed(c, 32) if final else c) + more
    value >>= 7 if "shr7" in parts else 15 if "shr15" in parts else 0
    return (clamped(value, 32, final) if "sat" in parts else value) & MASK


def at_once(count, operation, of_d, of_a, of_b, parts, into, a, b, c):
    bits, letter = 32 // count, "h" if count == 2 else "b"
    both = a[0] | b[0] << 32
    usual = ["10", "32"] if count == 2 else ["3210", "7654"]
    chosen = [x[1][1:] or u for x, u in zip((a, b), usual, strict=True)]
    found = c
    for i in range(count):
        if into and str(i) not in into[1:]:
            continue
        u, v = (
            picked(both >> bits * int(digits[count - 1 - i]) & MASK, f"{letter}0", kind)
            for digits, kind in zip(chosen, (of_a, of_b), strict=True)
        )
        value = int(operation(u, v))
        if "sat" in parts:
            value = clamped(value, bits, of_d == "s32")
        found = found + value if "add" in parts else merged(value, f"{letter}{i}", found)
    return found & MASK


def stored(forms, inputs):
    """What each form leaves, by one launch: (form, thread)."""
    body = "\n".join(form.replace("%y0", f"%y{i}") for i, form in enumerate(forms))
    probe = uncommon.Probe("all", body, inputs, len(forms))
    out = np.zeros((len(inputs), len(forms)), np.uint32)
    module = emulator.Module(uncommon.module([uncommon.entry("all", probe)]))
    module.launch("all", len(inputs) // 32, 32, [inputs, out])
    return out.T


@pytest.mark.parametrize("root", ROOTS)
def test_every_form_of_it(root):
    forms = [body for body in FORMS if body.startswith(f"{root}.")][::3]
    assert len(forms) > 10
    forms = [body for body in forms if not refused(body)]
    assert forms
    inputs = uncommon.video_words(7, 32)
    for body, found in zip(forms, stored(forms, inputs), strict=True):
        wanted = [expected(body, words) for words in inputs.tolist()]
        assert found.tolist() == wanted, body


def refused(body):
    try:
        stored([body], uncommon.video_words(1, 32))
    except emulator.Unsupported as problem:
        assert DIFFERS in str(problem)
        return True
    return False


@pytest.mark.parametrize(
    "body",
    [
        "vadd.u32.u32.u32 %y0.h1, %x0, %x1, %x2;",
        "vadd.u32.u32.u32.sat %y0, %x0, %x1;",
        "vsub.s32.s32.s32.sat %y0.b0, %x0, %x1, %x2;",
        "vadd.s32.s32.s32.min %y0, %x0, %x1, %x2;",
        "vmin.u32.u32.s32.max %y0, %x0, %x1, %x2;",
        "vshl.s32.s32.u32.sat.clamp %y0, %x0, %x3;",
        "vmad.u32.u32.u32.shr7 %y0, %x0, %x1, %x2;",
        "vmad.s32.s32.u32.sat %y0, %x0, %x1, %x2;",
    ],
)
def test_where_a_gpu_departs_from_the_isa_it_is_refused(body):
    assert refused(body)


def run_one(body):
    inputs = uncommon.video_words(1, 32)
    stored([body], inputs)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("vadd.s32.u32.s32 %y0.b3, %x0, %x1;", "c goes with"),
        ("vadd.s32.u32.s32 %y0, %x0, %x1, %x2;", "c goes with"),
        ("vadd.s32.u32.s32.add %y0.b3, %x0, %x1, %x2;", "not both"),
        ("vadd.s32.u32 %y0, %x0, %x1;", "3 types"),
        ("vadd.s32.u32.s32 %y0, %x0.h2, %x1;", "takes no .h2"),
        ("vshl.s32.u32.s32.clamp %y0, %x0, %x1;", "shift"),
        ("vshl.s32.u32.u32 %y0, %x0, %x1;", "needs one of .clamp, .wrap"),
        ("vmad.s32.u32.u32 %y0, -%x0, %x1, -%x2;", "either"),
        ("vmad.s32.u32.u32.po %y0, -%x0, %x1, %x2;", "no negated"),
        ("vadd2.s32.u32.s32.sat.add %y0, %x0, %x1, %x2;", "does not go with"),
        ("vadd2.s32.u32.s32 %y0, %x0, %x1;", "takes 4 operands"),
        ("vadd2.s32.u32.s32 %y0, %x0.h4, %x1, %x2;", "takes no .h4"),
        ("vadd4.s32.u32.s32 %y0, %x0.b10, %x1, %x2;", "takes no .b10"),
        ("vavrg.s32.u32.s32 %y0, %x0, %x1;", "vavrg"),
        ("add.u32 %y0, %x0.b1, %x1;", "no selector"),
        ("mul.lo.u32 %y0, -%x0, %x1;", "no sign"),
    ],
)
def test_what_ptxas_refuses_is_refused(body, why):
    with pytest.raises(emulator.EmulatorError, match=why) as caught:
        run_one(body)
    assert "PTX line" in str(caught.value)
