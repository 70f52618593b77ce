"""Holds a student's copies to what `cuda::memcpy_async` promises, whatever the compiler made of them.

A copy of 2 bytes has no asynchronous instruction, so it becomes a load and a store, and a missing wait or commit
goes unnoticed. Here the same source is compiled once more, with copies that are asynchronous at any size: two
neighbouring halves become one copy of 4 bytes, issued by the thread of the first.
"""

import kernels
from kernels.build import DEFAULT_ARCH

_SHIM = """\
#line 1 "always_async.h"
#include <cuda/pipeline>
namespace cuda {
template <class Pipe> constexpr bool of_one_thread = false;
template <> constexpr bool of_one_thread<pipeline<thread_scope_thread>> = true;
template <int Bytes> __device__ __forceinline__ void start_copy(unsigned to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(Bytes) : "memory");
}
template <class To, class From, class Size, class Pipe>
__device__ __forceinline__ void always_async(To* to, const From* from, Size size, Pipe& pipe) {
    if constexpr (of_one_thread<Pipe>) {
        const unsigned bytes = unsigned(size_t(size));
        const unsigned place = unsigned(__cvta_generic_to_shared(to));
        const unsigned odd = (bytes | place | unsigned(reinterpret_cast<size_t>(from))) % 4;
        const bool halves = bytes == 2 && (place ^ unsigned(reinterpret_cast<size_t>(from))) % 4 == 0;
        const char* source = reinterpret_cast<const char*>(from);
        if (odd == 0) {
            for (unsigned i = 0; i < bytes; i += 4) start_copy<4>(place + i, source + i);
        } else if (halves) {
            if (place % 4 == 0) start_copy<4>(place, source);
        } else {
            memcpy_async(to, from, size, pipe);
        }
    } else {
        memcpy_async(to, from, size, pipe);
    }
}
template <class Group, class To, class From, class Size, class Pipe>
__device__ __forceinline__ void always_async(const Group& group, To* to, const From* from, Size size, Pipe& pipe) {
    memcpy_async(group, to, from, size, pipe);
}
}
#define memcpy_async always_async
#line 1 "{name}"
"""


def uses_it(text: str) -> bool:
    return "memcpy_async" in text


def build(text: str, name: str) -> kernels.Build | None:
    """The source with copies that are asynchronous at any size; None where it does not compile that way."""
    try:
        return kernels.build(_SHIM.replace("{name}", name) + text, name=name, arch=DEFAULT_ARCH)
    except kernels.BuildError:
        return None
