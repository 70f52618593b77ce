// inspect --grid 1 --block 64 --arg s32[65]=arange --arg s32[64]=below:64:8 --arg f32[64]=random:24 --arg f32[64]=random:25 --arg f32[64]
template <typename index_t, typename scalar_t>
__global__ void spmv(const index_t* start, const index_t* col, const scalar_t* val, const scalar_t* x, scalar_t* y) {
    index_t row = blockIdx.x * blockDim.x + threadIdx.x;
    scalar_t sum = 0;
    for (index_t i = start[row]; i < start[row + 1]; ++i) sum += val[i] * x[col[i]];
    y[row] = sum;
}
void forward(int* s, int* c, float* v, float* x, float* y) { spmv<int, float><<<1, 64>>>(s, c, v, x, y); }
