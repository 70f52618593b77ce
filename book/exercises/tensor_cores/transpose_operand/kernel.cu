// C (16, 16) = A (16, 16) @ B (16, 16), all row-major, one warp, two
// mma.m16n8k16. A and B lie in shared memory. mma wants B column by column;
// ldmatrix's .trans gives it that from rows, if each lane points at the right
// row.
#include "ptx.cuh"

extern "C" __global__ void transpose_operand(const half* A, const half* B,
                                             float* C) {
    __shared__ __align__(16) half As[16 * 16], Bs[16 * 16];
    const int lane = threadIdx.x;
    reinterpret_cast<uint4*>(As)[lane] =
        reinterpret_cast<const uint4*>(A)[lane];
    reinterpret_cast<uint4*>(Bs)[lane] =
        reinterpret_cast<const uint4*>(B)[lane];
    __syncwarp();

    unsigned a[4], b[4];
    ldmatrix_x4(a, shared_address(As + lane % 16 * 16 + lane / 16 * 8));
#ifdef SOLUTION
    const int row = lane % 16, col = lane / 16 * 8;
    ldmatrix_x4_trans(b, shared_address(Bs + row * 16 + col));
#else
    // Your turn: b[0], b[1] are rows 0-7 and 8-15 of B's left half, b[2], b[3]
    // of its right half.
    const int row = 0, col = 0;
    ldmatrix_x4_trans(b, shared_address(Bs + row * 16 + col));
#endif
    for (int half_of_c = 0; half_of_c < 2; ++half_of_c) {
        float acc[4] = {};
        mma_m16n8k16(acc, a, b[2 * half_of_c], b[2 * half_of_c + 1]);
        for (int i = 0; i < 4; ++i)
            C[(lane / 4 + 8 * (i / 2)) * 16 + 8 * half_of_c + 2 * (lane % 4) +
              i % 2] = acc[i];
    }
}
