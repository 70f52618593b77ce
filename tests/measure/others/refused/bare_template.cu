// inspect --grid 1 --block 32 --arg f32[32]
// said: is a template
// said: --entry
template <typename T>
__global__ void zero(T* x) { x[threadIdx.x] = T(0); }
