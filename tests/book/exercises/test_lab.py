# ruff: noqa: E501 (a row of the table of mistakes may run on)
"""The ECE 60827 lab: a student's file runs as it is, is verified as the lab does, and is explained."""

import re

import numpy as np
import pytest

import kernels
from book.exercises import lab, lab_evidence
from book.exercises.includes import device_code
from kernels.launch import launch
from tests.book.exercises.test_exercises import edited

GIVEN_OUTPUT = """\
Shared-mem GEMM (128x128)*(128x128):  not timed: on the emulator
WMMA+smem GEMM (128x128)*(128x128):    not timed: on the emulator
WMMA+async GEMM (128x128)*(128x128):   not timed: on the emulator

Verification (WMMA+smem vs shared-mem golden):
  Errors   : 16384 / 16384
  Max rel err: 1.000000
  ✗ gemm_wmma_smem: Every element is 0: nothing was added up there.
  The lab asks for tensor cores: 0 matrix multiplications of a warp
    (wmma::mma_sync), where 512 are needed.
  The lab asks for tiles in shared memory: the fragments are not loaded from
    there.

Verification (WMMA+async vs shared-mem golden):
  Errors   : 16384 / 16384
  Max rel err: 1.000000
  ✗ gemm_wmma_async: Every element is 0: nothing was added up there.
"""


def run(*edits, size=64):
    text = lab.SOLUTION
    for old, new in edits:
        pattern = r"\s+".join(re.escape(word) for word in old.split())
        text, times = re.subn(pattern, lambda _, new=new: new, text)
        assert times, f"the solution has no {old!r}"
    return lab.run(text, size=size, machine="emulator")


def test_the_launch_is_the_lab_s():
    a, b = lab.KERNELS[1:]
    assert (a.threads, a.grid(1024, 1024), a.shared_bytes) == ((128,), (16, 64), 2560)
    assert (b.threads, b.grid(1024, 1024), b.shared_bytes) == ((128,), (16, 32), 6144)


def test_inputs_are_hundredths_and_differ():
    A, B = lab.lab_inputs(128)
    assert A.dtype == B.dtype == np.float16 and (A != B).any()
    assert np.isin(A, (np.arange(100) / 100).astype(np.float16)).all()


def test_what_is_given_fails_with_the_lab_s_output():
    report = lab.run(lab.SKELETON, machine="emulator")
    assert not report.passed
    assert str(report).startswith(GIVEN_OUTPUT)


def test_the_solution_passes():
    report = run(size=128)
    assert report.passed, str(report)
    assert "Errors   : 0 / 16384" in str(report)


def test_the_ladder_s_kernels_pass():
    assert lab.run(*lab_evidence.LADDER, machine="emulator").passed


def test_a_file_with_host_code_runs_unchanged():
    host = """
#include <cstdio>
#include "helpers.h"
#define CHECK(call) do { if ((call) != cudaSuccess) { printf("} failed\\n"); } } while (0)
static void banner(const char* name) { printf("{ %s\\n", name); }  // }
"""
    main = """
int main(int argc, char** argv) {
#ifdef VERBOSE
    banner("lab 3");
#endif
    gemm_wmma_smem<<<1, 128, 2560>>>(nullptr, nullptr, nullptr, 16, 16, 64);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
"""
    text = host + lab.SOLUTION + main
    assert device_code(text).count("\n") == text.count("\n")
    assert lab.run(text, size=64, machine="emulator").passed


@pytest.mark.parametrize(
    "edits,kernel,words",
    [
        ([("        __syncthreads();\n        wmma::load_matrix_sync(a, As, W", "        wmma::load_matrix_sync(a, As, W")], "gemm_wmma_smem", "a race"),
        ([("Bs + warp * WMMA_N, BLOCK_N", "Bs + warp * WMMA_N, WMMA_N")], "gemm_wmma_smem", "leading dimension of 16"),
        ([("matrix_b, WMMA_M, WMMA_N, WMMA_K, half, wmma::row_major", "matrix_b, WMMA_M, WMMA_N, WMMA_K, half, wmma::col_major")], "gemm_wmma_smem", "tile of B is transposed"),
        ([("        pipe.consumer_wait();\n", "")], "gemm_wmma_async", "a race with a copy"),
        ([("        pipe.consumer_wait();\n        __syncthreads();", "        pipe.consumer_wait();")], "gemm_wmma_async", "a race"),
        ([("As[tile % 2] + WMMA_M * WMMA_K, WMMA_K", "As[tile % 2], WMMA_K")], "gemm_wmma_async", "Row 16 of the output holds what belongs in row 0"),
        ([("if (tile + 1 < K / WMMA_K) fetch", "if (tile + 2 < K / WMMA_K) fetch")], "gemm_wmma_async", "two before it"),
    ],
)  # fmt: skip
def test_the_usual_mistakes_are_explained(edits, kernel, words):
    report = run(*edits)
    assert not report.passed
    said = [line for line in report.advice if line.startswith(kernel)]
    assert said, str(report)
    assert any(word in " ".join(said) for word in words.split("|")), said


def test_an_access_outside_stops_with_its_line():
    report = run(("blockIdx.y * WMMA_M, col", "(blockIdx.y + 1) * WMMA_M, col"))
    assert "out of bounds" in report.run("gemm_wmma_smem").stopped[0]
    assert "line 3" in " ".join(report.run("gemm_wmma_smem").stopped)
    assert not report.run("gemm_wmma_async").stopped


def test_a_missing_kernel_is_named():
    report = lab.run("lab_part_a.cu", size=64, machine="emulator")
    assert "there is no kernel gemm_wmma_async" in str(report)


def test_what_does_not_compile_names_its_line():
    with pytest.raises(kernels.BuildError, match=r"lab3.cu:\d+"):
        run(("wmma::fill_fragment(acc, 0.0f);", "wmma::fill_fragment(ac, 0.0f);"))


def test_sizes_that_the_tiles_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="multiple of 64"):
        lab.run(lab.SOLUTION, size=100, machine="emulator")


def test_every_element_of_a_fragment_is_held():
    held = lab_evidence.fragments()
    for name, places in held.items():
        elements, times = np.unique(places.reshape(-1, 2), axis=0, return_counts=True)
        assert len(elements) == 256
        assert set(times) == ({1} if name == "accumulator" else {2})


def test_evidence_for_the_report(capsys):
    half = lab.run(lab_evidence.half_a_warp(), size=64, machine="emulator")
    assert "all 32 lanes" in " ".join(half.run("gemm_wmma_smem").stopped)
    wide = run()
    narrow = lab.run(lab_evidence.two_byte_copies(), size=64, machine="emulator")
    assert (
        lab_evidence.executed(wide.run("gemm_wmma_async"), "ld.global", "cp.async.cg")["ld.global"]
        == 0
    )
    assert lab_evidence.executed(narrow.run("gemm_wmma_async"), "cp.async.cg") == {"cp.async.cg": 0}
    lab_evidence.show_turns(lab.SOLUTION)
    before, *tiles = capsys.readouterr().out.splitlines()
    assert before == "before the loop: copy into buffer 0, commit"
    for number, told in enumerate(tiles):
        assert told.startswith(
            f"tile {number}: wait for the copies, barrier, copy into buffer {1 - number % 2}"
        )
        assert f"load from buffer {number % 2}, multiply" in told
    assert "race" in " ".join(
        lab.run(lab_evidence.without_the_wait(), size=64, machine="emulator").advice
    )


@pytest.mark.parametrize(
    "file,entry,rows,shared_bytes",
    [
        ("lab_part_a.cu", "_Z14gemm_wmma_smemPK6__halfS1_Pfiii", 16, (16 * 16 + 16 * 64) * 2),
        (
            "lab_part_b.cu",
            "_Z15gemm_wmma_asyncPK6__halfS1_Pfiii",
            32,
            2 * (32 * 16 + 16 * 64) * 2,
        ),
    ],
)
@pytest.mark.parametrize("arch", [75, 80])
def test_the_lab_kernels_take_the_lab_launch(file, entry, rows, shared_bytes, arch):
    rng = np.random.default_rng()
    M, K, N = 96, 80, 192
    A, B = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    C = np.full((M, N), np.nan, np.float32)
    sizes = [np.int32(M), np.int32(K), np.int32(N)]
    grid = ((N + 63) // 64, (M + rows - 1) // rows)
    built = kernels.build(lab.FILES / file, arch=arch)
    launch(built, entry, grid, (128,), [A, B, C, *sizes], shared_bytes, machine="emulator")
    np.testing.assert_allclose(C, A.astype(float) @ B.astype(float), atol=1e-2)


def test_evidence_is_of_the_student_s_own_kernels(capsys):
    lab_evidence.show_turns(lab.SKELETON)
    assert capsys.readouterr().out == "gemm_wmma_async multiplies nothing yet.\n"
    serial = lab.SOLUTION.replace(
        "        if (tile + 1 < K / WMMA_K) fetch(tile + 1);\n", ""
    ).replace(
        "release();",
        "release();\n        if (tile + 1 < K / WMMA_K) fetch(tile + 1);",
    )
    lab_evidence.show_turns(serial)
    tile = capsys.readouterr().out.splitlines()[1]
    assert tile.index("multiply") < tile.index("copy into")
    lab_evidence.show_occupancy(lab.SOLUTION)
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 2 and all("limited by" in line for line in told)
    lab_evidence.show_why(lab.run(lab.SOLUTION, size=64, machine="emulator"))
    told = capsys.readouterr().out
    copied = next(line for line in told.splitlines() if line.startswith("bytes copied"))
    assert copied.split()[-3:-1] == ["0", "0"] and copied.split()[-1] != "0"
    lab_evidence.at_full_size(lab.SKELETON)
    assert "No GPU here: run this cell on one" in capsys.readouterr().out


BY_TWO_BYTES = [
    ("const cuda::aligned_size_t<16> bytes(16);  // 8 halves: one cp.async", "const size_t bytes = sizeof(half);"),
    ("8 * threadIdx.x", "threadIdx.x"),
    ("8 * blockDim.x", "blockDim.x"),
]  # fmt: skip


WAIT = "        pipe.consumer_wait();\n"


IN_THE_LAB = {
    "A: the accumulator begins anywhere": (
        [("K, float> acc;\n    wmma::fill_fragment(acc, 0.0f);", "K, float> acc;")], "gemm_wmma_smem", "never given a value",
    ),
    "B: the lower accumulator begins anywhere": (
        [("    wmma::fill_fragment(bottom, 0.0f);\n", "")], "gemm_wmma_async", "never given a value",
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
        [("B[(k + i / BLOCK_N) * N + col", "B[(k + i / BLOCK_N) * K + col")], "gemm_wmma_smem", "columns 0 to 63 of B",
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", IN_THE_LAB)
def test_in_the_lab_too(which):
    edits, kernel, words = IN_THE_LAB[which]
    report = lab.run(edited(lab.SOLUTION, edits), size=64, machine="emulator")
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
    report = lab.run(edited(lab.SOLUTION, BY_TWO_BYTES), size=64, machine="emulator")
    assert report.passed
    assert "Warning: no asynchronous copy: 2 bytes each" in str(report)
    assert "Warning" not in str(lab.run(lab.SOLUTION, size=64, machine="emulator"))


@pytest.mark.parametrize(
    "kernel, right, wrong, said",
    [
        (
            "gemm_wmma_smem",
            "wmma::store_matrix_sync(C + row * N + col + warp * WMMA_N, acc",
            "wmma::store_matrix_sync(C + row * N + col, acc",
            ("Columns 16 and up are never written",),
        ),
        (
            "gemm_wmma_async",
            "float* c = C + row * N + col + warp * WMMA_N;",
            "float* c = C + row * N + col + warp * 8;",
            ("element [0, 8] of C",),
        ),
    ],
)
def test_the_labs_stores_that_meet_are_located(kernel, right, wrong, said):
    source = edited(lab.SOLUTION, [(right, wrong)])
    run = lab.run(source, size=64, machine="emulator").run(kernel)
    advice = " ".join(run.advice)
    for words in said:
        assert words in advice
