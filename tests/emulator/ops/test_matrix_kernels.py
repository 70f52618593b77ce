"""ldmatrix, mma, wmma as CUDA kernels use them: inline PTX and mma.h, compiled by NVRTC and run."""

import numpy as np
import pytest
from cuda_source import launch

import emulator
from emulator.numbers import fragments
from emulator.numbers.tensor import to_matrices

LDMATRIX = r"""
extern "C" __global__ void load(const unsigned short* in, unsigned* out, int pitch) {
    extern __shared__ __align__(16) unsigned short tile[];
    int lane = threadIdx.x;
    for (int i = lane; i < 32 * pitch; i += 32) tile[i] = in[i];
    __syncthreads();
    unsigned row = __cvta_generic_to_shared(tile + lane * pitch), r[4], s[4], u[2], v;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3]) : "r"(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
        : "=r"(u[0]), "=r"(u[1]) : "r"(lane < 16 ? row : 0xfffffff0u));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v) : "r"(lane < 8 ? row : 1u));
    for (int i = 0; i < 4; ++i) { out[i * 32 + lane] = r[i]; out[(4 + i) * 32 + lane] = s[i]; }
    out[8 * 32 + lane] = u[0]; out[9 * 32 + lane] = u[1]; out[10 * 32 + lane] = v;
#if __CUDA_ARCH__ >= 900
    __syncthreads();
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
        :: "r"(row), "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]) : "memory");
    __syncthreads();
    for (int i = 0; i < 4; ++i) out[(11 + i) * 32 + lane] = ((unsigned*)(tile + (8 * i + lane / 4) * pitch))[lane % 4];
    __syncthreads();
    asm volatile("stmatrix.sync.aligned.x4.m8n8.shared.b16.trans [%0], {%1, %2, %3, %4};"
        :: "r"(row), "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]) : "memory");
    __syncthreads();
    for (int i = 0; i < 4; ++i) out[(15 + i) * 32 + lane] = ((unsigned*)(tile + (8 * i + lane / 4) * pitch))[lane % 4];
    unsigned moved;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(moved) : "r"(r[0]));
    out[19 * 32 + lane] = moved;
#endif
}
"""


@pytest.mark.parametrize(("pitch", "waves"), [(8, 1), (72, 1), (64, 8), (32, 4)])
def test_ldmatrix_and_stmatrix(pitch, waves):
    data = np.random.default_rng(0).integers(0, 1 << 16, (32, pitch)).astype(np.uint16)
    out = np.zeros((20, 32), np.uint32)
    trace = launch(
        LDMATRIX, "load", 1, 32, [data, out, np.int32(pitch)], 90, shared_bytes=64 * pitch
    )
    plain = fragments.mma_c(8, 8, "f16")
    blocks = data[:, :8].reshape(4, 8, 8)

    def matrix(row):
        return to_matrices(plain, out[row][None, None])[0]

    for i in range(4):
        assert (matrix(i) == blocks[i]).all()
        assert (matrix(4 + i) == blocks[i].T).all()
        assert (matrix(11 + i) == blocks[i].T).all()
        assert (matrix(15 + i) == blocks[i]).all()
    assert (matrix(8) == blocks[0]).all() and (matrix(9) == blocks[1]).all()
    assert (matrix(10) == blocks[0]).all() and (matrix(19) == blocks[0].T).all()
    for opcode, count in (("x4.shared", 4), ("x4.trans", 4), ("x2", 2), ("x1", 1)):
        (row,) = trace.rows(f"ldmatrix.sync.aligned.m8n8.{opcode}")
        assert row.shared_wavefronts == count * waves
        assert (row.shared_wavefronts_ideal, row.bytes) == (count, count * 128)
    assert [str(h) for h in trace.hazards] == []


MMA = r"""
#include <cuda_fp16.h>
__device__ unsigned shared_address(const void* p) { return __cvta_generic_to_shared(p); }
extern "C" __global__ void gemm(const half* A, const half* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) half As[32][24], Bs[16][40];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, row0 = blockIdx.y * 32, col0 = blockIdx.x * 32;
    float acc[2][4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int i = t; i < 512; i += 128) {
            As[i / 16][i % 16] = A[(row0 + i / 16) * K + k0 + i % 16];
            Bs[i / 32][i % 32] = B[(k0 + i / 32) * N + col0 + i % 32];
        }
        SYNC
        unsigned a[4], b[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
            : "r"(shared_address(&As[warp / 2 * 16 + lane % 16][lane / 16 * 8])));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
            : "r"(shared_address(&Bs[lane % 16][warp % 2 * 16 + lane / 16 * 8])));
        for (int j = 0; j < 2; ++j) {
#if __CUDA_ARCH__ >= 800
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[2 * j]), "r"(b[2 * j + 1]));
#else
            for (int h = 0; h < 2; ++h)
                asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                    "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                    : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
                    : "r"(a[2 * h]), "r"(a[2 * h + 1]), "r"(b[2 * j + h]));
#endif
        }
        __syncthreads();
    }
    for (int j = 0; j < 2; ++j)
        for (int i = 0; i < 4; ++i)
            C[(row0 + warp / 2 * 16 + lane / 4 + i / 2 * 8) * N
              + col0 + warp % 2 * 16 + j * 8 + lane % 4 * 2 + i % 2] = acc[j][i];
}
"""


def operands(m, n, k, seed=1):
    rng = np.random.default_rng(seed)
    return (
        rng.integers(-8, 9, (m, k)).astype(np.float16),
        rng.integers(-8, 9, (k, n)).astype(np.float16),
    )


@pytest.mark.parametrize("arch", [75, 80])
def test_an_mma_kernel(arch):
    m, n, k = 64, 96, 48
    a, b = operands(m, n, k)
    c = np.full((m, n), np.nan, np.float32)
    args = [a, b, c, np.int32(m), np.int32(n), np.int32(k)]
    trace = launch(MMA.replace("SYNC", "__syncthreads();"), "gemm", (3, 2), 128, args, arch)
    assert (c == a.astype(np.float64) @ b.astype(np.float64)).all()
    assert [str(h) for h in trace.hazards] == []
    loads = trace.rows("ldmatrix")
    warps = 6 * 3 * 4
    assert [row.shared_wavefronts for row in loads] == [4 * warps, 4 * warps]  # the padding works


def test_a_missing_barrier_before_ldmatrix_is_found():
    a, b = operands(32, 32, 32)
    args = [a, b, np.zeros((32, 32), np.float32), np.int32(32), np.int32(32), np.int32(32)]
    trace = launch(MMA.replace("SYNC", ""), "gemm", 1, 128, args)
    kinds = {h.kind for h in trace.hazards}
    assert "read-after-write" in kinds or "uninitialised-read" in kinds
    source = MMA.replace("SYNC", "").splitlines()
    for hazard in trace.hazards:
        assert "ldmatrix" in "".join(source[hazard.source[1] - 1 : hazard.source[1] + 3])


WMMA = r"""
#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
template <class L> constexpr bool by_rows = false;
template <> constexpr bool by_rows<wmma::row_major> = true;
template <int M, int N, class LA, class LB, class Acc>
__device__ void tile(const half* A, const half* B, Acc* C, bool by_columns) {
    __shared__ __align__(32) half As[32 * 40], Bs[32 * 40];
    constexpr int lda = by_rows<LA> ? 16 : M;
    constexpr int ldb = by_rows<LB> ? N : 16;
    constexpr int rows_a = M * 16 / lda, rows_b = N * 16 / ldb;
    for (int i = threadIdx.x; i < M * 16; i += 32) As[i / lda * (lda + 8) + i % lda] = A[i];
    for (int i = threadIdx.x; i < N * 16; i += 32) Bs[i / ldb * (ldb + 8) + i % ldb] = B[i];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, M, N, 16, half, LA> a, a2;
    wmma::fragment<wmma::matrix_b, M, N, 16, half, LB> b;
    wmma::fragment<wmma::accumulator, M, N, 16, Acc> c;
    wmma::load_matrix_sync(a, As, lda + 8);
    wmma::load_matrix_sync(b, Bs, ldb + 8);
    wmma::load_matrix_sync(a2, A, lda);
    wmma::load_matrix_sync(c, C, by_columns ? M : N, by_columns ? wmma::mem_col_major : wmma::mem_row_major);
    wmma::mma_sync(c, a, b, c);
    wmma::mma_sync(c, a2, b, c);
    for (int i = 0; i < c.num_elements; ++i) c.x[i] = c.x[i] + Acc(1);
    wmma::store_matrix_sync(C, c, by_columns ? M : N, by_columns ? wmma::mem_col_major : wmma::mem_row_major);
}
#define ENTRY(name, M, N, LA, LB, Acc) \
    extern "C" __global__ void name(const half* A, const half* B, Acc* C, int by_columns) { \
        tile<M, N, wmma::LA, wmma::LB, Acc>(A, B, C, by_columns); }
ENTRY(s16_rr_f32, 16, 16, row_major, row_major, float)
ENTRY(s16_rc_f32, 16, 16, row_major, col_major, float)
ENTRY(s16_cr_f16, 16, 16, col_major, row_major, half)
ENTRY(s32_rr_f32, 32, 8, row_major, row_major, float)
ENTRY(s32_cc_f16, 32, 8, col_major, col_major, half)
ENTRY(s8_rc_f32, 8, 32, row_major, col_major, float)
ENTRY(s8_cr_f16, 8, 32, col_major, row_major, half)
"""


@pytest.mark.parametrize("by_columns", [0, 1])
@pytest.mark.parametrize(
    "entry",
    [
        "s16_rr_f32",
        "s16_rc_f32",
        "s16_cr_f16",
        "s32_rr_f32",
        "s32_cc_f16",
        "s8_rc_f32",
        "s8_cr_f16",
    ],
)
def test_wmma_in_all_shapes_and_layouts(entry, by_columns):
    shape, layouts, accumulator = entry.split("_")
    m, n = {"s16": (16, 16), "s32": (32, 8), "s8": (8, 32)}[shape]
    a, b = operands(m, n, 16)
    a, b = a // 2, b // 2
    c = np.random.default_rng(2).integers(-20, 20, (m, n))
    c = c.astype(np.float32 if accumulator == "f32" else np.float16)
    held = [
        np.ascontiguousarray(x if layout == "r" else x.T)
        for x, layout in zip((a, b), layouts, strict=True)
    ]
    out = (c.T if by_columns else c).copy(order="C")
    trace = launch(WMMA, entry, 1, 32, [*held, out, np.int32(by_columns)])
    result = out.T if by_columns else out
    assert (result == 2 * (a.astype(np.float64) @ b.astype(np.float64)) + c + 1).all()
    assert [str(h) for h in trace.hazards] == []
    shared = [row for row in trace.rows("wmma.load") if ".shared" in row.opcode]
    assert shared and all(
        row.shared_wavefronts >= row.shared_wavefronts_ideal > 0 for row in shared
    )


OTHER_TYPES = r"""
#include <mma.h>
using namespace nvcuda;
template <int M, int N, int K, class T, class In, class Acc>
__device__ void tile(const In* A, const In* B, Acc* C) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, M, N, K, Acc> c;
    wmma::load_matrix_sync(a, A, K);
    wmma::load_matrix_sync(b, B, K);
    wmma::fill_fragment(c, Acc(3));
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(C, c, N, wmma::mem_row_major);
}
#define ENTRY(name, M, N, K, T, In, Acc) \
    extern "C" __global__ void name(const In* A, const In* B, Acc* C) { tile<M, N, K, T>(A, B, C); }
ENTRY(bf16_16, 16, 16, 16, __nv_bfloat16, __nv_bfloat16, float)
ENTRY(bf16_32, 32, 8, 16, __nv_bfloat16, __nv_bfloat16, float)
ENTRY(bf16_8, 8, 32, 16, __nv_bfloat16, __nv_bfloat16, float)
ENTRY(tf32_16, 16, 16, 8, wmma::precision::tf32, float, float)
ENTRY(s8_16, 16, 16, 16, signed char, signed char, int)
ENTRY(s8_32, 32, 8, 16, signed char, signed char, int)
ENTRY(u8_8, 8, 32, 16, unsigned char, unsigned char, int)
"""


@pytest.mark.parametrize(
    "entry", ["bf16_16", "bf16_32", "bf16_8", "tf32_16", "s8_16", "s8_32", "u8_8"]
)
def test_wmma_of_other_types(entry):
    type, rows = entry.split("_")
    m, n = {"16": (16, 16), "32": (32, 8), "8": (8, 32)}[rows]
    k = 8 if type == "tf32" else 16
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 9, (m, k)), rng.integers(0, 9, (n, k))
    if type != "u8":
        a, b = a - 4, b - 4
    held = {"tf32": np.float32, "s8": np.int8, "u8": np.uint8, "bf16": np.float32}[type]
    x, y = a.astype(held), b.astype(held)
    if type == "bf16":
        x, y = ((v.view(np.uint32) >> 16).astype(np.uint16) for v in (x, y))
    c = np.zeros((m, n), np.int32 if type in ("s8", "u8") else np.float32)
    launch(OTHER_TYPES, entry, 1, 32, [x, y, c])
    assert (c == a @ b.T + 3).all()


OTHERS = r"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry int8(.param .u64 out) {
    .reg .b32 %r<20>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %laneid;
    mov.b32 %r2, 0x01020304;
    mov.b32 %r3, 0xff01ff01;
    mov.b32 %r4, 5;
    mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r5,%r6,%r7,%r8}, {%r2,%r2,%r2,%r2}, {%r3,%r3}, {%r4,%r4,%r4,%r4};
    mma.sync.aligned.m8n8k16.row.col.satfinite.s32.u8.s8.s32 {%r9,%r10}, {%r2}, {%r3}, {%r4,%r4};
    mul.wide.u32 %rd2, %r1, 16;
    add.u64 %rd3, %rd1, %rd2;
    st.global.v4.b32 [%rd3], {%r5, %r8, %r9, %r10};
    ret;
}
"""


@pytest.mark.parametrize(
    "instruction",
    [
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%r5}, {%r2}, {%r3}, {%r4};",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r5}, {%r2}, {%r3}, {%r4}, %r1, 0;",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r5}, [%r1];",
    ],
)
def test_what_is_outside_is_refused_with_its_line(instruction):
    lines = OTHERS.splitlines()
    at = next(i for i, line in enumerate(lines) if "mma.sync" in line)
    lines[at] = instruction
    with pytest.raises(emulator.PtxError) as caught:
        emulator.Module("\n".join(lines)).launch("int8", 1, 32, [np.zeros((32, 4), np.int32)])
    assert caught.value.line == at + 1
    assert instruction.split()[0] in str(caught.value)
