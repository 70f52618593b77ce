// C = A @ B, 256 x 128 per pair of blocks. Each block has 128 rows of A and of
// the sums, and loads 64 of the columns of B. One thread of the first block
// starts the products of both. Bytes of both count at the first block's barrier.
#include "blackwell.cuh"

constexpr int A_BYTES = 128 * 128, B_BYTES = 64 * 128;

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
    mend_pair(const __grid_constant__ TensorMap A,
              const __grid_constant__ TensorMap B, float* C, int M, int N,
              int K) {
    __shared__ __align__(1024) unsigned char tiles[A_BYTES + B_BYTES];
    __shared__ __align__(8) unsigned long long barriers[2];
    __shared__ unsigned address;
    const unsigned a_tile = shared_address(tiles), b_tile = a_tile + A_BYTES;
    const unsigned landed = shared_address(barriers), done = landed + 8;
    const int thread = threadIdx.x, warp = thread / 32, rank = cluster_rank();
    const int row = (blockIdx.y * 2 + rank) * 128;
    const int col = blockIdx.x / 2 * 128;
    if (thread == 0) {
        barrier_init(landed, 1);
        barrier_init(done, 1);
        barrier_init_fence();
    }
    if (warp == 0) tensor_alloc<128, true>(shared_address(&address));
    __syncthreads();
    cluster_sync();
    const unsigned sums = address;

    unsigned phase = 0;
    for (int k_step = 0; k_step < K; k_step += 64) {
        if (thread == 0) {
            const unsigned first = in_first_block(landed);
#ifdef SOLUTION
            if (rank == 0) barrier_expect(landed, 2 * (A_BYTES + B_BYTES));
            tma_load_of_pair(a_tile, A, k_step, row, first);
            tma_load_of_pair(b_tile, B, col + 64 * rank, k_step, first);
#else
            // Your turn: who announces how many bytes, and which columns of B
            // does each block load?
            barrier_expect(landed, A_BYTES + B_BYTES);
            tma_load_of_pair(a_tile, A, k_step, row, first);
            tma_load_of_pair(b_tile, B, col, k_step, first);
#endif
        }
#ifdef SOLUTION
        if (thread == 0 && rank == 0) {
#else
        if (thread == 0) {  // Your turn: who starts the products?
#endif
            barrier_wait(landed, phase);
            for (int k = 0; k < 64; k += 16)
                tensor_multiply<true>(sums, tensor_descriptor(a_tile + k * 2),
                                      tensor_descriptor(b_tile + k * 128),
                                      tensor_instruction<half>(256, 128),
                                      k_step > 0 || k > 0);
            tensor_commit_pair(done);
        }
        barrier_wait(done, phase);
        phase ^= 1;
    }
    tensor_fence_after();
    store_sums<128>(C, M, N, row + warp * 32, col, sums + (warp * 32 << 16),
                    1.0f, 0.0f);
    tensor_fence_before();
    __syncthreads();
    cluster_exchange();
    tensor_fence_after();
    if (warp == 0) tensor_free<128, true>(sums);
}
