"""The minimal kernels of published patterns compute what they should, and cost what the chapters say."""

import shutil
import subprocess

import numpy as np
import pytest

from book.cells import build_lines
from measure import published, wgmma_order


def result(case, K):
    M, N = case.tile
    rng = np.random.default_rng(1)
    A, B = ((rng.random(s) - 0.5).astype(case.types.input_dtype) for s in ((M, K), (K, N)))
    C, trace = published.run(case, A, B)
    return np.abs(C - A.astype(np.float64) @ B.astype(np.float64)).max(), trace


@pytest.mark.parametrize(
    ("name", "macros", "K"),
    [
        ("all copy, 4 bytes", {"TILES": 1}, 64),
        ("all copy, 16 bytes, shared state", {"TILES": 1}, 64),
        ("a warp copies, chunks of 16 bytes", {"TILES": 1}, 64),
        ("rows of 4 bytes, sums in registers", {"TILES": 1}, 64),
        ("chunks of 16 bytes, even rows, sums in registers", {"TILES": 1}, 64),
        ("2 bytes at a time", {}, 64),
        ("16 bytes at a time", {}, 64),
        ("1 x 4 tiles", {}, 32),
        ("4 x 4 tiles, B kept", {}, 32),
        ("sums in C, added every 16 of k", {}, 64),
        ("sums in registers", {}, 64),
        ("no zeros, nothing after the wait", {"SIZE": 128, "DEPTH": 128}, 128),
    ],
)
def test_a_case_is_right_and_without_hazards(name, macros, K):
    error, trace = result(published.changed(name, **macros), K)
    assert error < 0.005
    assert not trace.hazards


def test_sums_leave_the_stack_where_the_turns_are_known():
    stack = [
        published.NAMED[name].build(90).report.stack
        for name in ("a warp copies, rows of 4 bytes", "rows of 4 bytes, sums in registers")
    ]
    assert stack == [32, 0]


def test_tiles_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="whole tiles"):
        published.NAMED["1 x 4 tiles"].grid(33, 128)


def test_conversions_stand_where_the_machine_code_has_them():
    for after, early in zip(published.AFTER, (2, 2, 0), strict=True):
        build = published.NAMED[f"no zeros, {after}"].build()
        names = wgmma_order.order(build)
        assert names.count("convert") == 64
        assert names.count("product") == 24
        assert wgmma_order.early_conversions(build) == early


def test_a_kernel_without_products_has_no_last_wait():
    with pytest.raises(ValueError, match="never waits"):
        wgmma_order.early_conversions(published.NAMED["1 x 4 tiles"].build())


def test_every_rung_has_a_build_line_with_its_macros():
    lines = build_lines.lines()
    assert "-DBM=128" in lines["warp_tiled"] and "compute_90a" in lines["wgmma"]
    assert all(line.startswith("nvcc ") and ".cu" in line for line in lines.values())


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH")
@pytest.mark.parametrize("rung", ["naive", "mma_multistage", "wgmma_persistent"])
def test_a_build_line_builds(rung, tmp_path):
    words = [*build_lines.lines()[rung].split(), "-o", str(tmp_path / "kernel.cubin")]
    done = subprocess.run(words, cwd=published.FOLDER.parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kernel.cubin").stat().st_size > 0
