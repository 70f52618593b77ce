"""CUDA kernels with tcgen05 products, and shared memory as the PTX ISA's canonical layouts fill it."""

import numpy as np
from tensor_layouts import Swizzle

XOR = {0: None, 32: Swizzle(1, 4, 3), 64: Swizzle(2, 4, 3), 128: Swizzle(3, 4, 3)}
CODE = {0: 0, 128: 2, 64: 4, 32: 6}
WRAPPERS = r"""
using u32 = unsigned; using u64 = unsigned long long;
__device__ u32 shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void alloc(u32* to, u32 n) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" :: "r"(shared(to)), "r"(n)); }
__device__ void dealloc(u32 at, u32 n) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" :: "r"(at), "r"(n)); }
__device__ void init(u64* b, u32 n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared(b)), "r"(n)); }
__device__ void wait(u64* b, u32 parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }"
                 :: "r"(shared(b)), "r"(parity) : "memory"); }
__device__ void commit(u64* b) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                 :: "r"(shared(b)) : "memory"); }
__device__ void before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ void after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
__device__ void wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
__device__ void wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
__device__ u32 load(u32 at) { u32 x;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(x) : "r"(at) : "memory"); return x; }
__device__ void store(u32 at, u32 x) {
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" :: "r"(at), "r"(x) : "memory"); }
__device__ void copy(u32 to, u64 from) {
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" :: "r"(to), "l"(from) : "memory"); }
__device__ void fence_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
"""


def product_source(kind: str, a_in_tensor: bool = False, block: str = "") -> str:
    """A kernel `product`: an image into shared memory, one mma, D's 128 lanes out.

    Arguments: image, its 16-byte pieces, descriptors of A and B (start relative to the image), the instruction
    descriptor, A as (8, 128) words for tensor memory, descriptors of the scales, D before (columns, 128), columns,
    out, whether D is added. Scales' columns are 448 and 480, A's 256.
    """
    a = "[%1]" if a_in_tensor else "%1"
    scales = ", [%4], [%5]" if block else ""
    name = f"kind::{kind}{block}"
    return f"""{WRAPPERS}
extern "C" __global__ void __launch_bounds__(128) product(const uint4* image, int pieces, u64 a, u64 b, u32 idesc,
        const u32* a_words, u64 a_scales, u64 b_scales, const u32* c, int columns, u32* out, int add) {{
    extern __shared__ __align__(1024) uint4 tiles[];
    __shared__ u64 bar;
    __shared__ u32 base_;
    const int t = threadIdx.x, warp = t / 32;
    for (int i = t; i < pieces; i += 128) tiles[i] = image[i];
    fence_proxy();
    if (warp == 0) alloc(&base_, 512);
    if (t == 0) init(&bar, 1);
    __syncthreads();
    const u32 d = base_, lanes = d + (warp << 21);
    const u64 start = shared(tiles) >> 4;
    for (int i = 0; i < columns; ++i) store(lanes + i, c[i * 128 + t]);
    for (int i = 0; i < 8; ++i) store(lanes + 256 + i, a_words[i * 128 + t]);
    wait_st();
    before();
    __syncthreads();
    after();
    if (t == 0) {{
        if ({int(bool(block))}) {{
            for (int i = 0; i < 4; ++i) copy(d + 448 + 4 * i, a_scales + start + 32 * i);
            for (int i = 0; i < 8; ++i) copy(d + 480 + 4 * i, b_scales + start + 32 * i);
        }}
        asm volatile("{{ .reg .pred p; setp.ne.u32 p, %6, 0;"
            "tcgen05.mma.cta_group::1.{name} [%0], {a}, %2, %3{scales}, p; }}"
            :: "r"(d), {'"r"(d + 256)' if a_in_tensor else '"l"(a + start)'}, "l"(b + start), "r"(idesc),
               "r"(d + 448), "r"(d + 480), "r"(add) : "memory");
        commit(&bar);
    }}
    wait(&bar, 0);
    after();
    for (int i = 0; i < columns; ++i) {{
        u32 x = load(lanes + i);
        wait_ld();
        out[i * 128 + t] = x;
    }}
    before();
    __syncthreads();
    if (warp == 0) dealloc(d, 512);
}}"""


def pair_source(kind: str, a_in_tensor: bool = False, block: str = "") -> str:
    """The same for a pair of blocks: each has its own image, words, D before and out, and block 0's thread starts the product."""
    text = product_source(kind, a_in_tensor, block).replace("cta_group::1", "cta_group::2")
    for old, new in (
        ("product(", "__cluster_dims__(2, 1, 1) product("),
        ("    const int t =", """    const int rank = blockIdx.x;
    image += rank * pieces, a_words += rank * 1024, c += rank * columns * 128, out += rank * columns * 128;
    const int t ="""),
        ("__syncthreads();", 'asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");'),
        ("if (t == 0) {", "if (t == 0 && rank == 0) {"),
        ('shared::cluster.b64 [%0];"\n                 :: "r"(shared(b))',
         'shared::cluster.multicast::cluster.b64 [%0], %1;" :: "r"(shared(b)), "h"((short)3)'),
    ):  # fmt: skip
        assert old in text, old
        text = text.replace(old, new)
    return text


def place(rows: np.ndarray, k_major: bool, swizzle: int) -> tuple[np.ndarray, int]:
    """(image, descriptor) of an operand (rows, bytes along k) or, MN-major, (k, bytes along m or n).

    K-major: bands of 8 rows. MN-major: pieces of `swizzle` bytes (16 without one), each with all of k.
    """
    count, width = rows.shape
    image = np.zeros(count * width + 1024, np.uint8)
    for r in range(count):
        for byte in range(width):
            if k_major:
                leading, stride = 128 * (count // 8), 128
                if swizzle:
                    leading, stride = 0, 8 * swizzle
                    at = r // 8 * stride + r % 8 * swizzle + byte
                else:
                    at = r // 8 * stride + r % 8 * 16 + byte // 16 * leading + byte % 16
            elif swizzle:
                leading, stride = count * swizzle, 8 * swizzle
                at = byte // swizzle * leading + r // 8 * stride + r % 8 * swizzle + byte % swizzle
            else:
                leading, stride = 128 * (width // 16), 128
                at = byte // 16 * stride + r % 8 * 16 + r // 8 * leading + byte % 16
            if at >= len(image):
                image = np.concatenate([image, np.zeros(at + 1024 - len(image), np.uint8)])
            image[XOR[swizzle](at) if swizzle else at] = rows[r, byte]
    size = -(-len(image) // 1024) * 1024
    image = np.concatenate([image, np.zeros(size - len(image), np.uint8)])
    return image, (leading >> 4) << 16 | (stride >> 4) << 32 | 1 << 46 | CODE[swizzle] << 61
