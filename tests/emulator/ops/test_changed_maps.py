"""Tensor maps that a kernel changes: every field of tensormap.replace, the copy with its release, and the fences around TMA."""

import numpy as np
import pytest
from cuda_source import launch, line_of

import emulator
from emulator import TensorMap

HEAD = r"""
struct __align__(128) Map { unsigned char opaque[128]; };
__device__ unsigned shared_address(const void* p) { return __cvta_generic_to_shared(p); }
// Boxes of `bytes` at (x, y) of the map, by one thread, then out by all.
__device__ void load(const Map* map, int x, int y, int bytes, unsigned* out) {
    extern __shared__ __align__(1024) unsigned tile[];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned full = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" :: "r"(full));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(full), "r"(bytes));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];"
                     :: "r"(shared_address(tile)), "l"(map), "r"(x), "r"(y), "r"(full) : "memory");  // the copy
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(full) : "memory");
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) out[i] = tile[i];
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(full));
    __syncthreads();
}
"""
# As CUTLASS and Triton do it: changed in shared memory by one thread, copied to global memory by a warp, for each of
# several matrices. BLANK: from 128 zeros, else from the map that was passed.
GROUPED = (
    HEAD
    + r"""
extern "C" __global__ void grouped(const __grid_constant__ Map first, Map* place, const float* memory,
                                   const int4* matrices, int count, unsigned* out) {
    __shared__ __align__(128) Map map;
    const int warp = threadIdx.x / 32;
    for (int i = 0; i < count; ++i) {
        if (warp == 0) {
            reinterpret_cast<unsigned*>(&map)[threadIdx.x] =
                BLANK ? 0 : reinterpret_cast<const unsigned*>(&first)[threadIdx.x];
            __syncwarp();
            if (threadIdx.x == 0) {
                const int4 one = matrices[blockIdx.x * count + i];  // first element, rows, columns, pitch
                ptx::tensormap_replace_global_address(ptx::space_shared, &map, memory + one.x);
                ptx::tensormap_replace_global_dim(ptx::space_shared, &map, ptx::n32_t<0>(), one.z);
                ptx::tensormap_replace_global_dim(ptx::space_shared, &map, ptx::n32_t<1>(), one.y);
                ptx::tensormap_replace_global_stride(ptx::space_shared, &map, ptx::n32_t<0>(), 4ull * one.w);
                ptx::tensormap_replace_swizzle_mode(ptx::space_shared, &map, ptx::n32_t<3>());
                if (BLANK) {
                    ptx::tensormap_replace_rank(ptx::space_shared, &map, 1);
                    ptx::tensormap_replace_box_dim(ptx::space_shared, &map, ptx::n32_t<0>(), 32);
                    ptx::tensormap_replace_box_dim(ptx::space_shared, &map, ptx::n32_t<1>(), 8);
                    ptx::tensormap_replace_element_size(ptx::space_shared, &map, ptx::n32_t<0>(), 1);
                    ptx::tensormap_replace_element_size(ptx::space_shared, &map, ptx::n32_t<1>(), 1);
                    ptx::tensormap_replace_elemtype(ptx::space_shared, &map, ptx::n32_t<7>());
                    ptx::tensormap_replace_interleave_layout(ptx::space_shared, &map, ptx::n32_t<0>());
                    ptx::tensormap_replace_fill_mode(ptx::space_shared, &map, ptx::n32_t<0>());
                }
            }
            __syncwarp();
            ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_gpu, place + blockIdx.x, &map, ptx::n32_t<128>());
        }
        __syncthreads();
#if ACQUIRE
        ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, place + blockIdx.x, ptx::n32_t<128>());
#endif
        load(place + blockIdx.x, 4, 1, 8 * 128, out + (blockIdx.x * count + i) * 256);
    }
}
"""
)
MATRICES = np.array(
    [(0, 20, 70, 72), (4000, 7, 33, 40), (17000, 9, 5, 128), (30000, 3, 36, 36)], np.int32
)


def grouped(blank, acquire=1):
    """Two matrices for each of two blocks, of different shapes and pitches inside one array."""
    source = f"#include <cuda/ptx>\nnamespace ptx = cuda::ptx;\n#define BLANK {blank}\n#define ACQUIRE {acquire}\n{GROUPED}"
    memory = np.random.default_rng(blank).random(40000, np.float32)
    first = TensorMap(memory[:4096].reshape(64, 64), (8, 32))
    place, out = np.zeros(256, np.uint8), np.zeros((4, 8, 32), np.float32)
    args = [first, place, memory, MATRICES.copy(), np.int32(2), out]
    trace = launch(source, "grouped", 2, 64, args, "90a", shared_bytes=1024)
    return source, trace, memory, out


@pytest.mark.parametrize("blank", [0, 1])
def test_a_map_of_each_matrix_of_a_group(blank):
    _, trace, memory, out = grouped(blank)
    for number, (start, rows, cols, pitch) in enumerate(MATRICES):
        part = memory[start : start + rows * pitch].reshape(rows, pitch)[1:9, 4 : min(cols, 36)]
        box, lines = np.zeros((8, 8, 4), np.float32), np.arange(8)[:, None]
        box.reshape(8, 32)[: part.shape[0], : part.shape[1]] = part
        swizzled = box[lines, lines.T ^ lines]  # chunk c of row r stands at c ^ r
        np.testing.assert_array_equal(out[number], swizzled.reshape(8, 32), err_msg=str(number))
    assert trace.hazards == []


def test_a_change_that_the_block_has_not_acquired():
    source, trace, *_ = grouped(0, acquire=0)
    (hazard,) = trace.hazards
    assert hazard.kind == "unacquired-map" and hazard.symbol == "argument 1"
    assert hazard.source[1] == line_of(source, "load(place") and "acquire on its address" in str(
        hazard
    )
    assert hazard.other_source[1] == line_of(source, "tensormap_cp_fenceproxy")


# Changed where it stands, in global memory: by a field, or word by word from another map.
IN_PLACE = (
    HEAD
    + r"""
extern "C" __global__ void change(Map* map, const Map* other, unsigned* out, float* memory) {
    if (threadIdx.x == 0) {
        CHANGE;
        RELEASE;
    }
    __syncthreads();
    if (threadIdx.x == 0) ACQUIRE;
    __syncthreads();
    load(map, -4, 2, BYTES, out);
}
"""
)
RELEASE = 'asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory")'
ACQUIRE = (
    'asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(map) : "memory")'
)
WORDS = "for (int i = 0; i < 8; ++i) reinterpret_cast<uint4*>(map)[i] = reinterpret_cast<const uint4*>(other)[i]"


def replace(field, value, at=None, kind="b32"):
    number = "" if at is None else f"{at}, "
    return f'asm volatile("tensormap.replace.tile.{field}.global.b1024.{kind} [%0], {number}{value};" :: "l"(map), "l"(memory))'


def changed(change, maps, count=2048, release=RELEASE, acquire=ACQUIRE, threads=32):
    """(what was loaded by the first of the maps, after the change; the Trace)."""
    names = {"CHANGE": change, "RELEASE": release, "ACQUIRE": acquire, "BYTES": count}
    source = "".join(f"#define {name} {text}\n" for name, text in names.items()) + IN_PLACE
    out = np.zeros(4096, np.uint32)
    memory = maps[0].array.base
    args = [maps[0], maps[1], out, memory]
    trace = launch(source, "change", 1, threads, args, "90a", shared_bytes=8192)
    return out, trace, source


def two_maps(**other):
    """A map of a random array, and one of the same with something else."""
    rng = np.random.default_rng(3)
    whole = rng.normal(size=(48, 64)).astype(np.float32)
    one = {"box": (16, 32), "element_strides": (1, 1), "format": "float32"}
    start, rows, cols = other.pop("start", 0), other.pop("rows", 40), other.pop("cols", 50)
    array = whole.reshape(-1)[start:][: 40 * 64].reshape(40, 64)[:rows, :cols]
    return (
        TensorMap(whole.reshape(-1)[: 40 * 64].reshape(40, 64)[:40, :50], **one),
        TensorMap(other.pop("array", array), **one | other),
    )


@pytest.mark.parametrize(
    ("change", "other"),
    [
        (replace("global_address", "%1", kind="b64").replace('"l"(memory)', '"l"(memory + 68)'), {"start": 68}),
        (replace("global_dim", 13, 0), {"cols": 13}),
        (replace("global_dim", 11, 1), {"rows": 11}),
        (replace("box_dim", 24, 0), {"box": (16, 24)}),
        (replace("box_dim", 9, 1), {"box": (9, 32)}),
        (replace("element_stride", 3, 1), {"element_strides": (3, 1)}),
        (replace("swizzle_mode", 3), {"swizzle": 128}),
        (replace("swizzle_mode", 1) + ";" + replace("box_dim", 8, 0), {"swizzle": 32, "box": (16, 8)}),
        (replace("fill_mode", 1), {"fill": "nan"}),
        (replace("elemtype", 11), {"format": "tf32"}),
        (WORDS, {"fill": "nan", "rows": 5}),
    ],
)  # fmt: skip
def test_a_changed_field_is_as_the_host_would_have_set_it(change, other):
    maps = two_maps(**other)
    count = maps[1].box_bytes
    found, trace, _ = changed(change, maps, count)
    wanted, *_ = changed("", maps[::-1], count, "", "")
    plain, *_ = changed("", maps, maps[0].box_bytes, "", "")
    np.testing.assert_array_equal(found[: count // 4], wanted[: count // 4])
    assert (found != plain).any() and trace.hazards == []


@pytest.mark.parametrize("change", [replace("fill_mode", 1), WORDS])
@pytest.mark.parametrize(
    ("release", "acquire", "kind"),
    [
        (RELEASE, ACQUIRE, None),
        (RELEASE.replace("gpu", "cta"), ACQUIRE.replace("gpu", "cta"), None),
        ("", ACQUIRE, "unreleased-map"),
        ("__threadfence()", ACQUIRE, "unreleased-map"),
        (RELEASE, "__threadfence()", "unacquired-map"),
        ("", "", "unreleased-map"),
    ],
)
def test_a_changed_map_is_used_behind_both_fences(change, release, acquire, kind):
    maps = two_maps(fill="nan")
    _, trace, source = changed(change, maps, release=release, acquire=acquire)
    assert [hazard.kind for hazard in trace.hazards] == ([kind] if kind else [])
    if kind:
        (hazard,) = trace.hazards
        assert hazard.frames[0][1] == line_of(source, "// the copy") - 1 or hazard.source[
            1
        ] == line_of(source, "load(map, -4")
        assert hazard.other_source[1] == line_of(source, "        CHANGE;")


# Block 0 changes the map, block 1 waits for its flag and uses it.
BETWEEN = (
    HEAD
    + r"""
extern "C" __global__ void between(Map* map, unsigned* flag, unsigned* out) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            asm volatile("tensormap.replace.tile.fill_mode.global.b1024.b32 [%0], 1;" :: "l"(map) : "memory");
            asm volatile("fence.proxy.tensormap::generic.release.SCOPE;" ::: "memory");
            __threadfence();
            atomicExch(flag, 1);
        }
        return;
    }
    if (threadIdx.x == 0) {
        if (WAITS) { while (atomicAdd(flag, 0) == 0); __threadfence(); }
        asm volatile("fence.proxy.tensormap::generic.acquire.SCOPE [%0], 128;" :: "l"(map) : "memory");
    }
    __syncthreads();
    load(map, -4, 2, 2048, out);
}
"""
)


@pytest.mark.parametrize(
    ("scope", "waits", "kinds"),
    [
        ("gpu", 1, set()),
        ("cta", 1, {"unreleased-map"}),
        ("gpu", 0, {"global-race"}),
    ],
)
def test_a_map_changed_by_another_block(scope, waits, kinds):
    source = f"#define WAITS {waits}\n" + BETWEEN.replace("SCOPE", scope)
    args = [two_maps()[0], np.zeros(1, np.uint32), np.zeros(4096, np.uint32)]
    trace = launch(source, "between", 2, 32, args, "90a", shared_bytes=8192)
    assert {hazard.kind for hazard in trace.hazards} == kinds


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (replace("box_dim", 0, 0), "box_dim 0: from 1 to below 257"),
        (replace("rank", 5), "rank 5: from 0 to below 5"),
        (replace("rank", 2), r"global_dim 2 is 0, or was never set"),
        (replace("global_dim", 49, 1), r"of \[50, 49\].*past the end of"),
        (replace("elemtype", 8), r"elements of \.f32\.ftz.* not model"),
        (replace("global_stride", 24, 0, "b64"), "global_stride 24: .* multiples of 16"),
        (replace("box_dim", 64, 0) + ";" + replace("swizzle_mode", 3), "at most the swizzle's span"),
        (WORDS + ";" + "reinterpret_cast<int*>(map)[1] = 7", "there is no tensor map"),
    ],
)  # fmt: skip
def test_what_no_map_may_be_is_told(change, words):
    with pytest.raises(emulator.ExecutionError, match=words) as told:
        changed(change, two_maps())
    assert told.value.source


def test_a_map_in_shared_memory_is_none_for_tma():
    source = (
        HEAD
        + r"""
extern "C" __global__ void k(const __grid_constant__ Map map, unsigned* out) {
    __shared__ Map here;
    if (threadIdx.x == 0) here = map;
    load(&here, 0, 0, 2048, out);
}
"""
    )
    with pytest.raises(emulator.ExecutionError, match="a tensor map in shared memory: TMA takes"):
        launch(
            source, "k", 1, 32, [two_maps()[0], np.zeros(512, np.uint32)], "90a", shared_bytes=8192
        )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tile.box_dim.global.b1024.b32 [%a], 5, 1", "box_dim 5: there are 5"),
        ("tile.global_address.global.b1024.b32 [%a], %r", r"global_address is given as \.b64"),
        ("tile.elemtype.global.b1024.b32 [%a], %r", "unexpected operand"),
        ("tile.box_dim.global.b1024.b32 [%a], 1", "takes 3 operands, not 2"),
    ],
)
def test_a_replacement_that_is_none_is_refused(line, words):
    head = (
        ".version 8.3\n.target sm_90a\n.address_size 64\n.entry k() { .reg .b64 %a; .reg .b32 %r; "
    )
    with pytest.raises(emulator.PtxError, match=words):
        emulator.Module(head + f"tensormap.replace.{line}; ret; }}").entry("k")
