// fast.cu's kernel 12 (its file examples/matmul/matmul_12.cuh) behind the functions that measure/peers.py calls. Its
// launcher keeps the tensor maps of the first matrices that it sees, so each plan puts its own in their place.
// Row-major A, column-major B and C.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using bf16 = __nv_bfloat16;
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define cudaCheck(call) (void)(call)
using std::max;
#include "examples/matmul/matmul_12.cuh"

struct Plan {
    int m, n, k;
    bf16 *a, *b, *c;
    CUtensorMap map_a, map_b, map_c;
    int* tiles;
};

extern "C" const char* peer_setting(int number) { return number ? nullptr : "128 x 256 x 64, 3 stages, 2 x 1"; }

extern "C" int peer_run(Plan* plan, cudaStream_t) {  // on the default stream
    M12::d_tma_map_A = plan->map_a, M12::d_tma_map_B = plan->map_b, M12::d_tma_map_C = plan->map_c;
    M12::_dspace = plan->tiles;
    M12::_prev_m = plan->m, M12::_prev_n = plan->n, M12::_prev_k = plan->k;
    M12::runKernel12(plan->m, plan->n, plan->k, plan->a, plan->b, plan->c, nullptr);
    return cudaGetLastError();
}

extern "C" Plan* peer_plan(int, bf16* a, bf16* b, bf16* c, int m, int n, int k) {
    M12::_prev_m = 0;
    M12::runKernel12(m, n, k, a, b, c, nullptr);
    return new Plan{m, n, k, a, b, c, M12::d_tma_map_A, M12::d_tma_map_B, M12::d_tma_map_C, M12::_dspace};
}
