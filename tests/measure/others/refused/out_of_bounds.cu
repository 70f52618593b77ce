// inspect --grid 4 --block 256 --arg f32[1000] --arg f32[1000]=random:1 --arg f32=2
// said: OutOfBounds
// said: out_of_bounds.cu:5
__global__ void saxpy(float* y, const float* x, float a) {
    y[blockIdx.x * blockDim.x + threadIdx.x] += a * x[blockIdx.x * blockDim.x + threadIdx.x];
}
