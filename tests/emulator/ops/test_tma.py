"""TMA: boxes of arrays of one to five dimensions into shared memory and back, and plain bulk copies."""

import itertools

import numpy as np
import pytest
from cuda_source import compile_ptx

import emulator
from emulator import TensorMap

swizzles = pytest.importorskip("tensor_layouts")
XOR = {32: swizzles.Swizzle(1, 4, 3), 64: swizzles.Swizzle(2, 4, 3), 128: swizzles.Swizzle(3, 4, 3)}

HEAD = r"""
struct __align__(128) Map { unsigned char opaque[128]; };
__device__ unsigned shared_address(const void* p) { return __cvta_generic_to_shared(p); }
__device__ void wait(unsigned barrier, unsigned parity) {
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}
struct Coordinates { int at[5]; };
"""


def coordinates(rank):
    return "{" + ", ".join(f"%{2 + i}" for i in range(rank)) + "}", ", ".join(
        f'"r"(c.at[{i}])' for i in range(rank)
    )


def kernels():
    """load<rank>, store<rank>, and a kernel for each reduction of each rank."""
    text = HEAD
    for rank in range(1, 6):
        names, values = coordinates(rank)
        barrier = 2 + rank
        text += f"""
extern "C" __global__ void load{rank}(const __grid_constant__ Map map, Coordinates c, int bytes, uint4* out, int at) {{
    extern __shared__ __align__(1024) uint4 tile[];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned full = shared_address(&barrier);
    const int lines = (bytes + 127) / 128 * 8;  // a swizzle moves pieces within lines of 128 bytes
    for (int i = threadIdx.x; i < lines; i += blockDim.x) tile[i + at / 16] = make_uint4(0, 0, 0, 0);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {{
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" :: "r"(full));
        asm volatile("prefetch.tensormap [%0];" :: "l"(&map));
        asm volatile("cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [%1, {names}];" :: "r"(0), "l"(&map), {values});
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(full), "r"(bytes));
        asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
                     "[%0], [%1, {names}], [%{barrier}], %{barrier + 1};"
                     :: "r"(shared_address(tile) + at), "l"(&map), {values}, "r"(full), "l"(0x14F0000000000000ll) : "memory");
    }}
    __syncthreads();
    wait(full, 0);
    for (int i = threadIdx.x; i < lines; i += blockDim.x) out[i] = tile[i + at / 16];
}}
"""
        for op in ("", "add", "min", "max", "and", "or", "xor", "inc", "dec"):
            what = f"reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}" if op else (
                f"async.bulk.tensor.{rank}d.global.shared::cta")  # fmt: skip
            text += f"""
extern "C" __global__ void store{op}{rank}(const __grid_constant__ Map map, Coordinates c, int bytes, const uint4* in, int at) {{
    extern __shared__ __align__(1024) uint4 tile[];
    const int lines = (bytes + 127) / 128 * 8;
    for (int i = threadIdx.x; i < lines; i += blockDim.x) tile[i + at / 16] = in[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {{
        asm volatile("cp.{what}.tile.bulk_group [%1, {names}], [%0];"
                     :: "r"(shared_address(tile) + at), "l"(&map), {values} : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
    }}
}}
"""
    return text


@pytest.fixture(scope="module")
def module():
    return emulator.Module(compile_ptx(kernels(), "90a"))


def coordinate_bytes(at):
    """A kernel counts coordinates from the fastest dimension."""
    return np.array([*reversed(at), *[0] * (5 - len(at))], np.int32).tobytes()


def lines(count):
    """Bytes of the lines of 128 bytes that `count` bytes fill."""
    return -(-count // 128) * 128


def inside(shape, index):
    return all(0 <= i < n for i, n in zip(index, shape, strict=True))


def places(one, at, shared):
    """(array index, byte of shared memory from `shared`) of each element of a box, by the definition."""
    strides = one.element_strides
    counts = [-(-b // s) for b, s in zip(one.box, strides, strict=True)]
    for number, index in enumerate(itertools.product(*map(range, counts))):
        byte = shared + number * one.itemsize
        if one.swizzle:
            byte = XOR[one.swizzle](byte)
        yield tuple(a + i * s for a, i, s in zip(at, index, strides, strict=True)), byte - shared


DTYPES = ("uint8", "int32", "float16", "bfloat16", "float32", "float64", "int64")


def a_case(seed, stored=False):
    """A random array, map and place of a box that sticks out on any side."""
    rng = np.random.default_rng(seed)
    rank = seed % 5 + 1
    name = DTYPES[rng.integers(len(DTYPES))]
    dtype = np.dtype("uint16" if name == "bfloat16" else name)
    unit = 16 // dtype.itemsize
    swizzle = int(rng.choice([0, 32, 64, 128]))
    most = swizzle if swizzle else 64
    inner = unit * int(rng.integers(1, most // 16 + 1))
    shape = [int(rng.integers(1, 9)) for _ in range(rank - 1)] + [int(rng.integers(1, 3 * inner))]
    box = [int(rng.integers(1, 6)) for _ in range(rank - 1)] + [inner]
    steps = [int(rng.choice([1, 1, 2, 3])) for _ in range(rank - 1)] + [1]
    pitch = -(-shape[-1] // unit) * unit + unit * int(rng.integers(0, 3))
    whole = rng.integers(0, 256, (*shape[:-1], pitch, dtype.itemsize)).astype(np.uint8)
    whole = np.ascontiguousarray(whole).view(dtype)[..., 0]
    if dtype.kind == "f":
        whole = rng.integers(-50, 50, whole.shape).astype(dtype)
    array = whole[..., : shape[-1]]
    fill = "nan" if dtype.kind == "f" and rng.integers(2) else "zero"
    one = TensorMap(
        array, tuple(box), format=name, element_strides=tuple(steps), swizzle=swizzle, fill=fill
    )
    lowest = [0] * rank if stored else [-b for b in box]  # a store below 0 faults
    at = [int(rng.integers(low, n + 1)) for low, n in zip(lowest, shape, strict=True)]
    at = (*at[:-1], at[-1] // unit * unit)  # and so does a start within 16 bytes
    return rng, one, at, int(rng.choice([0, 128, 1024 + 384]))


@pytest.mark.parametrize("seed", range(60))
def test_a_box_is_loaded(module, seed):
    _, one, at, shared = a_case(seed)
    out = np.zeros(lines(one.box_bytes), np.uint8)
    trace = module.launch(
        f"load{len(at)}", 1, 32,
        [one, coordinate_bytes(at), np.int32(one.box_bytes), out, np.int32(shared)], shared_bytes=32768,
    )  # fmt: skip
    raw = one.array.view(f"u{one.itemsize}")
    nan = {"float16": 0x7FFF, "float32": 0x7FFFFFFF, "float64": 2**63 - 1}.get(one.format, 0)
    fill = nan if one.fill == "nan" else 0
    for index, byte in places(one, at, shared):
        want = int(raw[index]) if inside(one.shape, index) else fill
        assert int.from_bytes(out[byte : byte + one.itemsize].tobytes(), "little") == want
    assert trace.hazards == []


@pytest.mark.parametrize("seed", range(100, 160))
def test_a_box_is_stored_and_reduced(module, seed):
    rng, one, at, shared = a_case(seed, stored=True)
    before = one.array.copy()
    data = rng.integers(0, 256, lines(one.box_bytes)).astype(np.uint8)
    if one.array.dtype.kind == "f":
        data = (
            rng.integers(-50, 50, len(data) // one.itemsize).astype(one.array.dtype).view(np.uint8)
        )
    if one.format == "bfloat16":  # small integers, whose sums are exact
        for x in (one.array, data.view(np.uint16)):
            x[...] = (
                rng.integers(-50, 50, x.shape).astype(np.float32).view(np.uint32) >> 16
            ).astype(np.uint16)
        before = one.array.copy()
    ops = {"": None, "add": np.add, "min": np.minimum, "max": np.maximum}
    if one.array.dtype.kind in "iu" and one.format not in ("uint8", "bfloat16"):
        ops |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
        ops |= {
            "inc": lambda old, new: 0 if old >= new else old + 1,
            "dec": lambda old, new: new if old == 0 or old > new else old - 1,
        }
    op = list(ops)[seed % len(ops)]
    trace = module.launch(
        f"store{op}{len(at)}", 1, 32,
        [one, coordinate_bytes(at), np.int32(one.box_bytes), data, np.int32(shared)], shared_bytes=32768,
    )  # fmt: skip
    want, whole = before.copy(), data.view(one.array.dtype)
    for index, byte in places(one, at, shared):
        if inside(one.shape, index):
            old, new = before[index], whole[byte // one.itemsize]
            if op and one.format == "bfloat16":
                old, new = ((np.uint32(x) << 16).view(np.float32) for x in (old, new))
                want[index] = np.float32(ops[op](old, new)).view(np.uint32) >> 16
            else:
                with np.errstate(over="ignore"):
                    want[index] = ops[op](old, new) if op else new
    assert (one.array.view(f"u{one.itemsize}") == want.view(f"u{one.itemsize}")).all()
    assert trace.hazards == []


def test_requests_and_sectors_of_a_box(module):
    """`counts/test_hopper_counts.py` compares with a GPU; this says what to expect."""
    one = TensorMap(np.zeros((40, 64), np.float16), (8, 32), swizzle=64)
    for at, want in (((0, 0), (8, 16)), ((0, 8), (24, 24)), ((0, -32), (8, 16))):
        out = np.zeros(one.box_bytes, np.uint8)
        args = [one, coordinate_bytes(at), np.int32(len(out)), out, np.int32(0)]
        trace = module.launch("load2", 1, 32, args, shared_bytes=8192)
        (row,) = trace.rows("cp.async.bulk.tensor")
        assert (row.global_requests, row.global_sectors, row.bytes) == (*want, 8 * 64)


def test_starts_that_fault_are_errors(module):
    one = TensorMap(np.zeros((40, 64), np.float16), (8, 32), swizzle=64)
    data = np.zeros(one.box_bytes, np.uint8)
    for entry, at, error, words in (
        ("load2", (0, 3), emulator.Misaligned, "element 3 of 2 bytes: .*a multiple of 16"),
        ("store2", (0, 4), emulator.Misaligned, "element 4 of 2 bytes"),
        ("store2", (-1, 0), emulator.OutOfBounds, r"starts at \(0, -1\), below 0"),
        ("storeadd2", (0, -8), emulator.OutOfBounds, r"starts at \(-8, 0\), below 0"),
    ):
        with pytest.raises(error, match=words):
            args = [one, coordinate_bytes(at), np.int32(len(data)), data, np.int32(0)]
            module.launch(entry, 1, 32, args, shared_bytes=8192)


ONE_WAITS = (
    HEAD
    + r"""
extern "C" __global__ void one_waits(const int* in, int* out) {
    __shared__ __align__(16) int tile[32];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned full = shared_address(&barrier);
    tile[threadIdx.x] = -1;
    asm volatile("fence.proxy.async;" ::: "memory");
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" :: "r"(full));
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" :: "r"(full));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                     :: "r"(shared_address(tile)), "l"(in), "r"(full) : "memory");
    }
    __syncthreads();
    if (blockIdx.x == 0) wait(full, 0);
    for (int i = 0; i < 20; ++i) asm volatile("nanosleep.u32 10;");
    out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];
    wait(full, 0);
}
"""
)


def test_a_copy_lands_where_somebody_waits_and_not_before():
    out, data = np.zeros((3, 32), np.int32), np.arange(32, dtype=np.int32)
    trace = emulator.Module(compile_ptx(ONE_WAITS, "90a")).launch("one_waits", 3, 32, [data, out])
    assert (out[0] == data).all() and (out[1:] == -1).all()
    assert [(h.kind, h.block) for h in trace.hazards] == [("unfinished-copy", (1, 0, 0))]


# --- Wrong maps, and maps in the wrong place --------------------------------------------------------


def padded(rows, pitch, columns, dtype=np.float16):
    return np.zeros((rows, pitch), dtype)[:, :columns]


@pytest.mark.parametrize("make, words", [
    (lambda: TensorMap(np.zeros((8, 64), np.float16), (8, 512)), r"box \(8, 512\): each 1 to 256"),
    (lambda: TensorMap(np.zeros((8, 64), np.float16), (8, 0)), "each 1 to 256"),
    (lambda: TensorMap(np.zeros((8, 64), np.float16), (8,)), "2 integers, one per dimension"),
    (lambda: TensorMap(padded(8, 36, 32), (8, 32)), r"rows are \(72,\) bytes apart: multiples of 16"),
    (lambda: TensorMap(np.zeros((8, 64), np.float16), (8, 64), swizzle=64), "at most the swizzle's span, 64"),
    (lambda: TensorMap(np.zeros((8, 64), np.float16), (8, 4)), "a box's row has 8 bytes: a multiple of 16"),
    (lambda: TensorMap(np.zeros((8, 64), np.float16)[:, 4:], (8, 8)), "the array begins at .*multiple of 16"),
    (lambda: TensorMap(np.zeros((8, 64), np.float16).T, (8, 8)), "neighbours in a row are 128 bytes apart"),
    (lambda: TensorMap(np.zeros((8, 64), np.float16), (8, 64), swizzle=96), "swizzle 96: one of 0, 32, 64, 128"),
    (lambda: TensorMap(np.zeros((8, 64), np.float16), (8, 64), element_strides=(9, 1)), "each 1 to 8"),
    (lambda: TensorMap(np.zeros((8, 64), np.int32), (8, 32), fill="nan"), "only floating-point"),
    (lambda: TensorMap(np.zeros((1,) * 5 + (64,), np.int32), (1,) * 5 + (32,)), "1 to 5 dimensions"),
    (lambda: TensorMap(np.zeros((8, 64), np.complex64), (8, 32)), "no format complex64"),
    (lambda: TensorMap(np.zeros((8, 64), np.float32), (8, 32), format="float16"), "has 2 bytes, the array's elements 4"),
    (lambda: TensorMap([1, 2], (2,)), "an array .* is needed, not list"),
    (lambda: TensorMap(np.zeros((8, 64), np.float16), (8, 64), fill="one"), "fill 'one': one of zero, nan"),
    (lambda: TensorMap(np.zeros((8, 64), np.float16), (8, 64), interleave=16), "interleave 16 needs 3 dimensions"),
])  # fmt: skip
def test_the_limits_of_a_map_are_errors_when_it_is_made(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_what_is_not_a_map_is_said(module):
    args = [coordinate_bytes((0, 0)), np.int32(256), np.zeros(256, np.uint8), np.int32(0)]
    with pytest.raises(emulator.ExecutionError, match=r"no tensor map at .*emulator\.TensorMap"):
        module.launch("load2", 1, 32, [bytes(128), *args], shared_bytes=2048)
    one = TensorMap(np.zeros((4, 8, 64), np.float16), (1, 2, 64))
    with pytest.raises(emulator.ExecutionError, match="2 dimensions by a tensor map of 3"):
        module.launch("load2", 1, 32, [one, *args], shared_bytes=2048)
    flat = TensorMap(np.zeros((8, 64), np.float16), (2, 64))
    tall = TensorMap(np.zeros((64, 64), np.float16), (64, 64))
    with pytest.raises(
        emulator.OutOfBounds, match="8192 bytes at byte 1024; shared memory has 5120"
    ):
        module.launch("load2", 1, 32, [tall, *args], shared_bytes=4096)
    with pytest.raises(emulator.Misaligned, match=r"byte 1104 .*not a multiple of 128"):
        module.launch("load2", 1, 32, [flat, *args[:3], np.int32(80)], shared_bytes=4096)
    with pytest.raises(TypeError, match="is 4 bytes; a tensor map is 128"):
        module.launch("load2", 1, 32, [flat, *args[:3], flat], shared_bytes=4096)
    layered = TensorMap(np.zeros((4, 8, 64), np.float16), (1, 2, 8), interleave=16)
    with pytest.raises(emulator.ExecutionError, match=r"interleave 16: .*does not model"):
        module.launch(
            "load3", 1, 32, [layered, coordinate_bytes((0, 0, 0)), *args[1:]], shared_bytes=4096
        )


# --- Plain bulk copies ------------------------------------------------------------------------------

PLAIN = (
    HEAD
    + r"""
extern "C" __global__ void there_and_back(const uint4* in, uint4* out, int bytes, int masked) {
    extern __shared__ __align__(128) uint4 tile[];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned full = shared_address(&barrier), at = shared_address(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" :: "r"(full));
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(in), "r"(bytes));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(full), "r"(bytes));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(at), "l"(in), "r"(bytes), "r"(full) : "memory");
        wait(full, 0);
        if (masked)
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%0], [%1], %2, %3;"
                         :: "l"(out), "r"(at), "r"(bytes), "h"((short)masked) : "memory");
        else
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                         :: "l"(out), "r"(at), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
"""
)


@pytest.mark.parametrize("masked", [0, 0x1234])
def test_plain_copies_there_and_back(masked):
    module = emulator.Module(compile_ptx(PLAIN, "90a"))
    rng = np.random.default_rng(1)
    data, out = rng.integers(0, 256, 4096).astype(np.uint8), np.zeros(4096, np.uint8)
    trace = module.launch(
        "there_and_back", 1, 32, [data, out, np.int32(2048), np.int32(masked)], shared_bytes=2048
    )
    chosen = np.array([not masked or masked >> i % 16 & 1 for i in range(2048)], bool)
    assert (out[:2048] == np.where(chosen, data[:2048], 0)).all() and not out[2048:].any()
    assert trace.hazards == []
    (load,) = trace.rows("cp.async.bulk.shared::cluster")
    assert (load.global_requests, load.global_sectors, load.bytes) == (16, 64, 2048)


def test_plain_copies_must_be_aligned_and_inside():
    module = emulator.Module(compile_ptx(PLAIN, "90a"))
    data, out = np.zeros(4096, np.uint8), np.zeros(4096, np.uint8)
    for args, error, words in (
        (
            [data, out, np.int32(2040), np.int32(0)],
            emulator.ExecutionError,
            "2040 bytes: a multiple of 16",
        ),
        ([data, out[:1024], np.int32(2048), np.int32(0)], emulator.OutOfBounds, "argument 1"),
        ([data[:1024], out, np.int32(2048), np.int32(0)], emulator.OutOfBounds, "argument 0"),
    ):
        with pytest.raises(error, match=words):
            module.launch("there_and_back", 1, 32, args, shared_bytes=2048)


REDUCING = {
    "u32": ("u4", ("add", "min", "max", "inc", "dec")), "s32": ("i4", ("add", "min", "max")),
    "u64": ("u8", ("add", "min", "max")), "s64": ("i8", ("min", "max")), "b32": ("u4", ("and", "or", "xor")),
    "b64": ("u8", ("and", "or", "xor")), "f16": ("f2", ("add.noftz", "min", "max")), "f32": ("f4", ("add",)),
    "f64": ("f8", ("add",)),
}  # fmt: skip
FUNCTIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "inc": lambda o, n: np.where(o >= n, 0, o + 1),
    "dec": lambda o, n: np.where((o == 0) | (o > n), n, o - 1),
}  # fmt: skip


def test_reductions_into_global_memory():
    cases = [(kind, dtype, op) for kind, (dtype, ops) in REDUCING.items() for op in ops]
    text = HEAD
    for kind, _, op in cases:
        text += f"""
extern "C" __global__ void {op.replace(".", "_")}_{kind}(const uint4* in, uint4* out) {{
    __shared__ __align__(128) uint4 tile[32];
    tile[threadIdx.x] = in[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (threadIdx.x == 0) {{
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{kind} [%0], [%1], 512;"
                     :: "l"(out), "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }}
}}
"""
    module = emulator.Module(compile_ptx(text, "90a"))
    rng = np.random.default_rng(2)
    for kind, dtype, op in cases:
        count = 512 // np.dtype(dtype).itemsize
        old, new = (rng.integers(0, 100, count).astype(dtype) for _ in range(2))
        out = old.copy()
        trace = module.launch(f"{op.replace('.', '_')}_{kind}", 1, 32, [new, out])
        assert (out == FUNCTIONS[op.split(".")[0]](old, new).astype(dtype)).all(), (kind, op)
        assert trace.hazards == []


def test_im2col_is_refused_by_name():
    text = f""".version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .b64 p) {{
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h;
    {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"}
        [%r1], [%rd1, {{%r1,%r2,%r3}}], [%r4], {{%h}};
    ret;
}}"""
    with pytest.raises(emulator.Unsupported, match="im2col"):
        emulator.Module(text).launch("k", 1, 32, [np.zeros(4)])
