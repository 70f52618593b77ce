"""Annotated source, differences, the ladder, the roofline and bars: what is shown equals what was given."""

from types import SimpleNamespace

import pytest

import figures
from emulator.sanitizer.report import KINDS

SOURCE = """// one thread, one output
extern "C" __global__ void gemm(const float* A, float* C) {
    // [load]
    float a = A[threadIdx.x];  // <one> & "two"
    // [/load]
    C[threadIdx.x] = a;
}
"""
COSTS = {
    4: {"warps": 8, "sectors": 1024, "wavefronts": 0, "ideal": 0},
    6: {"warps": 12, "sectors": 32, "wavefronts": 64, "ideal": 16},
}
ROWS = [
    {"rung": "naive", "tflops": 4.0, "inputs": "float32", "ms_median": 34.0, "cublas_ms": 2.72},
    {"rung": "mma_multistage", "tflops": 600.0, "inputs": "float16", "ratio_to_cublas": 0.96},
    {"rung": "cublas", "tflops": 625.0, "inputs": "float16", "ratio_to_cublas": 1.0},
]


def test_annotated_source_shows_each_lines_costs():
    listing = figures.annotated_source(COSTS, SOURCE)
    assert listing.facts["totals"] == {"warps": 20, "sectors": 1056, "wavefronts": 64, "ideal": 16}
    assert (
        ">1,024<" in listing.html() and "&lt;one&gt; &amp; &quot;two&quot;" not in listing.plain()
    )
    assert "<one>" not in listing.html()
    line = next(line for line in listing.plain().splitlines() if "float a" in line)
    assert line.split()[:3] == ["4", "8", "1,024"]
    assert listing.title == "Line 6 takes 100% of the wavefronts of shared memory"
    assert "[load]" not in listing.html()
    assert (
        "75.0%" in listing.html() and "25.0%" in listing.html()
    )  # 48 of 64 wavefronts are conflicts


@pytest.mark.parametrize(
    ("costs", "message"),
    [({}, "nothing to draw"), ({99: {"warps": 1}}, "not in the source")],
)
def test_annotated_source_refuses_what_does_not_belong_together(costs, message):
    with pytest.raises(ValueError, match=message):
        figures.annotated_source(costs, SOURCE)


def test_diff_marks_what_came_and_what_went():
    after = SOURCE.replace(
        "float a = A[threadIdx.x];", "float a = A[threadIdx.x * 4];\n    __syncthreads();"
    )
    listing = figures.diff_source(SOURCE, after, ("naive", "tiled"))
    assert listing.facts == {"added": 2, "removed": 1}
    marks = [line[0] for line in listing.plain().splitlines()[1:]]
    assert marks.count("+") == 2 and marks.count("-") == 1
    assert listing.html().count("<tr class=add>") == 2
    short = figures.diff_source(SOURCE, after, context=0).plain()
    assert "unchanged lines" in short and "extern" not in short
    assert "the same" in figures.diff_source(SOURCE, SOURCE).title
    with pytest.raises(ValueError, match="empty"):
        figures.diff_source("", "")


def test_ladder_shows_every_rung_against_cublas_and_the_limit():
    drawing = figures.ladder(ROWS, {"float32": 66.9, "float16": 989}, "NVIDIA H100", "2026-11-21")
    assert drawing.facts["naive"] == pytest.approx((4.0, 50.0))
    assert drawing.facts["mma_multistage"] == pytest.approx((600, 625))
    assert drawing.title == "The best rung, mma_multistage, reaches 600 TFLOP/s, 96% of cuBLAS"
    assert drawing.caption == "Measured on NVIDIA H100, recorded 2026-11-21."
    for words in ("FP32 limit 66.9", "FP16 limit 989", "logarithmic", ">96%<", ">8%<"):
        assert words in drawing.svg()
    assert "logarithmic" not in figures.ladder(ROWS[1:]).svg()


@pytest.mark.parametrize("rows", [[], [{"rung": "naive"}], [{"rung": "naive", "tflops": 0.0}]])
def test_ladder_refuses_what_was_not_measured(rows):
    with pytest.raises(ValueError):
        figures.ladder(rows)


def test_bars_and_roofline_state_their_values():
    bars = figures.bars(
        {"post": 47.3, "fair": 0.2}, parts={"post": {"handle": 31.0, "pages": 16.3}}
    )
    assert bars.facts == {"post": 47.3, "fair": 0.2} and "post: 47.3 ms" in bars.svg()
    assert [label for _, label in bars.legend] == ["handle", "pages"]
    roof = figures.roofline({"naive": (0.5, 1.2), "tiled": (16, 5.0)}, 3.35, {"FP32": 67})
    assert roof.facts["ridge"]["FP32"] == pytest.approx(20)
    assert "naive: 0.5 operations per byte, 1.2 TFLOP/s" in roof.alt
    for bad in ({}, {"a": -1.0}):
        with pytest.raises(ValueError):
            figures.bars(bad)
    with pytest.raises(ValueError, match="no bar is called"):
        figures.bars({"a": 1.0}, highlight=["b"])
    with pytest.raises(ValueError, match="positive"):
        figures.roofline({"a": (0, 1)}, 1, {"FP32": 1})


def found(**changes):
    fields = {
        "kind": "read-after-write",
        "source": ("k.cu", 6),
        "other_source": ("k.cu", 4),
        "ptx_line": 30,
        "other_ptx_line": 20,
        "thread": (0, 1, 0),
        "other_thread": (5, 0, 0),
        "address": 20,
        "symbol": "As",
        "offset": 20,
        "count": 3,
    }
    return SimpleNamespace(**{**fields, **changes})


def test_hazard_names_threads_lines_and_place():
    drawing = figures.hazard(found(), SOURCE)
    assert drawing.facts["lines"] == (4, 6) and drawing.facts["threads"] == ((5, 0, 0), (0, 1, 0))
    assert drawing.alt.startswith(
        "Thread 5 writes As + 20 B at line 4, then thread (0, 1) reads As + 20 B at line 6"
    )
    assert "float a = A[threadIdx.x]" in drawing.svg()
    alone = figures.hazard(found(kind="uninitialised-read", other_source=None, other_thread=None))
    assert alone.facts["lines"] == (6,) and alone.title.startswith("An uninitialised")
    with pytest.raises(ValueError, match="unknown kind"):
        figures.hazard(found(kind="guess"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_hazard_is_drawn(kind):
    drawing = figures.hazard(found(kind=kind), SOURCE)
    assert drawing.facts["kind"] == kind and "None" not in drawing.alt
    assert "at line 6" in drawing.alt and "(0, 1)" in drawing.alt
    no_names = found(kind=kind, other_thread=None, other_source=None, other_ptx_line=None)
    assert "None" not in figures.hazard(no_names, SOURCE).alt
