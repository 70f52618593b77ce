// C (16, 8) = A (16, 16) @ B (16, 8), all row-major, by one mma.m16n8k16: the
// lanes load their registers by hand.
#include "ptx.cuh"

__device__ unsigned pack(half low, half high) {
    return unsigned(__half_as_ushort(high)) << 16 | __half_as_ushort(low);
}

extern "C" __global__ void load_fragments(const half* A, const half* B,
                                          float* C) {
    const int group = threadIdx.x / 4, pair = threadIdx.x % 4;
    unsigned a[4] = {}, b[2] = {};
#ifdef SOLUTION
    for (int r = 0; r < 4; ++r) {
        const int row = group + 8 * (r % 2), col = 2 * pair + 8 * (r / 2);
        a[r] = pack(A[row * 16 + col], A[row * 16 + col + 1]);
    }
    for (int r = 0; r < 2; ++r) {
        const int row = 2 * pair + 8 * r;
        b[r] = pack(B[row * 8 + group], B[(row + 1) * 8 + group]);
    }
#else
    // Your turn: which elements of A and B does this lane hold? pack(x, y)
    // makes a register of two halves.
#endif
    float acc[4] = {};
    mma_m16n8k16(acc, a, b[0], b[1]);
    for (int i = 0; i < 4; ++i)
        C[(group + 8 * (i / 2)) * 8 + 2 * pair + i % 2] = acc[i];
}
