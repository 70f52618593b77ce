// inspect --grid 2x2 --block 16x16 --arg f64[32,32]=random:21 --arg f64[32,32] --arg s32=32 --arg f64=0.1
__global__ void heat(const double* u, double* v, int n, double r) {
    auto at = [=](int y, int x) { return u[min(max(y, 0), n - 1) * n + min(max(x, 0), n - 1)]; };
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n)
        v[y * n + x] = u[y * n + x] + r * (at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1) - 4 * u[y * n + x]);
}
