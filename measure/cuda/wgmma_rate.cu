// wgmma_rate: how many operations a multiprocessor does per clock when warpgroups do nothing but wgmma, on random tiles
// that stay in shared memory. Two warpgroups of 64 rows, each m64n256, so that one's wait hides behind the other's work.
// UNIT 1: f16. 2: bf16. 3: tf32. 4: e4m3. 5: s8, all with 32-bit sums; operands K-major, in 128-byte rows, swizzled.
// UNIT 8, 16, 32, 64, 128: f16 with so many columns, and as many more products between two waits.
#include "hopper.cuh"
#include "rates.cuh"

#ifndef UNIT
#define UNIT 1
#endif

constexpr int COLUMNS = UNIT < 8 ? 256 : UNIT;
constexpr int ROW_BYTES = 128, A_BYTES = 64 * ROW_BYTES, B_BYTES = 256 * ROW_BYTES;
constexpr int STEPS = ROW_BYTES / 32;  // 32 bytes of k per wgmma, whatever the type
constexpr int REPEATS = 256 / COLUMNS;

#if UNIT == 2
using In = bf16;
#elif UNIT == 3
using In = tf32;
#elif UNIT == 4
using In = e4m3;
#elif UNIT == 5
using In = signed char;
#else
using In = half;
#endif
#if UNIT == 5
using Sum = int;
#else
using Sum = float;
#endif

#define ATOMS_2(R, i) ATOMS_1(R, i), ATOMS_1(R, i + 1)
#define NUMBERS_1 "%0, %1, %2, %3"
#define NUMBERS_2 NUMBERS_1 ", %4, %5, %6, %7"
#define NUMBERS_4 NUMBERS_2 ", %8, %9, %10, %11, %12, %13, %14, %15"

__device__ __forceinline__ void multiply(Sum (&d)[COLUMNS / 8][4], unsigned long long a, unsigned long long b,
                                         bool add) {
    constexpr int A_M_MAJOR = 0, B_N_MAJOR = 0;
#if UNIT == 8
    WGMMA("m64n8k16", "f32.f16.f16", "+f", SIGNS_AND_MAJORS, 1, "%4", "%5", "%6", "%7", "%8");
#elif UNIT == 16
    WGMMA("m64n16k16", "f32.f16.f16", "+f", SIGNS_AND_MAJORS, 2, "%8", "%9", "%10", "%11", "%12");
#elif UNIT == 32
    WGMMA("m64n32k16", "f32.f16.f16", "+f", SIGNS_AND_MAJORS, 4, "%16", "%17", "%18", "%19", "%20");
#else
    wgmma_32_bytes<In, A_M_MAJOR, B_N_MAJOR>(d, a, b, add);
#endif
}

__device__ __forceinline__ unsigned word(unsigned seed) {
    const float x = uniform(2 * seed), y = uniform(2 * seed + 1);
    if constexpr (UNIT == 1 || UNIT >= 8) {
        const half2 pair = __floats2half2_rn(x, y);
        return reinterpret_cast<const unsigned&>(pair);
    } else if constexpr (UNIT == 2) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
        return reinterpret_cast<const unsigned&>(pair);
    } else if constexpr (UNIT == 3) {
        return __float_as_uint(x) & ~0x1fffu;
    } else if constexpr (UNIT == 4) {
        return hash(seed) & 0xbfbfbfbfu;
    } else {
        return hash(seed);
    }
}

extern "C" __global__ void __launch_bounds__(256, 1) wgmma_rate(long long (*passed)[2], float* seen, int turns) {
    extern __shared__ __align__(1024) unsigned char shared[];
    auto* words = reinterpret_cast<unsigned*>(shared);
    for (int i = threadIdx.x; i < (2 * A_BYTES + B_BYTES) / 4; i += blockDim.x) words[i] = word(blockIdx.x * 65536 + i);
    async_fence();
    __syncthreads();
    const unsigned a_tile = shared_address(shared) + threadIdx.x / 128 * A_BYTES;
    const unsigned b_tile = shared_address(shared) + 2 * A_BYTES;
    Sum sums[COLUMNS / 8][4];
    const Stopwatch start = now();
    for (int turn = 0; turn < turns; ++turn) {
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < STEPS * REPEATS; ++step)
            multiply(sums, wgmma_descriptor(a_tile + 32 * (step % STEPS)),
                     wgmma_descriptor(b_tile + 32 * (step % STEPS)), turn + step > 0);
        wgmma_commit();
        wgmma_wait<0>();
    }
    __syncthreads();
    report(start, passed);
    float kept = 0.0f;
    for (int i = 0; i < COLUMNS / 8; ++i)
        for (int j = 0; j < 4; ++j) kept += static_cast<float>(sums[i][j]);
    if (kept == 1.25f) *seen = kept;
}
