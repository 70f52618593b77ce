"""Who went through a barrier how often: a launch that ends well may still have left threads out."""

import numpy as np
import pytest

import emulator

PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry turns(.param .u64 rounds) {{
    .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [rounds];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.s32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r5, [%rd3];
again:
    setp.eq.u32 %p1, %r5, 0;
    @%p1 bra done;
    {barrier}
    sub.u32 %r5, %r5, 1;
    bra again;
done:
    ret;
}}
"""


def uneven(rounds, barrier="bar.sync 0;"):
    blocks, threads = rounds.shape
    module = emulator.Module(PTX.format(barrier=barrier))
    return module.launch("turns", blocks, threads, [rounds.astype(np.uint32)]).uneven


def by_warp(rng, blocks, warps):
    return np.repeat(rng.integers(0, 6, (blocks, warps)), 32, 1)


def test_the_same_number_for_all_is_even():
    rng = np.random.default_rng()
    assert uneven(np.repeat(rng.integers(0, 9, (5, 1)), 96, 1)) == []


def test_each_thread_of_an_uneven_block_has_its_count():
    rounds = by_warp(np.random.default_rng(), 6, 3)
    rounds[2] = 4
    found = {one.block: one for one in uneven(rounds)}
    assert found.keys() == {(b, 0, 0) for b in range(6) if len(set(rounds[b])) > 1}
    for (b, _, _), one in found.items():
        assert one.number == 0
        np.testing.assert_array_equal(one.times, rounds[b])


def test_lanes_of_one_warp_that_have_exited_are_counted_too():
    rounds = np.full((1, 40), 3)
    rounds[0, 7:20] = 1
    (one,) = uneven(rounds)
    np.testing.assert_array_equal(one.times, rounds[0])


@pytest.mark.parametrize("barrier", ["bar.arrive 1, 64;", "barrier.sync 2, 32;"])
def test_barriers_for_some_of_the_threads_are_their_own_affair(barrier):
    assert uneven(np.repeat([[2, 4]], 32, 1), barrier) == []
