"""Recorded rows, and what needs a GPU says so without one."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import kernels
from kernels import UnsupportedGPU, gpu, gpus
from kernels.gpus import peak, slug
from measure import bench, recorded, recordings
from measure.record import _merge, record
from measure.row import _error, time_rung
from measure.timing import Timing, _turns

no_gpu = pytest.mark.skipif(gpu() is not None, reason="a GPU is here")
needs_gpu = pytest.mark.skipif(gpu() is None, reason="no GPU here")
ROW = {
    "rung": "naive", "m": 4096, "n": 4096, "k": 4096, "inputs": "float32", "accumulator": "float32",
    "output": "float32", "ms_median": 20.0, "ms_min": 19.5, "ms_max": 21.0, "tflops": 6.87,
    "cublas_ms": 2.5, "ratio_to_cublas": 0.125, "relative_error": 1e-6, "config": {"BLOCK": 32},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    module = __import__("sys").modules["measure.results"]
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    for name, date in (
        ("Tesla T4", "2026-01-02"),
        ("NVIDIA H100 80GB HBM3", "2026-03-04T05:06:07"),
    ):
        stored = {
            "machine": {"gpu": name}, "recorded": date, "commit": "abc", "method": "events",
            "rows": [ROW, {**ROW, "rung": "tiled"}, {**ROW, "m": 512}],
        }  # fmt: skip
        (tmp_path / f"{slug(name)}.json").write_text(json.dumps(stored))
    (tmp_path / "compare-tesla-t4.json").write_text('{"rows": []}')
    return tmp_path


def test_recordings_are_found_by_name(folder):
    assert sorted(recordings()) == ["nvidia-h100-80gb-hbm3", "tesla-t4"]
    assert recorded().gpu == "NVIDIA H100 80GB HBM3"
    assert recorded("t4").gpu == "Tesla T4"
    with pytest.raises(FileNotFoundError, match="no recording of b300; there are: nvidia-h100"):
        recorded("b300")


def test_rows_are_selected_by_column(folder):
    assert len(recorded().select("naive")) == 2
    assert recorded().select("naive", 4096) == [ROW]
    assert recorded().select(inputs="tf32") == []


@no_gpu
def test_bench_without_a_gpu_shows_recorded_rows_and_says_so(folder, capsys, tmp_path):
    rows = bench(["naive", "tiled"], file=tmp_path / "out.json")
    assert [row["rung"] for row in rows] == ["naive", "tiled"]
    printed = capsys.readouterr().out
    assert "no GPU here: recorded on NVIDIA H100 80GB HBM3, 2026-03-04" in printed
    assert "12.5%" in printed
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["rows"] == rows


def test_a_gpu_is_not_timed_where_recorded_times_are_asked_for(folder, monkeypatch, capsys):
    a_gpu = SimpleNamespace(name="NVIDIA T4", slug="nvidia-t4", arch=75)
    monkeypatch.setattr(gpus, "gpu", lambda: a_gpu)
    assert gpus.live() is a_gpu
    monkeypatch.setenv("GEMM_TIMES", "recorded")
    assert gpus.live() is None
    assert bench(["naive"]) == [ROW]
    assert "2026" in capsys.readouterr().out


@no_gpu
def test_what_needs_a_gpu_says_so():
    with pytest.raises(UnsupportedGPU, match="timing needs an NVIDIA GPU"):
        time_rung("naive", 64, 64, 64)
    with pytest.raises(UnsupportedGPU, match="recording needs an NVIDIA GPU"):
        record(["naive"])


def test_a_timing_is_the_median():
    timing = Timing((3.0, 1.0, 2.0, 50.0, 2.0))
    assert timing.median == 2.0
    assert timing.tflops(1000, 1000, 1000) == pytest.approx(1.0)


def test_competitors_take_turns_in_bursts_of_their_own():
    turns = _turns({"slow": 10.0, "fast": 2.0}, samples=5)
    assert turns == [("slow", 2), ("fast", 5), ("slow", 2), ("slow", 1)]
    turns = _turns({"ours": 4.0, "cublas": 5.0}, samples=25)
    assert sum(n for name, n in turns if name == "ours") == 25
    assert sum(n for name, n in turns if name == "cublas") == 25
    assert [name for name, _ in turns] != sorted(name for name, _ in turns)


def test_a_new_recording_keeps_what_it_did_not_measure(tmp_path):
    path = tmp_path / "gpu.json"
    path.write_text(json.dumps({"rows": [ROW, {**ROW, "rung": "tiled"}]}))
    new = {**ROW, "ms_median": 10.0}
    assert _merge(path, [new]) == [new, {**ROW, "rung": "tiled"}]
    assert _merge(tmp_path / "none.json", [new]) == [new]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("Tesla T4", "T4"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
    ],
)
def test_a_gpu_finds_its_limits(name, row):
    assert peak(name).name == row


def test_an_unknown_gpu_has_no_limits():
    assert peak("NVIDIA GeForce GTX 1080") is None
    assert peak("Tesla T4").tflops("tf32") is None


def test_a_product_with_one_wrong_element_gets_no_row(monkeypatch):
    runtime = SimpleNamespace(memGetInfo=lambda: (1 << 40, 1 << 40))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    rng = np.random.default_rng(5)
    A, B = rng.standard_normal((40, 64), np.float32), rng.standard_normal((64, 24), np.float32)
    C, types = A @ B, kernels.Types("float32")
    assert _error((A, B, C), types, kernels.find("naive"))["of_bound"] <= 1
    C[7, 5] += 0.01
    with pytest.raises(ValueError, match="naive is wrong"):
        _error((A, B, C), types, kernels.find("naive"))


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("inputs", ["float32", "tf32", "float16"])
def test_cublas_is_right_and_timed(inputs):
    row = time_rung("cublas", 300, 200, 100, kernels.Types(inputs), samples=20)
    assert row["ms_min"] <= row["ms_median"] <= row["ms_max"]
    assert row["relative_error"] < {"float32": 1e-5, "tf32": 1e-2, "float16": 1e-5}[inputs]


@needs_gpu
@pytest.mark.gpu
def test_a_rung_is_timed_against_cublas():
    row = time_rung("naive", 257, 129, 65, samples=20)
    assert row["config"] == {"BLOCK": 32} and row["relative_error"] < 1e-5
    assert row["ratio_to_cublas"] == pytest.approx(row["cublas_ms"] / row["ms_median"], rel=1e-3)


def test_a_recording_is_of_the_whole_ladder():
    """Other files hold times of rungs, too: nothing but a recording may stand in the ladder's figure."""
    for name, recording in recordings().items():
        assert {"naive", "warp_tiled", "cublas"} <= {row["rung"] for row in recording.rows}, name


def test_a_row_that_an_earlier_recording_left_keeps_its_date(folder):
    one = recorded("t4")
    assert one.label_of([ROW]) == "recorded on Tesla T4, 2026-01-02"
    kept = {**ROW, "recorded": "2025-12-30T01:02:03"}
    assert one.label_of([ROW, kept]) == "recorded on Tesla T4, 2025-12-30 and 2026-01-02"
