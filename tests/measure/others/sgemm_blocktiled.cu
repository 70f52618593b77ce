// inspect --entry sgemm<64,64,8,8,8> --grid 2x2 --block 64 --arg s32=128 --arg s32=128 --arg s32=40 --arg f32=1.5 --arg f32[128,40]=random:15 --arg f32[40,128]=random:16 --arg f32=0.5 --arg f32[128,128]=random:17
// The 2D block tiling of a well-known worklog, in our words: A is read down a column of its tile.
#pragma once
#include <cassert>
#include <cublas_v2.h>
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))

template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void sgemm(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const unsigned cRow = blockIdx.y, cCol = blockIdx.x;
  const int threads = BM * BN / (TM * TN);
  assert(threads == blockDim.x);
  const int threadCol = threadIdx.x % (BN / TN), threadRow = threadIdx.x / (BN / TN);
  __shared__ float As[BM * BK];
  __shared__ float Bs[BK * BN];
  A += cRow * BM * K;
  B += cCol * BN;
  C += cRow * BM * N + cCol * BN;
  float results[TM * TN] = {0.0}, regM[TM], regN[TN];
  for (unsigned bk = 0; bk < K; bk += BK) {
    for (unsigned i = threadIdx.x; i < BM * BK; i += threads) As[i] = A[i / BK * K + i % BK];
    for (unsigned i = threadIdx.x; i < BK * BN; i += threads) Bs[i] = B[i / BN * N + i % BN];
    __syncthreads();
    A += BK;
    B += BK * N;
    for (unsigned k = 0; k < BK; ++k) {
      for (unsigned i = 0; i < TM; ++i) regM[i] = As[(threadRow * TM + i) * BK + k];
      for (unsigned i = 0; i < TN; ++i) regN[i] = Bs[k * BN + threadCol * TN + i];
      for (unsigned m = 0; m < TM; ++m)
        for (unsigned n = 0; n < TN; ++n) results[m * TN + n] += regM[m] * regN[n];
    }
    __syncthreads();
  }
  for (unsigned m = 0; m < TM; ++m)
    for (unsigned n = 0; n < TN; ++n) {
      float *c = &C[(threadRow * TM + m) * N + threadCol * TN + n];
      *c = alpha * results[m * TN + n] + beta * *c;
    }
}

void run_sgemm(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C) {
  dim3 grid(CEIL_DIV(N, 64), CEIL_DIV(M, 64));
  sgemm<64, 64, 8, 8, 8><<<grid, 64>>>(M, N, K, alpha, A, B, beta, C);
}
