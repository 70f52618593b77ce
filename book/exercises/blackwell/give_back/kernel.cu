// C = A @ B, 128 x 64 per block, by tcgen05. One thread copies and multiplies,
// four warps store, 32 rows each. The columns of the sums are asked for at the
// beginning, and given back at the end.
#include "blackwell.cuh"

constexpr int A_BYTES = 128 * 128, B_BYTES = 64 * 128;

extern "C" __global__ void __launch_bounds__(128)
    give_back(const __grid_constant__ TensorMap A,
              const __grid_constant__ TensorMap B, float* C, int M, int N,
              int K) {
    __shared__ __align__(1024) unsigned char tiles[A_BYTES + B_BYTES];
    __shared__ __align__(8) unsigned long long barriers[2];
    __shared__ unsigned address;
    const unsigned a_tile = shared_address(tiles), b_tile = a_tile + A_BYTES;
    const unsigned landed = shared_address(barriers), done = landed + 8;
    const int thread = threadIdx.x, warp = thread / 32;
    const int row = blockIdx.y * 128, col = blockIdx.x * 64;
    if (thread == 0) {
        barrier_init(landed, 1);
        barrier_init(done, 1);
        barrier_init_fence();
    }
#ifdef SOLUTION
    if (warp == 0) tensor_alloc<64>(shared_address(&address));
    __syncthreads();
#else
    // Your turn: who asks for columns, how many, and who waits for whom?
    tensor_alloc<32>(shared_address(&address));
#endif
    const unsigned sums = address;

    unsigned phase = 0;
    for (int k_step = 0; k_step < K; k_step += 64) {
        if (thread == 0) {
            barrier_expect(landed, A_BYTES + B_BYTES);
            tma_load(a_tile, A, k_step, row, landed);
            tma_load(b_tile, B, col, k_step, landed);
            barrier_wait(landed, phase);
            for (int k = 0; k < 64; k += 16)
                tensor_multiply(sums, tensor_descriptor(a_tile + k * 2),
                                tensor_descriptor(b_tile + k * 128),
                                tensor_instruction<half>(128, 64),
                                k_step > 0 || k > 0);
            tensor_commit(done);
        }
        barrier_wait(done, phase);
        phase ^= 1;
    }
#ifdef SOLUTION
    tensor_fence_after();
#endif
    store_sums<64>(C, M, N, row + warp * 32, col, sums + (warp * 32 << 16),
                   1.0f, 0.0f);
#ifdef SOLUTION
    tensor_fence_before();
    __syncthreads();
    if (warp == 0) tensor_free<64>(sums);
#else
    // Your turn: give the columns back, when everybody has read them.
#endif
}
