"""tcgen05.mma of every kind against NumPy's products, from every layout of its operands."""

import numpy as np
import pytest
import tcgen05_source
from cuda_source import compile_ptx

import emulator
from emulator.numbers import tcgen05
from emulator.numbers.fp8 import VALUES

CODES = {
    "f16": 0,
    "bf16": 1,
    "tf32": 2,
    "u8": 0,
    "s8": 1,
    "e4m3": 0,
    "e5m2": 1,
    "e2m3": 3,
    "e3m2": 4,
    "e2m1": 5,
}
RESULTS = {"f16": 0, "f32": 1, "s32": 2}


def drawn(rng, type, shape):
    """(element bits, the numbers they stand for) whose products add up exactly."""
    small = rng.integers(-3, 4, shape)
    if type in ("u8", "s8"):
        small = np.abs(small) if type == "u8" else small
        return small.astype(np.int8).view(np.uint8), small.astype(np.float64)
    if type == "f16":
        return small.astype(np.float16).view(np.uint16), small.astype(np.float64)
    if type in ("bf16", "tf32"):
        bits = small.astype(np.float32).view(np.uint32)
        return (bits >> 16).astype(np.uint16) if type == "bf16" else bits, small.astype(np.float64)
    width = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}[type]
    fine = np.flatnonzero(np.isin(VALUES[type][: 1 << width], np.arange(-3, 4)))
    codes = rng.choice(fine, shape).astype(np.uint8)
    return codes, VALUES[type][codes].astype(np.float64)


def packed(codes, type, padded):
    """Rows of bytes as they stand in shared memory."""
    if type == "e2m1":
        pairs = codes[:, ::2] | codes[:, 1::2] << 4
        if not padded:
            return pairs
        out = np.zeros((len(codes), codes.shape[1]), np.uint8)
        out.reshape(len(codes), -1, 16)[:, :, :8] = pairs.reshape(len(codes), -1, 8)
        return out
    if type in ("e2m3", "e3m2"):
        out = np.zeros((len(codes), codes.shape[1]), np.uint8)
        for row, source in zip(out.reshape(-1, 16), codes.reshape(-1, 16), strict=True):
            whole = sum(int(c) << 6 * i for i, c in enumerate(source))
            row[:12] = list(whole.to_bytes(12, "little"))
        return out
    return codes.view(np.uint8)


def descriptor(a, b, d, m, n, majors=(0, 0)):
    kind = {"f16": CODES, "bf16": CODES}.get(a, CODES)
    return (RESULTS[d] << 4 | kind[a] << 7 | kind[b] << 10 | majors[0] << 15 | majors[1] << 16
            | n >> 3 << 17 | m >> 4 << 24)  # fmt: skip


def run(rng, kind, a="f16", b="f16", d="f32", m=128, n=64, swizzles=(128, 128), majors="KK",
        in_tensor=False, add=True, edit=lambda bits: bits):  # fmt: skip
    """(what came out, what it must be, the trace)."""
    k = tcgen05.KINDS[kind.split(".")[0]][0]
    a_bits, a_values = drawn(rng, a, (m, k))
    b_bits, b_values = drawn(rng, b, (n, k))
    images, starts = [], []
    at = 0
    for bits, type, major, swizzle in (
        (a_bits, a, majors[0], swizzles[0]), (b_bits, b, majors[1], swizzles[1]),
    ):  # fmt: skip
        rows = (
            packed(bits, type, True)
            if major == "K"
            else np.ascontiguousarray(bits.T).view(np.uint8)
        )
        image, desc = tcgen05_source.place(rows, major == "K", swizzle)
        images.append(image)
        starts.append(desc + (at >> 4))
        at += len(image)
    image = np.concatenate(images)
    words = np.zeros((8, 128), np.uint32)
    lanes = tcgen05.lanes_of_rows(m, False, 0)
    words[:, lanes] = (
        np.ascontiguousarray(a_bits).view(np.uint32).reshape(m, -1).T[:8] if in_tensor else 0
    )
    before = rng.integers(-9, 10, (128, n)).astype({"f32": "f4", "f16": "f2", "s32": "i4"}[d])
    stored = before.view(np.uint16).astype(np.uint32) if d == "f16" else before.view(np.uint32)
    out = np.zeros((n, 128), np.uint32)
    majority = tuple(int(x == "M") for x in majors)
    idesc = edit(descriptor(a, b, d, m, n, majority))
    module = emulator.Module(compile_ptx(tcgen05_source.product_source(kind, in_tensor), "100a"))
    trace = module.launch(
        "product", 1, 128,
        [image, np.int32(len(image) // 16), np.uint64(starts[0]), np.uint64(starts[1]), np.uint32(idesc), words,
         np.uint64(0), np.uint64(0), np.ascontiguousarray(stored.T), np.int32(n), out, np.int32(add)],
        shared_bytes=len(image),
    )  # fmt: skip
    found = np.ascontiguousarray(out.T)[lanes]
    found = (
        (found & 0xFFFF).astype(np.uint16).view(np.float16)
        if d == "f16"
        else found.view(before.dtype)
    )
    return found, a_values @ b_values.T + (before[lanes] if add else 0), trace


@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize(
    ("kind", "a", "b", "d"),
    [("f16", "f16", "f16", "f32"), ("f16", "f16", "f16", "f16"), ("f16", "bf16", "bf16", "f32"),
     ("tf32", "tf32", "tf32", "f32"), ("f8f6f4", "e4m3", "e5m2", "f32"), ("f8f6f4", "e2m3", "e3m2", "f32"),
     ("f8f6f4", "e2m1", "e4m3", "f16"), ("i8", "s8", "u8", "s32")],
)  # fmt: skip
def test_every_kind(rng, kind, a, b, d, m):
    found, wanted, trace = run(rng, kind, a, b, d, m)
    assert (found == wanted).all() and not trace.hazards


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("majors", ["KK", "MK", "KM", "MM"])
def test_every_layout_in_shared_memory(rng, swizzle, majors):
    found, wanted, trace = run(rng, "f16", swizzles=(swizzle, swizzle), majors=majors)
    assert (found == wanted).all() and not trace.hazards


def test_mn_major_bytes(rng):
    found, wanted, _ = run(rng, "f8f6f4", "e4m3", "e4m3", majors="MM", n=128)
    assert (found == wanted).all()


@pytest.mark.parametrize(
    ("kind", "type"), [("f16", "f16"), ("tf32", "tf32"), ("f8f6f4", "e4m3"), ("i8", "s8")]
)
@pytest.mark.parametrize("m", [64, 128])
def test_a_from_tensor_memory(rng, kind, type, m):
    d = "s32" if kind == "i8" else "f32"
    found, wanted, trace = run(rng, kind, type, type, d, m, in_tensor=True)
    assert (found == wanted).all() and not trace.hazards


def test_without_what_was_there(rng):
    found, wanted, _ = run(rng, "f16", add=False)
    assert (found == wanted).all()


@pytest.mark.parametrize("hint", ["fill", "use", "lastuse", "discard"])
def test_hints_for_the_collector_change_nothing(rng, hint):
    found, wanted, _ = run(rng, f"f16.collector::a::{hint}", add=False)
    assert (found == wanted).all()


def test_negated_operands(rng):
    found, wanted, _ = run(rng, "f16", add=False, edit=lambda bits: bits | 1 << 13)
    assert (found == -wanted).all()


@pytest.mark.parametrize(
    ("change", "why"),
    [(lambda b: b | 4, "sparse"), (lambda b: b & ~(31 << 24) | 2 << 24, "m is 32"),
     (lambda b: b & ~(63 << 17) | 1 << 17, "n is 8"), (lambda b: b | 7 << 7, "format of A is 7"),
     (lambda b: b | 3 << 4, "format of D is 3"), (lambda b: b | 1 << 3, "saturation"),
     (lambda b: b | 1 << 30, "shift of .ws")],
)  # fmt: skip
def test_a_wrong_instruction_descriptor_is_named(rng, change, why):
    with pytest.raises(emulator.ExecutionError, match=why):
        run(rng, "f16", edit=change)


SCALED = [
    ("mxf8f6f4", ".block_scale", "e4m3", "ue8m0", 1),
    ("mxf4", ".block_scale.scale_vec::2X", "e2m1", "ue8m0", 2),
    ("mxf4nvf4", ".block_scale.scale_vec::2X", "e2m1", "ue8m0", 2),
    ("mxf4nvf4", ".block_scale.scale_vec::4X", "e2m1", "ue4m3", 4),
]


@pytest.mark.parametrize(("kind", "block", "type", "scale", "count"), SCALED)
def test_block_scales(rng, kind, block, type, scale, count):
    """Scales lie in shared memory 128 rows at a time: row r's four bytes at r % 32 * 16 + r // 32 * 4."""
    m, n, k = 128, 128, tcgen05.KINDS[kind][0]
    a_bits, a = drawn(rng, type, (m, k))
    b_bits, b = drawn(rng, type, (n, k))
    low, high = (125, 130) if scale == "ue8m0" else (0x30, 0x48)
    codes = [rng.integers(low, high, (rows, 4)).astype(np.uint8) for rows in (m, n)]
    byte = 4 - count  # the last that fits
    factors = []
    for one in codes:
        part = one[:, byte:].astype(np.int64)
        factors.append(
            2.0 ** (part - 127) if scale == "ue8m0" else VALUES["e4m3"][part].astype(float)
        )
    images, starts, at = [], [], 0
    for bits in (a_bits, b_bits):
        image, desc = tcgen05_source.place(packed(bits, type, k == 32), True, 32)
        images.append(image)
        starts.append(desc + (at >> 4))
        at += len(image)
    for one in codes:
        image = np.zeros((16, 32, 4, 4), np.uint8)
        image[0] = one.reshape(4, 32, 4).transpose(1, 0, 2)
        images.append(image.reshape(-1))
        starts.append((at >> 4) | 8 << 32 | 1 << 46)
        at += image.size
    image = np.concatenate(images)
    bits = (CODES[type] if k == 32 else 1) * (1 << 7 | 1 << 10)
    bits |= n >> 3 << 17 | m >> 4 << 24 | (scale == "ue8m0") << 23 | byte << 29 | byte << 4
    out = np.zeros((n, 128), np.uint32)
    module = emulator.Module(compile_ptx(tcgen05_source.product_source(kind, block=block), "100a"))
    trace = module.launch(
        "product", 1, 128,
        [image, np.int32(len(image) // 16), *(np.uint64(x) for x in starts[:2]), np.uint32(bits),
         np.zeros((8, 128), np.uint32), *(np.uint64(x) for x in starts[2:]), np.zeros((n, 128), np.uint32),
         np.int32(n), out, np.int32(0)],
        shared_bytes=len(image),
    )  # fmt: skip
    wide = [np.repeat(f, k // count, axis=1) for f in factors]
    wanted = (a * wide[0]) @ (b * wide[1]).T
    found = out.T.view(np.float32)
    assert np.abs(found - wanted).max() <= 1e-6 * np.abs(wanted).max() and wanted.any()
    assert not trace.hazards


def of_pair(rng, kind, a, b, d, m, n=64, in_tensor=False, block=""):
    """(what came out of a pair, what it must be, the trace): m rows, half of them in each block, as half of B's columns are."""
    k = tcgen05.KINDS[kind][0]
    a_bits, a_values = drawn(rng, a, (m, k))
    b_bits, b_values = drawn(rng, b, (n, k))
    images, rows = [], m // 2
    words = np.zeros((2, 8, 128), np.uint32)
    for rank in (0, 1):
        mine = a_bits[rank * rows :][:rows]
        parts, starts, at = [], [], 0
        for bits, type in ((mine, a), (b_bits[rank * n // 2 :][: n // 2], b)):
            image, desc = tcgen05_source.place(packed(bits, type, k == 32), True, 32)
            parts.append(image)
            starts.append(desc + (at >> 4))
            at += len(image)
        if block:  # A's scales are 2 in the first block and 4 in the second, B's are 1
            codes = [128 + rank, 127] if block == SCALED[0][1] else [0x40 + 8 * rank, 0x38]
            for code, groups in zip(codes, (4, 8), strict=True):
                parts.append(np.full(512 * groups, code, np.uint8))
                starts.append((at >> 4) | 8 << 32 | 1 << 46)
                at += 512 * groups
        images.append(np.concatenate(parts))
        if in_tensor:
            lanes = np.arange(128) % rows  # 64 rows stand in both halves of the lanes
            words[rank] = np.ascontiguousarray(mine).view(np.uint32).reshape(rows, -1).T[:8, lanes]
    columns = n // 2 if m == 128 else n
    bits = descriptor(a, b, d, m, n)
    if block:
        scale = block == SCALED[0][1]
        bits = (
            (0 if k == 32 else 1) * (1 << 7 | 1 << 10) | n >> 3 << 17 | m >> 4 << 24 | scale << 23
        )
    out = np.zeros((2, columns, 128), np.uint32)
    module = emulator.Module(
        compile_ptx(tcgen05_source.pair_source(kind, in_tensor, block), "100a")
    )
    scales = starts[2:] or [0, 0]
    trace = module.launch(
        "product", 2, 128,
        [np.concatenate(images), np.int32(len(images[0]) // 16), *(np.uint64(x) for x in starts[:2]), np.uint32(bits),
         words, *(np.uint64(x) for x in scales), np.zeros_like(out), np.int32(columns), out, np.int32(0)],
        shared_bytes=len(images[0]),
    )  # fmt: skip
    found = out.transpose(0, 2, 1).view(np.int32 if d == "s32" else np.float32)
    if (
        m == 128
    ):  # lanes 64 to 127 have the second half of the columns (PTX ISA 9.7.16.10.5, layout B)
        found = np.concatenate([found[:, :64], found[:, 64:]], axis=2)
    wanted = a_values @ b_values.T
    if block:
        wanted[:rows] *= 2
        wanted[rows:] *= 4
    return found.reshape(m, n), wanted, trace


@pytest.mark.parametrize(
    "in_tensor", [False, True], ids=["A in shared memory", "A in tensor memory"]
)
@pytest.mark.parametrize("m", [128, 256])
@pytest.mark.parametrize(
    ("kind", "a", "b", "d"),
    [("f16", "f16", "f16", "f32"), ("tf32", "tf32", "tf32", "f32"), ("f8f6f4", "e4m3", "e5m2", "f32"),
     ("i8", "s8", "u8", "s32")],
)  # fmt: skip
def test_a_pair_multiplies_the_halves_of_both(rng, kind, a, b, d, m, in_tensor):
    found, wanted, trace = of_pair(rng, kind, a, b, d, m, in_tensor=in_tensor)
    assert (found == wanted).all() and wanted.any() and not trace.hazards


@pytest.mark.parametrize(("kind", "block", "type"), [SCALED[0][:3], SCALED[3][:3]])
def test_each_block_of_a_pair_has_the_scales_of_its_rows(rng, kind, block, type):
    found, wanted, trace = of_pair(rng, kind, type, type, "f32", 256, block=block)
    assert (found == wanted).all() and wanted.any() and not trace.hazards


def test_64_rows_of_a_pair_stand_in_both_halves_of_the_lanes(rng, monkeypatch):
    source = tcgen05_source.pair_source

    def broken(*given):
        return source(*given).replace("a_words[i * 128 + t]", "a_words[i * 128 + t] * (t < 64)")

    monkeypatch.setattr(tcgen05_source, "pair_source", broken)
    with pytest.raises(emulator.ExecutionError, match="lanes 64 to 127 once more"):
        of_pair(rng, "f16", "f16", "f16", "f32", 128, in_tensor=True)


def test_fragments_are_cutlass_layouts():
    """Thread t's registers in the shapes of loads and stores (CUTLASS, copy_traits_sm100.hpp)."""
    t = np.arange(32)
    lane, column = tcgen05.fragment("16x64b", 2)
    assert (lane == t // 4 + t % 2 * 8).all() and (
        column == np.array([[0], [2]]) + t // 2 % 2
    ).all()
    lane, column = tcgen05.fragment("16x256b", 1)
    assert (lane[2] == t // 4 + 8).all() and (column[3] == t % 4 * 2 + 1).all()
    lane, column = tcgen05.fragment("16x128b", 1)
    assert (lane[1] == t // 4 + 8).all() and (column[1] == t % 4).all()
    lane, column = tcgen05.fragment("16x32bx2", 4, split=16)
    assert (lane == t % 16).all() and (column[3] == 3 + t // 16 * 16).all()
    for shape in tcgen05.MOVES:  # every place once
        lane, column = tcgen05.fragment(shape, 2, 2)
        assert len({*zip(lane.flat, column.flat, strict=True)}) == lane.size


def moved(steps: str, stores: str = "true", rows=4):
    """(the (128, 8) words afterwards, the trace) of a thread's `steps` on eight columns of tensor memory.

    Before, lane l of a warp for which `stores` holds has 1000 + 8 l + column in them. Shared memory has `rows` rows of
    eight words 8 r + i, by core matrices of 8 x 16 bytes; `from` is their descriptor, d the columns' address.
    """
    source = (
        tcgen05_source.WRAPPERS
        + f"""
extern "C" __global__ void __launch_bounds__(128) k(u32* out) {{
    __shared__ __align__(1024) u32 tile[1024];
    __shared__ u64 bar;
    __shared__ u32 base_;
    const int t = threadIdx.x, warp = t / 32;
    for (int i = t; i < {rows} * 8; i += 128) tile[i / 8 % 8 * 4 + i % 4 + i / 4 % 2 * 32 + i / 64 * 64] = i;
    fence_proxy();
    if (warp == 0) alloc(&base_, 32);
    if (t == 0) init(&bar, 1);
    __syncthreads();
    const u32 d = base_, lanes = d + (warp << 21);
    const u64 from = shared(tile) >> 4 | 8ull << 16 | 16ull << 32 | 1ull << 46;
    if ({stores}) for (int i = 0; i < 8; ++i) store(lanes + i, 1000 + 8 * t + i);
    wait_st(); before(); __syncthreads(); after();
    if (t == 0) {{ {steps} commit(&bar); }}
    wait(&bar, 0); after();
    for (int i = 0; i < 8; ++i) {{ u32 x = load(lanes + i); wait_ld(); out[8 * t + i] = x; }}
    before(); __syncthreads();
    if (warp == 0) dealloc(d, 32);
}}"""
    )
    out = np.zeros((128, 8), np.uint32)
    trace = emulator.Module(compile_ptx(source, "100a")).launch("k", 1, 128, [out])
    return out, trace


STORED = 1000 + np.arange(1024).reshape(128, 8)


def asm(instruction: str, *more: str) -> str:
    """An inline instruction whose operands are d + more[0] (32 bits) and, if given, more[1] (64 bits)."""
    ends = f', "l"({more[1]})' if len(more) > 1 else ""
    return f'asm volatile("tcgen05.{instruction};" :: "r"(d + {more[0]}){ends} : "memory"); '


def copied(lane: int) -> str:
    return asm("cp.cta_group::1.4x256b [%0], %1", f"({lane} << 16)", "from")


def shifted(lane: int) -> str:
    return asm("shift.cta_group::1.down [%0]", f"({lane} << 16)")


@pytest.mark.parametrize("lane", [0, 3, 31])
def test_four_rows_go_to_a_lane_of_each_quarter(lane):
    """As Apache TVM's documentation has it: lanes 0, 32, 64 and 96 from the origin."""
    found, trace = moved(copied(lane))
    wanted = STORED.copy()
    wanted[lane::32] = np.arange(32).reshape(4, 8)
    assert (found == wanted).all() and not trace.hazards


@pytest.mark.parametrize("warp", range(4))
def test_a_shift_moves_31_rows_by_one(warp):
    """As NVIDIA's CuTe DSL has it: row r takes what row r + 1 had, and row 31 stays."""
    found, trace = moved(shifted(32 * warp), stores=f"warp == {warp}")
    mine, had = slice(32 * warp, 32 * warp + 32), STORED[32 * warp : 32 * warp + 32]
    assert (found[mine][:31] == had[1:]).all() and (found[mine][31] == had[31]).all()
    assert {hazard.kind for hazard in trace.hazards} == {"uninitialised-column"}  # others' loads


def test_a_window_slides_by_a_shift_and_a_copy():
    """shift, then 4x256b into the last lane: a pair that is done in order (PTX ISA 9.7.16.6.2)."""
    found, _ = moved(shifted(0) + copied(31), stores="warp == 0")
    assert (found[:31] == STORED[1:32]).all() and (found[31] == np.arange(8)).all()


def test_a_shift_after_a_copy_is_not_in_order():
    with pytest.raises(emulator.ExecutionError, match="before that: unfinished-product"):
        moved(copied(0) + shifted(0), stores="warp == 0")


@pytest.mark.parametrize(
    ("steps", "why"),
    [(shifted(0), "whether they are shifted too, the PTX ISA does not say"), (shifted(16), "a multiple of 32"),
     (copied(32), "lanes 0 to 31")],
)  # fmt: skip
def test_what_is_not_said_of_moves_is_refused(steps, why):
    with pytest.raises(emulator.ExecutionError, match=why):
        moved(steps)


def test_what_is_refused_is_named(rng):
    for form, why in (("mma.ws.cta_group::1.kind::f16", "ws"), ("mma.sp.cta_group::1.kind::f16", ""),
                      ("mma.cta_group::1.kind::f16.ashift", "ashift"), ("shift.cta_group::1.up", "shift")):  # fmt: skip
        text = f".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k() {{ tcgen05.{form} [0], 0; }}"
        with pytest.raises(emulator.EmulatorError, match=f"tcgen05.*{why}"):
            emulator.Module(text).launch("k", 1, 32, [])


@pytest.fixture
def rng():
    return np.random.default_rng(7)
