// announced: does the phase of an mbarrier end when a thread announces another number of bytes than its copies bring?
// One thread per block announces, asks for `boxes` copies, and polls the barrier for at most `patience` clocks.
// out[block] = 1 if the phase was over by then. Needs sm_90.
#include "hopper.cuh"

extern "C" __global__ void announced(const __grid_constant__ TensorMap map, int* out, int boxes, int box_bytes,
                                     int bytes, int patience) {
    extern __shared__ __align__(1024) unsigned char tile[];
    __shared__ __align__(8) unsigned long long barrier[1];
    const unsigned landed = shared_address(barrier);
    barrier_init(landed, 1);
    barrier_init_fence();
    barrier_expect(landed, bytes);
    for (int i = 0; i < boxes; ++i)
        tma_load(shared_address(tile) + i * box_bytes, map, 0, (blockIdx.x * boxes + i) % 64 * 8, landed);
    unsigned over = 0;
    const long long begin = clock64();
    while (!over && clock64() - begin < patience)
        asm volatile(
            "{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;\n"
            "selp.b32 %0, 1, 0, p;\n}\n"
            : "=r"(over)
            : "r"(landed)
            : "memory");
    out[blockIdx.x] = over;
    const long long end = clock64();
    while (clock64() - end < patience / 10) continue;  // the copies land before the block ends
}
