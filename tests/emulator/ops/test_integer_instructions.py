"""Integer instructions against Python's own integers, in all the ways a register can hold a value."""

import numpy as np
import pytest
from fragments_of_ptx import TYPES, binary, bits_of, edges, pairs, run, unary, wrap


def cut(x, y):
    """Division towards zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


ARITHMETIC = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul.lo": lambda x, y: x * y,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("opcode", ARITHMETIC)
def test_arithmetic(opcode, kind):
    binary(f"{opcode}.{kind}", kind, ARITHMETIC[opcode], edges(kind, 6), edges(kind, 6, seed=2))


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("opcode", ["div", "rem"])
def test_division(opcode, kind):
    def reference(x, y):
        if y == 0:
            return -1 if opcode == "div" else x
        return cut(x, y) if opcode == "div" else x - cut(x, y) * y

    binary(f"{opcode}.{kind}", kind, reference, edges(kind, 6), edges(kind, 6, seed=2))


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_high_product(kind):
    binary(
        f"mul.hi.{kind}",
        kind,
        lambda x, y: x * y >> bits_of(kind),
        edges(kind, 6),
        edges(kind, 6, seed=2),
    )


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_product(kind):
    wide = f"{kind[0]}{2 * bits_of(kind)}"
    binary(
        f"mul.wide.{kind}",
        kind,
        lambda x, y: x * y,
        edges(kind, 6),
        edges(kind, 6, seed=2),
        result=wide,
    )


@pytest.mark.parametrize("kind", ["u32", "s32"])
@pytest.mark.parametrize("half", ["lo", "hi"])
def test_mul24(kind, half):
    def low(x):
        x &= 0xFFFFFF
        return x - (1 << 24) if kind == "s32" and x >> 23 else x

    shift = 0 if half == "lo" else 16
    binary(
        f"mul24.{half}.{kind}",
        kind,
        lambda x, y: low(x) * low(y) >> shift,
        edges(kind, 6),
        edges(kind, 6, seed=2),
    )


COMPARISONS = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("operator", COMPARISONS)
def test_comparisons(operator, kind):
    reference = COMPARISONS[operator]
    code = f"{{ .reg .pred p; setp.{operator}.{kind} p, %a, %b; selp.u32 %d, 1, 0, p; }}"
    a, b = edges(kind, 6), edges(kind, 6, seed=2)
    x, y = pairs(a, b)
    got = run(code, {"%a": (kind, x), "%b": (kind, y)}, {"%d": "u32"})
    assert (got == [reference(int(p), int(q)) for p, q in zip(x, y, strict=True)]).all()
    for value in b[::3]:
        got = run(code, {"%a": (kind, a), "%b": (kind, value)}, {"%d": "u32"})
        assert (got == [reference(int(p), int(value)) for p in a]).all()


def test_unsigned_names_compare_unsigned():
    x, y = pairs(edges("u32"), edges("u32"))
    for name, reference in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
        code = f"{{ .reg .pred p; setp.{name}.u32 p, %a, %b; selp.u32 %d, 1, 0, p; }}"
        got = run(code, {"%a": ("u32", x), "%b": ("u32", y)}, {"%d": "u32"})
        assert (got == COMPARISONS[reference](x, y)).all()


@pytest.mark.parametrize("combine", ["and", "or", "xor"])
def test_setp_combines_and_has_two_destinations(combine):
    x, y = pairs(edges("s32"), edges("s32"))
    code = f"""{{ .reg .pred p, q, r; setp.gt.s32 r, %a, 1;
        setp.lt.{combine}.s32 p|q, %a, %b, !r; selp.u32 %d, 1, 0, p; selp.u32 %e, 1, 0, q; }}"""
    d, e = run(code, {"%a": ("s32", x), "%b": ("s32", y)}, {"%d": "u32", "%e": "u32"})
    function = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[combine]
    assert (d == function(x < y, ~(x > 1))).all()
    assert (e == function(~(x < y), ~(x > 1))).all()


def test_predicate_logic():
    x, y = pairs(np.array([0, 1], "u4"), np.array([0, 1], "u4"))
    code = """{ .reg .pred p, q, r; setp.ne.u32 p, %a, 0; setp.ne.u32 q, %b, 0;
        and.pred r, p, q; selp.u32 %d, 1, 0, r; or.pred r, p, q; @r add.u32 %d, %d, 2;
        xor.pred r, p, q; @r add.u32 %d, %d, 4; not.pred r, p; @!r add.u32 %d, %d, 8; }"""
    got = run(code, {"%a": ("u32", x), "%b": ("u32", y)}, {"%d": "u32"})
    assert (got == (x & y) + 2 * (x | y) + 4 * (x ^ y) + 8 * x).all()


@pytest.mark.parametrize("bits", [32, 64])
def test_carry_chains(bits):
    """A double-width sum, difference and product-sum, from carry instructions."""
    kind = f"u{bits}"
    a, b = edges(kind, 8), edges(kind, 8, seed=2)
    low_a, low_b = pairs(a, b)
    high_a, high_b = np.roll(low_a, 3), np.roll(low_b, 7)
    inputs = {"%a": (kind, low_a), "%b": (kind, low_b), "%e": (kind, high_a), "%f": (kind, high_b)}

    def whole(low, high):
        return [int(p) | int(q) << bits for p, q in zip(low, high, strict=True)]

    for name, sign in (("add", 1), ("sub", -1)):
        code = (
            f"{name}.cc.{kind} %x, %a, %b; {name}c.cc.{kind} %y, %e, %f; {name}c.{kind} %z, 0, 0;"
        )
        got = run(code, inputs, {"%x": kind, "%y": kind, "%z": kind})
        for p, q, x, y, z in zip(whole(low_a, high_a), whole(low_b, high_b), *got, strict=True):
            total = p + sign * q
            assert int(x) | int(y) << bits == total & ((1 << 2 * bits) - 1)
            assert int(z) == (total >> 2 * bits) & ((1 << bits) - 1)
    code = f"mad.lo.cc.{kind} %x, %a, %b, %e; madc.hi.{kind} %y, %a, %b, %f;"
    got = run(code, inputs, {"%x": kind, "%y": kind})
    for p, q, r, x, y in zip(low_a, low_b, whole(high_a, high_b), *got, strict=True):
        assert int(x) | int(y) << bits == (int(p) * int(q) + r) & ((1 << 2 * bits) - 1)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64", "u16", "s16"])
def test_mad(kind):
    x, y = pairs(edges(kind, 4), edges(kind, 4, seed=2))
    z = np.roll(x, 5)
    for opcode, reference in (
        (f"mad.lo.{kind}", lambda p, q, r: p * q + r),
        (f"mad.hi.{kind}", lambda p, q, r: (p * q >> bits_of(kind)) + r),
    ):
        got = run(
            f"{opcode} %d, %a, %b, %c;",
            {"%a": (kind, x), "%b": (kind, y), "%c": (kind, z)},
            {"%d": kind},
        )
        expected = [
            wrap(reference(int(p), int(q), int(r)), kind) for p, q, r in zip(x, y, z, strict=True)
        ]
        assert (got == np.array(expected, got.dtype)).all(), opcode
    if bits_of(kind) < 64:
        wide = f"{kind[0]}{2 * bits_of(kind)}"
        w = np.resize(edges(wide, 9), x.size)
        got = run(
            f"mad.wide.{kind} %d, %a, %b, %c;",
            {"%a": (kind, x), "%b": (kind, y), "%c": (wide, w)},
            {"%d": wide},
        )
        expected = [wrap(int(p) * int(q) + int(r), wide) for p, q, r in zip(x, y, w, strict=True)]
        assert (got == np.array(expected, got.dtype)).all()


def test_saturating_sums():
    x, y = pairs(edges("s32", 5), edges("s32", 5, seed=2))
    top = (1 << 31) - 1
    for opcode, sign in (("add", 1), ("sub", -1)):
        got = run(
            f"{opcode}.sat.s32 %d, %a, %b;", {"%a": ("s32", x), "%b": ("s32", y)}, {"%d": "s32"}
        )
        expected = [
            max(-top - 1, min(top, int(p) + sign * int(q))) for p, q in zip(x, y, strict=True)
        ]
        assert (got == expected).all()


UNARY = {
    "neg.s32": ("s32", "s32", lambda x: -x),
    "neg.s64": ("s64", "s64", lambda x: -x),
    "abs.s32": ("s32", "s32", abs),
    "abs.s64": ("s64", "s64", abs),
    "abs.s16": ("s16", "s16", abs),
}


@pytest.mark.parametrize("opcode", UNARY)
def test_unary(opcode):
    unary(opcode, *UNARY[opcode])


def test_dot_products():
    rng = np.random.default_rng(5)
    x, y, z = rng.integers(0, 1 << 32, (3, 100), dtype="u4")
    for a_kind in ("u32", "s32"):
        for b_kind in ("u32", "s32"):
            octets = {"u32": "u1", "s32": "i1"}
            halves = {"u32": "u2", "s32": "i2"}
            a4 = x.view(octets[a_kind]).reshape(-1, 4).astype(int)
            b4 = y.view(octets[b_kind]).reshape(-1, 4).astype(int)
            a2 = x.view(halves[a_kind]).reshape(-1, 2).astype(int)
            inputs = {"%a": ("b32", x), "%b": ("b32", y), "%c": ("b32", z)}
            got = run(f"dp4a.{a_kind}.{b_kind} %d, %a, %b, %c;", inputs, {"%d": "b32"})
            assert (got == ((a4 * b4).sum(1) + z.astype(int)) % (1 << 32)).all()
            for half, part in (("lo", b4[:, :2]), ("hi", b4[:, 2:])):
                got = run(f"dp2a.{half}.{a_kind}.{b_kind} %d, %a, %b, %c;", inputs, {"%d": "b32"})
                assert (got == ((a2 * part).sum(1) + z.astype(int)) % (1 << 32)).all()


def test_sad_selection_and_sets():
    for kind in ("s32", "u32", "s64"):
        x, y = pairs(edges(kind, 4), edges(kind, 4, seed=2))
        z = np.roll(x, 3).view(f"u{x.itemsize}")
        got = run(
            f"sad.{kind} %d, %a, %b, %c;", {"%a": (kind, x), "%b": (kind, y), "%c": (f"u{kind[1:]}", z)},
            {"%d": f"u{kind[1:]}"},
        )  # fmt: skip
        for p, q, r, g in zip(x.tolist(), y.tolist(), z.tolist(), got.tolist(), strict=True):
            assert g == (abs(p - q) + r) & (1 << bits_of(kind)) - 1
    x, y = pairs(edges("s32"), edges("s32"))
    got = run("slct.s32.s32 %d, 11, 22, %a;", {"%a": ("s32", x)}, {"%d": "s32"})
    assert (got == np.where(x >= 0, 11, 22)).all()
    got = run("set.lt.u32.s32 %d, %a, %b;", {"%a": ("s32", x), "%b": ("s32", y)}, {"%d": "u32"})
    assert (got == np.where(x < y, 0xFFFFFFFF, 0)).all()
    got = run("set.lt.f32.s32 %d, %a, %b;", {"%a": ("s32", x), "%b": ("s32", y)}, {"%d": "f32"})
    assert (got == (x < y)).all()


@pytest.mark.parametrize("source", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("to", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
def test_integer_conversions(to, source):
    """Narrow results are extended to the register that holds them."""
    x = edges(source, 10)
    result = to if bits_of(to) > 8 else f"{to[0]}16"
    got = run(f"cvt.{to}.{source} %d, %a;", {"%a": (source, x)}, {"%d": result})
    assert (got == np.array([wrap(int(v), to) for v in x], TYPES[result])).all()
    for v in x[::4]:
        assert (
            run(f"cvt.{to}.{source} %d, %a;", {"%a": (source, v)}, {"%d": result})
            == wrap(int(v), to)
        ).all()
    got = run(f"cvt.sat.{to}.{source} %d, %a;", {"%a": (source, x)}, {"%d": result})
    info = np.iinfo(TYPES[to])
    assert (
        got == np.array([min(max(int(v), int(info.min)), int(info.max)) for v in x], TYPES[result])
    ).all()


def test_cvt_pack():
    x, y = pairs(edges("s32", 4), edges("s32", 4, seed=2))
    got = run(
        "cvt.pack.sat.s16.s32 %d, %a, %b;", {"%a": ("s32", x), "%b": ("s32", y)}, {"%d": "u32"}
    )
    clip = [np.clip(v, -32768, 32767).astype("i2").view("u2").astype("u4") for v in (x, y)]
    assert (got == (clip[0] << 16 | clip[1])).all()
    got = run(
        "cvt.pack.sat.u8.s32.b32 %d, %a, %b, 0x1234;",
        {"%a": ("s32", x), "%b": ("s32", y)},
        {"%d": "u32"},
    )
    clip = [np.clip(v, 0, 255).astype("u4") for v in (x, y)]
    assert (got == (0x1234 << 16 | clip[0] << 8 | clip[1])).all()


def test_pack_and_unpack():
    x = edges("u64", 20)
    code = """{ .reg .b32 lo, hi; .reg .b16 a, b, c, e; mov.b64 {lo, hi}, %a; mov.b64 %d, {hi, lo};
        mov.b64 {a, b, c, e}, %a; mov.b32 %e, {e, a}; mov.b64 {_, %f}, %a; }"""
    d, e, f = run(code, {"%a": ("b64", x)}, {"%d": "b64", "%e": "b32", "%f": "b32"})
    parts = x.view("u2").reshape(-1, 4).astype("u4")
    assert (d == (x >> 32 | x << 32)).all()
    assert (e == (parts[:, 3] | parts[:, 0] << 16)).all()
    assert (f == x >> 32).all()


def test_affine_values_wrap_like_registers():
    """Indices that only ever change by uniform amounts stay symbolic; they still wrap at 32 bits."""
    code = """{ .reg .b64 w; mul.lo.u32 %d, %n, 0x10000001; add.u32 %d, %d, 0x7ffffff0; shl.b32 %d, %d, 3;
        sub.u32 %d, %d, 0x11; or.b32 %d, %d, 6; cvt.u64.u32 w, %d; mul.wide.s32 %e, %d, 5; add.s64 %e, %e, w;
        shr.u32 %f, %d, 4; and.b32 %f, %f, 0xffff; }"""
    d, e, f = run(code, {}, {"%d": "u32", "%e": "u64", "%f": "u32"}, threads=64)
    for n in range(64):
        v = ((n * 0x10000001 + 0x7FFFFFF0) * 8 - 0x11 & 0xFFFFFFFF) | 6
        assert d[n] == v
        assert int(e[n]) == (wrap(v, "s32") * 5 + v) & (1 << 64) - 1
        assert f[n] == v >> 4 & 0xFFFF


def test_one_pattern_in_registers_of_two_widths():
    """What is remembered about operands at 32 bits is not used at 64."""
    code = """{ .reg .b32 x, y; .reg .b64 w, z; mul.lo.u32 x, %n, 0x10000001; add.u32 x, x, 0x80000000; and.b32 x, x, -1;
        mul.lo.u32 y, %n, 0x01234567; mul.lo.u32 %d, x, y; xor.b32 %e, x, y; cvt.u64.u32 w, x; cvt.u64.u32 z, y;
        mul.lo.u64 %f, w, z; xor.b64 %g, w, z; }"""
    d, e, f, g = run(code, {}, {"%d": "u32", "%e": "u32", "%f": "u64", "%g": "u64"}, threads=64)
    for n in range(64):
        x, y = (n * 0x10000001 + 0x80000000) % (1 << 32), n * 0x01234567 % (1 << 32)
        assert (d[n], e[n], f[n], g[n]) == (x * y % (1 << 32), x ^ y, x * y, x ^ y)


def test_mad24_saturates():
    """PTX ISA 9.7.1.6: bits 47 to 16 of the product of 24-bit numbers, plus c, clamped to 32 bits."""
    rng = np.random.default_rng(24)
    a, b, c = (rng.integers(-(1 << 31), 1 << 31, 512).astype("i4") for _ in range(3))
    c[::2] = np.where(rng.integers(0, 2, 256), (1 << 31) - 1, -(1 << 31))
    inputs = {name: ("s32", x) for name, x in zip(("%a", "%b", "%c"), (a, b, c), strict=True)}
    got = run("mad24.hi.sat.s32 %d, %a, %b, %c;", inputs, {"%d": "s32"})

    def low(x):
        return (int(x) & 0xFFFFFF ^ 0x800000) - 0x800000

    exact = [(low(x) * low(y) >> 16) + int(z) for x, y, z in zip(a, b, c, strict=True)]
    clamped = [min(max(e, -(1 << 31)), (1 << 31) - 1) for e in exact]
    assert clamped != exact and got.tolist() == clamped
