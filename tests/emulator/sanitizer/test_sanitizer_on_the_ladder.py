"""Take away one barrier or one wait of a real kernel: each loss is found, and named by its lines."""

import re

import numpy as np
import pytest

import emulator
from kernels import RUNGS, build

SYNCHRONISATION = re.compile(
    r"__syncthreads\(\);|cp_async_wait<[^>]*>\(\);|pipe\.consumer_wait\(\);"
)
NAMES = ("tiled", "vectorized", "async_copy", "wmma_async", "mma_sync", "mma_swizzled")
CASES = [
    (name, position)
    for name in NAMES
    for position, _ in enumerate(
        SYNCHRONISATION.finditer(RUNGS[name].path.read_text(encoding="utf-8"))
    )
]


def run(name, text):
    """The first block of a rung at 128 x 128 x 192: (what it computed, is it right, hazards)."""
    rung, (m, n, k) = RUNGS[name], (128, 128, 192)
    rng = np.random.default_rng(0)
    dtype = np.float16 if rung.inputs == "float16" else np.float32
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    grid, block, shared = rung.geometry(rung.macros, m, n, k)
    held = a if rung.a_major == "K" else np.ascontiguousarray(a.T)
    module = emulator.Module(build(text, macros=rung.macros, arch=80, name=rung.file).ptx)
    args = [held, b, c, *(np.int32(x) for x in (m, n, k)), np.float32(1), np.float32(0)]
    trace = module.launch(rung.entry, grid, block, args, shared, blocks=[(0, 0, 0)])
    written = ~np.isnan(c)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return bool(written.any() and (c[written] == exact[written]).all()), trace.hazards


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_as_it_stands_has_no_hazard(name):
    right, hazards = run(name, RUNGS[name].path.read_text(encoding="utf-8"))
    assert right and [str(h) for h in hazards] == []


@pytest.mark.parametrize(("name", "position"), CASES)
def test_a_kernel_without_one_of_its_barriers_or_waits_has(name, position):
    text = RUNGS[name].path.read_text(encoding="utf-8")
    gone = list(SYNCHRONISATION.finditer(text))[position]
    right, hazards = run(name, text[: gone.start()] + text[gone.end() :])
    kinds = {h.kind for h in hazards}
    if "wait" in gone.group():
        assert not right and kinds == {"unfinished-copy"}
    else:
        assert kinds and kinds <= {"read-after-write", "write-after-read"}
    lines = text.splitlines()
    for hazard in hazards:
        assert hazard.source[0].endswith(RUNGS[name].file)
        assert 0 < hazard.source[1] <= len(lines) and 0 < hazard.other_source[1] <= len(lines)
        assert hazard.other_thread is not None and f"{RUNGS[name].file}:" in hazard.message
