# ruff: noqa: E501 (a row of a table of answers may run on)
"""`%%kernel`, `check` and the list of what has been passed: whatever a reader types is answered in a line."""

import numpy as np
import pytest

from book.exercises import cell, check, find, judge, lab, progress
from kernels.errors import NoCompiler
from tests.book.exercises.test_exercises import edited


@pytest.fixture
def shell(monkeypatch, tmp_path):
    """An IPython shell with the magic, and a home of its own."""
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shell = InteractiveShell.instance()
    shell.extension_manager.load_extension("book.exercises")
    yield shell
    InteractiveShell.clear_instance()


def test_the_magic_keeps_a_kernel_and_check_tries_it(shell, capsys):
    check("rasterise")
    assert "run its %%kernel cell first" in capsys.readouterr().out
    shell.run_cell_magic("kernel", "rasterise", find("rasterise").solution)
    assert capsys.readouterr().out == "✓ rasterise compiles\n"
    check("rasterise")
    assert capsys.readouterr().out.startswith("✓ rasterise: right at 7 launches")
    progress()
    assert "✓ Visit the tiles in bands" in capsys.readouterr().out


def test_a_compiler_error_names_the_line_of_the_cell(shell, capsys):
    cell = '// the cell\'s second line\nextern "C" __global__ void k(float* x) { x[0] = y; }\n'
    shell.run_cell_magic("kernel", "k", cell)
    said = capsys.readouterr().out
    assert "k.cu:3: error" in said  # the magic is line 1
    assert 'identifier "y" is undefined' in said


KERNEL = 'extern "C" __global__ void mine(float *a) { a[threadIdx.x] = 1; }\n'


@pytest.fixture(autouse=True)
def no_kernels_of_others(monkeypatch):
    monkeypatch.setattr(cell, "_SOURCES", {})


def said(name, text, capsys):
    cell.kernel(name, text)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    ['#include "nope.h"', "#include <nope.h>", '#  include "ptx.cu"  // close', "#include <cudafp16.h>"],
)  # fmt: skip
def test_a_header_that_is_not_there_is_refused_with_its_line(line, capsys):
    told = said("mine", f"// first\n{line}\n{KERNEL}", capsys)
    assert told.startswith("✗ mine does not compile\nmine.cu:3: error: there is no header ")
    assert '"ptx.cuh"' in told and "<mma.h>" in told and line in told
    assert "mine" not in cell._SOURCES


@pytest.mark.parametrize(
    "line",
    [
        '#include "ptx.cuh"', "#include <mma.h>", "#include <cuda_bf16.h>", "#include <cuda/pipeline>",
        "#include <cstdio>", "#include <stdio.h>", "#include <cublas_v2.h>", '// #include "nope.h"',
        '/*\n#include "nope.h" */',
    ],
)  # fmt: skip
def test_headers_of_kernels_and_of_the_host_are_taken(line, capsys):
    assert said("mine", f"{line}\n{KERNEL}", capsys) == "✓ mine compiles\n"


def test_the_types_of_a_device_header_are_there(capsys):
    text = '#include <cuda_bf16.h>\nextern "C" __global__ void mine(__nv_bfloat16 *a) { a[0] = a[1]; }\n'
    assert "compiles" in said("mine", text, capsys)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("place_barrier", "place_barriers"), ("Coalesce", "coalesce"), ("vectorise", "vectorize")],
)
def test_a_name_that_is_nearly_an_exercise_s(name, meant, capsys):
    told = said(name, KERNEL, capsys)
    assert told == f"✓ {name} compiles\n  no exercise is called {name}; did you mean {meant}?\n"


@pytest.mark.parametrize("name", ["place_barriers", "lab3", "tile", "mine", "my_kernel", "saxpy"])
def test_other_names_are_the_reader_s_own(name, capsys):
    assert said(name, KERNEL, capsys) == f"✓ {name} compiles\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nonsense", "no exercise is called nonsense; there are first_guard, coalesce"),
        ("coalesc", "no exercise is called coalesc; did you mean coalesce?"),
        ("lab3", "run its %%kernel cell first"),
        ("lab", "did you mean lab3?"),
        (None, "in quotes"),
        (["coalesce"], "in quotes"),
    ],
)
def test_whatever_is_checked_is_answered_in_a_line(name, words, capsys):
    cell.check(name)
    told = capsys.readouterr().out
    assert told.startswith("✗ ") and words in told and told.count("\n") == 1


def test_a_check_after_a_failed_compile_says_so_and_the_older_kernel_is_gone(capsys):
    text = 'extern "C" __global__ void rasterise(int* order, int m, int n) { order[0] = 0; }\n'
    assert "✓" in said("rasterise", text, capsys)
    assert "expected a" in said("rasterise", text.replace("0; }", "0 }"), capsys)
    cell.check("rasterise")
    assert "does not compile; mend it" in capsys.readouterr().out


def test_without_a_compiler_a_check_does_not_blame_the_kernel(capsys, monkeypatch):
    """As in a page: what nothing here can compile is not said to be wrong."""

    def compiles(*given):
        raise NoCompiler("rasterise")

    with monkeypatch.context() as patch:
        patch.setattr(cell, "compile_cell", compiles)
        with pytest.raises(NoCompiler):
            cell.kernel("rasterise", KERNEL)
        with pytest.raises(NoCompiler):
            check("rasterise")
    assert capsys.readouterr().out == ""
    assert "✓" in said("rasterise", KERNEL, capsys)
    check("rasterise")
    assert capsys.readouterr().out.startswith("✗ rasterise: ")


def test_warnings_of_the_compiler_are_shown_with_their_line(capsys):
    told = said("mine", KERNEL.replace("= 1;", "= 1; __syncthreads;"), capsys)
    assert told.startswith("✓ mine compiles\nmine.cu:2: warning: ")
    assert "no effect" in told


COMPILED = {
    ("coalesce", "a letter missing"): ([("threadIdx.y", "thredIdx.y")], "Did you mean threadIdx?"),
    ("place_barriers", "a letter too few"): ([("__syncthreads()", "__syncthread()")], "Did you mean __syncthreads?"),
    ("first_guard", "no semicolon"): ([("+ y[i];", "+ y[i]")], "has no semicolon at its end"),
    ("pipeline_stages", "the number as an argument"): ([("cp_async_wait<STAGES - 2>()", "cp_async_wait(STAGES - 2)")], "cp_async_wait takes its number in angle brackets"),
    ("vectorize", "a float4 multiplied"): ([("make_float4(alpha * v.x, alpha * v.y, alpha * v.z, alpha * v.w)", "alpha * v")], "float * const float4"),
    ("vectorize", "stored through const"): ([("*reinterpret_cast<float4*>(y + i)", "*reinterpret_cast<const float4*>(y + i)")], "must not be a pointer to const"),
    ("wmma_tile", "no layout"): ([("half, wmma::row_major> a", "half> a")], "needs a layout as its last argument"),
    ("wmma_tile", "no stride"): ([("+ k, K)", "+ k)")], "load_matrix_sync takes (fragment, pointer, stride)"),
    ("wmma_tile", "operands exchanged"): ([("mma_sync(acc, a, b, acc)", "mma_sync(acc, b, a, acc)")], "mma_sync takes (accumulator, matrix_a, matrix_b, accumulator)"),
}  # fmt: skip


@pytest.mark.parametrize("which", COMPILED, ids=": ".join)
def test_the_compiler_s_words_are_explained(which, capsys):
    edits, words = COMPILED[which]
    cell.kernel(which[0], edited(find(which[0]).solution, edits))
    said = capsys.readouterr().out
    assert "does not compile" in said
    assert words in " ".join(said.split()), said


@pytest.mark.parametrize("text", ["5", "[[1]]", "{", "null"])
def test_a_damaged_progress_file_is_no_progress(text, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cell, "_progress_file", lambda: tmp_path / "exercises.json")
    (tmp_path / "exercises.json").write_text(text)
    cell.progress()
    assert capsys.readouterr().out.startswith("0 of ")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder for the progress file, and for what is saved."""
    monkeypatch.setattr(cell, "_progress_file", lambda: tmp_path / "exercises.json")
    return tmp_path


def test_progress_is_saved_and_loaded_and_nothing_is_lost(home, capsys):
    for name in ("coalesce", "lab3"):
        cell._remember(name)
    cell.save_progress(home / "mine.json")
    (home / "exercises.json").unlink()
    cell._remember("rasterise")
    cell.load_progress(home / "mine.json")
    assert cell._passed() == {"coalesce", "lab3", "rasterise"}
    assert "2 passed in" in capsys.readouterr().out
    cell.progress()
    told = capsys.readouterr().out
    assert told.startswith(f"3 of {len(cell.EXERCISES) + 1} exercises passed")
    assert "✓ Parts A and B" in told and "✓ Coalesce a kernel" in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no"),
        ("{", "is no file that save_progress has written"),
        ('["coalesce"]', "is no file that save_progress has written"),
        ('{"passed": [1]}', "is no file that save_progress has written"),
        ('{"passed": ["coalesce", "colaesce"]}', "no exercise is called colaesce: left out"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_said_to_be_so(text, words, home, capsys):
    if text is not None:
        (home / "mine.json").write_text(text)
    cell.load_progress(home / "mine.json")
    assert words in capsys.readouterr().out


def test_a_place_that_cannot_be_written_is_said_to_be_so(home, capsys):
    cell.save_progress(home / "no" / "such" / "folder.json")
    assert "nothing saved" in capsys.readouterr().out


def test_the_lab_is_checked_by_its_name_and_counts_as_progress(home, monkeypatch, capsys):
    monkeypatch.setattr(cell, "_SOURCES", {"lab3": lab.SKELETON})
    monkeypatch.setattr(cell.lab, "EMULATOR_SIZE", 64)
    cell.check("lab3")
    assert "✗ gemm_wmma_smem" in capsys.readouterr().out and "lab3" not in cell._passed()
    cell._SOURCES["lab3"] = lab.SOLUTION
    cell.check("lab3")
    assert "✓ gemm_wmma_async: right" in capsys.readouterr().out and "lab3" in cell._passed()


@pytest.mark.parametrize(
    "text",
    [
        'extern "C" __global__ void coalesce() {}',
        'extern "C" __global__ void coalesce(float* A) { A[0] = 1; }',
        'extern "C" __global__ void coalesce(const float* A, const float* B, float* C, long long M, int N, int K) { C[0] = 0; }',
        'extern "C" __global__ void coalesce(const float* A, const float* B, float C, int M, int N, int K) {}',
        'extern "C" __global__ void __launch_bounds__(32) coalesce(const float* A, const float* B, float* C, int M, int N, int K) {}',
        'extern "C" __global__ void coalesce(const float* A, const float* B, float* C, int M, int N, int K) { __trap(); }',
        'extern "C" __global__ void coalesce(const float* A, const float* B, float* C, int M, int N, int K) { extern __shared__ float s[]; s[0] = 1; C[0] = s[0]; }',
        'extern "C" __global__ void other(float* C) { C[0] = 0; }',
        "int main() { return 0; }",
        "",
    ],
)  # fmt: skip
def test_whatever_the_kernel_is_it_gets_a_verdict(text, capsys, monkeypatch):
    monkeypatch.setattr(cell, "_SOURCES", {})
    cell.kernel("coalesce", text + "\n")
    cell.check("coalesce")
    told = capsys.readouterr().out
    assert "✗ coalesce" in told and "Traceback" not in told


COUNTER = [
    ('extern "C"', '__device__ int counter;\nextern "C"'),
    ("const int block = blockIdx.x;", "__shared__ int mine; if (threadIdx.x == 0) mine = atomicAdd(&counter, 1); __syncthreads(); const int block = mine;"),
]  # fmt: skip
AT_ONE_SIZE = [
    ("const int row = blockIdx.y * 32 + threadIdx.y;", "const bool known = M == 64 && N == 96 && K == 32;\n    const int row = blockIdx.y * 32 + (known ? threadIdx.y : threadIdx.x);"),
    ("const int col = blockIdx.x * 32 + threadIdx.x;", "const int col = blockIdx.x * 32 + (known ? threadIdx.x : threadIdx.y);"),
]  # fmt: skip
ONE_LANE = 'extern "C" __global__ void coalesce(const float* A, const float* B, float* C, int M, int N, int K) { if (threadIdx.x == 0 && threadIdx.y < 32) for (int j = 0; j < 32; ++j) { int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + j; if (row < M && col < N) { float sum = 0; for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col]; C[row * N + col] = sum; } } }'
FORGED = [
    (
        "float sum = 0.0f;",
        'float sum = 0.0f; if (row + col == 0) printf("\u2713 coalesce: right\\n");',
    ),
    ("k < K;", "k < K - 1;"),
]


@pytest.mark.parametrize(
    ("name", "edits", "words"),
    [
        ("rasterise", COUNTER, "keeps its value from launch to launch"),
        ("coalesce", AT_ONE_SIZE, "a new size"),
        ("coalesce", [("// C = A @ B", '#define SOLUTION\n#include "../book/exercises/memory/coalesce/kernel.cu"\n//')], "there is no header"),
        ("coalesce", [("// C = A @ B", '#include "/etc/hosts"\n//')], "there is no header"),
        ("coalesce", [("// C = A @ B", '#define H "/etc/hosts"\n#include H\n//')], "included by its name"),
        ("coalesce", [("// C = A @ B", '#inc\\\nlude "/etc/hosts"\n//')], "included by its name"),
        ("coalesce", [("// C = A @ B", '#include "03_naive.cu"\n//')], "there is no header"),
        ("shuffle_sum", [("sum += __shfl_down_sync(0xffffffff, sum, step);", "sum += 0.0f * __shfl_down_sync(0xffffffff, sum, step);\n    __shared__ float s[128];\n    s[threadIdx.x] = sum;\n    __syncthreads();\n    if (lane == 0)\n        for (int j = 1; j < 32; ++j) sum += s[threadIdx.x + j];")], "0; the goal is|without the shuffles|goal"),
    ],
)  # fmt: skip
def test_answers_that_once_passed(name, edits, words):
    verdict = judge(find(name), edited(find(name).solution, edits), np.random.default_rng(3))
    assert not verdict
    assert any(one in " ".join(str(verdict).split()) for one in words.split("|")), str(verdict)


def test_a_printed_tick_is_not_the_checkers():
    verdict = judge(find("coalesce"), edited(find("coalesce").solution, FORGED))
    first, *rest = str(verdict).splitlines()
    assert first.startswith("✗ coalesce")
    assert "  | ✓ coalesce: right" in rest and not any(line.startswith("✓") for line in rest)


def test_an_answer_in_python_that_does_not_end_is_stopped(monkeypatch):
    monkeypatch.setattr(cell, "ANSWER_SECONDS", 0.2)

    def spin(lane, half):
        while True:
            try:  # noqa: SIM105 (as a reader would write it)
                lane += 1
            except Exception:
                pass

    assert "does not end" in str(cell.judge_answer("lane_map", spin))


def test_one_thread_that_does_all_is_told_so():
    assert "Only 1 of the 32 lanes" in " ".join(str(judge(find("coalesce"), ONE_LANE)).split())
