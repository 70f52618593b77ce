// A block's tile in shared memory is divided among warps, a warp's part among its threads, who hold it in registers.
// Changed from vectorized: warps own WM x WN tiles, in which a 128-bit shared load costs two wavefronts, the fewest;
// the next tile is fetched, and the next k's fragments are loaded, while this one multiplies: one barrier per tile.
// Block BM x BN x BK of warps WM x WN of threads TM x TN (as quads of 4 x 4), shared by SLICES groups of warps that
// divide BK and add their sums, for products of few tiles. Needs whole tiles (the launcher pads) and 16-byte alignment.

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef BK
#define BK 8
#endif
#ifndef WM
#define WM 64
#endif
#ifndef WN
#define WN 64
#endif
#ifndef TM
#define TM 16
#endif
#ifndef TN
#define TN 8
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif
#ifndef SLICES
#define SLICES 1
#endif

constexpr int WARPS_N = BN / WN;
constexpr int WARPS = BM / WM * WARPS_N;  // of a slice
constexpr int THREADS = 32 * WARPS * SLICES;
constexpr int DEPTH = BK / SLICES;
constexpr int LANES_M = WM / TM;
constexpr int LANES_N = WN / TN;
static_assert(LANES_M * LANES_N == 32 && LANES_N % 2 == 0, "a warp tile is 32 thread tiles, an even number across");

constexpr int A_PITCH = BM + 4;  // the transposing stores of a warp then meet 32 different banks
constexpr int B_PITCH = BN;
constexpr int QUADS_A = BM * BK / 4 / THREADS;  // float4 of each tile that a thread fetches
constexpr int QUADS_B = BK * BN / 4 / THREADS;
constexpr int BUFFER = BK * (A_PITCH + B_PITCH);
static_assert(QUADS_A * THREADS * 4 == BM * BK && QUADS_B * THREADS * 4 == BK * BN, "threads fetch as many float4");
static_assert(4 * THREADS % BN == 0 && (BM % (THREADS / 2) == 0 || THREADS / 2 % BM == 0), "in whole rows");
static_assert(BK % SLICES == 0 && DEPTH % 2 == 0, "a slice is an even number of k, for its two sets of fragments");
static_assert(BK % 8 == 0 && TM % 4 == 0 && TN % 4 == 0, "a tile of A is read 8 columns at a time, fragments in quads");

__device__ __forceinline__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ __forceinline__ void store4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }

// Row and column of float4 number `quad` of a tile. In A, lanes 2i and 2i+1 share a row: one 32-byte sector.
__device__ __forceinline__ int row_a(int quad) { return quad / 2 % BM; }
__device__ __forceinline__ int col_a(int quad) { return quad % 2 * 4 + quad / (2 * BM) * 8; }
__device__ __forceinline__ int row_b(int quad) { return quad * 4 / BN; }
__device__ __forceinline__ int col_b(int quad) { return quad * 4 % BN; }

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_warp_tiled(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                    int K, float alpha, float beta) {
    __shared__ __align__(16) float tiles[2 * BUFFER];  // twice As[BK][A_PITCH], transposed, then Bs[BK][B_PITCH]

    A += size_t(blockIdx.y) * BM * K;  // the block's rows of A, columns of B, tile of C
    B += size_t(blockIdx.x) * BN;
    C += size_t(blockIdx.y) * BM * N + size_t(blockIdx.x) * BN;

    // [lanes]
    // Lane bit 0 goes along the columns and bit 1 along the rows: pairs of lanes agree on their A, lanes two apart on
    // their B, and shared memory then serves a 128-bit load 16 lanes at a time instead of 8.
    const int warp = SLICES == 1 ? threadIdx.x / 32 : threadIdx.x / 32 % WARPS;
    const int lane = threadIdx.x % 32;
    const int lane_row = lane / 2 % LANES_M;
    const int lane_col = lane / (2 * LANES_M) * 2 + lane % 2;
    const int thread_row = warp / WARPS_N * WM + lane_row * 4;  // of its first quads; the next are 4 * LANES_M below
    const int thread_col = warp % WARPS_N * WN + lane_col * 4;
    // [/lanes]

    const float* source_a[QUADS_A];  // what this thread fetches next
    const float* source_b[QUADS_B];
#pragma unroll
    for (int q = 0; q < QUADS_A; ++q) {
        const int quad = threadIdx.x + q * THREADS;
        source_a[q] = A + size_t(row_a(quad)) * K + col_a(quad);
    }
#pragma unroll
    for (int q = 0; q < QUADS_B; ++q) {
        const int quad = threadIdx.x + q * THREADS;
        source_b[q] = B + size_t(row_b(quad)) * N + col_b(quad);
    }
    float* write_a = tiles + col_a(threadIdx.x) * A_PITCH + row_a(threadIdx.x);
    float* write_b = tiles + BK * A_PITCH + row_b(threadIdx.x) * B_PITCH + col_b(threadIdx.x);
    const int slice = SLICES == 1 ? 0 : threadIdx.x / (32 * WARPS);
    const float* read_a = tiles + thread_row + slice * DEPTH * A_PITCH;
    const float* read_b = tiles + BK * A_PITCH + thread_col + slice * DEPTH * B_PITCH;
    int flip = BUFFER;  // from the buffer being read to the other one

    float4 next_a[QUADS_A], next_b[QUADS_B];
    __align__(16) float a[2][TM], b[2][TN];
    float sums[TM][TN] = {};

    // [steps]
    auto fetch = [&] {  // global memory to registers
#pragma unroll
        for (int q = 0; q < QUADS_A; ++q) {
            next_a[q] = load4(source_a[q]);
            source_a[q] += BK;
        }
#pragma unroll
        for (int q = 0; q < QUADS_B; ++q) {
            next_b[q] = load4(source_b[q]);
            source_b[q] += size_t(BK) * N;
        }
    };
    auto stage = [&] {  // registers to shared memory
#pragma unroll
        for (int q = 0; q < QUADS_A; ++q) {
            float* to = write_a + col_a(q * THREADS) * A_PITCH + row_a(q * THREADS);
            to[0 * A_PITCH] = next_a[q].x;
            to[1 * A_PITCH] = next_a[q].y;
            to[2 * A_PITCH] = next_a[q].z;
            to[3 * A_PITCH] = next_a[q].w;
        }
#pragma unroll
        for (int q = 0; q < QUADS_B; ++q)
            store4(write_b + row_b(q * THREADS) * B_PITCH + col_b(q * THREADS), next_b[q]);
    };
    auto load_fragments = [&](int slot, int k) {  // shared memory to registers
#pragma unroll
        for (int i = 0; i < TM; i += 4) store4(&a[slot][i], load4(read_a + k * A_PITCH + i * LANES_M));
#pragma unroll
        for (int j = 0; j < TN; j += 4) store4(&b[slot][j], load4(read_b + k * B_PITCH + j * LANES_N));
    };
    auto swap_buffers = [&] {
        __syncthreads();
        read_a += flip;
        read_b += flip;
        write_a -= flip;
        write_b -= flip;
        flip = -flip;
    };
    // [/steps]

    auto multiply = [&](int slot) {
    // [compute]
    // Row by row, there and back: each product shares an operand with the one before it, at the turns as well.
    // ptxas then marks it for reuse, and an FFMA reads one register less from the banks of the register file.
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int step = 0; step < TN; ++step) {
                const int j = i % 2 ? TN - 1 - step : step;
                sums[i][j] += a[slot][i] * b[slot][j];
            }
        // [/compute]
    };

    fetch();
    stage();
    __syncthreads();
    write_a += BUFFER;
    write_b += BUFFER;
    load_fragments(0, 0);

    // [loop]
    auto step = [&](int k) {  // multiplies k, while the fragments of k + 1 are on their way
        load_fragments((k + 1) % 2, (k + 1) % DEPTH);
        multiply(k % 2);
    };
    for (int k0 = 0; k0 < K; k0 += BK) {
        if (k0 + BK < K) fetch();  // the next tile is on its way ...
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            if (k == DEPTH - 2)
                stage();  // ... and goes into the other buffer, which nobody has read since the last barrier
            if (k == DEPTH - 1) swap_buffers();
            step(k);
        }
    }
    // [/loop]

    // [slices]
    // The slices take turns with every four rows of a thread tile: one adds up everybody's sums, in a fixed order.
    auto keeps = [&](int i) { return SLICES == 1 || slice == i / 4 % SLICES; };
    if constexpr (SLICES > 1) {
        constexpr int APART = 32 * WARPS;  // one slice's threads, next to each other in shared memory
        static_assert(4 * (SLICES - 1) * TN * APART <= 2 * BUFFER, "four rows of all threads but the keepers' fit");
        float4* const passed = reinterpret_cast<float4*>(tiles) + threadIdx.x % APART;
#pragma unroll
        for (int i = 0; i < TM; i += 4) {
            const int place = slice - (slice > i / 4 % SLICES);
            __syncthreads();  // the tiles, or the rows before, have been read
#pragma unroll
            for (int n = 0; n < TN; ++n) {
                const float* from = &sums[i + n % 4][n / 4 * 4];
                if (!keeps(i)) passed[(place * TN + n) * APART] = {from[0], from[1], from[2], from[3]};
            }
            __syncthreads();
            if (!keeps(i)) continue;
#pragma unroll
            for (int n = 0; n < TN; ++n)
#pragma unroll
                for (int other = 0; other < SLICES - 1; ++other) {
                    const float4 v = passed[(other * TN + n) * APART];
                    float* to = &sums[i + n % 4][n / 4 * 4];
                    to[0] += v.x, to[1] += v.y, to[2] += v.z, to[3] += v.w;
                }
        }
    }
    // [/slices]

    // [store]
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            if (!keeps(i)) continue;
            const int row = thread_row + i / 4 * 4 * LANES_M + i % 4;
            float* c = C + size_t(row) * N + thread_col + j * LANES_N;
            const float4 old = beta == 0.0f ? float4{} : load4(c);
            store4(c, {alpha * sums[i][j + 0] + beta * old.x, alpha * sums[i][j + 1] + beta * old.y,
                       alpha * sums[i][j + 2] + beta * old.z, alpha * sums[i][j + 3] + beta * old.w});
        }
    // [/store]
}
