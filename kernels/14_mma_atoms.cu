// One warp, one instruction: mma.sync on registers that each lane loads by hand, so that who holds what is in the open.
// Changed from wmma_async: one 16x8 tile per warp, and slower for it: here to be read before mma_sync, not run.
// gemm_mma_atoms uses m16n8k16; atom_* multiply one tile each: m8n8k4 (Volta, four at once), m16n8k8 tf32, m16n8k16.
// gemm_mma_atoms needs M % 16 == N % 8 == K % 16 == 0 (the launcher pads); the tf32 atom needs sm_80.

#include <cuda_fp16.h>

#include "ptx.cuh"

__device__ unsigned pack(half low, half high) { return unsigned(__half_as_ushort(high)) << 16 | __half_as_ushort(low); }

// [m16n8k16]
// PTX ISA 9.7.14.5.8. A (16 x 16): register r holds row group + 8 * (r % 2), columns 2 * pair + 8 * (r / 2) and +1.
// B (16 x 8): register r holds rows 2 * pair + 8 * r and the next, column group. C: see store_16x8.
__device__ void load_a_16x16(unsigned (&a)[4], const half* A, int lda) {
    const int group = threadIdx.x / 4, pair = threadIdx.x % 4;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const half* two = A + (group + r % 2 * 8) * lda + 2 * pair + r / 2 * 8;
        a[r] = pack(two[0], two[1]);
    }
}

__device__ void load_b_16x8(unsigned (&b)[2], const half* B, int k_stride, int n_stride) {
    const int group = threadIdx.x / 4, pair = threadIdx.x % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const half* two = B + (2 * pair + r * 8) * k_stride + group * n_stride;
        b[r] = pack(two[0], two[k_stride]);
    }
}
// [/m16n8k16]

// [store]
// Accumulator register i of a 16 x 8 tile: row group + 8 * (i / 2), column 2 * pair + i % 2.
__device__ void store_16x8(float* C, const float (&acc)[4], int ldc, float alpha, float beta) {
    const int group = threadIdx.x / 4, pair = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float* c = C + (group + i / 2 * 8) * ldc + 2 * pair + i % 2;
        *c = alpha * acc[i] + (beta != 0.0f ? beta * *c : 0.0f);
    }
}
// [/store]

// C = alpha * A * B + beta * C, all row-major: block (x, y) is one warp with the 16 x 8 tile at (16 y, 8 x).
// [compute]
extern "C" __global__ void __launch_bounds__(32)
    gemm_mma_atoms(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                   float alpha, float beta) {
    A += size_t(blockIdx.y) * 16 * K;
    B += blockIdx.x * 8;
    C += size_t(blockIdx.y) * 16 * N + blockIdx.x * 8;

    float acc[4] = {};
    for (int k = 0; k < K; k += 16) {
        unsigned a[4], b[2];
        load_a_16x16(a, A + k, K);
        load_b_16x8(b, B + size_t(k) * N, N, 1);
        mma_m16n8k16(acc, a, b[0], b[1]);
    }
    store_16x8(C, acc, N, alpha, beta);
}
// [/compute]

// One m16n8k16: A (16, 16) row-major, B (16, 8) column-major ("TN"), C (16, 8) row-major.
extern "C" __global__ void __launch_bounds__(32)
    atom_m16n8k16(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C) {
    float acc[4] = {};
    unsigned a[4], b[2];
    load_a_16x16(a, A, 16);
    load_b_16x8(b, B, 1, 16);
    mma_m16n8k16(acc, a, b[0], b[1]);
    store_16x8(C, acc, 8, 1.0f, 0.0f);
}

// One m16n8k8 on tf32 (PTX ISA 9.7.14.5.7): A (16, 8) row-major, B (8, 8) column-major ("TN"), C (16, 8) row-major.
// [m16n8k8]
#if __CUDA_ARCH__ >= 800
extern "C" __global__ void __launch_bounds__(32)
    atom_m16n8k8_tf32(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C) {
    const int group = threadIdx.x / 4, pair = threadIdx.x % 4;
    float acc[4] = {};
    unsigned a[4], b[2];
#pragma unroll
    for (int r = 0; r < 4; ++r) a[r] = to_tf32(A[(group + r % 2 * 8) * 8 + pair + r / 2 * 4]);
#pragma unroll
    for (int r = 0; r < 2; ++r) b[r] = to_tf32(B[pair + r * 4 + group * 8]);
    mma_m16n8k8_tf32(acc, a, b[0], b[1]);
    store_16x8(C, acc, 8, 1.0f, 0.0f);
}
#endif
// [/m16n8k8]

// Four m8n8k4, one for each quad-pair q (lanes 4q .. 4q+3 and 16 + 4q .. 16 + 4q + 3), PTX ISA 9.7.14.5.1:
// A (4, 8, 4) each column-major, B (4, 4, 8) each row-major ("NT"), C (4, 8, 8) each row-major.
// [m8n8k4]
extern "C" __global__ void __launch_bounds__(32)
    atom_m8n8k4_nt(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C) {
    const int quad_pair = threadIdx.x % 16 / 4;
    const int k = threadIdx.x % 4;           // the column of A, and row of B, that this lane holds ...
    const int first = threadIdx.x / 16 * 4;  // ... and the first of its four rows of A, columns of B
    const half* a_four = A + quad_pair * 32 + k * 8 + first;
    const half* b_four = B + quad_pair * 32 + k * 8 + first;
    const unsigned a[2] = {pack(a_four[0], a_four[1]), pack(a_four[2], a_four[3])};
    const unsigned b[2] = {pack(b_four[0], b_four[1]), pack(b_four[2], b_four[3])};

    float acc[8] = {};
    mma_m8n8k4_nt(acc, a, b);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = threadIdx.x % 2 + (i & 2) + first;
        const int col = (threadIdx.x & 2) + i % 2 + (i & 4);
        C[quad_pair * 64 + row * 8 + col] = acc[i];
    }
}
// [/m8n8k4]
