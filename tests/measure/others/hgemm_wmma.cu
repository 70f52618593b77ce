// inspect --grid 4x2 --block 32 --arg f16[32,48]=uniform:18 --arg f16[48,64]=uniform:19 --arg f32[32,64] --arg s32=64 --arg s32=48
#include <mma.h>
using namespace nvcuda;
__global__ void wmma_ker(half *a, half *b, float *c, int N, int K) {
   wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a_frag;
   wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b_frag;
   wmma::fragment<wmma::accumulator, 16, 16, 16, float> c_frag;
   wmma::fill_fragment(c_frag, 0.0f);
   for (int k = 0; k < K; k += 16) {
      wmma::load_matrix_sync(a_frag, a + blockIdx.y * 16 * K + k, K);
      wmma::load_matrix_sync(b_frag, b + k * N + blockIdx.x * 16, N);
      wmma::mma_sync(c_frag, a_frag, b_frag, c_frag);
   }
   wmma::store_matrix_sync(c + blockIdx.y * 16 * N + blockIdx.x * 16, c_frag, N, wmma::mem_row_major);
}
