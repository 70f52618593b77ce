"""A modifier that an opcode does not take is refused by name; whatever compilers emit is taken."""

import re

import pytest
from cuda_source import compile_ptx
from fragments_of_ptx import run

import emulator
from kernels import RUNGS, build

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .pred %p; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %d<4>; .reg .f32 %f<9>; .reg .f64 %g<4>;"


def decode(line, head="", arguments=""):
    """Decodes an entry whose PTX line 6 is `line`."""
    text = f"{HEAD}{head}.entry k({arguments}) {{\n {REGISTERS}\n {line};\n ret;\n}}"
    return emulator.Module(text).entry("k")


# the word as it was meant, how it was typed, the rest of the instruction
TYPOS = [
    # integers and bits
    ("add.s32 %r1, %r2, %r3", "s32", "foo.s32", None),
    ("add.s32 %r1, %r2, %r3", "s32", "s23", "s32"),
    ("add.cc.u32 %r1, %r2, %r3", "cc", "ccc", "cc"),
    ("add.sat.s32 %r1, %r2, %r3", "sat", "sta", "sat"),
    ("sub.sat.s32 %r1, %r2, %r3", "s32", "u32", ""),
    ("mul.wide.u32 %d1, %r2, %r3", "wide", "wid", "wide"),
    ("mul.hi.u32 %r1, %r2, %r3", "hi", "high", "hi"),
    ("mad.lo.s32 %r1, %r2, %r3, %r4", "lo", "low", "lo"),
    ("mad24.lo.s32 %r1, %r2, %r3, %r4", "lo", "l0", None),
    ("div.s32 %r1, %r2, %r3", "s32", "approx.s32", ""),
    ("max.relu.s32 %r1, %r2, %r3", "relu", "rleu", "relu"),
    ("max.s32 %r1, %r2, %r3", "s32", "ftz.s32", ""),
    ("and.b32 %r1, %r2, %r3", "b32", "u32", "b32"),
    ("shl.b32 %r1, %r2, %r3", "b32", "wrap.b32", None),
    ("shf.l.wrap.b32 %r1, %r2, %r3, %r4", "wrap", "warp", "wrap"),
    ("bfind.shiftamt.u32 %r1, %r2", "shiftamt", "shiftamount", "shiftamt"),
    ("prmt.b32.f4e %r1, %r2, %r3, %r4", "f4e", "fe4", "f4e"),
    # floating point
    ("fma.rn.f32 %f1, %f2, %f3, %f4", "rn", "nr", "rn"),
    ("fma.rn.ftz.f32 %f1, %f2, %f3, %f4", "ftz", "fzt", "ftz"),
    ("fma.rn.f32 %f1, %f2, %f3, %f4", "rn", "rn.rz", ""),
    ("add.rn.f32 %f1, %f2, %f3", "rn", "rna", "rn"),
    ("min.NaN.f32 %f1, %f2, %f3", "NaN", "nan", "NaN"),
    ("ex2.approx.f32 %f1, %f2", "approx", "aprox", "approx"),
    ("rcp.rn.f32 %f1, %f2", "rn", "full", None),
    # comparison, conversion
    ("setp.lt.and.f32 %p, %f1, %f2, %p", "and", "nad", "and"),
    ("setp.lt.s32 %p, %r1, %r2", "lt", "lt.gt", ""),
    ("selp.b32 %r1, %r2, %r3, %p", "b32", "b23", "b32"),
    ("cvt.rn.satfinite.f16.f32 %h1, %f1", "satfinite", "satfinit", "satfinite"),
    ("cvt.rzi.s32.f32 %r1, %f1", "rzi", "riz", "rzi"),
    ("cvt.rn.f16.f32 %h1, %f1", "rn", "rn.rz", ""),
    # movement
    ("mov.u32 %r1, %r2", "u32", "volatile.u32", None),
    ("ld.global.u32 %r1, [%d1]", "global", "glbal", "global"),
    ("ld.global.nc.u32 %r1, [%d1]", "nc", "cn", "nc"),
    ("ld.global.u32 %r1, [%d1]", "global", "global.shared", ""),
    ("ld.volatile.shared.u32 %r1, [%r1]", "volatile", "volatil", "volatile"),
    ("ld.shared::cta.u32 %r1, [%r1]", "shared::cta", "shared::cat", "shared::cta"),
    ("ld.global.L1::no_allocate.u32 %r1, [%d1]", "L1::no_allocate", "L1::no_alocate", "L1::no_allocate"),
    ("ld.global.L2::128B.u32 %r1, [%d1]", "L2::128B", "L2::512B", "L2::128B"),
    ("st.global.wt.u32 [%d1], %r1", "wt", "nc", None),
    ("st.shared.v2.u32 [%r1], {%r1, %r2}", "shared", "share", "shared"),
    ("cvta.to.shared.u64 %d1, %d2", "to", "too", "to"),
    ("cvta.to.shared.u64 %d1, %d2", "shared", "sharde", "shared"),
    ("atom.global.add.u32 %r1, [%d1], %r2", "global", "golbal", "global"),
    ("atom.relaxed.gpu.global.add.u32 %r1, [%d1], %r2", "gpu", "gpus", "gpu"),
    ("red.global.add.f32 [%d1], %f1", "add", "add.min", ""),
    ("fence.acq_rel.gpu", "acq_rel", "acqrel", "acq_rel"),
    ("membar.gl", "gl", "gpu", None),
    # warps and blocks
    ("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1", "bfly", "bfyl", "bfly"),
    ("vote.sync.ballot.b32 %r1, %p, -1", "ballot", "balot", "ballot"),
    ("match.any.sync.b32 %r1, %r2, -1", "any", "nay", "any"),
    ("redux.sync.add.s32 %r1, %r2, -1", "add", "addd", "add"),
    ("bar.sync 0", "sync", "snyc", "sync"),
    ("bar.warp.sync -1", "warp", "wrap", "warp"),
    ("bar.red.popc.u32 %r1, 0, %p", "popc", "poc", "popc"),
    ("barrier.sync.aligned 0", "aligned", "alinged", "aligned"),
    # tensor cores and copies
    ("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r1}, [%r2]", "trans", "tarns", "trans"),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2]", "x1", "x3", None),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f5,%f6,%f7,%f8}",
     "aligned", "algined", "aligned"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f5,%f6,%f7,%f8}",
     "m16n8k16", "m16n8k61", "m16n8k16"),
    ("cp.async.cg.shared.global [%r1], [%d1], 16", "cg", "cgg", "cg"),
    ("cp.async.ca.shared.global.L2::128B [%r1], [%d1], 16", "L2::128B", "L2::128", "L2::128B"),
    ("cp.async.commit_group", "commit_group", "commit_gruop", "commit_group"),
    ("cp.async.wait_group 0", "wait_group", "waitgroup", "wait_group"),
    ("mbarrier.try_wait.parity.shared.b64 %p, [%r1], 0", "parity", "partiy", "parity"),
    ("mbarrier.arrive.noComplete.shared.b64 %d1, [%r1], 1", "noComplete", "nocomplete", "noComplete"),
    # control
    ("bra.uni NEXT;\nNEXT:\n mov.u32 %r1, %r1", "uni", "unni", "uni"),
    ("ret.uni", "uni", "nui", "uni"),
    ("exit", "exit", "exit.now", None),
]  # fmt: skip


@pytest.mark.parametrize(("right", "word", "typed", "meant"), TYPOS)
def test_a_typing_mistake_is_refused_with_its_line_and_the_right_word(right, word, typed, meant):
    """meant: the hint; None for no hint; "" where the words exist but exclude each other."""
    opcode, *rest = right.split(" ", 1)
    wrong = re.sub(rf"(?<![\w:]){re.escape(word)}(?![\w:])", typed, opcode, count=1)
    decode(right)
    with pytest.raises(emulator.Unsupported) as caught:
        decode(" ".join([wrong, *rest]))
    assert caught.value.line == 6
    said = str(caught.value).splitlines()[0]
    assert said.startswith(f"PTX line 6: {wrong} is not supported")
    if meant == "":
        assert "do not go together" in said
    elif meant is None:
        assert "did you mean" not in said
    else:
        assert said.endswith(f"; did you mean .{meant}?")


def test_a_mistake_in_an_entry_that_is_not_used_does_no_harm():
    text = (
        f"{HEAD}.entry good() {{ ret; }}\n.entry bad() {{ .reg .b32 %a; add.foo.s32 %a, %a, %a; }}"
    )
    module = emulator.Module(text)
    module.launch("good", 1, 32, [])
    with pytest.raises(
        emulator.Unsupported, match=r"line 5: add\.foo\.s32 is .*add takes no \.foo"
    ):
        module.launch("bad", 1, 32, [])


def test_a_mistake_in_a_function_that_is_called():
    text = f"{HEAD}.func f() {{\n ret.unii;\n}}\n.entry k() {{\n call.uni f, ();\n ret;\n}}"
    with pytest.raises(
        emulator.Unsupported, match=r"PTX line 5: ret\.unii .* did you mean \.uni\?"
    ):
        emulator.Module(text).entry("k")


def test_the_order_of_modifiers_is_free():
    for line in (
        "ld.nc.global.u32 %r1, [%d1]",
        "ld.global.volatile.u32 %r1, [%d1]",
        "fence.gpu.sc",
    ):
        decode(line)


def test_a_modifier_is_not_ignored_in_slct():
    c = {"%c": ("f32", [1e-40, -1e-40, -1.0, -0.0])}
    assert run("slct.s32.f32 %d, 1, 2, %c;", c, {"%d": "s32"}).tolist() == [1, 2, 2, 1]
    assert run("slct.ftz.s32.f32 %d, 1, 2, %c;", c, {"%d": "s32"}).tolist() == [1, 1, 2, 1]


@pytest.mark.parametrize("arch", [75, 80, 90])
def test_the_whole_ladder_is_taken(arch):
    for rung in RUNGS.values():
        if rung.path is not None and rung.min_arch <= arch:
            target = "90a" if rung.min_arch == 90 else arch  # wgmma is in sm_90a alone
            module = emulator.Module(build(rung, arch=target).ptx)
            for entry in module.entries:
                module.entry(entry)


EVERYTHING = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda/pipeline>
#include <cuda/atomic>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
extern "C" __global__ void k(float *f, double *d, int *i, unsigned long long *u, __half2 *h, __nv_bfloat162 *b) {
    int t = threadIdx.x;
    f[t] = __fdividef(sinf(f[t]), __cosf(f[t])) + __frsqrt_rn(f[t]) + fmaxf(f[t], tanhf(f[t])) + __fmaf_rz(f[t], 2, 3);
    d[t] = fma(d[t], sqrt(d[t]), __ddiv_rd(d[t], 3.0)) + rint(d[t]) + pow(d[t], 0.3);
    i[t] = __float2int_rn(f[t]) + __clz(i[t]) + __ffs(i[t]) + __mulhi(i[t], t) + min(i[t], t) / (t + 1);
    u[t] = __umul64hi(u[t], 12345) + __brevll(u[t]) + u[t] % 7 + __ldg(u + t + 1) + __ldcg(u + t + 2);
    h[t] = __hfma2_relu(h[t], h[t], __hmin2(h[t], h[t])) ;
    b[t] = __hfma2(b[t], b[t], __hmax2(b[t], b[t]));
    atomicAdd(f, 1.f); atomicAdd(d, 1.0); atomicCAS(i, 1, 2); atomicMax(u, 3ull); atomicAdd(h, h[t]);
    cuda::atomic_ref<int, cuda::thread_scope_block>(i[3]).fetch_add(1, cuda::memory_order_acq_rel);
    i[t] += __shfl_down_sync(~0u, t, 3) + __reduce_add_sync(~0u, t) + __ballot_sync(~0u, t & 1) + __match_any_sync(~0u, t);
    __stcs(f + t, f[t] + 1); __threadfence_system(); __syncwarp(); __syncthreads();
    i[t] += __syncthreads_count(t) + __dp4a(t, i[t], 3) + __funnelshift_lc(t, i[t], 7) + __byte_perm(t, i[t], 0x3120);
    auto w = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    f[t] += cooperative_groups::reduce(w, f[t], cooperative_groups::plus<float>());
    __nanosleep(5);
}
"""


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_a_bit_of_everything_that_the_compiler_emits(arch):
    emulator.Module(compile_ptx(EVERYTHING, arch)).entry("k")


@pytest.mark.parametrize(
    "line, needs",
    [
        ("mul.s32 %r1, %r2, %r3", ".lo, .hi, .wide"),
        ("mad.u32 %r1, %r2, %r3, %r4", ".lo, .hi, .wide"),
        ("setp.s32 %p, %r1, %r2", ".eq, .ne, .lt"),
        ("fma.f32 %f1, %f2, %f3, %f4", ".rn, .rz, .rm, .rp"),
        ("ex2.f32 %f1, %f2", ".approx"),
        ("shf.wrap.b32 %r1, %r2, %r3, %r4", ".l, .r"),
        ("ld.global %r1, [%d1]", ".b8, .u8, .s8"),
    ],
)
def test_a_modifier_that_may_not_be_left_out_is_asked_for(line, needs):
    with pytest.raises(emulator.Unsupported, match="line 6") as refused:
        decode(line)
    assert f"{line.split('.')[0]} needs one of {needs}" in str(refused.value)


OPERANDS = (
    "%r1", "%p", "%d1", "%h1", "%f1", "5", "1.5", "[%d1]", "{%r1,%r2}", "_", "%tid.x", "%r1|%p",
    "!%p", "undefined", "(%r1)", "[%tid.x]", "[5]", "[undefined]",
)  # fmt: skip


def test_operands_of_another_kind_are_refused_or_taken_but_never_break_the_decoder():
    refused = 0
    for line in {right for right, *_ in TYPOS if ";" not in right}:
        opcode, *rest = line.split(" ", 1)
        operands = re.findall(r"\{[^}]*\}|[^,\s]+", rest[0]) if rest else []
        for at in range(len(operands)):
            for other in OPERANDS:
                try:
                    decode(f"{opcode} {', '.join([*operands[:at], other, *operands[at + 1 :]])}")
                except emulator.EmulatorError as problem:
                    assert "PTX line 6" in str(problem)
                    refused += 1
    assert refused > 1000


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("add.s32 %r1, %p, %r2", "%p is a predicate, not a number"),
        ("fma.rn.f32 %f1, %f2, %f3, %p", "%p is a predicate, not a number"),
        ("selp.b32 %r1, %r2, %r3, %r4", "%r4 is not a predicate"),
        ("setp.lt.and.s32 %p, %r1, %r2, !%r3", "%r3 is not a predicate"),
        ("add.s32 5, %r1, %r2", "the destination is not a register"),
        ("mov.u32 [%d1], %r1", "the destination is not a register"),
        ("shfl.sync.idx.b32 5|%p, %r2, 1, 31, -1", "the destination is not a register"),
    ],
)
def test_what_an_operand_is_not_is_said(line, said):
    with pytest.raises(emulator.PtxError, match=re.escape(said)):
        decode(line)
