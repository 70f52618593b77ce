// inspect --grid 1 --block 64 --arg f32[64] --arg f32=0.1
// said: argument 1
struct Options { float rate, momentum, decay; };
__global__ void sgd(float* w, Options o) { w[threadIdx.x] -= o.rate * o.decay * w[threadIdx.x]; }
