"""Bulk and tensor copies, wgmma, mbarriers and remote shared memory: the emulator counts what an H200 did.

Runs the kernels that were profiled (`tests/data/probes/counts.cu`), one row of
`h200_hopper_accesses.json` after the other.
"""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from cuda_source import compile_ptx
from wgmma_source import Form, place, source

import emulator

DATA = Path(__file__).parents[2] / "data"
MEASURED = DATA.parents[1] / "results" / "accesses"
ROWS = json.loads((MEASURED / "h200_hopper_accesses.json").read_text(encoding="utf-8"))["rows"]
CLOCKS = json.loads((MEASURED / "h200_wgmma_clocks.json").read_text(encoding="utf-8"))["rows"]
FORMATS = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32",
    "bf16": "bfloat16", "s32": "int32",
}  # fmt: skip
OPCODES = {
    "ldmatrix": "ldmatrix", "stmatrix": "stmatrix", "ld_shared": "ld.volatile.shared", "mbarrier_init": "mbarrier.init",
    "mbarrier_arrive": "mbarrier.arrive", "mbarrier_expect_tx": "mbarrier.expect_tx",
    "mbarrier_test_wait": "mbarrier.test_wait", "mbarrier_try_wait": "mbarrier.try_wait",
    "mbarrier_remote": "mbarrier.arrive", "ld_cluster": "ld.volatile.shared::cluster",
    "st_cluster": "st.volatile.shared::cluster", "st_async": "st.async", "red_async": "red.async",
    "atom_cluster": "atom.shared::cluster", "red_cluster": "red.shared::cluster",
    "fence_proxy_async": "fence.proxy.async",
}  # fmt: skip


SUBSTITUTES = {
    "WAIT = 12000": "WAIT = 1",
    "#include <cstdint>": "using uint16_t = unsigned short; using uint32_t = unsigned; "
    "using uint64_t = unsigned long long;",
    "#include <cuda.h>": "struct __align__(128) CUtensorMap { unsigned char opaque[128]; };",
    # an array begins at a whole line here, so its offset travels in the upper bits of `repeat`
    '"l"(global)': '"l"(global + (repeat >> 8))',
    "i < repeat": "i < (repeat & 255)",
    "* repeat": "* (repeat & 255)",
}


@pytest.fixture(scope="module")
def module():
    text = (DATA / "probes" / "counts.cu").read_text(encoding="utf-8")
    for old, new in SUBSTITUTES.items():
        assert old in text
        text = text.replace(old, new)
    return emulator.Module(compile_ptx(text, "90a"))


def by_kernel(family):
    found = defaultdict(list)
    for row in ROWS:
        if row["kernel"].startswith(family):
            found[row["kernel"]].append(row)
    return found


COPIES = by_kernel(("bulk_", "tensor_"))
WARPS = {
    name: rows for name, rows in by_kernel("warp_").items()
    if any(name.removeprefix("warp_").startswith(prefix) for prefix in OPCODES)
}  # fmt: skip
GROUPS = ("cp.async.bulk.commit_group", "cp.async.bulk.wait_group")
GLOBAL = np.zeros(64 << 20, np.uint8)
# Rows of which L2 counted other requests than were asked: it merges those for one line that are under way together.
MERGED = {"bulk_load": 1, "tensor_load_1": 1, "tensor_load_2": 4}


def tensor_arguments(row):
    shape = row["tensor"]
    name = FORMATS[shape["type"]]
    dtype = np.dtype("uint16" if name == "bfloat16" else name)
    sizes = shape["sizes"][::-1]
    strides, pitch = [], shape["pitch"]
    for extent in shape["sizes"][1:]:
        strides.insert(0, pitch)
        pitch *= extent
    start = GLOBAL[shape.get("base", 0) :]
    array = np.ndarray(sizes, dtype, start.data, 0, (*strides, dtype.itemsize))
    one = emulator.TensorMap(
        array, tuple(shape["box"][::-1]), format=name, swizzle=shape.get("swizzle", 0)
    )
    at = [*shape["start"], 0, 0, 0, 0, 0][:5]
    at[4] = row.get("mask", 0) or at[4]
    return [one, np.array(at, np.int32).tobytes(), np.uint32(one.box_bytes)]


@pytest.mark.parametrize("kernel", COPIES)
def test_copies(module, kernel):
    """Requests to L2, up to an eighth off where it merged them, and sectors; of loads, what the SM received."""
    out, merged = np.zeros(4096, np.uint32), 0
    for row in COPIES[kernel]:
        cluster, counts = row.get("cluster", 1), row["counts"]
        if row.get("tensor"):
            args = tensor_arguments(row)
        else:
            place = row.get("mask", 0) if "multicast" in kernel else row.get("shared_offset", 0)
            args = [GLOBAL, np.uint32(row["bytes"]), np.uint32(place)]
        repeat = np.int32(1 + (row.get("global_offset", 0) << 8))
        trace = module.launch(
            kernel, cluster, 32, [*args, repeat, out], 98304, cluster=cluster, sanitize=False
        )
        rows = [r for r in trace.rows("cp.") if not r.opcode.startswith(GROUPS)]
        got = (sum(r.global_requests for r in rows), sum(r.global_sectors for r in rows))
        sectors = next((counts[n] for n in counts if n.startswith("l2_sectors")), 0)
        asked = next((counts[n] for n in counts if n.startswith("l2_requests")), 0)
        blocks = bin(row.get("mask", 1)).count("1")
        if "load" in kernel or "multicast" in kernel:
            sectors = counts["tma_sectors_loaded"] / blocks  # L2 merges what is under way together
            assert counts["bank_words_written"] * 4 == sum(r.bytes for r in rows) * blocks, row
        assert got[1] == sectors, row
        assert abs(asked - got[0]) <= got[0] / 8, row
        merged += got[0] != asked
    assert merged == MERGED.get(kernel, 0)


@pytest.mark.parametrize("kernel", WARPS)
def test_what_a_warp_does_in_shared_memory(module, kernel):
    prefix = next(p for p in OPCODES if kernel.removeprefix("warp_").startswith(p))
    for row in WARPS[kernel]:
        cluster = row.get("cluster", 1)
        offsets, out = np.array(row["offsets"], np.uint32), np.zeros(4096, np.uint32)
        args = [offsets, np.uint32(row.get("active", 0xFFFFFFFF)), np.int32(2), out]
        twice = module.launch(kernel, cluster, 32, args, 98304, cluster=cluster, sanitize=False)
        args[2] = np.int32(1)
        once = module.launch(kernel, cluster, 32, args, 98304, cluster=cluster, sanitize=False)
        got = twice.total("shared_wavefronts") - once.total("shared_wavefronts")
        assert got == row["counts"].get("shared_wavefronts", 0), (prefix, row)


def wgmma_rows():
    """n, A in registers -> recorded wavefronts, the same for all types and layouts."""
    found = {}
    for row in ROWS:
        if row["kernel"].startswith("wgmma"):
            n = int(row["kernel"].split("_")[1][1:])
            found.setdefault((n, "_rs_" in row["kernel"]), set()).add(
                row["counts"]["shared_wavefronts"]
            )
    return found


@pytest.mark.parametrize("key", wgmma_rows(), ids=str)
def test_wgmma(key):
    n, from_registers = key
    (recorded,) = wgmma_rows()[key]
    form = Form(n, from_registers=from_registers)
    image = np.zeros(80 * 1024, np.uint8)
    a, b = (place(rows, 16, 2, 128, "K", at).descriptor for rows, at in ((64, 0), (n, 40 * 1024)))
    trace = emulator.Module(compile_ptx(source(form), "90a")).launch(
        form.name, 1, 128,
        [image, np.int32(len(image) // 16), np.uint64(a), np.uint64(b), np.zeros((4, 128), np.uint32),
         np.zeros((form.registers, 128), np.uint32), np.int32(1)], shared_bytes=len(image),
    )  # fmt: skip
    (row,) = trace.rows("wgmma.mma_async")
    assert row.shared_wavefronts == row.shared_wavefronts_ideal == recorded
    assert row.bytes == 128 * recorded


@pytest.mark.parametrize("row", CLOCKS, ids=lambda r: f"{r['type']}-{r['d']}-n{r['n']}-{r['a']}")
def test_clocks_of_wgmma(row):
    """The longer of the tensor cores' n / 2 and the operands' way in: a wavefront a clock, 13 clocks with A in registers."""
    expected = max(row["n"] / 2, 16 + row["n"] / 4 if row["a"] == "shared" else 13)
    measured = [value for name, value in row.items() if name.startswith("clocks_")]
    assert len(measured) == 4
    assert all(abs(clocks - expected) < 0.1 for clocks in measured), (expected, measured)
