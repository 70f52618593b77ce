"""Loads, stores, address spaces, atomics, launch arguments, and what goes wrong with them."""

import struct

import numpy as np
import pytest
from fragments_of_ptx import run

import emulator

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"


def kernel(body, params=".param .u64 p0", header=""):
    return emulator.Module(f"{HEAD}{header}.visible .entry k({params})\n{{\n{body}\n ret;\n}}\n")


def test_vector_loads_and_stores():
    data = np.arange(64, dtype="u4")
    body = """.reg .b64 %p, %n; .reg .b32 %t, %a, %b, %c, %d; .reg .b16 %h<4>;
    ld.param.u64 %p, [p0]; mov.u32 %t, %tid.x; mul.wide.u32 %n, %t, 16; add.s64 %p, %p, %n;
    ld.global.v4.u32 {%a, %b, %c, %d}, [%p]; st.global.v2.b32 [%p], {%d, %c}; st.global.v2.b32 [%p+8], {%b, %a};"""
    kernel(body).launch("k", 1, 16, [data])
    assert (data == np.arange(64).reshape(16, 4)[:, ::-1].reshape(-1)).all()


@pytest.mark.parametrize("kind", ["u8", "s8", "u16", "s16"])
def test_narrow_loads_extend_and_stores_truncate(kind):
    bits = int(kind[1:])
    values = np.array([0, 1, -1, 127, -128, 100], f"i{bits // 8}")
    out = np.zeros(6, "i4")
    low = np.zeros(6, f"i{bits // 8}")
    body = f""".reg .b64 %p, %q, %r, %n; .reg .b32 %t, %a;
    ld.param.u64 %p, [p0]; ld.param.u64 %q, [p1]; ld.param.u64 %r, [p2]; mov.u32 %t, %tid.x;
    mul.wide.u32 %n, %t, {bits // 8}; add.s64 %p, %p, %n; add.s64 %r, %r, %n;
    mul.wide.u32 %n, %t, 4; add.s64 %q, %q, %n;
    ld.global.{kind} %a, [%p]; st.global.u32 [%q], %a; add.s32 %a, %a, 0x10001; st.global.{kind} [%r], %a;"""
    kernel(body, ".param .u64 p0, .param .u64 p1, .param .u64 p2").launch(
        "k", 1, 6, [values, out, low]
    )
    assert (
        out == values.astype("i4") if kind[0] == "s" else out == values.view(f"u{bits // 8}")
    ).all()
    assert (low == values + np.array(0x10001).astype(low.dtype)).all()


def test_generic_addresses_reach_every_space():
    out = np.zeros((64, 4), "u4")
    body = """.shared .align 4 .b8 tile[256]; .local .align 8 .b8 own[16];
    .reg .b64 %p, %n, %a<5>; .reg .b32 %t, %s, %v; .reg .pred %q;
    ld.param.u64 %p, [p0]; mov.u32 %t, %tid.x; mul.wide.u32 %n, %t, 16; add.s64 %p, %p, %n;
    mov.u64 %a0, own; cvta.local.u64 %a1, %a0; st.u32 [%a1+4], %t; ld.local.u32 %v, [%a0+4]; st.u32 [%p], %v;
    mov.u32 %s, tile; mad.lo.u32 %s, %t, 4, %s; cvt.u64.u32 %a2, %s; cvta.shared.u64 %a3, %a2;
    st.u32 [%a3], %t; ld.shared.u32 %v, [%s]; st.u32 [%p+4], %v;
    isspacep.shared %q, %a3; selp.u32 %v, 1, 0, %q; isspacep.global %q, %p; @%q add.u32 %v, %v, 2;
    isspacep.local %q, %a1; @%q add.u32 %v, %v, 4; isspacep.shared %q, %p; @%q add.u32 %v, %v, 8;
    st.global.u32 [%p+8], %v;
    and.b32 %s, %t, 1; setp.eq.u32 %q, %s, 0; selp.b64 %a4, %a1, %a3, %q; @%q add.u64 %a4, %a4, 4;
    ld.u32 %v, [%a4]; st.u32 [%p+12], %v;"""
    kernel(body).launch("k", 1, 64, [out])
    lane = np.arange(64)
    assert (out == np.stack([lane, lane, 0 * lane + 7, lane], 1)).all()


def test_lanes_may_point_into_different_buffers():
    a, b = np.arange(32, dtype="u4"), np.arange(32, dtype="u4") + 1000
    body = """.reg .b64 %p, %q, %n; .reg .b32 %t, %v; .reg .pred %o;
    ld.param.u64 %p, [p0]; ld.param.u64 %q, [p1]; mov.u32 %t, %tid.x; mul.wide.u32 %n, %t, 4;
    and.b32 %v, %t, 1; setp.eq.u32 %o, %v, 1; selp.b64 %p, %q, %p, %o; add.s64 %p, %p, %n;
    ld.global.u32 %v, [%p]; add.u32 %v, %v, 5; st.global.u32 [%p], %v;"""
    trace = kernel(body, ".param .u64 p0, .param .u64 p1").launch("k", 1, 32, [a, b])
    lane = np.arange(32)
    assert (a == lane + 5 * (lane % 2 == 0)).all() and (
        b == 1000 + lane + 5 * (lane % 2 == 1)
    ).all()
    assert [row.global_sectors for row in trace.rows("ld.global")] == [8]


def test_module_variables_keep_their_values_and_addresses():
    header = """.global .align 4 .u32 counter = 7; .global .align 8 .u64 there = generic(table+4);
    .const .align 4 .f32 table[3] = {0f3F800000, 2.5, 0f40400000}; .global .align 1 .b8 raw[5] = {1, 2};
    .global .align 8 .u64 several[2] = {counter, raw+1};"""
    out = np.zeros(5, "u4")
    body = """.reg .b64 %p, %a; .reg .b32 %v; ld.param.u64 %p, [p0];
    ld.global.u32 %v, [counter]; add.u32 %v, %v, 1; st.global.u32 [counter], %v; st.global.u32 [%p], %v;
    ld.global.u64 %a, [there]; ld.u32 %v, [%a]; st.global.u32 [%p+4], %v;
    ld.const.u32 %v, [table+8]; st.global.u32 [%p+8], %v;
    ld.global.u64 %a, [several+8]; ld.global.u8 %v, [%a]; st.global.u32 [%p+12], %v;
    mov.u64 %a, raw; ld.global.u8 %v, [%a+2]; st.global.u32 [%p+16], %v;"""
    module = kernel(body, header=header)
    for turn in (8, 9):
        module.launch("k", 1, 1, [out])
        assert (
            out[0] == turn
            and out[1:3].view("f4").tolist() == [2.5, 3.0]
            and out[3:].tolist() == [2, 0]
        )
    assert module.variable("counter").view("u4")[0] == 9
    module.variable("counter").view("u4")[0] = 100
    module.launch("k", 1, 1, [out])
    assert out[0] == 101
    module.fresh().launch("k", 1, 1, [out])
    assert out.tolist() == [8, *np.array([2.5, 3.0], "f4").view("u4").tolist(), 2, 0]
    assert module.variable("counter").view("u4")[0] == 101


def test_structs_and_scalars_by_value():
    out = np.zeros(3, "f8")
    params = ".param .align 8 .b8 s[24], .param .u64 p0, .param .f32 x"
    body = """.reg .b64 %p, %a; .reg .f64 %d; .reg .f32 %f; .reg .b32 %i, %j; ld.param.u64 %p, [p0];
    ld.param.f64 %d, [s+16]; st.global.f64 [%p], %d; ld.param.v2.b32 {%i, %j}, [s]; add.s32 %i, %i, %j;
    cvt.rn.f64.s32 %d, %i; st.global.f64 [%p+8], %d; mov.b64 %a, s; ld.param.u32 %i, [%a+8];
    ld.param.f32 %f, [x]; cvt.f64.f32 %d, %f; st.global.f64 [%p+16], %d;"""
    module = kernel(body, params)
    module.launch("k", 1, 1, [struct.pack("<iiid", 3, -5, 9, 0.125).ljust(24)[:12] + bytes(4) +
                              struct.pack("<d", 0.125), out, np.float32(1.5)])  # fmt: skip
    assert out.tolist() == [0.125, -2.0, 1.5]
    record = np.zeros((), [("i", "i4"), ("j", "i4"), ("k", "i4"), ("pad", "i4"), ("d", "f8")])
    record["i"], record["d"] = 4, 2.5
    module.launch("k", 1, 1, [record, out, 0.5])
    assert out.tolist() == [2.5, 4.0, 0.5]
    module.launch("k", 1, 1, [(np.int32(7), np.int32(1), b"x", np.float64(4.5)), out, 0.5])
    assert out.tolist() == [4.5, 8.0, 0.5]


def test_a_struct_holds_pointers():
    """As CuTe's tensors: extents, a stride, and the pointer behind them."""
    params = ".param .align 8 .b8 s[24], .param .u32 unused"
    body = """.reg .b64 %p; .reg .b32 %n; ld.param.u64 %p, [s+16]; ld.param.u32 %n, [s+8]; st.global.u32 [%p], %n;"""
    out, three = np.zeros(1, "i4"), [np.int32(n) for n in (5, 6, 7)]
    kernel(body, params).launch("k", 1, 1, [(*three, out), 0])
    assert out[0] == 7
    with pytest.raises(TypeError, match="takes 24 bytes; these members take 32"):
        kernel(body, params).launch("k", 1, 1, [(*three, out, out), 0])
    with pytest.raises(TypeError, match=r"member 1: NumPy arrays and scalars.*not int"):
        kernel(body, params).launch("k", 1, 1, [(out, 3), 0])


ATOMICS = {
    "add.u32": ("u4", lambda o, b: o + b), "add.s32": ("i4", lambda o, b: o + b), "min.s32": ("i4", min),
    "max.u32": ("u4", max), "and.b32": ("u4", lambda o, b: o & b), "or.b32": ("u4", lambda o, b: o | b),
    "xor.b32": ("u4", lambda o, b: o ^ b), "exch.b32": ("u4", lambda o, b: b),
    "inc.u32": ("u4", lambda o, b: 0 if o >= b else o + 1), "dec.u32": ("u4", lambda o, b: b if o == 0 or o > b else o - 1),
    "add.u64": ("u8", lambda o, b: o + b), "max.s64": ("i8", max), "add.f32": ("f4", lambda o, b: o + b),
    "add.f64": ("f8", lambda o, b: o + b), "exch.b64": ("u8", lambda o, b: b),
}  # fmt: skip


@pytest.mark.parametrize("op", ATOMICS)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomics_serve_colliding_lanes_in_turn(op, space):
    dtype, update = ATOMICS[op]
    size = int(dtype[1])
    rng = np.random.default_rng(1)
    slots = np.array([0, 1, 1, 2] * 12 + [3] * 16, "u4")
    values = rng.integers(0, 9, 64).astype(dtype)
    memory, old = np.zeros(4, dtype), np.zeros(64, dtype)
    width = 8 * size
    address = "add.s64 %x, %p, %n;" if space == "global" else "cvt.u32.u64 %s, %n;"
    where = "[%x]" if space == "global" else "[%s]"
    body = f""".reg .b64 %p, %q, %v, %o, %n, %x, %m; .reg .b32 %t, %s; .reg .b{width} %b, %r; .reg .pred %z;
    .shared .align 8 .b8 tile[64];
    ld.param.u64 %p, [p0]; ld.param.u64 %q, [p1]; ld.param.u64 %v, [p2]; ld.param.u64 %o, [p3]; mov.u32 %t, %tid.x;
    mul.wide.u32 %n, %t, 4; add.s64 %q, %q, %n; ld.global.u32 %s, [%q];
    mul.wide.u32 %m, %t, {size}; add.s64 %v, %v, %m; add.s64 %o, %o, %m; ld.global.b{width} %b, [%v];
    setp.lt.u32 %z, %t, 8; mul.wide.u32 %n, %t, {size}; cvt.u32.u64 %t, %n; mov.b{width} %r, 0;
    @%z st.shared.b{width} [%t], %r; bar.sync 0;
    mul.wide.u32 %n, %s, {size}; {address}
    atom.{space}.{op} %r, {where}, %b; st.global.b{width} [%o], %r; bar.sync 0;"""
    if space == "shared":
        body += f"add.s64 %x, %p, %n; ld.shared.b{width} %r, [%s]; st.global.b{width} [%x], %r;"
    kernel(body, ".param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3").launch(
        "k", 1, 64, [memory, slots, values, old]
    )
    state = [0] * 4
    for lane, (slot, value) in enumerate(zip(slots.tolist(), values.tolist(), strict=True)):
        assert old[lane] == state[slot], lane
        state[slot] = update(state[slot], value)
        if dtype[0] != "f":
            state[slot] &= (1 << width) - 1 if dtype[0] == "u" else -1
    assert memory.tolist() == state


def test_compare_and_swap_and_reductions():
    count, locks = np.zeros(1, "u4"), np.zeros(1, "f4")
    body = """.reg .b64 %p, %q; .reg .b32 %o, %n, %t; .reg .pred %z; .reg .f32 %f; mov.u32 %t, %tid.x;
    ld.param.u64 %p, [p0]; ld.param.u64 %q, [p1]; ld.global.u32 %o, [%p];
    AGAIN: add.u32 %n, %o, %t; mov.b32 %t, %t; atom.global.cas.b32 %n, [%p], %o, %n; setp.ne.u32 %z, %n, %o;
    mov.u32 %o, %n; @%z bra AGAIN; mov.f32 %f, 0f3F000000; red.global.add.f32 [%q], %f;"""
    kernel(body, ".param .u64 p0, .param .u64 p1").launch("k", 2, 96, [count, locks])
    assert count[0] == 2 * 96 * 95 // 2 and locks[0] == 96


def test_half_atomics():
    cell = np.zeros(2, "f2")
    body = """.reg .b64 %p; .reg .b32 %v; ld.param.u64 %p, [p0]; mov.b32 %v, 0x40003C00;
    red.global.add.noftz.f16x2 [%p], %v;"""
    kernel(body).launch("k", 1, 32, [cell])
    assert cell.tolist() == [32, 64]


# --- What goes wrong --------------------------------------------------------------------------------

INDEXED = """.reg .b64 %p, %n; .reg .b32 %t; .reg .f32 %f; ld.param.u64 %p, [p0]; mov.u32 %t, %tid.y;
mad.lo.u32 %t, %t, 8, 0; .reg .b32 %x; mov.u32 %x, %tid.x; add.u32 %t, %t, %x;
.file 1 "guilty.cu"
.loc 1 42 7
mul.wide.u32 %n, %t, STRIDE; add.s64 %p, %p, %n; LOAD"""


def test_out_of_bounds_says_who_where_and_what():
    body = INDEXED.replace("STRIDE", "4").replace("LOAD", "ld.global.f32 %f, [%p+12];")
    with pytest.raises(emulator.OutOfBounds) as caught:
        kernel(body).launch("k", 1, (8, 8), [np.zeros(40, "f4")])
    error = caught.value
    assert (
        error.thread == (5, 4, 0) and error.block == (0, 0, 0) and error.source == ("guilty.cu", 42)
    )
    assert "0 bytes past the end of argument 0 (160 bytes)" in str(
        error
    ) and "reads 4 bytes" in str(error)
    assert error.instruction == "ld.global.f32 %f, [%p+12];" and error.ptx_line == 10


def test_out_of_bounds_before_the_start_null_and_shared():
    body = INDEXED.replace("STRIDE", "4").replace("LOAD", "st.global.f32 [%p-4], %f;")
    with pytest.raises(
        emulator.OutOfBounds, match=r"writes 4 bytes .* 4 bytes before the start of argument 0"
    ):
        kernel(body).launch("k", 1, 32, [np.zeros(40, "f4")])
    with pytest.raises(emulator.OutOfBounds, match="a null pointer"):
        kernel(body).launch("k", 1, 32, [None])
    body = (
        ".reg .b32 %t; .reg .f32 %f; mov.u32 %t, %tid.x; shl.b32 %t, %t, 2; ld.shared.f32 %f, [%t];"
    )
    with pytest.raises(emulator.OutOfBounds, match="shared memory has 100 bytes") as caught:
        kernel(body, "").launch("k", 1, 32, [], shared_bytes=100)
    assert caught.value.thread == (25, 0, 0) and caught.value.address == 100


def test_inactive_lanes_do_not_fault():
    data = np.arange(20, dtype="f4")
    body = """.reg .b64 %p, %n; .reg .b32 %t; .reg .f32 %f; .reg .pred %q; ld.param.u64 %p, [p0];
    mov.u32 %t, %tid.x; mul.wide.u32 %n, %t, 4; add.s64 %p, %p, %n; setp.lt.u32 %q, %t, 20;
    @%q ld.global.f32 %f, [%p]; @!%q bra END; add.f32 %f, %f, %f; st.global.f32 [%p], %f; END: """
    kernel(body).launch("k", 1, 64, [data])
    assert (data == 2 * np.arange(20)).all()


def test_misaligned_access():
    body = INDEXED.replace("STRIDE", "8").replace(
        "LOAD", ".reg .f32 %g<4>; ld.global.v4.f32 {%g0,%g1,%g2,%g3}, [%p];"
    )
    with pytest.raises(emulator.Misaligned, match="not a multiple of 16") as caught:
        kernel(body).launch("k", 1, 8, [np.zeros(40, "f4")])
    assert caught.value.thread == (1, 0, 0)


def test_wrong_arguments_are_refused_before_anything_runs():
    module = kernel("", ".param .u64 p0, .param .u32 n, .param .f32 x")
    good = [np.zeros(4, "f4"), np.int32(1), np.float32(2)]
    module.launch("k", 1, 32, good)
    module.launch("k", 1, 32, [good[0], 1, 2.0])
    with pytest.raises(TypeError, match="takes 3 arguments, not 2"):
        module.launch("k", 1, 32, good[:2])
    with pytest.raises(TypeError, match=r"argument 1 \(n, \.u32\) takes 4 bytes; int64 has 8"):
        module.launch("k", 1, 32, [good[0], np.int64(1), good[2]])
    with pytest.raises(TypeError, match=r"argument 2 \(x, \.f32\) takes a float, not int32"):
        module.launch("k", 1, 32, [good[0], good[1], np.int32(2)])
    with pytest.raises(TypeError, match="not a Python float"):
        module.launch("k", 1, 32, [good[0], 1.5, good[2]])
    with pytest.raises(TypeError, match="an array is a pointer"):
        module.launch("k", 1, 32, [good[0], np.zeros(1, "i4"), good[2]])
    with pytest.raises(ValueError, match="C-contiguous"):
        module.launch("k", 1, 32, [np.zeros((4, 4), "f4").T[1:], *good[1:]])
    with pytest.raises(ValueError, match="2048 threads"):
        module.launch("k", 1, (64, 32), good)
    with pytest.raises(ValueError, match="shared memory"):
        module.launch("k", 1, 32, good, shared_bytes=300_000)
    with pytest.raises(ValueError, match="no entry 'q'"):
        module.launch("q", 1, 32, good)
    with pytest.raises(ValueError, match="one to three positive integers"):
        module.launch("k", 0, 32, good)


def test_launch_bounds_hold():
    text = (
        HEAD
        + ".visible .entry k()\n.maxntid 128, 1, 1\n.minnctapersm 2\n{ ret; }\n.entry r() .reqntid 8, 4 { ret; }"
    )
    module = emulator.Module(text)
    module.launch("k", 1, 128, [])
    with pytest.raises(ValueError, match="at most 128 threads"):
        module.launch("k", 1, 160, [])
    module.launch("r", 1, (8, 4), [])
    with pytest.raises(ValueError, match="requires block"):
        module.launch("r", 1, 32, [])


def test_one_array_twice_is_one_buffer():
    a = np.arange(8, dtype="u4")
    body = """.reg .b64 %p, %q; .reg .pred %z; .reg .b32 %v; ld.param.u64 %p, [p0]; ld.param.u64 %q, [p1];
    setp.eq.u64 %z, %p, %q; selp.u32 %v, 1, 0, %z; st.global.u32 [%p], %v;"""
    kernel(body, ".param .u64 p0, .param .u64 p1").launch("k", 1, 1, [a, a])
    assert a[0] == 1


def test_local_arrays_are_each_threads_own():
    code = """{ .local .align 4 .b8 own[64]; .reg .b64 a, o; .reg .b32 i, v; .reg .pred p; mov.u64 a, own; mov.u32 i, 0;
    FILL: cvt.u64.u32 o, i; shl.b64 o, o, 2; add.s64 o, a, o; mad.lo.u32 v, %n, 100, i; st.local.u32 [o], v;
    add.u32 i, i, 1; setp.lt.u32 p, i, 16; @p bra FILL;
    and.b32 i, %n, 15; cvt.u64.u32 o, i; shl.b64 o, o, 2; add.s64 o, a, o; ld.local.u32 %d, [o]; }"""
    got = run(code, {}, {"%d": "u32"}, threads=70)
    assert (got == np.arange(70) * 100 + np.arange(70) % 16).all()


def test_a_base_of_32_bits_and_its_offset_wrap_around():
    """Thread t reads word 63 - t by a base of -4 * t, which is below 0, and an offset of 252."""
    out = np.zeros(64, "u4")
    body = """.shared .align 4 .b8 tile[256]; .reg .b64 %p, %n; .reg .b32 %t, %s, %v;
    ld.param.u64 %p, [p0]; mov.u32 %t, %tid.x; mul.wide.u32 %n, %t, 4; add.s64 %p, %p, %n;
    mov.u32 %s, tile; mad.lo.s32 %s, %t, 4, %s; st.shared.u32 [%s], %t; bar.sync 0;
    mov.u32 %s, tile; mad.lo.s32 %s, %t, -4, %s; ld.shared.u32 %v, [%s+252]; st.global.u32 [%p], %v;"""
    kernel(body).launch("k", 1, 64, [out])
    assert (out == 63 - np.arange(64)).all()
    with pytest.raises(emulator.OutOfBounds):
        kernel(body.replace("[%s+252]", "[%s+256]")).launch("k", 1, 64, [out])
