"""Products of 4-bit, 1-bit and sparse operands: from memory to memory, what is refused, and what nothing has set.

What the instructions leave in registers is compared with a GPU's words in test_recorded_uncommon.py.
"""

import numpy as np
import pytest
from fragments_of_ptx import run

import emulator


@pytest.mark.parametrize(
    ("type", "k", "popc"),
    [("s4", 32, ""), ("u4", 32, ""), ("b1", 128, ".xor.popc"), ("b1", 128, ".and.popc")],
)
def test_wmma_from_memory_to_memory(type, k, popc):
    """Rows of A and columns of B lie `stride` elements apart, as nvcuda::wmma's sub-byte fragments want them."""
    rng, stride = np.random.default_rng(8), 2 * k
    bits, low, high = {"b1": (1, 0, 2), "s4": (4, -8, 8), "u4": (4, 0, 16)}[type]
    a, b = rng.integers(low, high, (8, k)), rng.integers(low, high, (k, 8))
    c = rng.integers(-1000, 1000, (8, 8)).astype(np.int32)
    per = 32 // bits

    def packed(lines):
        wide = np.zeros((8, stride), np.int64)
        wide[:, :k] = lines & ((1 << bits) - 1)
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


def sparse(metadata, form="sp", k=16, selector=0, b=0x3C003C00):
    """D (4, 32) of ones times registers `b`, all rows with these metadata. Those of lanes that are not selected mean nothing."""
    held = np.random.default_rng(1).integers(0, 1 << 32, 32)
    held[selector % 4 :: 4] = metadata | metadata << 16
    a_names, b_names = (", ".join([name] * (k // 8)) for name in ("%a", "%b"))
    code = f"""{{ .reg .b32 %a, %b; .reg .f32 %z, %d<4>;
    mov.b32 %a, 0x3C003C00; mov.b32 %b, {b}; mov.f32 %z, 0f00000000;
    mma.{form}.sync.aligned.m16n8k{k}.row.col.f32.f16.f16.f32 {{%d0, %d1, %d2, %d3}}, {{{a_names}}}, {{{b_names}}},
    {{%z, %z, %z, %z}}, %e, {selector};
    mov.b32 %o0, %d0; mov.b32 %o1, %d1; mov.b32 %o2, %d2; mov.b32 %o3, %d3; }}"""
    return np.array(run(code, {"%e": ("b32", held)}, {f"%o{i}": "f32" for i in range(4)}))


def test_infinities_that_are_not_chosen_do_not_matter():
    """The metadata choose rows 0 and 2 of each four, which are twos; 1 and 3 are infinite."""
    assert (sparse(0x8888, selector=2, b=0x7C004000) == 16).all()


def test_metadata_without_a_meaning_is_an_error():
    assert (sparse(0x4E4E) == 8).all()
    with pytest.raises(emulator.ExecutionError, match="row 0, chunk 1 are 0b0101"):
        sparse(0x4E5E)
    assert (sparse(0x4E1E) == 8).all()  # descending
    with pytest.raises(emulator.ExecutionError, match="row 0, chunk 1 are 0b0001"):
        sparse(0x4E1E, "sp::ordered_metadata")


@pytest.mark.parametrize(
    ("form", "k", "selector", "why"),
    [("sp", 16, 4, "below 4"), ("sp", 32, 2, "below 2"), ("sp", 64, 0, "no such")],
)
def test_what_there_is_not(form, k, selector, why):
    with pytest.raises(emulator.Unsupported, match=why):
        sparse(0x4E4E, form, k, selector)


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
