# ruff: noqa: E501 (a row of a table of answers may run on)
"""Answers that look right and are not: each fails, and is told its cause."""

import re

import numpy as np
import pytest

from book.exercises import find, judge, lab
from book.exercises.counts import NAMES, count
from book.exercises.diagnose import explained
from book.exercises.exercise import Exercise

LAST_BARRIER = "        __syncthreads();  // everyone has read them: overwrite them\n"
NOTHING_SET = "never given a value"
NOT_ALL_REACH = "a barrier that not all threads reach"

# Edits to the solution, and words that the verdict must hold.
EDITED = {
    ("coalesce", "the sum begins anywhere"): ([("float sum = 0.0f", "float sum")], NOTHING_SET),
    ("coarsen", "the sums begin anywhere"): ([("float sum[TM] = {}", "float sum[TM]")], NOTHING_SET),
    ("pipeline_stages", "the sum begins anywhere"): ([("float sum = 0.0f", "float sum")], NOTHING_SET),
    ("wmma_tile", "the accumulator begins anywhere"): ([("    wmma::fill_fragment(acc, 0.0f);\n", "")], NOTHING_SET),
    ("place_barriers", "a barrier for lanes with something to load"): (
        [(LAST_BARRIER, "        if (tile + tx < K) __syncthreads();\n")], NOT_ALL_REACH,
    ),
    ("place_barriers", "a barrier in the first turns"): (
        [(LAST_BARRIER, "        if (tile < 64) __syncthreads();\n")], "may still be reading",
    ),
    ("place_barriers", "whole warps leave before the loop"): (
        [("    for (int tile", "    if (row >= M) return;\n    for (int tile")], NOT_ALL_REACH,
    ),
    ("place_barriers", "whole warps skip the last barrier"): (
        [(LAST_BARRIER, "        if (row >= M) continue;\n" + LAST_BARRIER)], NOT_ALL_REACH,
    ),
    ("transpose_operand", "the warp does not meet"): ([("    __syncwarp();\n", "")], "no __syncwarp() between"),
    ("transpose_operand", "the warp meets too early"): (
        [("    __syncwarp();\n", ""), ("    const int lane = threadIdx.x;\n", "    const int lane = threadIdx.x;\n    __syncwarp();\n")],
        "no __syncwarp() between",
    ),
    ("coalesce", "A is spoilt while other blocks read it"): (
        [("C[row * N + col] = sum;", "C[row * N + col] = sum;\n        const_cast<float*>(A)[row * K] = 0.0f;")],
        "a race on global memory",
    ),
    ("coarsen", "an output too many"): ([("i < TM; ++i) sum[i]", "i <= TM; ++i) sum[i]")], "sum has TM elements"),
    ("beat_the_clock", "rows and columns"): ([("av[i] * bv[j]", "av[j] * bv[i]")], "Each 4x4 tile of the output is transposed"),
    ("beat_the_clock", "a fifth row"): ([("for (int i = 0; i < 4; ++i)\n#pragma", "for (int i = 0; i <= 4; ++i)\n#pragma")], "sum has 4 x 4 elements"),
    ("beat_the_clock", "a fifth column"): ([("for (int j = 0; j < 4; ++j)", "for (int j = 0; j <= 4; ++j)")], "beyond the end of an array"),
    ("swizzle_rows", "padding where none is allowed"): (
        [("tile[32 * 32]", "tile[32 * 40]"), ("tile + row * 32", "tile + row * 40"), ("tile + lane * 32", "tile + lane * 40"), ("chunk ^ row / 2 % 4", "chunk")],
        "no padding",
    ),
    ("mend_pipeline", "nothing is fetched ahead"): (
        [("        if (tile + 1 < 4) fetch(tile + 1);\n", ""),
         ("buffer[tile % 2][thread];", "buffer[tile % 2][thread];\n        __syncthreads();\n        if (tile + 1 < 4) fetch(tile + 1);")],
        "0 copies are in flight; at least 1 should be",
    ),
}  # fmt: skip

NAIVE = 'extern "C" __global__ void {name}(const float* A, const float* B, float* C, int M, int N, int K) {{\n{body}\n}}\n'
ONE_OUTPUT = "if (row < M && col < N) { float sum = 0; for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col]; C[row * N + col] = sum; }"
PIPELINE = """\
#include "ptx.cuh"
extern "C" __global__ void pipeline_stages(const float* X, float* y, int K) {{
    __shared__ __align__(16) float buffer[4][64 * 20];
    const int thread = threadIdx.x, tiles = K / 16;
    X += blockIdx.x * 64 * K;
    float sum = 0.0f;
    for (int tile = 0; tile < tiles; ++tile) {{
        {turn}
    }}
    y[blockIdx.x * 64 + thread] = sum;
}}
"""
# Right numbers without what the exercise is about.
OTHERWISE = {
    ("place_barriers", "no shared memory"): (
        NAIVE.format(name="place_barriers", body="int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x; " + ONE_OUTPUT),
        "0 bytes read from shared memory",
    ),
    ("coarsen", "the naive kernel, four times, with no wavefronts at all"): (
        NAIVE.format(name="coarsen", body="for (int i = 0; i < 4; ++i) { int row = blockIdx.y * 32 + threadIdx.y + 8 * i, col = blockIdx.x * 32 + threadIdx.x; " + ONE_OUTPUT + " }"),
        "bytes read from global memory",
    ),
    ("beat_the_clock", "the naive kernel, sixteen times"): (
        NAIVE.format(name="beat_the_clock", body="for (int i = threadIdx.x; i < 4096; i += 256) { int row = blockIdx.y * 64 + i / 64, col = blockIdx.x * 64 + i % 64; " + ONE_OUTPUT + " }"),
        "bytes read from global memory",
    ),
    ("mend_pipeline", "no copies"): (
        'extern "C" __global__ void mend_pipeline(const float* in, float* out) {\n'
        "    for (int i = threadIdx.x; i < 512; i += 128) out[blockIdx.x * 512 + 511 - i] = in[blockIdx.x * 512 + i];\n}\n",
        "0 bytes copied by cp.async",
    ),
    ("pipeline_stages", "empty commits around the naive sum"): (
        PIPELINE.format(turn="cp_async_commit(); cp_async_wait<2>(); for (int k = 0; k < 16; ++k) sum += X[thread * K + tile * 16 + k];"),
        "0 bytes copied by cp.async",
    ),
    ("pipeline_stages", "one stage, and empty groups for the others"): (
        PIPELINE.format(turn="for (int i = thread; i < 256; i += 64) cp_async<16>(shared_address(&buffer[tile % 4][i / 4 * 20 + i % 4 * 4]), X + i / 4 * K + tile * 16 + i % 4 * 4); "
                        "cp_async_commit(); cp_async_commit(); cp_async_commit(); cp_async_wait<2>(); __syncthreads(); for (int k = 0; k < 16; ++k) sum += buffer[tile % 4][thread * 20 + k];"),
        "A group without a copy in it does not count",
    ),
    ("wmma_tile", "no tensor cores"): (
        '#include <cuda_fp16.h>\nextern "C" __global__ void wmma_tile(const half* A, const half* B, float* C, int M, int N, int K) {\n'
        "    for (int i = threadIdx.x; i < 256; i += 32) { int row = blockIdx.y * 16 + i / 16, col = blockIdx.x * 16 + i % 16; float sum = 0;\n"
        "        for (int k = 0; k < K; ++k) sum += __half2float(A[row * K + k]) * __half2float(B[k * N + col]); C[row * N + col] = sum; }\n}\n",
        "0 matrix multiplications of a warp",
    ),
    ("transpose_tile", "columns written straight away"): (
        'extern "C" __global__ void transpose_tile(const float* X, float* Y, int M, int N) {\n'
        "    for (int r = threadIdx.y; r < 32; r += 8) { int row = blockIdx.y * 32 + r, col = blockIdx.x * 32 + threadIdx.x; if (row < M && col < N) Y[col * M + row] = X[row * N + col]; }\n}\n",
        "global sectors",
    ),
    ("choose_padding", "no shared memory"): (
        '#include <cuda_fp16.h>\nextern "C" __global__ void choose_padding(const half* in, half* out) {\n'
        "    for (int i = threadIdx.x; i < 256; i += 32) reinterpret_cast<uint4*>(out)[i % 8 * 32 + i / 8] = reinterpret_cast<const uint4*>(in)[i];\n}\n",
        "0 bytes read from shared memory",
    ),
    ("place_barriers", "the sizes of one launch"): (
        NAIVE.format(name="place_barriers", body="int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x; M = 16; N = 16; K = 32; " + ONE_OUTPUT),
        "32 stands in line 2: must that be K",
    ),
}  # fmt: skip


def edited(text, edits):
    for old, new in edits:
        assert old in text, f"the solution has no {old!r}"
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("which", EDITED, ids=": ".join)
def test_a_solution_with_one_thing_undone_fails_with_its_cause(which):
    edits, words = EDITED[which]
    exercise = find(which[0])
    verdict = judge(exercise, edited(exercise.solution, edits))
    assert not verdict
    assert words in " ".join(str(verdict).split()), str(verdict)
    assert explained(str(verdict).splitlines())


@pytest.mark.parametrize("which", OTHERWISE, ids=": ".join)
def test_the_right_numbers_by_another_way_fail_with_what_the_task_asks(which):
    source, words = OTHERWISE[which]
    verdict = judge(find(which[0]), source)
    assert not verdict
    assert words in " ".join(str(verdict).split()), str(verdict)


LAB = Exercise("lab3", "", "", 0, "", ("", ""), "", cases=tuple)
BY_TWO_BYTES = [
    ("const cuda::aligned_size_t<16> bytes(16);  // 8 halves: one cp.async", "const size_t bytes = sizeof(half);"),
    ("8 * threadIdx.x", "threadIdx.x"),
    ("8 * blockDim.x", "blockDim.x"),
]  # fmt: skip
WAIT = "        pipe.consumer_wait();\n"
IN_THE_LAB = {
    "A: the accumulator begins anywhere": (
        [("K, float> acc;\n    wmma::fill_fragment(acc, 0.0f);", "K, float> acc;")], "gemm_wmma_smem", NOTHING_SET,
    ),
    "B: the lower accumulator begins anywhere": (
        [("    wmma::fill_fragment(bottom, 0.0f);\n", "")], "gemm_wmma_async", NOTHING_SET,
    ),
    "B: copies of 2 bytes, and no wait": ([*BY_TWO_BYTES, (WAIT, "")], "gemm_wmma_async", "a race with a copy"),
    "B: copies of 2 bytes, and no commit": (
        [*BY_TWO_BYTES, ("        pipe.producer_commit();\n", "")], "gemm_wmma_async", "a race with a copy",
    ),
    "B: copies of 2 bytes, and the wait after the barrier": (
        [*BY_TWO_BYTES, (WAIT + "        __syncthreads();\n", "        __syncthreads();\n" + WAIT)], "gemm_wmma_async", "a race",
    ),
    "B: nothing is fetched ahead": (
        [("        if (tile + 1 < K / WMMA_K) fetch(tile + 1);\n", ""),
         ("release();", "release();\n        if (tile + 1 < K / WMMA_K) fetch(tile + 1);")],
        "gemm_wmma_async", "no copy is on its way",
    ),
    "A: right only where M, K and N are equal": (
        [("B[(k + i / BLOCK_N) * N + col", "B[(k + i / BLOCK_N) * K + col")], "gemm_wmma_smem", "they are 192 elements apart (N)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", IN_THE_LAB)
def test_in_the_lab_too(which):
    edits, kernel, words = IN_THE_LAB[which]
    report = lab.run(edited(LAB.solution, edits), size=64, machine="emulator")
    assert not report.passed
    said = [line for line in report.advice if line.startswith(kernel)]
    assert words in " ".join(said), str(report)
    assert all(run.passed for run in report.runs if run.kernel.name != kernel)


def test_the_lab_without_tensor_cores_or_shared_memory_fails():
    naive = "{{ for (int i = threadIdx.x; i < 64 * {rows}; i += 128) {{ int r = blockIdx.y * {rows} + i / 64, c = blockIdx.x * 64 + i % 64; float s = 0; for (int k = 0; k < K; ++k) s += __half2float(A[r * K + k]) * __half2float(B[k * N + c]); C[r * N + c] = s; }} }}\n"
    takes = "(const half* A, const half* B, float* C, int M, int K, int N)"
    text = "#include <cuda_fp16.h>\n" + "".join(
        f"__global__ void {name}{takes} {naive.format(rows=rows)}"
        for name, rows in (("gemm_wmma_smem", 16), ("gemm_wmma_async", 32))
    )
    report = lab.run(text, size=64, machine="emulator")
    for run in report.runs[1:]:
        assert not run.passed and not run.errors
        assert "tensor cores" in run.advice[0] and "shared memory" in run.advice[1]


def test_copies_of_two_bytes_pass_with_a_warning():
    report = lab.run(edited(LAB.solution, BY_TWO_BYTES), size=64, machine="emulator")
    assert report.passed
    assert "Warning: no asynchronous copy: 2 bytes each" in str(report)
    assert "Warning" not in str(lab.run(LAB.solution, size=64, machine="emulator"))


def test_a_count_has_a_name():
    with pytest.raises(ValueError, match="no count 'speed'; there are warps"):
        count(None, "speed")
    exercises = [e for e in map(find, ("place_barriers", "wmma_tile")) if e.needs]
    assert {need.metric for e in exercises for need in e.needs} <= set(NAMES)


def test_what_an_exercise_needs_its_task_says_and_its_solution_does():
    """Each requirement is one that the kernel without the technique misses, so 0 never satisfies it."""
    for name in (
        "place_barriers",
        "mend_pipeline",
        "pipeline_stages",
        "wmma_tile",
        "choose_padding",
    ):
        for need in find(name).needs:
            assert need.least > 0 and re.match(r"[a-z].*[^.]$", need.task)


def test_sizes_are_drawn_anew():
    """Besides the fixed sizes each check has one that no answer can know."""
    for name in (
        "coalesce",
        "place_barriers",
        "wmma_tile",
        "vectorize",
        "rasterise",
        "transpose_tile",
    ):
        labels = [
            {c.label for c in find(name).cases(np.random.default_rng(seed))} for seed in range(4)
        ]
        assert len(set.union(*labels)) > len(labels[0])
