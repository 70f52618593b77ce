"""Races on global memory: between threads of a block, and between blocks."""

import numpy as np
import pytest
from cuda_source import launch, line_of

KIND = "global-race"
SOURCE = r"""
#include <cuda/atomic>
#include <cuda_fp16.h>
extern "C" __global__ void neighbour(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] = x[i];
    if (i + 1 < n) f[i + 1024] = y[i ^ 1];                  // reads a neighbour
}
extern "C" __global__ void neighbour_after_barrier(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] = x[i];
    __syncthreads();
    f[i + 1024] = y[i ^ 33];
    __syncthreads();
    y[i] = x[i] + 1;
}
extern "C" __global__ void other_block(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] = x[i];
    __syncthreads();
    f[i + 1024] = y[(i + blockDim.x) % n];                  // reads another block's
}
extern "C" __global__ void stencil_in_place(int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int left = i ? x[i - 1] : 0, right = i + 1 < n ? x[i + 1] : 0;
    __syncthreads();
    x[i] += left + right;                                   // overwrites what a neighbour block reads
}
extern "C" __global__ void plain_counter(const int *x, int *y, int *f, int n) {
    f[0] = f[0] + 1;                                        // counts without an atomic
}
extern "C" __global__ void who_is_last(const int *x, int *y, int *f, int n) {
    f[0] = threadIdx.x;                                     // all write their own
}
extern "C" __global__ void halves(const half *x, half *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] = x[i];                                            // neighbours share four bytes
}
extern "C" __global__ void changed(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (x[i] > 0) f[0] = 1;
}
extern "C" __global__ void only_atomics(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    atomicAdd(f + (x[i] & 7), 1);
    atomicMax(f + 8, x[i]);
}
extern "C" __global__ void atomic_and_plain(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i == 0) f[0] = 5;
    __syncthreads();
    if (i % 64 == 32) atomicAdd(f, 1);                      // meets the plain write
}
extern "C" __global__ void swap_until_it_fits(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x, mine = x[i];
    int *at = f + (mine & 1), old = *at, before;
    do { before = old; old = atomicCAS(at, before, before + 2 * mine); } while (old != before);
    if (mine > f[2]) atomicMax(f + 2, mine);
}
extern "C" __global__ void atomics_read_too_early(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    atomicAdd(f + (x[i] & 7), 1);
    __syncthreads();
    y[i] = f[i & 7];                                        // other blocks still count
}
template <bool FENCE, bool BARRIER> __device__ void last_block(const int *x, int *y, int *f, int n) {
    __shared__ bool last;
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] = x[i] * 2;
    if (FENCE) __threadfence();
    if (BARRIER) __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(f, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        int sum = 0;
        for (int k = threadIdx.x; k < n; k += blockDim.x) sum += y[k];   // the last block adds up
        atomicAdd(f + 1, sum);
    }
}
extern "C" __global__ void last_block_fenced(const int *x, int *y, int *f, int n) { last_block<true, true>(x, y, f, n); }
extern "C" __global__ void last_block_unfenced(const int *x, int *y, int *f, int n) { last_block<false, true>(x, y, f, n); }
extern "C" __global__ void last_block_without_barrier(const int *x, int *y, int *f, int n) {
    last_block<true, false>(x, y, f, n);
}

template <bool FENCE, bool BARRIER> __device__ void chain(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x, b = blockIdx.x;
    if (b > 0) {
        if (threadIdx.x == 0) { while (atomicAdd(f + b - 1, 0) == 0) ; __threadfence(); }
        if (BARRIER) __syncthreads();
        y[i] = y[i - blockDim.x] + x[i];                    // takes what the block before left
    } else y[i] = x[i];
    __syncthreads();
    if (threadIdx.x == 0) { if (FENCE) __threadfence(); atomicExch(f + b, 1); }
}
extern "C" __global__ void chain_right(const int *x, int *y, int *f, int n) { chain<true, true>(x, y, f, n); }
extern "C" __global__ void chain_unfenced(const int *x, int *y, int *f, int n) { chain<false, true>(x, y, f, n); }
extern "C" __global__ void chain_without_barrier(const int *x, int *y, int *f, int n) { chain<true, false>(x, y, f, n); }
extern "C" __global__ void chain_of_atomic_refs(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x, b = blockIdx.x;
    cuda::atomic_ref<int, cuda::thread_scope_device> mine(f[b]), before(f[b > 0 ? b - 1 : 0]);
    if (b > 0) {
        if (threadIdx.x == 0) while (before.load(cuda::memory_order_acquire) == 0) ;
        __syncthreads();
        y[i] = y[i - blockDim.x] + x[i];
    } else y[i] = x[i];
    __syncthreads();
    if (threadIdx.x == 0) mine.store(1, cuda::memory_order_release);
}
extern "C" __global__ void volatile_flag(const int *x, int *y, int *f, int n) {
    volatile int *flag = f;
    if (blockIdx.x == 0) {
        y[threadIdx.x] = x[threadIdx.x];
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) flag[0] = 1;
    } else {
        if (threadIdx.x == 0) while (flag[0] == 0) ;
        __syncthreads();
        y[threadIdx.x + 64 * blockIdx.x] = y[threadIdx.x];
    }
}
__device__ int kept[1024];
extern "C" __global__ void module_variable(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    kept[i] = x[i];
    y[i] = kept[n - 1 - i];                                 // of another block
}
extern "C" __global__ void read_twice(const int *x, int *y, int *f, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int a = x[i];
    y[i] = a + (i ? x[i - 1] : 0);                          // aliased or not
}
extern "C" __global__ void warp_through_memory(const int *x, int *y, int *f, int n) {
    y[threadIdx.x] = x[threadIdx.x];
    if (n < 0) __syncwarp();
    f[threadIdx.x + 1024] = y[threadIdx.x ^ 1];              // the warp did not synchronise
}
"""
N = 256


def _run(entry, block=64, grid=None, y=None, **more):
    x = np.random.default_rng(1).integers(1, 100, N).astype(np.int32)
    y = np.zeros(N, np.int32) if y is None else y
    f = np.zeros(4096, np.int32)
    trace = launch(SOURCE, entry, grid or N // block, block, [x, y, f, np.int32(N)], **more)
    return trace.hazards, x, y, f


@pytest.mark.parametrize(
    ("entry", "text", "words"),
    [
        ("neighbour", "reads a neighbour", "does not synchronise"),
        ("other_block", "reads another block's", "of block"),
        ("stencil_in_place", "overwrites what a neighbour", "writes"),
        ("plain_counter", "counts without an atomic", ""),
        ("who_is_last", "all write their own", "writes"),
        ("atomic_and_plain", "meets the plain write", "updates"),
        ("atomics_read_too_early", "other blocks still count", ""),
        ("last_block_unfenced", "the last block adds up", "wrote"),
        ("last_block_without_barrier", "the last block adds up", "wrote"),
        ("chain_unfenced", "takes what the block before left", "wrote"),
        ("chain_without_barrier", "takes what the block before left", "of block"),
        ("module_variable", "of another block", "kept"),
        ("warp_through_memory", "the warp did not synchronise", "warp does not"),
    ],
)
@pytest.mark.parametrize("arch", [75, 90])
def test_races_are_found_at_their_line(entry, text, words, arch):
    hazards, *_ = _run(entry, grid=1 if entry.startswith("warp") else None, arch=arch)
    assert {h.kind for h in hazards} == {KIND}, [str(h) for h in hazards]
    line = line_of(SOURCE, text)
    found = [h for h in hazards if line in {at for _, at in h.frames}]
    assert found and words in str(found[0]), [str(h) for h in hazards]


@pytest.mark.parametrize(
    "entry",
    ["neighbour_after_barrier", "halves", "changed", "only_atomics", "swap_until_it_fits", "last_block_fenced", "chain_right",
     "chain_of_atomic_refs", "volatile_flag", "read_twice"],
)  # fmt: skip
@pytest.mark.parametrize("arch", [75, 90])
def test_what_is_ordered_is_left_in_peace(entry, arch):
    hazards, x, y, f = _run(entry, arch=arch)
    assert not hazards, [str(h) for h in hazards]
    if entry == "last_block_fenced":
        assert f[1] == 2 * x.sum()
    if entry.startswith("chain"):
        assert (y.reshape(4, 64) == np.cumsum(x.reshape(4, 64), axis=0)).all()


def test_blocks_of_different_chunks_race_too():
    """Blocks that the emulator runs one after the other could run at once."""
    n = 40 * 1024
    x, y, f = np.ones(n, np.int32), np.zeros(n, np.int32), np.zeros(n + 1024, np.int32)
    trace = launch(SOURCE, "other_block", 40, 1024, [x, y, f, np.int32(n)])
    assert {h.kind for h in trace.hazards} == {KIND}
    assert sum(h.count for h in trace.hazards) == n  # read before, or after, the neighbour's write


def test_the_same_array_given_twice():
    """Whether `x` may be written depends on the launch."""
    both = np.arange(N, dtype=np.int32)
    trace = launch(SOURCE, "read_twice", 4, 64, [both, both, np.zeros(9, np.int32), np.int32(N)])
    assert {h.kind for h in trace.hazards} == {KIND}


def test_a_second_launch_begins_anew():
    x, y = np.ones(N, np.int32), np.zeros(N, np.int32)
    for entry in ("halves", "read_twice", "halves"):
        trace = launch(SOURCE, entry, 4, 64, [x, y, np.zeros(9, np.int32), np.int32(N)])
        assert not trace.hazards


def test_the_message_says_who_and_where():
    hazards, *_ = _run("other_block")
    assert "argument 1" in str(hazards[0]) and "of block (" in str(hazards[0])
    assert hazards[0].other_source[1] == line_of(SOURCE, "reads another block's") - 2
    assert hazards[0].symbol == "argument 1" and "byte 256" in str(hazards[0])


def test_reads_of_what_nobody_writes_are_not_looked_at():
    from emulator.sanitizer.device import DeviceShadow

    seen = []
    real = DeviceShadow.access

    def access(self, ins, *rest):
        seen.append(ins.opcode)
        return real(self, ins, *rest)

    DeviceShadow.access = access
    try:
        _run("read_twice")
    finally:
        DeviceShadow.access = real
    assert seen and all(opcode.startswith("st") for opcode in seen)


def test_writing_what_is_there_already_is_no_race():
    """In blocks that run one after the other here, too; another value is one."""
    n = 40 * 1024
    x, y, f = np.ones(n, np.int32), np.zeros(n, np.int32), np.zeros(16, np.int32)
    assert not launch(SOURCE, "changed", 40, 1024, [x, y, f, np.int32(n)]).hazards
    own = SOURCE.replace("if (x[i] > 0) f[0] = 1;", "if (x[i] > 0) f[0] = blockIdx.x;")
    assert launch(own, "changed", 40, 1024, [x, y, f, np.int32(n)]).hazards


@pytest.mark.parametrize(
    ("load", "found"), [("__ldg(y + (t ^ 33))", ["incoherent-read"]), ("y[t ^ 33]", []), ("__ldg(x + (t ^ 33))", [])]
)  # fmt: skip
def test_what_the_kernel_has_written_is_not_read_as_constant(load, found):
    source = f"""
extern "C" __global__ void k(const int* x, int* y, int* out) {{
    const int t = threadIdx.x;
    y[t] = x[t] + 1;
    __syncthreads();
    out[t] = {load};
}}
"""
    x, y, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32), np.zeros(64, np.int32)
    trace = launch(source, "k", 1, 64, [x, y, out])
    assert [hazard.kind for hazard in trace.hazards] == found
    for hazard in trace.hazards:
        assert hazard.source[1] == line_of(source, "out[t]") and hazard.count == 64
        assert hazard.other_source[1] == line_of(source, "y[t] =")
