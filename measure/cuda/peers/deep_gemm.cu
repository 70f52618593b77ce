// DeepGEMM's bf16 kernel for Hopper (its file impls/sm90_bf16_gemm.cuh) behind the functions that measure/peers.py calls,
// with the settings that its own heuristic takes for large squares: 256 x 128 x 64, 3 stages, pairs of blocks that share A.
// Row-major A and C, column-major B.
#include <cuda.h>
#include <cuda_runtime.h>

#include <deep_gemm/impls/sm90_bf16_gemm.cuh>

constexpr int BM = 256, BN = 128, BK = 64, STAGES = 3, CLUSTER = 2, SMS = 132;
constexpr int SHARED = BM * BN * 2 + STAGES * (BM + BN) * BK * 2 + 256;
constexpr auto K_MAJOR = cute::UMMA::Major::K;

struct Plan {
    int m, n, k;
    CUtensorMap a, b, c;
};

template <int SIZE>
auto* kernel() {
    return &deep_gemm::sm90_bf16_gemm_impl<K_MAJOR, K_MAJOR, 0, SIZE, SIZE, 1, BM, BN, BK, 128, 128, 128, STAGES, 128, 256,
                                           CLUSTER, true, SMS, deep_gemm::GemmType::Normal, false, cutlass::bfloat16_t>;
}

static CUtensorMap map(void* at, int rows, int columns, int box_rows) {  // row-major, boxes of 128 bytes per row
    CUtensorMap made;
    const cuuint64_t extents[] = {cuuint64_t(columns), cuuint64_t(rows)}, pitch[] = {2 * cuuint64_t(columns)};
    const cuuint32_t box[] = {64, cuuint32_t(box_rows)}, steps[] = {1, 1};
    cuTensorMapEncodeTiled(&made, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, at, extents, pitch, box, steps,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return made;
}

extern "C" const char* peer_setting(int number) { return number ? nullptr : "256 x 128 x 64, 3 stages, 1 x 2"; }

extern "C" Plan* peer_plan(int, void* a, void* b, void* c, int m, int n, int k) {
    if (n != k || (k != 4096 && k != 8192)) return nullptr;
    return new Plan{m, n, k, map(a, m, k, BM), map(b, n, k, BN), map(c, m, n, BM)};
}

extern "C" int peer_run(Plan* plan, cudaStream_t stream) {
    auto* run = plan->k == 4096 ? kernel<4096>() : kernel<8192>();
    cudaFuncSetAttribute(run, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    cudaLaunchAttribute pair{};
    pair.id = cudaLaunchAttributeClusterDimension;
    pair.val.clusterDim = {CLUSTER, 1, 1};
    cudaLaunchConfig_t launch{};
    launch.gridDim = SMS, launch.blockDim = 384, launch.dynamicSmemBytes = SHARED, launch.stream = stream;
    launch.attrs = &pair, launch.numAttrs = 1;
    int* no_groups = nullptr;
    return cudaLaunchKernelEx(&launch, run, no_groups, unsigned(plan->m), unsigned(plan->n), unsigned(plan->k), plan->a,
                              plan->b, plan->c);
}
