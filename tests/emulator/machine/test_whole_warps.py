"""Matrix instructions belong to a whole warp: `.aligned` leaves undefined what some of its lanes do alone."""

import numpy as np
import pytest

import emulator

PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry some_lanes(.param .u64 out, .param .u32 lanes) {{
    .reg .pred %p<2>; .reg .b32 %r<8>; .reg .f32 %f<5>; .reg .b64 %rd<4>;
    .shared .align 16 .b8 tile[512];
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [lanes];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, tile;
    mov.b32 %r4, 0;
    mov.f32 %f1, 0f00000000;
    mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra done;
    {instruction}
    st.global.u32 [%rd1], %r4;
done:
    ret;
}}
"""
INSTRUCTIONS = {
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r3];",
    "mma": "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r4, %r4}, {%r4}, {%f1, %f2, %f3, %f4};",
}


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_half_a_warp_is_an_error_that_counts_its_lanes(name):
    module = emulator.Module(PTX.format(instruction=INSTRUCTIONS[name]))
    out = np.zeros(1, np.uint32)
    module.launch("some_lanes", 1, 64, [out, np.uint32(64)])
    module.launch("some_lanes", 1, 64, [out, np.uint32(32)])  # one whole warp may do as it likes
    with pytest.raises(
        emulator.BarrierDivergence, match=f"{name} is for all 32 .* only 16 came"
    ) as caught:
        module.launch("some_lanes", 1, 64, [out, np.uint32(48)])
    assert caught.value.thread == (32, 0, 0)
