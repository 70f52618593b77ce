"""Products of 4-bit, 1-bit and sparse operands against plain integer products of whole matrices.

Where an element lies among the registers is written down here lane by lane, from the figures of PTX ISA
9.7.14.5 and 9.7.14.6.
"""

import numpy as np
import pytest
from fragments_of_ptx import run
from probed import load

import emulator

uncommon = load("uncommon")
LANES = range(32)
BITS = {
    "s4": 4,
    "u4": 4,
    "b1": 1,
    "s8": 8,
    "u8": 8,
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "e4m3": 8,
    "e5m2": 8,
}


def line_of_a(lane, i, bits, rows):
    """(row, column) of element i of A in a lane: 8 rows at a time, then the next 4 registers' columns."""
    per = 32 // bits
    register, place = divmod(i, per)
    row = lane // 4 + (8 * (register % 2) if rows == 16 else 0)
    block = register // 2 if rows == 16 else register
    return row, block * 4 * per + lane % 4 * per + place


def held(bits_of, registers, bits):
    """Registers (registers, 32) from bits_of(lane, i) of each element."""
    per = 32 // bits
    found = np.zeros((registers, 32), np.uint64)
    for lane in LANES:
        for i in range(registers * per):
            found[i // per, lane] |= np.uint64(int(bits_of(lane, i)) << bits * (i % per))
    return found.astype(np.uint32)


def a_registers(a, bits):
    rows, cols = a.shape
    return held(lambda lane, i: a[line_of_a(lane, i, bits, rows)], rows * cols * bits // 1024, bits)


def b_registers(b, bits):
    turned = b.T  # B is held as an A of eight rows, transposed
    return held(lambda lane, i: turned[line_of_a(lane, i, bits, 8)], b.size * bits // 1024, bits)


def c_place(lane, i):
    return lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2


def encoded(values, type):
    """The bits of small integers in a type."""
    if type == "f16":
        return values.astype(np.float16).view(np.uint16)
    if type in ("bf16", "tf32"):
        return values.astype(np.float32).view(np.uint32) >> (16 if type == "bf16" else 0)
    if type in ("e4m3", "e5m2"):
        half = values.astype(np.float16).view(np.uint16)
        if type == "e5m2":
            return half >> 8
        exponent, sign = (half >> 10 & 31).astype(np.int64), half >> 15
        code = np.where(values == 0, 0, (exponent - 15 + 7) << 3 | half >> 7 & 7)
        return code | sign << 7
    return values & ((1 << BITS[type]) - 1)


def executed(opcode, registers, outputs, floating=False, last=""):
    """What one warp leaves. registers: of a, b, c and perhaps metadata, each (n, 32)."""
    names, lines, first = [], [], 0
    for letter, given in zip("abc", registers, strict=False):
        kind = "f32" if floating and letter == "c" else "b32"
        names.append([f"%{letter}{i}" for i in range(len(given))])
        lines += [f".reg .{kind} {', '.join(names[-1])};"]
        lines += [f"mov.b32 {name}, %x{first + i};" for i, name in enumerate(names[-1])]
        first += len(given)
    results = [f"%d{i}" for i in range(outputs)]
    lines += [f".reg .{'f32' if floating else 'b32'} {', '.join(results)};"]
    vectors = ", ".join("{" + ", ".join(group) + "}" for group in (results, *names))
    last = f", %x{first}, {last}" if last else ""
    lines += [f"{opcode} {vectors}{last};", *[f"mov.b32 %y{i}, %d{i};" for i in range(outputs)]]
    inputs = np.ascontiguousarray(np.concatenate(registers).T)
    probe = uncommon.Probe(opcode, "\n".join(lines), inputs, outputs)
    out = np.zeros((32, outputs), np.uint32)
    module = emulator.Module(uncommon.module([uncommon.entry("k", probe)]))
    module.launch("k", 1, 32, [inputs, out])
    return out.T


def matrix(registers, rows):
    found = np.zeros((rows, 8), np.int64)
    for lane in LANES:
        for i in range(len(registers)):
            found[c_place(lane, i)] = registers[i, lane].view(np.int32)
    return found


def integers(rng, type, shape):
    low, high = {"b1": (0, 2), "s4": (-8, 8), "u4": (0, 16), "s8": (-128, 128), "u8": (0, 256)}[
        type
    ]
    return rng.integers(low, high, shape)


@pytest.mark.parametrize("clamp", ["", ".satfinite"])
@pytest.mark.parametrize("types", ["s4.s4", "s4.u4", "u4.s4", "u4.u4"])
@pytest.mark.parametrize("shape", [(8, 32), (16, 32), (16, 64)])
def test_four_bits(shape, types, clamp):
    (m, k), (ta, tb), rng = shape, types.split("."), np.random.default_rng(sum(map(ord, types)))
    a, b = integers(rng, ta, (m, k)), integers(rng, tb, (k, 8))
    c = rng.integers(-(1 << 31), 1 << 31, (m, 8))
    c[::2] = rng.choice([(1 << 31) - 1, -(1 << 31)], c[::2].shape)
    registers = [a_registers(encoded(a, ta), 4), b_registers(encoded(b, tb), 4)]
    registers.append(held(lambda lane, i: c[c_place(lane, i)] & 0xFFFFFFFF, m // 4, 32))
    d = executed(f"mma.sync.aligned.m{m}n8k{k}.row.col{clamp}.s32.{types}.s32", registers, m // 4)
    wanted = a @ b + c
    if clamp:
        wanted = np.clip(wanted, -(1 << 31), (1 << 31) - 1)
    assert (matrix(d, m) == wanted.astype(np.int32)).all()


@pytest.mark.parametrize("operation", ["and", "xor"])
@pytest.mark.parametrize("shape", [(8, 128), (16, 128), (16, 256)])
def test_single_bits(shape, operation):
    (m, k), rng = shape, np.random.default_rng(3)
    a, b = rng.integers(0, 2, (m, k)), rng.integers(0, 2, (k, 8))
    c = rng.integers(-100, 100, (m, 8))
    registers = [a_registers(a, 1), b_registers(b, 1)]
    registers.append(held(lambda lane, i: c[c_place(lane, i)] & 0xFFFFFFFF, m // 4, 32))
    opcode = f"mma.sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32.{operation}.popc"
    d = executed(opcode, registers, m // 4)
    combine = np.logical_and if operation == "and" else np.logical_xor
    counts = combine(a[:, :, None], b[None]).sum(axis=1)
    assert (matrix(d, m) == counts + c).all()


@pytest.mark.parametrize(
    ("type", "k", "popc"),
    [("s4", 32, ""), ("u4", 32, ""), ("b1", 128, ".xor.popc"), ("b1", 128, ".and.popc")],
)
def test_wmma_from_memory_to_memory(type, k, popc):
    """Rows of A and columns of B lie `stride` elements apart, as nvcuda::wmma's sub-byte fragments want them."""
    rng, stride = np.random.default_rng(8), 2 * k
    a, b = integers(rng, type, (8, k)), integers(rng, type, (k, 8))
    c = rng.integers(-1000, 1000, (8, 8)).astype(np.int32)
    per, bits = 32 // BITS[type], BITS[type]

    def packed(lines):
        wide = np.zeros((8, stride), np.int64)
        wide[:, :k] = encoded(lines, type)
        words = wide.reshape(8, -1, per) << bits * np.arange(per)
        return np.bitwise_or.reduce(words, axis=-1).astype(np.uint32)

    ptx = f""".version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc)
{{
    .reg .b64 %p<3>; .reg .b32 %a, %b, %c<2>, %s;
    ld.param.u64 %p0, [pa]; ld.param.u64 %p1, [pb]; ld.param.u64 %p2, [pc];
    mov.u32 %s, {stride};
    wmma.load.a.sync.aligned.row.m8n8k{k}.global.{type} {{%a}}, [%p0], %s;
    wmma.load.b.sync.aligned.col.m8n8k{k}.global.{type} {{%b}}, [%p1], {stride};
    wmma.load.c.sync.aligned.row.m8n8k{k}.global.s32 {{%c0, %c1}}, [%p2];
    wmma.mma{popc}.sync.aligned.row.col.m8n8k{k}.s32.{type}.{type}.s32 {{%c0, %c1}}, {{%a}}, {{%b}}, {{%c0, %c1}};
    wmma.store.d.sync.aligned.row.m8n8k{k}.global.s32 [%p2], {{%c0, %c1}};
    ret;
}}
"""
    found = c.copy()
    emulator.Module(ptx).launch("k", 1, 32, [packed(a), packed(b.T), found])
    if popc:
        combine = np.logical_and if "and" in popc else np.logical_xor
        wanted = combine(a[:, :, None], b[None]).sum(axis=1) + c
    else:
        wanted = a @ b + c
    assert (found == wanted).all()


# --- Sparse ---------------------------------------------------------------------------------------

SPARSE = [
    *[("f16", "f16", k, d) for k in (16, 32) for d in ("f16", "f32")],
    *[("bf16", "bf16", k, "f32") for k in (16, 32)],
    *[("tf32", "tf32", k, "f32") for k in (8, 16)],
    *[(a, b, k, "s32") for k in (32, 64) for a in ("s8", "u8") for b in ("s8", "u8")],
    *[(a, b, k, "s32") for k in (64, 128) for a in ("s4", "u4") for b in ("s4", "u4")],
    *[(a, b, 64, "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")],
]


def compressed(rng, a, type, ordered):
    """Keeps half of A (16, k) in place; returns it, what is stored (16, k / 2) and each row's metadata bits.

    The four bits of a chunk: index of the first stored element (pair of elements of s4) low, of the second high;
    of tf32 0b0100 for the first of two, 0b1110 for the second.
    """
    k = a.shape[1]
    kept, stored, bits = np.zeros_like(a), [], []
    chunk = {"s4": 8, "u4": 8, "tf32": 2}.get(type, 4)
    for row in range(16):
        values, codes = [], []
        for first in range(0, k, chunk):
            if type == "tf32":
                place = int(rng.integers(2))
                codes.append((0b0100, 0b1110)[place])
                spots = [first + place]
            else:
                one, two = rng.permutation(4)[:2]
                one, two = (min(one, two), max(one, two)) if ordered else (one, two)
                codes.append(int(one) | int(two) << 2)
                wide = chunk // 4
                spots = [first + wide * int(i) + e for i in (one, two) for e in range(wide)]
            values += [a[row, spot] for spot in spots]
            kept[row, spots] = a[row, spots]
        stored.append(values)
        bits.append(sum(code << 4 * i for i, code in enumerate(codes)))
    return kept, np.array(stored), bits


def metadata_registers(rng, rows, type, k, selector):
    """(1, 32): which lanes hold which bits; the others hold bits that must not matter."""
    found = rng.integers(0, 1 << 32, (1, 32)).astype(np.uint32)
    for g in range(8):
        low, high = rows[g], rows[g + 8]
        if type in ("f16", "bf16", "tf32"):
            halves = [(low >> 16 * i & 0xFFFF) | (high >> 16 * i & 0xFFFF) << 16 for i in range(2)]
            words = halves[: 1 if k == (8 if type == "tf32" else 16) else 2]
        else:
            words = [low & 0xFFFFFFFF, high & 0xFFFFFFFF, low >> 32, high >> 32]
            words = words[: 2 if k == (64 if type in ("s4", "u4") else 32) else 4]
        for i, word in enumerate(words):
            found[0, 4 * g + selector * len(words) + i] = word
    return found


def selectors(type, k):
    if type in ("e4m3", "e5m2"):
        return 1
    narrow = {"f16": 16, "bf16": 16, "tf32": 8, "s8": 32, "u8": 32, "s4": 64, "u4": 64}[type]
    most = 4 if type in ("f16", "bf16", "tf32") else 2
    return most if k == narrow else most // 2


@pytest.mark.parametrize("ordered", [False, True], ids=["any order", "ordered"])
@pytest.mark.parametrize("case", SPARSE, ids=lambda case: ".".join(map(str, case)))
def test_sparse(case, ordered):
    ta, tb, k, d = case
    rng = np.random.default_rng(k)
    whole = d == "s32"
    small = (
        (lambda t, shape: integers(rng, t, shape))
        if whole
        else (lambda t, shape: rng.integers(-4, 5, shape))
    )
    a, b = small(ta, (16, k)), small(tb, (k, 8))
    c = rng.integers(-50, 50, (16, 8))
    kept, stored, rows = compressed(rng, a, ta, ordered)
    wanted = kept @ b + c
    bits_c = {"s32": lambda v: v & 0xFFFFFFFF, "f32": lambda v: int(np.float32(v).view(np.uint32))}
    registers = [a_registers(encoded(stored, ta), BITS[ta]), b_registers(encoded(b, tb), BITS[tb])]
    if d == "f16":
        halves = c.astype(np.float16).view(np.uint16)
        registers.append(held(lambda lane, i: halves[c_place(lane, i)], 2, 16))
    else:
        registers.append(held(lambda lane, i: bits_c[d](c[c_place(lane, i)]), 4, 32))
    form = "sp::ordered_metadata" if ordered else "sp"
    opcode = f"mma.{form}.sync.aligned.m16n8k{k}.row.col.{d}.{ta}.{tb}.{d}"
    for selector in range(selectors(ta, k)):
        e = metadata_registers(rng, rows, ta, k, selector)
        out = executed(opcode, [*registers, e], 2 if d == "f16" else 4, d == "f32", str(selector))
        if d == "f16":
            found = np.zeros((16, 8))
            for lane in LANES:
                for i in range(4):
                    half = np.uint16(
                        out[i // 2, lane] >> np.uint32(16 * (i % 2)) & np.uint32(0xFFFF)
                    )
                    found[c_place(lane, i)] = half.view(np.float16)
        else:
            found = matrix(out, 16)
            if d == "f32":
                found = found.astype(np.int32).view(np.float32)
        assert (found == wanted).all(), selector


def sparse_f16(metadata, form="sp", k=16, selector="0"):
    rows = [metadata] * 16
    rng = np.random.default_rng(1)
    ones = np.full((16, k // 2), 0x3C00)
    registers = [
        a_registers(ones, 16),
        b_registers(np.full((k, 8), 0x3C00), 16),
        np.zeros((4, 32), np.uint32),
    ]
    e = metadata_registers(rng, rows, "f16", k, int(selector) % 2)
    opcode = f"mma.{form}.sync.aligned.m16n8k{k}.row.col.f32.f16.f16.f32"
    return executed(opcode, [*registers, e], 4, True, selector)


def test_infinities_that_are_not_chosen_do_not_matter():
    rng = np.random.default_rng(4)
    a, b = np.full((16, 8), 0x3C00), np.full((16, 8), 0x7C00)
    b[0::4] = b[2::4] = 0x4000  # rows 0 and 2 of each chunk: two
    registers = [a_registers(a, 16), b_registers(b, 16), np.zeros((4, 32), np.uint32)]
    e = metadata_registers(rng, [0x8888] * 16, "f16", 16, 2)
    opcode = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    found = executed(opcode, [*registers, e], 4, True, "2").view(np.float32)
    assert (found == 16).all()


def test_metadata_without_a_meaning_is_an_error():
    assert (sparse_f16(0x4E4E).view(np.float32) == 8).all()
    with pytest.raises(emulator.ExecutionError, match="row 0, chunk 1 are 0b0101"):
        sparse_f16(0x4E5E)
    assert (sparse_f16(0x4E1E).view(np.float32) == 8).all()  # descending
    with pytest.raises(emulator.ExecutionError, match="row 0, chunk 1 are 0b0001"):
        sparse_f16(0x4E1E, "sp::ordered_metadata")


@pytest.mark.parametrize(
    ("form", "k", "selector", "why"),
    [("sp", 16, "4", "below 4"), ("sp", 32, "2", "below 2"), ("sp", 64, "0", "no such")],
)
def test_what_there_is_not(form, k, selector, why):
    with pytest.raises(emulator.Unsupported, match=why):
        sparse_f16(0x4E4E4E4E, form, k, selector)


@pytest.mark.parametrize(
    ("unset", "stored", "found"),
    [
        ("none", "%d0", False),
        ("%c0", "%d0", True),
        ("%c0", "%d2", False),
        ("%b1", "%d0", False),
    ],
)
def test_what_nothing_has_set_is_followed(unset, stored, found):
    """The metadata choose rows 0 and 1 of each four: those of %b0 in even lanes, and nothing of odd ones'."""
    sets = {
        "%a0": 0x3C003C00,
        "%a1": 0x3C003C00,
        "%b0": 0x3C003C00,
        "%b1": 0x3C003C00,
        "%e": 0x44444444,
    }
    lines = [
        f"mov.b32 {name}, {value};" for name, value in sets.items() if name not in (unset, "%b1")
    ]
    lines += [f"mov.f32 %c{i}, 0f3F800000;" for i in range(4) if f"%c{i}" != unset]
    guard = (
        "@%p " if unset == "%b1" else ""
    )  # lanes 1 and 3 of each four hold rows that are not chosen
    text = f"""{{ .reg .b32 %a<2>, %b<2>, %e, %t; .reg .f32 %c<4>, %d<4>; .reg .pred %p;
    and.b32 %t, %n, 1; setp.eq.u32 %p, %t, 0; {guard}mov.b32 %b1, 0x3C003C00; {" ".join(lines)}
    mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%d0, %d1, %d2, %d3}}, {{%a0, %a1}}, {{%b0, %b1}},
    {{%c0, %c1, %c2, %c3}}, %e, 0;
    mov.b32 %out, {stored}; }}"""
    hazards: list = []
    run(text, {}, {"%out": "b32"}, threads=32, hazards=hazards)
    assert hazards == (["uninitialised-register"] if found else [])
