"""Vector registers: declared, loaded, stored, moved and used element by element."""

import numpy as np
import pytest
from fragments_of_ptx import run

import emulator

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
X = np.arange(128, dtype=np.float32).reshape(32, 4)


def kernel(body):
    text = f"""{HEAD}.visible .entry k(.param .u64 px, .param .u64 py) {{
    .reg .b64 %x, %y, %o; .reg .b32 %t; .reg .f32 %f<4>; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 16;
    ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; add.u64 %x, %x, %o; add.u64 %y, %y, %o;
    {body}
    ret; }}"""
    return emulator.Module(text)


def moved(body):
    y = np.zeros_like(X)
    trace = kernel(body).launch("k", 1, 32, [X, y])
    assert not trace.hazards
    return y


def test_elements_are_registers():
    body = """.reg .v4 .f32 v, %w; ld.global.v4.f32 v, [%x];
    mov.f32 %w.x, v.w; mov.f32 %w.g, v.b; add.f32 %w.z, v.x, v.y; mov.f32 %w.a, 0f40000000;
    st.global.v4.f32 [%y], %w;"""
    want = np.stack([X[:, 3], X[:, 2], X[:, 0] + X[:, 1], np.full(32, 2, np.float32)], axis=1)
    assert (moved(body) == want).all()


def test_vectors_are_moved_packed_and_put_in_braces():
    body = """.reg .v4 .f32 a, b, c<2>; .reg .v2 .b32 h; .reg .b64 %d;
    ld.global.v4.f32 a, [%x]; mov.v4.f32 b, a; mov.v4.f32 {%f0, %f1, %f2, %f3}, b;
    mov.v4.f32 c1, {%f3, %f0, %f1, %f1}; mov.b64 %d, {%f2, %f3}; mov.b64 h, %d;
    mov.b32 c1.z, h.x; mov.b32 c1.w, h.y; { .reg .v2 .f32 a; mov.f32 a.x, 0f3F800000; }
    st.global.v4.f32 [%y], c1;"""
    assert (moved(body) == X[:, [3, 0, 2, 3]]).all()


def test_an_element_that_nothing_set_is_found():
    body = ".reg .v4 .f32 v; mov.f32 v.x, 0f3F800000; mov.f32 v.y, v.x; mov.f32 v.w, v.x; st.global.v4.f32 [%y], v;"
    trace = kernel(body).launch("k", 1, 32, [X, np.zeros_like(X)])
    assert [hazard.kind for hazard in trace.hazards] == ["uninitialised-register"]


def test_as_fragments_of_a_matrix():
    code = """{ .reg .v4 .f32 c, z; .reg .v2 .b32 a; .reg .b32 b; mov.f32 z.x, 0f3F800000; mov.f32 z.y, z.x; mov.f32 z.z, z.x;
    mov.f32 z.w, z.x; mov.b32 a.x, 0x3C003C00; mov.b32 a.y, a.x; mov.b32 b, a.x;
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 c, a, {b}, z; cvt.rzi.u32.f32 %d, c.w; }"""
    assert (run(code, {}, {"%d": "u32"}) == 9).all()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (".reg .v4 .pred v;", "128 bits at most"),
        (".reg .v4 .b64 v;", "128 bits at most"),
        (".reg .v8 .f32 v;", "no type of a register"),
        (".reg .v2 .f32 v; mov.f32 %f0, v.z;", "2 elements, and no .z"),
        (".reg .v4 .f32 v; add.f32 v, v, v;", "register"),
        (".reg .v4 .f32 v; .reg .v2 .f32 w; mov.v4.f32 v, w;", "4 registers expected"),
        (".reg .v4 .f32 v, v;", "declared twice"),
        ("mov.f32 %f0, %f1.x;", "no vector"),
        (".reg .v2 .f32 v; ld.global.v4.f32 v, [%x];", "4 destinations"),
    ],
)
def test_what_ptxas_refuses_is_refused_with_its_line(body, why):
    with pytest.raises(emulator.EmulatorError, match=why) as caught:
        kernel(body).entry("k")
    assert "PTX line" in str(caught.value)
