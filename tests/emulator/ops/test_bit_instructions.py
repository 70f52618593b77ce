"""Instructions on bits against Python's own integers, in all the ways a register can hold a value."""

import numpy as np
import pytest
from fragments_of_ptx import binary, bits_of, edges, pairs, run, unary


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
@pytest.mark.parametrize("opcode", ["and", "or", "xor"])
def test_logic(opcode, kind):
    reference = {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}[
        opcode
    ]
    binary(f"{opcode}.{kind}", kind, reference, edges(kind, 6), edges(kind, 6, seed=2))


@pytest.mark.parametrize("kind", ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"])
def test_shifts_clamp_past_the_width(kind):
    counts = np.array([0, 1, 7, 15, 16, 31, 32, 33, 63, 64, 65, 1 << 31, (1 << 32) - 1], np.uint32)
    bits = bits_of(kind)
    if kind[0] == "b":
        binary(
            f"shl.{kind}",
            kind,
            lambda x, n: x << n if n < bits else 0,
            edges(kind, 6),
            counts,
            "u32",
        )
    binary(f"shr.{kind}", kind, lambda x, n: x >> min(n, 200), edges(kind, 6), counts, "u32")


UNARY = {
    "not.b16": ("u16", "u16", lambda x: ~x),
    "not.b32": ("u32", "u32", lambda x: ~x),
    "not.b64": ("u64", "u64", lambda x: ~x),
    "cnot.b32": ("u32", "u32", lambda x: int(x == 0)),
    "popc.b32": ("u32", "u32", lambda x: x.bit_count()),
    "popc.b64": ("u64", "u32", lambda x: x.bit_count()),
    "clz.b32": ("u32", "u32", lambda x: 32 - x.bit_length()),
    "clz.b64": ("u64", "u32", lambda x: 64 - x.bit_length()),
    "brev.b32": ("u32", "u32", lambda x: int(f"{x:032b}"[::-1], 2)),
    "brev.b64": ("u64", "u64", lambda x: int(f"{x:064b}"[::-1], 2)),
    "bfind.u32": ("u32", "u32", lambda x: x.bit_length() - 1),
    "bfind.u64": ("u64", "u32", lambda x: x.bit_length() - 1),
    "bfind.s32": ("s32", "u32", lambda x: (x if x >= 0 else ~x).bit_length() - 1),
    "bfind.s64": ("s64", "u32", lambda x: (x if x >= 0 else ~x).bit_length() - 1),
    "bfind.shiftamt.u32": ("u32", "u32", lambda x: 32 - x.bit_length() if x else -1),
}


@pytest.mark.parametrize("opcode", UNARY)
def test_unary(opcode):
    unary(opcode, *UNARY[opcode])


def _field(x, position, length, kind):
    """PTX ISA 9.7.1.21, `bfe`, as its pseudocode has it."""
    bits = bits_of(kind)
    sign = 0
    if kind[0] == "s" and length:
        sign = x >> min(position + length - 1, bits - 1) & 1
    out = 0
    for i in range(bits):
        bit = x >> (position + i) & 1 if i < length and position + i < bits else sign
        out |= bit << i
    return out


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bfe(kind):
    x, where = pairs(edges(kind, 6), np.array([p | n << 8 for p in (0, 1, 5, 31, 32, 40, 63, 70, 255)
                                                for n in (0, 1, 8, 31, 32, 33, 63, 64, 200)], "u4"))  # fmt: skip
    position, length = where & 255, where >> 8
    got = run(
        f"bfe.{kind} %d, %a, %b, %c;",
        {"%a": (kind, x), "%b": ("u32", position), "%c": ("u32", length)}, {"%d": kind},
    )  # fmt: skip
    mask = (1 << bits_of(kind)) - 1
    for v, p, n, g in zip(x, position, length, got, strict=True):
        assert int(g) & mask == _field(int(v) & mask, int(p), int(n), kind), (v, p, n)


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_bfi(kind):
    x, where = pairs(edges(kind, 6), np.array([p | n << 8 for p in (0, 1, 5, 31, 32, 63, 70)
                                                for n in (0, 1, 8, 31, 32, 64, 200)], "u4"))  # fmt: skip
    y = np.roll(x, 11)
    position, length = where & 255, where >> 8
    got = run(
        f"bfi.{kind} %d, %a, %e, %b, %c;",
        {"%a": (kind, x), "%e": (kind, y), "%b": ("u32", position), "%c": ("u32", length)}, {"%d": kind},
    )  # fmt: skip
    bits = bits_of(kind)
    for v, w, p, n, g in zip(x, y, position, length, got, strict=True):
        expected = int(w)
        for i in range(int(n)):
            if p + i < bits:
                expected = expected & ~(1 << int(p + i)) | (int(v) >> i & 1) << int(p + i)
        assert int(g) == expected, (v, w, p, n)


def test_lop3_is_its_truth_table():
    rng = np.random.default_rng(3)
    x, y, z = rng.integers(0, 1 << 32, (3, 64), dtype="u4")
    for table in (0xE8, 0x96, 0xCA, 0x01, 0x80, 0xFE, 0x3C):
        got = run(
            f"lop3.b32 %d, %a, %b, %c, {table};",
            {"%a": ("b32", x), "%b": ("b32", y), "%c": ("b32", z)},
            {"%d": "b32"},
        )
        for p, q, r, g in zip(x, y, z, got, strict=True):
            bits = [
                table >> (4 * (p >> i & 1) + 2 * (q >> i & 1) + (r >> i & 1)) & 1
                for i in map(np.uint32, range(32))
            ]
            assert int(g) == sum(int(b) << i for i, b in enumerate(bits))


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("direction", ["l", "r"])
def test_funnel_shift(direction, mode):
    a, n = pairs(edges("b32", 6), np.array([0, 1, 5, 31, 32, 33, 40, 63, 64, (1 << 32) - 1], "u4"))
    b = np.roll(a, 13)
    got = run(
        f"shf.{direction}.{mode}.b32 %d, %a, %b, %c;",
        {"%a": ("b32", a), "%b": ("b32", b), "%c": ("u32", n)}, {"%d": "b32"},
    )  # fmt: skip
    for low, high, count, g in zip(a, b, n, got, strict=True):
        count = int(count) & 31 if mode == "wrap" else min(int(count), 32)
        both = int(high) << 32 | int(low)
        expected = both << count >> 32 if direction == "l" else both >> count
        assert int(g) == expected & 0xFFFFFFFF


def test_prmt():
    rng = np.random.default_rng(4)
    x, y, c = rng.integers(0, 1 << 32, (3, 200), dtype="u4")
    got = run(
        "prmt.b32 %d, %a, %b, %c;",
        {"%a": ("b32", x), "%b": ("b32", y), "%c": ("b32", c)},
        {"%d": "b32"},
    )
    for p, q, r, g in zip(x, y, c, got, strict=True):
        octets = int(q) << 32 | int(p)
        out = 0
        for i in range(4):
            selector = int(r) >> 4 * i & 15
            octet = octets >> 8 * (selector & 7) & 255
            out |= (255 * (octet >> 7) if selector & 8 else octet) << 8 * i
        assert int(g) == out
    modes = {
        "f4e": lambda c: [c, c + 1, c + 2, c + 3],
        "b4e": lambda c: [c, (c - 1) & 7, (c - 2) & 7, (c - 3) & 7],
        "rc8": lambda c: [c] * 4,
        "ecl": lambda c: [max(c, i) for i in range(4)],
        "ecr": lambda c: [min(c, i) for i in range(4)],
        "rc16": lambda c: [(c & 1) * 2, (c & 1) * 2 + 1] * 2,
    }
    for mode, pick in modes.items():
        got = run(
            f"prmt.b32.{mode} %d, %a, %b, %c;",
            {"%a": ("b32", x), "%b": ("b32", y), "%c": ("b32", c)},
            {"%d": "b32"},
        )
        for p, q, r, g in zip(x, y, c, got, strict=True):
            octets = int(q) << 32 | int(p)
            assert int(g) == sum(
                (octets >> 8 * s & 255) << 8 * i for i, s in enumerate(pick(int(r) & 3))
            )


def test_fns_szext_bmsk():
    mask, base = pairs(edges("b32", 4), np.array([0, 1, 5, 31], "u4"))
    for offset in (-3, -1, 0, 1, 2, 9):
        got = run(
            f"fns.b32 %d, %a, %b, {offset};",
            {"%a": ("b32", mask), "%b": ("b32", base)},
            {"%d": "b32"},
        )
        for m, b, g in zip(mask.tolist(), base.tolist(), got.tolist(), strict=True):
            order = range(b, 32) if offset >= 0 else range(b, -1, -1)
            found = [i for i in order if m >> i & 1]
            if offset == 0:
                expected = b if m >> b & 1 else 0xFFFFFFFF
            else:
                expected = found[abs(offset) - 1] if len(found) >= abs(offset) else 0xFFFFFFFF
            assert g == expected, (m, b, offset)
    x, n = pairs(edges("b32", 4), np.array([0, 1, 8, 31, 32, 33, 1000], "u4"))
    for kind in ("u32", "s32"):
        got = run(
            f"szext.clamp.{kind} %d, %a, %b;", {"%a": ("b32", x), "%b": ("b32", n)}, {"%d": "b32"}
        )
        for v, count, g in zip(x.tolist(), n.tolist(), got.tolist(), strict=True):
            count = min(count, 32)
            field = v & (1 << count) - 1
            if kind == "s32" and count and field >> count - 1:
                field |= 0xFFFFFFFF << count
            assert g == field & 0xFFFFFFFF
    first, count = pairs(np.array([0, 1, 16, 31], "u4"), np.array([0, 1, 16, 31, 32, 50], "u4"))
    got = run(
        "bmsk.clamp.b32 %d, %a, %b;", {"%a": ("b32", first), "%b": ("b32", count)}, {"%d": "b32"}
    )
    for a, b, g in zip(first.tolist(), count.tolist(), got.tolist(), strict=True):
        assert g == ((1 << b) - 1 << a) & 0xFFFFFFFF
