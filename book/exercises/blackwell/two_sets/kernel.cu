// C = A @ B. A block has 128 rows and computes all tiles of 128 x 64 in them,
// one after the other. Thread 128 copies and multiplies, warps 0 to 3 store.
// The sums of tile i are in set i % 2, so that one tile is stored while the
// next is multiplied.
#include "blackwell.cuh"

constexpr int A_BYTES = 128 * 128, B_BYTES = 64 * 128;

extern "C" __global__ void __launch_bounds__(129)
    two_sets(const __grid_constant__ TensorMap A,
             const __grid_constant__ TensorMap B, float* C, int M, int N,
             int K) {
    __shared__ __align__(1024) unsigned char tiles[A_BYTES + B_BYTES];
    __shared__ __align__(8) unsigned long long barriers[6];
    __shared__ unsigned address;
    const unsigned a_tile = shared_address(tiles), b_tile = a_tile + A_BYTES;
    const unsigned landed = shared_address(barriers), read = landed + 8;
    const unsigned summed = read + 8, stored = summed + 2 * 8;
    const int thread = threadIdx.x, warp = thread / 32;
    const int row = blockIdx.x * 128, count = (N + 63) / 64;
    if (thread == 0) {
        barrier_init(landed, 1);
        barrier_init(read, 1);
        for (int set = 0; set < 2; ++set) {
            barrier_init(summed + 8 * set, 1);    // a commit
            barrier_init(stored + 8 * set, 128);  // everybody who stores
        }
        barrier_init_fence();
    }
    if (warp == 0) tensor_alloc<128>(shared_address(&address));
    __syncthreads();
    const unsigned tensor = address;

    if (thread == 128) {
        unsigned phase = 0;
        for (int i = 0; i < count; ++i) {
            const int set = i % 2;
#ifdef SOLUTION
            barrier_wait(stored + 8 * set, i / 2 % 2 ^ 1);  // first at once
#else
            // Your turn: mend the parities, and what the last commit is for.
            barrier_wait(stored + 8 * set, i % 2);
#endif
            tensor_fence_after();
            for (int k_step = 0; k_step < K; k_step += 64) {
                barrier_expect(landed, A_BYTES + B_BYTES);
                tma_load(a_tile, A, k_step, row, landed);
                tma_load(b_tile, B, 64 * i, k_step, landed);
                barrier_wait(landed, phase);
                for (int k = 0; k < 64; k += 16)
                    tensor_multiply(
                        tensor + 64 * set, tensor_descriptor(a_tile + k * 2),
                        tensor_descriptor(b_tile + k * 128),
                        tensor_instruction<half>(128, 64), k_step > 0 || k > 0);
                tensor_commit(read);
                barrier_wait(read, phase);
                phase ^= 1;
            }
#ifdef SOLUTION
            tensor_commit(summed + 8 * set);
#else
            tensor_commit(summed);
#endif
        }
    } else if (warp < 4) {
        for (int i = 0; i < count; ++i) {
            const int set = i % 2;
#ifdef SOLUTION
            barrier_wait(summed + 8 * set, i / 2 % 2);
#else
            barrier_wait(summed + 8 * set, i % 2);
#endif
            tensor_fence_after();
            store_sums<64>(C, M, N, row + warp * 32, 64 * i,
                           tensor + 64 * set + (warp * 32 << 16), 1.0f, 0.0f);
            tensor_fence_before();
            barrier_arrive(stored + 8 * set);
        }
    }
    tensor_fence_before();
    __syncthreads();
    tensor_fence_after();
    if (warp == 0) tensor_free<128>(tensor);
}
