// inspect --grid 3x2 --block 32 --arch 90 --arg map:32x32:f32[50,80]=random:3 --arg f32[80] --arg s32=80
#include <cuda.h>
#include <cudaTypedefs.h>  // PFN_cuTensorMapEncodeTiled
#include <cuda/barrier>
#include <cstdio>
using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;

// Sums of columns: TMA brings a tile of 32 x 32, zeros where the matrix ends.
__global__ void tile_sums(const __grid_constant__ CUtensorMap map, float* out, int cols) {
    __shared__ alignas(128) float tile[32][32];
    __shared__ barrier landed;
    if (threadIdx.x == 0) {
        init(&landed, blockDim.x);
        cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_tensor_2d_global_to_shared(&tile, &map, blockIdx.x * 32, blockIdx.y * 32, landed);
        token = cuda::device::barrier_arrive_tx(landed, 1, sizeof(tile));
    } else {
        token = landed.arrive();
    }
    landed.wait(std::move(token));
    float sum = 0;
    for (int row = 0; row < 32; ++row) sum += tile[row][threadIdx.x];
    if (blockIdx.x * 32 + threadIdx.x < cols) atomicAdd(&out[blockIdx.x * 32 + threadIdx.x], sum);
}

PFN_cuTensorMapEncodeTiled_v12000 encoder() {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult how;
    cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &how);
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(found);
}

int main() {
    float *a, *out;
    cudaMalloc(&a, 50 * 80 * 4);
    cudaMalloc(&out, 80 * 4);
    CUtensorMap map{};
    uint64_t size[] = {80, 50}, pitch[] = {80 * 4};
    uint32_t box[] = {32, 32}, steps[] = {1, 1};
    encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, a, size, pitch, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
              CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    tile_sums<<<dim3(3, 2), 32>>>(map, out, 80);
    printf("%d\n", cudaDeviceSynchronize());
}
