"""A GPU that is slow takes fewer samples; a rung that it leaves out has the recorded row in its place, and a line says so."""

import re

import pytest

from book.cells import timing
from kernels.gpus import Gpu
from measure.row import _affordable, _bearable

T4 = Gpu("Tesla T4", 75, 40, 4 << 20, 15 << 30, 1590, 64 << 10, "12.8", "12.8")
ROW = {
    "rung": "naive", "m": 4096, "n": 4096, "k": 4096, "inputs": "float32", "accumulator": "float32",
    "output": "float32", "ms_median": 250.0, "ms_min": 249.0, "ms_max": 251.0, "tflops": 0.55, "cublas_ms": 30.0,
    "ratio_to_cublas": 0.12, "relative_error": 1e-7, "config": {},
}  # fmt: skip


def test_a_slow_launch_has_fewer_samples_but_enough_for_a_median():
    assert _affordable(0.001, 25, 20) == 25
    assert _affordable(2.0, 25, 20) == 10
    with pytest.raises(TimeoutError, match=r"one launch takes 5 s: 5 samples exceed 20 s"):
        _affordable(5.0, 25, 20)
    assert _affordable(5.0, 1, 20) == 1  # asked for one: one is enough


def test_while_somebody_waits_a_slow_launch_has_five_samples_and_a_fast_one_all():
    assert _bearable(0.002, 25, 1.0) == 25  # bursts of ten: few pauses
    assert _bearable(0.150, 25, 1.0) == 5
    assert _bearable(0.150, 25, 6.0) == 15  # each with a pause and a launch that does not count
    assert _bearable(0.150, 25, float("inf")) == 25
    assert _bearable(0.150, 2, 1.0) == 2


@pytest.fixture
def t4(monkeypatch):
    """A T4 whose bench measures `naive`, and says of the rest what a real one says."""

    def bench(rungs, sizes, left_out, **_):
        left_out |= {
            name: "needs sm_80, this GPU is sm_75"
            for name in rungs
            if name not in ("naive", "cublas")
        }
        return [{**ROW, "rung": name} for name in rungs if name in ("naive", "cublas")]

    monkeypatch.setattr(timing, "live", lambda: T4)
    monkeypatch.setattr(timing, "bench", bench)


def test_a_row_that_is_left_out_says_so_and_shows_the_recorded_one(t4, capsys):
    drawing = timing.compare(["naive", "mma_multistage"])
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(
        "mma_multistage was not timed here: needs sm_80, this GPU is sm_75; its recorded time on "
    )
    assert re.search(r"mma_multistage fp16 to fp32, recorded on NVIDIA", drawing.html())
    assert "mma_multistage" not in drawing.title  # the finding is of this GPU
    assert drawing.html().index("naive") < drawing.html().index("mma_multistage")


def test_what_was_measured_is_not_replaced(t4, capsys):
    drawing = timing.compare(["naive"])
    assert capsys.readouterr().out == ""
    assert "recorded on" not in drawing.html().replace("recorded on 20", "")
