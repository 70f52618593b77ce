"""Branches, loops, calls, barriers, polling, and deadlocks."""

import numpy as np
import pytest
from fragments_of_ptx import run

import emulator

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
LANE = np.arange(96)


def kernel(body, params="", header=""):
    return emulator.Module(f"{HEAD}{header}.visible .entry k({params})\n{{\n{body}\n ret;\n}}\n")


def collatz(n):
    steps = 0
    while n > 1:
        n, steps = (3 * n + 1 if n & 1 else n // 2), steps + 1
    return steps


def test_divergent_loops_and_branches():
    code = """{ .reg .pred p, q; .reg .b32 n, b; add.u32 n, %n, 1; mov.u32 %d, 0;
        HEAD: setp.le.u32 p, n, 1; @p bra DONE; add.u32 %d, %d, 1; and.b32 b, n, 1; setp.eq.u32 q, b, 0;
        @q bra EVEN; mad.lo.u32 n, n, 3, 1; bra HEAD; EVEN: shr.u32 n, n, 1; bra HEAD; DONE: activemask.b32 %e; }"""
    d, e = run(code, {}, {"%d": "u32", "%e": "b32"}, threads=96)
    assert (d == [collatz(n + 1) for n in range(96)]).all()
    assert (e == 0xFFFFFFFF).all()  # they have met again


def test_several_back_edges_keep_the_lanes_of_a_loop_together():
    """`continue` on one path: every iteration is still executed once by each warp, not once by each path."""
    body = """.reg .pred %p, %q; .reg .b32 %i, %t, %b; mov.u32 %t, %tid.x; mov.u32 %i, 0;
    HEAD: add.u32 %i, %i, 1; setp.ge.u32 %p, %i, 9; @%p bra DONE;
    and.b32 %b, %t, 1; setp.eq.u32 %q, %b, 0; @%q bra HEAD;
    mul.lo.u32 %b, %b, 3; bra HEAD;
    DONE: """
    trace = kernel(body).launch("k", 1, 32, [])
    assert [row.warps for row in trace.rows("add.u32")] == [9]
    assert [row.threads for row in trace.rows("mul.lo")] == [16 * 8]


def test_threads_that_leave_early():
    code = "{ .reg .pred p; mov.u32 %d, 1; setp.lt.u32 p, %n, 40; @p exit; mov.u32 %d, 2; bar.sync 0; }"
    got = run(code, {}, {"%d": "u32"}, threads=96)
    assert (got == np.where(LANE < 40, 0, 2)).all()


def test_indexed_branch():
    code = """{ .reg .b32 i; and.b32 i, %n, 3; T: .branchtargets A, B, C, B; brx.idx i, T;
        A: mov.u32 %d, 10; bra.uni END; B: mov.u32 %d, 20; bra.uni END; C: mov.u32 %d, 30; END: }"""
    assert (run(code, {}, {"%d": "u32"}, threads=96) == np.array([10, 20, 30, 20])[LANE % 4]).all()
    got = run(
        code.replace("and.b32 i, %n, 3", "mov.u32 i, %a"),
        {"%a": ("u32", np.uint32(2))},
        {"%d": "u32"},
    )
    assert (got == 30).all()


def test_calls_are_inlined_each_with_its_own_registers():
    header = """.func (.param .b32 out) twice(.param .b32 x, .param .align 4 .b8 s[8]) {
      .reg .b32 %r<4>; .reg .pred %p; ld.param.b32 %r1, [x]; ld.param.b32 %r2, [s+4]; mul.lo.u32 %r1, %r1, 2;
      setp.gt.u32 %p, %r1, 20; @%p bra BIG; add.u32 %r1, %r1, %r2; st.param.b32 [out], %r1; ret;
      BIG: st.param.b32 [out], %r2; ret; }
    .func nothing() { ret; }
    """
    call = """{ .param .b32 r; .param .b32 x; .param .align 4 .b8 s[8]; st.param.b32 [x], %A;
      st.param.b32 [s+4], 1000; call.uni (r), twice, (x, s); ld.param.b32 %D, [r]; }"""
    code = (
        call.replace("%A", "%n").replace("%D", "%d")
        + call.replace("%A", "%d").replace("%D", "%e")
        + "call nothing;"
    )
    d, e = run(code, {}, {"%d": "u32", "%e": "u32"}, threads=20, header=header)

    def twice(x):
        return np.where(2 * x > 20, 1000, 2 * x + 1000)

    assert (d == twice(np.arange(20))).all() and (e == twice(twice(np.arange(20)))).all()


def test_missing_functions_are_refused_by_name():
    with pytest.raises(emulator.Unsupported, match="malloc"):
        kernel("call malloc;", header=".extern .func malloc;\n").entry("k")


def test_guards_leave_other_lanes_alone():
    code = """{ .reg .pred p; and.b32 %e, %n, 1; setp.eq.u32 p, %e, 1; mov.u32 %d, 5; @p mov.u32 %d, 6;
        @!p add.u32 %d, %d, 10; @p add.u32 %d, %d, %n; }"""
    d, _ = run(code, {}, {"%d": "u32", "%e": "u32"}, threads=96)
    assert (d == np.where(LANE % 2, 6 + LANE, 15)).all()


@pytest.mark.parametrize("use", ["@!q bra SKIP; add.u32 %d, %d, 5;", "@q add.u32 %d, %d, 5;"])
def test_a_predicate_set_on_one_path_only(use):
    """It is false elsewhere, where nothing has set it, and the others keep theirs."""
    code = f"""{{ .reg .pred p, q, r; mov.u32 %d, 1; setp.lt.u32 p, %n, 40; setp.lt.u32 r, %n, 8; @!p bra JOIN; mov.pred q, r;
        JOIN: {use} SKIP: }}"""
    hazards: list = []
    got = run(code, {}, {"%d": "u32"}, threads=96, hazards=hazards)
    assert (got == np.where(LANE < 8, 6, 1)).all() and hazards == ["uninitialised-register"]


def test_a_uniform_value_set_on_one_path_only():
    code = """{ .reg .pred p; mov.u32 %d, 1; setp.lt.u32 p, %n, 33; @p bra SKIP; mov.u32 %d, 2; SKIP: add.u32 %d, %d, 5; }"""
    assert (run(code, {}, {"%d": "u32"}, threads=96) == np.where(LANE < 33, 6, 7)).all()


def test_barriers_hold_back_whole_blocks():
    """Reversal through shared memory; the last warp computes long before it stores."""
    code = """{ .shared .align 4 .b8 t[384]; .reg .pred p; .reg .b32 s, w, i; mov.u32 w, %warpid; shl.b32 i, w, 6;
        SPIN: setp.eq.u32 p, i, 0; @p bra GO; sub.u32 i, i, 1; bra SPIN;
        GO: mov.u32 s, t; mad.lo.u32 s, %n, 4, s; st.shared.u32 [s], %n; bar.sync 0;
        mov.u32 i, 95; sub.u32 i, i, %n; mov.u32 s, t; mad.lo.u32 s, i, 4, s; ld.shared.u32 %d, [s]; }"""
    assert (run(code, {}, {"%d": "u32"}, threads=96) == 95 - LANE).all()


def test_named_barriers_between_producers_and_consumers():
    """Warp 0 fills, warps 1 and 2 read; bar.arrive and bar.sync with counts, several rounds."""
    code = """{ .shared .align 4 .b8 t[128]; .reg .pred p, q; .reg .b32 i, s, v, w; mov.u32 w, %warpid; mov.u32 i, 0;
        mov.u32 %d, 0; and.b32 s, %n, 31; shl.b32 s, s, 2; mov.u32 v, t; add.u32 s, s, v; setp.eq.u32 p, w, 0;
        @!p bra CONSUME;
        PRODUCE: bar.sync 1, 96; mad.lo.u32 v, i, 100, %n; st.shared.u32 [s], v; bar.arrive 2, 96;
        add.u32 i, i, 1; setp.lt.u32 q, i, 4; @q bra PRODUCE; bra END;
        CONSUME: bar.arrive 1, 96; bar.sync 2, 96; ld.shared.u32 v, [s]; add.u32 %d, %d, v;
        add.u32 i, i, 1; setp.lt.u32 q, i, 4; @q bra CONSUME; END: }"""
    got = run(code, {}, {"%d": "u32"}, threads=96)
    assert (got == np.where(LANE < 32, 0, 600 + 4 * (LANE % 32))).all()


def test_barrier_reductions():
    code = """{ .reg .pred p, q; setp.lt.u32 p, %n, 50; bar.red.popc.u32 %d, 0, p; bar.red.and.pred q, 0, p;
        selp.u32 %e, 1, 0, q; barrier.cta.red.or.aligned.pred q, 1, p; @q add.u32 %e, %e, 2; }"""
    d, e = run(code, {}, {"%d": "u32", "%e": "u32"}, threads=96)
    assert (d == 50).all() and (e == 2).all()


def test_a_barrier_that_some_warps_never_reach():
    body = """.reg .pred %p; .reg .b32 %w; mov.u32 %w, %warpid; setp.eq.u32 %p, %w, 0;
    .file 1 "stuck.cu"
    .loc 1 7 1
    @%p bar.sync 1; @!%p bar.sync 2;"""
    with pytest.raises(emulator.Deadlock) as caught:
        kernel(body).launch("k", 1, 64, [])
    assert not isinstance(caught.value, emulator.BarrierDivergence)
    text = str(caught.value)
    assert "warp 0, lanes 0-31" in text and "warp 1, lanes 0-31" in text and "stuck.cu:7" in text
    assert "bar.sync 2" in text


def test_a_barrier_that_part_of_a_warp_never_reaches():
    body = """.reg .pred %p; .reg .b32 %t; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 5;
    @%p bra ONE; bar.sync 0; bra END; ONE: bar.sync 0; END: """
    with pytest.raises(emulator.BarrierDivergence, match="lanes 0-4"):
        kernel(body).launch("k", 1, 64, [])
    body = body.replace("ONE: bar.sync 0", "ONE: bar.sync 1")
    with pytest.raises(emulator.BarrierDivergence):
        kernel(body).launch("k", 1, 64, [])


def test_lanes_that_wait_for_lanes_that_never_come():
    body = """.reg .pred %p; .reg .b32 %t; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 5;
    @%p bra ONE; shfl.sync.idx.b32 %t, %t, 0, 31, -1; bra END; ONE: bar.warp.sync -1; END: """
    with pytest.raises(emulator.Deadlock, match=r"lanes 5-31.*shfl"):
        kernel(body).launch("k", 1, 32, [])


def test_spin_locks_let_the_holder_go_on():
    """Each lane of two warps takes one lock in turn: needs forward progress of diverged lanes."""
    lock, total = np.zeros(1, "u4"), np.zeros(1, "u4")
    body = """.reg .b64 %p, %q; .reg .b32 %o, %v; .reg .pred %z; ld.param.u64 %p, [p0]; ld.param.u64 %q, [p1];
    TRY: atom.global.cas.b32 %o, [%p], 0, 1; setp.ne.u32 %z, %o, 0; @%z bra TRY;
    ld.volatile.global.u32 %v, [%q]; add.u32 %v, %v, 1; st.volatile.global.u32 [%q], %v;
    atom.global.exch.b32 %o, [%p], 0;"""
    kernel(body, ".param .u64 p0, .param .u64 p1").launch("k", 1, 64, [lock, total])
    assert total[0] == 64 and lock[0] == 0


def test_waiting_for_a_flag_that_another_warp_sets():
    body = """.reg .b64 %p; .reg .b32 %w, %v; .reg .pred %z; ld.param.u64 %p, [p0]; mov.u32 %w, %warpid;
    setp.eq.u32 %z, %w, 1; @%z bra SET;
    WAIT: ld.acquire.gpu.global.u32 %v, [%p]; setp.eq.u32 %z, %v, 0; @%z bra WAIT; st.global.u32 [%p+4], %v; bra END;
    SET: mov.u32 %v, 42; st.release.gpu.global.u32 [%p], %v; END: """
    data = np.zeros(2, "u4")
    kernel(body, ".param .u64 p0").launch("k", 1, 64, [data])
    assert data.tolist() == [42, 42]
    with pytest.raises(emulator.Deadlock, match="polling") as caught:
        kernel(body, ".param .u64 p0").launch("k", 1, 32, [np.zeros(2, "u4")])
    assert "warp 0" in caught.value.waiting[0]


def test_trap():
    with pytest.raises(emulator.Trap) as caught:
        kernel(
            ".reg .pred %p; .reg .b32 %t; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 9; @%p trap;"
        ).launch("k", 1, 32, [])
    assert caught.value.thread == (9, 0, 0)


def test_unsupported_instructions_are_refused_when_their_entry_is_used():
    text = (
        HEAD
        + ".entry good() { ret; }\n.entry bad() {\n .reg .b32 %a;\n tex.1d.v4.f32.s32 {%a,%a,%a,%a}, [%a];\n}"
    )
    module = emulator.Module(text)
    module.launch("good", 1, 32, [])
    with pytest.raises(
        emulator.Unsupported, match=r"PTX line 7: tex\.1d\.v4\.f32\.s32 is not supported"
    ):
        module.launch("bad", 1, 32, [])


@pytest.mark.parametrize("refused", [
    "tex.2d.v4.f32.f32 {%f,%f,%f,%f}, [image, {%f,%f}]",
    "tex.2d.v4.f32.f32 {%f,%f,%f,%f}, [image, sampler, {%f,%f}]",
    "suld.b.1d.b32.trap {%a}, [image, {%a}]",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%d], [%d, {%a}], 16, [%d]",
    "ld.global.b32 %a, [%d, 4]",
])  # fmt: skip
def test_coordinates_are_refused_with_the_instruction_that_has_them(refused):
    text = HEAD + (
        ".global .texref image;\n.global .samplerref sampler;\n.entry good() { ret; }\n"
        f".entry bad() {{ .reg .b32 %a; .reg .f32 %f; .reg .b64 %d;\n {refused};\n}}"
    )
    module = emulator.Module(text)
    module.launch("good", 1, 32, [])
    with pytest.raises(
        emulator.Unsupported, match=rf"PTX line 8: {refused.split()[0]} is not supp"
    ):
        module.launch("bad", 1, 32, [])


def test_clusters_are_what_the_kernel_was_compiled_for():
    entry = ".entry k() {} {{ ret; }}"
    fixed = emulator.Module(HEAD + entry.format(".explicitcluster .reqnctapercluster 2, 1, 1"))
    fixed.launch("k", 4, 32, [])
    fixed.launch("k", 4, 32, [], cluster=2)
    open_ = emulator.Module(HEAD + entry.format(".explicitcluster"))
    open_.launch("k", (4, 2), 32, [], cluster=(2, 2))
    limited = emulator.Module(HEAD + entry.format(".maxclusterrank 4"))
    limited.launch("k", 8, 32, [], cluster=4)
    for module, grid, cluster, words in (
        (fixed, 3, None, "grid .* is not whole clusters"),
        (fixed, 4, 4, r"compiled for clusters of \(2, 1, 1\), not \(4, 1, 1\)"),
        (open_, 4, None, "needs cluster="),
        (limited, 8, 8, "the most is 4"),
        (open_, 32, 32, "the most is 16"),
        (open_, 4, 0, "cluster is one to three positive integers"),
    ):
        with pytest.raises(ValueError, match=words):
            module.launch("k", grid, 32, [], cluster=cluster)


@pytest.mark.parametrize("text, line", [
    ("nonsense", 1),
    (HEAD + ".entry k() { add.s32 %r1, %r2; }", 4),
    (HEAD + ".entry k() {\n .reg .b32 %r<2>;\n mov.u32 %r1 5;\n}", 6),
    (HEAD + ".entry k() {\n bra NOWHERE;\n}", 5),
    (HEAD + ".entry k() {\n .reg .b32 %r<2>;\n mov.u32 %r1, undefined_symbol;\n}", 6),
])  # fmt: skip
def test_what_cannot_be_read_names_its_line(text, line):
    with pytest.raises(emulator.PtxError) as caught:
        emulator.Module(text).entry("k")
    assert caught.value.line == line


def test_special_registers_of_grid_and_block():
    grid, block = (2, 3, 2), (5, 2, 3)
    out = np.zeros((12, 30, 6), "u4")
    body = """.reg .b64 %p, %n; .reg .b32 %x, %y, %z, %bx, %by, %bz, %i, %j;
    ld.param.u64 %p, [p0]; mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;
    mov.u32 %bx, %ctaid.x; mov.u32 %by, %ctaid.y; mov.u32 %bz, %ctaid.z;
    mov.u32 %i, %nctaid.y; mad.lo.u32 %i, %bz, %i, %by; mov.u32 %j, %nctaid.x; mad.lo.u32 %i, %i, %j, %bx;
    mov.u32 %j, %ntid.z; mul.lo.u32 %i, %i, %j; add.u32 %i, %i, %z; mov.u32 %j, %ntid.y; mad.lo.u32 %i, %i, %j, %y;
    mov.u32 %j, %ntid.x; mad.lo.u32 %i, %i, %j, %x; mul.wide.u32 %n, %i, 24; add.s64 %p, %p, %n;
    st.global.v2.u32 [%p], {%x, %y}; st.global.v2.u32 [%p+8], {%z, %bx}; st.global.v2.u32 [%p+16], {%by, %bz};"""
    trace = kernel(body, ".param .u64 p0").launch("k", grid, block, [out])
    for b in range(12):
        for t in range(30):
            expected = [t % 5, t // 5 % 2, t // 10, b % 2, b // 2 % 3, b // 6]
            assert out[b, t].tolist() == expected
    assert trace.total("threads") == 360 * len(trace.instructions) and trace.blocks == 12


def test_chosen_blocks_only():
    out = np.zeros(8, "u4")
    body = """.reg .b64 %p, %n; .reg .b32 %b; ld.param.u64 %p, [p0]; mov.u32 %b, %ctaid.x;
    mul.wide.u32 %n, %b, 4; add.s64 %p, %p, %n; add.u32 %b, %b, 1; st.global.u32 [%p], %b;"""
    module = kernel(body, ".param .u64 p0")
    assert module.launch("k", 8, 32, [out], blocks=[2, (5, 0, 0)]).blocks == 2
    assert out.tolist() == [0, 0, 3, 0, 0, 6, 0, 0]
    with pytest.raises(ValueError, match="inside grid"):
        module.launch("k", 8, 32, [out], blocks=[8])
