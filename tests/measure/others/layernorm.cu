// inspect --grid 6 --block 128 --arg f32[6,512]=random:10 --arg f32[512]=random:11 --arg f32[512]=random:12 --arg f32[6,512]
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
constexpr int WIDTH = 512;
__global__ void __launch_bounds__(128) layernorm(const float4* x, const float4* gain, const float4* bias, float4* y) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    __shared__ float sums[4], squares[4];
    float4 v = x[blockIdx.x * 128 + threadIdx.x];
    float s = cg::reduce(warp, v.x + v.y + v.z + v.w, cg::plus<float>());
    float q = cg::reduce(warp, v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w, cg::plus<float>());
    if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = s, squares[warp.meta_group_rank()] = q;
    __syncthreads();
    s = sums[0] + sums[1] + sums[2] + sums[3];
    q = squares[0] + squares[1] + squares[2] + squares[3];
    float mean = s / WIDTH, r = rsqrtf(q / WIDTH - mean * mean + 1e-5f);
    float4 g = gain[threadIdx.x], b = bias[threadIdx.x];
    y[blockIdx.x * 128 + threadIdx.x] = make_float4((v.x - mean) * r * g.x + b.x, (v.y - mean) * r * g.y + b.y,
                                                    (v.z - mean) * r * g.z + b.z, (v.w - mean) * r * g.w + b.w);
}
