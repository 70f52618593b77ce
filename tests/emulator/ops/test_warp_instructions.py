"""Shuffles, votes, matches and reductions across the lanes of a warp, converged and diverged."""

import numpy as np
import pytest
from fragments_of_ptx import run

LANE = np.arange(64)


def shuffled(mode, lane, by, clamp, values):
    """PTX ISA 9.7.9.6: (value, valid) for one lane."""
    segment, limit = clamp >> 8 & 31, clamp & 31
    low = lane & segment
    top = low | limit & ~segment
    source = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": low | by & ~segment}[
        mode
    ]
    valid = source >= top if mode == "up" else source <= top
    return (values[source] if valid else values[lane]), valid


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("clamp", [0x1F, 0, 0x0F, 0x1C03, 0x181F, 0x1800])
def test_shuffle(mode, clamp):
    x = np.random.default_rng(1).integers(0, 1 << 32, 64, dtype="u4")
    code = (
        f"{{ .reg .pred p; shfl.sync.{mode}.b32 %d|p, %a, %b, {clamp}, -1; selp.u32 %e, 1, 0, p; }}"
    )
    by_lane = (LANE * 5 % 32).astype("u4")
    for by in (np.uint32(0), np.uint32(1), np.uint32(9), np.uint32(16), by_lane):
        d, e = run(code, {"%a": ("b32", x), "%b": ("u32", by)}, {"%d": "b32", "%e": "u32"})
        for n in range(64):
            amount = int(by[n]) if by.ndim else int(by)
            value, valid = shuffled(mode, n % 32, amount & 31, clamp, x[n // 32 * 32 :])
            assert (d[n], e[n]) == (value, valid), (n, amount)


def test_shuffle_of_what_depends_on_the_lane_only():
    code = "{ .reg .b32 l; mov.u32 l, %laneid; shfl.sync.down.b32 %d, l, 4, 0x1f, -1; }"
    assert (run(code, {}, {"%d": "u32"}, threads=64) == np.minimum(LANE % 32 + 4, 31 + 0 * LANE) -
            np.where(LANE % 32 > 27, 31 - LANE % 32, 0)).all()  # fmt: skip


def test_votes():
    x = (LANE % 3 == 0).astype("u4")
    x[32:] = 1
    code = """{ .reg .pred p, q; setp.ne.u32 p, %a, 0; vote.sync.ballot.b32 %d, p, -1;
        vote.sync.all.pred q, p, -1; selp.u32 %e, 1, 0, q; vote.sync.any.pred q, p, 0x6; @q add.u32 %e, %e, 2;
        vote.sync.uni.pred q, !p, -1; @q add.u32 %e, %e, 4; }"""
    d, e = run(code, {"%a": ("u32", x)}, {"%d": "b32", "%e": "u32"})
    assert d[0] == sum(1 << n for n in range(32) if n % 3 == 0) and d[40] == 0xFFFFFFFF
    assert (e[:32] == 0).all() and (e[32:] == 1 + 2 + 4).all()


def test_match():
    x = (LANE % 5).astype("u4")
    x[32:] = 7
    code = """{ .reg .pred p; match.any.sync.b32 %d, %a, -1; match.all.sync.b32 %e|p, %a, -1;
        selp.u32 %f, 1, 0, p; }"""
    d, e, f = run(code, {"%a": ("u32", x)}, {"%d": "b32", "%e": "b32", "%f": "u32"})
    assert d[7] == sum(1 << n for n in range(32) if n % 5 == 2)
    assert (e[:32] == 0).all() and (e[32:] == 0xFFFFFFFF).all() and (f == (LANE >= 32)).all()


@pytest.mark.parametrize("kind", ["s32", "u32"])
def test_redux(kind):
    x = (
        np.random.default_rng(2)
        .integers(-(1 << 31), 1 << 31, 64)
        .astype("i4")
        .view(f"{'i' if kind == 's32' else 'u'}4")
    )
    functions = {"add": np.add, "min": np.minimum, "max": np.maximum}
    if kind == "u32":
        functions |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    for name, function in functions.items():
        suffix = "b32" if name in ("and", "or", "xor") else kind
        got = run(f"redux.sync.{name}.{suffix} %d, %a, -1;", {"%a": (kind, x)}, {"%d": kind})
        expected = function.reduce(x.reshape(2, 32), axis=1, dtype=x.dtype)
        assert (got.reshape(2, 32) == expected[:, None]).all(), name


def test_active_lanes_of_a_divergent_warp():
    code = """{ .reg .pred p, q; .reg .b32 l; mov.u32 l, %laneid; setp.lt.u32 p, l, 10;
        mov.u32 %d, 0; @!p bra OTHER; activemask.b32 %d; redux.sync.add.u32 %e, l, 0x3ff;
        elect.sync %f|q, 0x3ff; bra JOIN; OTHER: activemask.b32 %d; vote.sync.ballot.b32 %e, q, 0xfffffc00;
        elect.sync %f|q, 0xfffffc00; JOIN: @q add.u32 %f, %f, 100; }"""
    d, e, f = run(code, {}, {"%d": "b32", "%e": "u32", "%f": "u32"}, threads=32)
    lane = np.arange(32)
    assert (d == np.where(lane < 10, 0x3FF, 0xFFFFFC00)).all()
    assert (e[:10] == 45).all() and (e[10:] == 0).all()
    assert f[0] == 100 and (f[1:10] == 0).all() and f[10] == 110 and (f[11:] == 10).all()


def test_lanes_meet_at_a_sync_instruction():
    """The two sides of a branch reach one shuffle by different paths and different numbers of steps."""
    code = """{ .reg .pred p, q; .reg .b32 l, i; mov.u32 l, %laneid; mov.u32 i, l; mov.u32 %d, 0;
        LOOP: add.u32 %d, %d, 1; setp.eq.u32 p, i, 0; @p bra DONE; sub.u32 i, i, 1; bra LOOP;
        DONE: shfl.sync.bfly.b32 %e, %d, 31, 0x1f, -1; activemask.b32 %f; }"""
    d, e, f = run(code, {}, {"%d": "u32", "%e": "u32", "%f": "b32"}, threads=32)
    assert (
        (d == np.arange(32) + 1).all()
        and (e == 32 - np.arange(32)).all()
        and (f == 0xFFFFFFFF).all()
    )


def test_warp_barrier_reached_from_two_places():
    code = """{ .reg .pred p; .reg .b32 l, s; mov.u32 l, %laneid; setp.lt.u32 p, l, 16; mov.u32 %d, 0;
        shl.b32 s, l, 2; @p bra FIRST; st.shared.b32 [s], l; bar.warp.sync -1; bra JOIN;
        FIRST: bar.warp.sync -1; ld.shared.b32 %d, [s+64]; JOIN: }"""
    got = run(code, {}, {"%d": "u32"}, threads=32, shared_bytes=128)
    assert (got == np.where(np.arange(32) < 16, np.arange(32) + 16, 0)).all()


def test_special_registers():
    code = """mov.u32 %d, %laneid; mov.u32 %e, %lanemask_lt; mov.u32 %f, %lanemask_ge; mov.u32 %g, %warpid;
        { .reg .b32 a; mov.u32 a, %lanemask_eq; add.u32 %e, %e, a; mov.u32 a, %lanemask_le; sub.u32 %e, %e, a; }"""
    d, e, f, g = run(code, {}, {"%d": "u32", "%e": "u32", "%f": "u32", "%g": "u32"}, threads=64)
    assert (d == LANE % 32).all() and (g == LANE // 32).all() and (e == 0).all()
    assert (f == (0xFFFFFFFF << LANE % 32) % (1 << 32)).all()
