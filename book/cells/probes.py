"""Small kernels that show one thing of Hopper each, run on the emulator: a copy, an mbarrier, a wgmma."""

import numpy as np

import kernels
from emulator import TensorMap

ARCH = "90a"

FETCH = """\
#include "hopper.cuh"

extern "C" __global__ void fetch(const __grid_constant__ TensorMap map, uint4* out,
                                 int x, int y, int bytes) {
    extern __shared__ __align__(1024) unsigned char tile[];
    __shared__ __align__(8) unsigned long long barrier[1];
    const unsigned landed = shared_address(barrier);
    if (threadIdx.x == 0) {
        barrier_init(landed, 1);
        barrier_init_fence();
        barrier_expect(landed, bytes);
        tma_load(shared_address(tile), map, x, y, landed);
    }
    __syncthreads();
    barrier_wait(landed, 0);
    for (int i = threadIdx.x; i < bytes / 16; i += 32)
        out[i] = reinterpret_cast<uint4*>(tile)[i];
}
"""

WATCH = """\
#include "hopper.cuh"

__device__ bool over(unsigned barrier, unsigned parity) {
    unsigned done;
    asm volatile("{\\n.reg .pred p;\\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\\n"
                 "selp.b32 %0, 1, 0, p;\\n}\\n"
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    return done;
}

extern "C" __global__ void watch(const char* events, int* out, int number, int count) {
    __shared__ __align__(8) unsigned long long barrier[1];
    const unsigned at = shared_address(barrier);
    barrier_init(at, count);
    for (int i = 0; i <= number; ++i) {
        out[2 * i] = over(at, 0);
        out[2 * i + 1] = over(at, 1);
        if (i == number) break;
        if (events[i] == 'a') barrier_arrive(at);
        if (events[i] == 'e') barrier_expect(at, 1024);
        if (events[i] == 'c')  // what a copy of 1024 bytes does when it has landed
            asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 1024;" ::"r"(at));
    }
}
"""


def fetch(
    matrix: np.ndarray, box: tuple[int, int], x: int, y: int, swizzle: int = 0, announce=None
):
    """One copy by TMA of a box of this matrix, (box rows, box columns); shared memory as it is afterwards, and the trace.

    x counts elements, y rows. announce: the bytes that the kernel expects, where not those of the box.
    """
    one = TensorMap(matrix, box, swizzle=swizzle)
    size = one.box_bytes
    out = np.zeros((max(size, announce or 0) // 16, 4), np.uint32)
    built = kernels.build(FETCH, arch=ARCH, name="fetch")
    given = [one, out, *(np.int32(n) for n in (x, y, announce or size))]
    trace = kernels.launch(built, None, 1, 32, given, out.nbytes, machine="emulator")
    return out.view(matrix.dtype).reshape(-1)[: size // matrix.itemsize].reshape(box), trace


def barrier(count: int, events: str) -> list[tuple[bool, bool]]:
    """What waits for parity 0 and for parity 1 say of an mbarrier, before and after each event.

    events: "a" arrives, "e" arrives and expects 1024 bytes, "c" brings 1024 bytes.
    """
    text = np.frombuffer(events.replace(" ", "").encode() + b"\0", np.uint8).copy()
    out = np.zeros((len(text), 2), np.int32)
    built = kernels.build(WATCH, arch=ARCH, name="watch")
    given = [text, out, np.int32(len(text) - 1), np.int32(count)]
    kernels.launch(built, None, 1, 1, given, machine="emulator")
    return [(bool(zero), bool(one)) for zero, one in out.tolist()]
