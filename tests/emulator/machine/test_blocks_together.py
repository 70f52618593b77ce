"""Blocks that wait for each other, and kernels that do not end."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cuda_source import compile_ptx, launch

import emulator
from emulator.machine import residency
from tests import limited

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void grid_sync(const int *x, int *y, int n) {
    auto grid = cg::this_grid();
    int i = grid.thread_rank();
    y[i] = x[i];
    grid.sync();
    int other = y[(i + blockDim.x) % n];
    grid.sync();
    y[i] = other + (int)grid.num_blocks();
}
__device__ unsigned arrived;
extern "C" __global__ void own_barrier(const int *x, int *y, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] = x[i];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&arrived, 1);
        while (atomicAdd(&arrived, 0) < gridDim.x) ;
    }
    __syncthreads();
    __threadfence();
    int other = y[(i + blockDim.x) % n];
    y[n + i] = other;
}
extern "C" __global__ void endless(const int *x, int *y, int n) {
    int i = threadIdx.x;
    while (n > 0) { i = i * 5 + x[i & 31]; asm volatile("" : "+r"(n)); }
    y[threadIdx.x] = i;
}
extern "C" __global__ void big_stack(const int *x, int *y, int n) {
    char mine[400000];
    for (int i = 0; i < n; ++i) mine[(i * 1237) % 400000] = x[i];
    y[threadIdx.x + blockIdx.x * blockDim.x] = mine[(n * 7) % 400000] * 0;
}
extern "C" __global__ void where(int *y) {
    if (threadIdx.x == 0) y[0] = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
"""


def _run(entry, grid, block=64, sanitize=True, **more):
    n = grid * block
    x, y = np.arange(n, dtype=np.int32) * 7, np.zeros(2 * n, np.int32)
    trace = launch(SOURCE, entry, grid, block, [x, y, np.int32(n)], sanitize=sanitize, **more)
    return x, y, trace


@pytest.mark.parametrize("arch", [75, 90])
@pytest.mark.parametrize(("grid", "block"), [(3, 64), (600, 64), (40, 1024)])
def test_grid_sync(grid, block, arch):
    x, y, trace = _run("grid_sync", grid, block, cooperative=True, arch=arch)
    assert (y[: len(x)] == np.roll(x, -block) + grid).all()
    assert not trace.hazards, [str(h) for h in trace.hazards]


def test_grid_sync_without_a_cooperative_launch_says_what_it_needs():
    with pytest.raises(emulator.Trap, match="cooperative=True"):
        _run("grid_sync", 3)


def test_more_blocks_than_a_gpu_holds_are_refused():
    with pytest.raises(ValueError, match=r"264.*132 multiprocessors"):
        _run("grid_sync", 265, 1024, cooperative=True)


def test_an_inter_block_barrier_runs_with_all_that_a_gpu_would_hold():
    x, y, trace = _run("own_barrier", 132, 32, shared_bytes=200 << 10)
    assert (y[len(x) :] == np.roll(x, -32)).all() and not trace.hazards


def test_a_barrier_over_more_blocks_says_how_many_have_not_begun():
    with pytest.raises(emulator.Deadlock, match="18 more blocks have not begun"):
        _run("own_barrier", 150, 32, shared_bytes=200 << 10, sanitize=False)


def test_budgets_end_what_does_not_end():
    for limit in ({"max_warp_instructions": 100_000}, {"max_seconds": 0.3}):
        started = time.perf_counter()
        with pytest.raises(emulator.LimitExceeded, match="stopped after") as error:
            _run("endless", 2, **limit)
        assert time.perf_counter() - started < 20
        assert "test.cu" in str(error.value) and error.value.waiting
    _run("grid_sync", 3, cooperative=True, max_warp_instructions=1_000_000, max_seconds=60)
    with pytest.raises(ValueError, match="max_seconds is a positive number"):
        _run("endless", 2, max_seconds=0)


def test_the_budget_is_of_the_launch_not_of_a_chunk():
    y = np.zeros(1, np.int32)
    with pytest.raises(emulator.LimitExceeded):
        launch(SOURCE, "where", 4096, 1024, [y], max_warp_instructions=200_000)
    launch(SOURCE, "where", 16, 1024, [y], max_warp_instructions=200_000)


def test_local_memory_runs_in_smaller_chunks_or_is_refused():
    _run("big_stack", 24, 256, sanitize=False)
    assert residency.chunk_blocks(256, 0, 400000, False) == 10
    with pytest.raises(ValueError, match="at most 8 GiB"):
        residency.chunk_blocks(1024, 0, 10 << 20, False)


def test_a_huge_grid_costs_no_memory():
    y = np.zeros(1, np.int64).view(np.int32)
    grid = (1 << 20, 1 << 6, 1 << 4)
    with pytest.raises(emulator.LimitExceeded):
        launch(SOURCE, "where", grid, 32, [y], max_seconds=0.5)
    launch(SOURCE, "where", grid, 32, [y], blocks=[(5, 3, 2)])
    assert y[0] == 5 + (1 << 20) * (3 + 64 * 2)
    with pytest.raises(ValueError, match="blocks="):
        launch(SOURCE, "where", (1 << 30, 100, 100), 32, [y])


def test_interrupting_the_command_takes_one_line(tmp_path):
    ptx = tmp_path / "endless.ptx"
    ptx.write_text(compile_ptx(SOURCE, 80))
    code = (  # whoever runs the tests in the background of a shell has Ctrl-C ignored, and so would this process
        "import _thread, signal, threading, sys; from emulator.__main__ import main;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"
        "threading.Timer(1.5, _thread.interrupt_main).start();"
        f"sys.exit(main(['run', {str(ptx)!r}, '--entry', 'endless', '--arg', 's32[64]=zeros', '--arg',"
        " 's32[64]=zeros', '--arg', 's32=5']))"
    )
    root = Path(emulator.__file__).parents[1]
    done = limited.run([sys.executable, "-c", code], cwd=root)
    assert done.returncode == 130 and done.stderr.strip() == "interrupted"
