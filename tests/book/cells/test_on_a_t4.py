"""What the stub of a T4 walks (`tests/stub_t4`; `make colab-check` runs every page on it): launches, times, refusals."""

import os
import subprocess
import sys

from book import chapters

STUB = chapters.ROOT / "tests" / "stub_t4"


def on_t4(code: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(STUB)}
    for name in ("GEMM_TIMES", "GEMM_COMPILER"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=chapters.ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-600:]
    return done.stdout


def test_rungs_and_cublas_are_right_there_and_keep_their_arrays_on_the_gpu():
    on_t4(
        """
import cupy, numpy as np, kernels
assert kernels.gpu().name == "Tesla T4"
A, B = np.random.default_rng(0).standard_normal((2, 48, 48)).astype(np.float32)
for rung in ("naive", "warp_tiled", "cublas"):
    assert np.allclose(kernels.gemm(rung, A, B).C, A @ B, atol=1e-4), rung
a, b = cupy.asarray(A), cupy.asarray(B)
assert isinstance(kernels.gemm("tiled", a, b, machine="gpu").C, cupy.ndarray)
"""
    )


def test_a_figure_of_times_is_measured_there_and_says_what_a_t4_cannot_run():
    said = on_t4(
        """
from book.cells import timing
drawing = timing.compare(["naive", "mma_multistage", "wgmma"])
assert "Tesla T4" in drawing.html() and "wgmma fp16" in drawing.html()
"""
    )
    (line,) = said.splitlines()
    assert line.startswith(
        "wgmma was not timed here: wgmma needs sm_90, this is sm_75; its recorded"
    )


def test_a_notebook_there_says_it_too():
    """In a notebook a bar of progress is drawn on stderr, which must not hide what was left out."""
    said = on_t4(
        """
import ipykernel
from book.cells import timing
timing.compare(["naive", "wgmma"])
"""
    )
    assert said.splitlines()[-1].startswith("wgmma was not timed here: wgmma needs sm_90")


def test_tiles_that_need_more_shared_memory_than_a_t4_has_are_refused():
    said = on_t4(
        """
import numpy as np, kernels
A = np.zeros((256, 256), np.float16)
try:
    kernels.gemm("mma_multistage", A, A, macros={"BM": 128, "BN": 256, "STAGES": 4}, machine="gpu")
except kernels.UnsupportedGPU as error:
    print(error)
"""
    )
    assert "bytes of shared memory per block, this Tesla T4 has 65536" in said


def test_an_exercise_is_tried_there_or_says_why_not():
    said = on_t4(
        """
from book.exercises import find, judge
for name in ("coalesce", "split_tf32"):
    print(judge(find(name), find(name).solution))
"""
    )
    assert "right on this Tesla T4 too" in said
    assert "not tried on this Tesla T4: it needs instructions that sm_75 lacks" in " ".join(
        said.split()
    )
