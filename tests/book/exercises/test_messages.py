# ruff: noqa: E501 (a row of the table of mistakes may run on)
"""The cause is said, not a symptom of it; and nothing that a reader types ends in a traceback."""

import threading
import time

import numpy as np
import pytest

from book.exercises import attempt, cell, find, judge
from book.exercises.diagnose import explained, findings
from book.exercises.patience import DoesNotEnd, time_limit
from book.exercises.signature import differences

ROW, COL = "blockIdx.y * 32 + threadIdx.y", "blockIdx.x * 32 + threadIdx.x"
STORE = "C[row * N + col] = sum;"
CAUSES = {
    ("coalesce", "sizes in another order"): ([("int M, int N, int K", "int N, int M, int K")], "calls them (A, B, C, N, M, K)"),
    ("place_barriers", "sizes in another order"): ([("int M, int N, int K", "int M, int K, int N")], "calls them (A, B, C, M, K, N)"),
    ("coalesce", "a pointer of another type"): ([("const float* A", "const double* A")], "Parameter A is declared double*; it is given an array of float"),
    ("coalesce", "a size of another type"): ([("int M,", "float M,")], "Parameter M is declared float; it is given an int"),
    ("guard_epilogue", "a scalar of another type"): ([("float alpha,", "int alpha,")], "Parameter alpha is declared int; it is given a float"),
    ("coalesce", "a size too many"): ([("int K)", "int K, int L)")], "launched with 6 arguments"),
    ("coalesce", "A's rows in bytes"): ([("A[row * K + k]", "A[row * K * sizeof(float) + k]")], "a length in bytes, where C++ counts elements"),
    ("coalesce", "A's rows taken N apart"): ([("A[row * K + k]", "A[row * N + k]")], "rows of A are taken to begin 96 elements (N) apart; they are 32 elements apart (K)"),
    ("coalesce", "B's rows taken K apart"): ([("B[k * N + col]", "B[k * K + col]")], "rows of B are taken to begin 32 elements (K) apart"),
    ("coalesce", "C's rows taken M apart"): ([(STORE, "C[row * M + col] = sum;")], "rows of C are taken to begin 64 elements (M) apart"),
    ("wmma_tile", "both strides those of a tile"): ([("A + row * K + k, K)", "A + row * K + k, 16)"), ("B + k * N + col, N)", "B + k * N + col, 16)")], "rows of B are taken to begin 16 elements (a tile's width) apart"),
    ("coalesce", "the grid's axes swapped"): ([(ROW, "blockIdx.x * 32 + threadIdx.y"), (COL, "blockIdx.y * 32 + threadIdx.x")], "blockIdx.x and blockIdx.y are the wrong way round"),
    ("coalesce", "C added to"): ([(STORE, "C[row * N + col] += sum;")], "What C held before gets into the result"),
    ("coalesce", "C added to, atomically"): ([(STORE, "atomicAdd(&C[row * N + col], sum);")], "What C held before gets into the result"),
    ("coalesce", "C not touched"): ([(STORE, "")], "Nothing is ever stored to C"),
    ("coalesce", "a block that is too large"): ([("__global__ void", "__global__ void __launch_bounds__(256)")], "fewer threads per block than the 1024"),
    ("coalesce", "no guard"): ([("if (row < M && col < N)", "")], "new at M=33, N=65, K=17 is that M=33 is no multiple of 32"),
    ("swizzle_rows", "out of the row"): ([("chunk ^ row / 2 % 4", "chunk ^ row")], "only two bits of the row may be mixed in"),
    ("rasterise", "no short band"): ([("min(GROUP, tiles_m - first_row)", "GROUP")], "the last band has 2 rows of tiles, not 4"),
    ("place_barriers", "threads beyond the edge return"): ([("    for (int tile", "    if (row >= M || col >= N) return;\n    for (int tile")], "no return and no `if`"),
    ("place_barriers", "nothing stored for what is beyond K"): (
        [("Bs[ty][tx] = tile + ty < K && col < N ? B[(tile + ty) * N + col] : 0.0f;", "if (tile + ty < K && col < N) Bs[ty][tx] = B[(tile + ty) * N + col];")],
        "a thread with nothing to load must store a 0 there",
    ),
    ("guard_epilogue", "beta forgotten"): ([("beta * old.", "old."), ("beta * c[j]", "c[j]")], "The old C is added without beta"),
}  # fmt: skip


def said_of(name, edits):
    source = find(name).solution
    for old, new in edits:
        assert old in source, f"the solution has no {old!r}"
        source = source.replace(old, new)
    return judge(find(name), source)


@pytest.mark.parametrize("which", CAUSES, ids=": ".join)
def test_the_cause_is_said(which):
    edits, words = CAUSES[which]
    verdict = said_of(which[0], edits)
    told = " ".join(str(verdict).split())
    assert not verdict
    assert words in told, str(verdict)
    assert explained(str(verdict).splitlines())
    for symptom in ("PTX line", "%r", "reads it", "Which guard", "0x"):
        assert symptom not in told


def test_other_names_and_equal_types_are_the_reader_s_own():
    verdict = said_of(
        "rasterise", [("int* order, int tiles_m, int tiles_n", "int order[], const unsigned tiles_m, int32_t tiles_n")]
    )  # fmt: skip
    assert "does not compile" in str(
        verdict
    )  # int32_t needs a header: the rest of the line is fine
    source = find("coalesce").solution.replace("const float* A", "float const *__restrict__ A")
    assert differences(source, find("coalesce").skeleton, "coalesce") == []
    renamed = source.replace("int M, int N, int K", "int rows, int columns, int inner")
    assert differences(renamed, find("coalesce").skeleton, "coalesce") == []


def test_a_mistake_without_a_name_has_a_place_and_two_values():
    case = find("coalesce").cases(np.random.default_rng())[0]
    said = findings(case, np.cos(case.expected).astype(np.float32))
    assert "[0, 0] holds " in said[-1] and " and must hold " in said[-1]
    assert not explained(said)


def test_suspects_that_look_alike_here_are_told_apart_by_another_case():
    """0.5 times 2 is 1: with these scalars nothing tells `beta * old` from `old` under alpha."""
    from book.exercises.cases import product

    rng = np.random.default_rng()
    one, two = (
        product(rng, (32, 36, 5), (32, 32), (256,), scalars=scalars)
        for scalars in ((0.5, 2.0), (0.75, 1.5))
    )

    def wrong(case):
        p = case.product
        return (p.alpha * (p.A @ p.B + p.beta * p.old)).astype(np.float32)

    assert findings(one, wrong(one), (), [(two, wrong(two))]) == ["Alpha scales the old C too."]


@pytest.mark.parametrize(
    ("name", "edits", "words"),
    [
        ("coalesce", [("k < K; ++k", "k < K;")], "line 9"),
        ("place_barriers", [("tile < K; tile += 16", "tile < K;")], "line "),
    ],
)
def test_an_endless_loop_ends_and_has_its_line(name, edits, words, monkeypatch):
    assert attempt.EMULATOR_SECONDS <= 5
    monkeypatch.setattr(attempt, "EMULATOR_SECONDS", 0.5)
    verdict = said_of(name, edits)
    assert "does not end" in str(verdict) and words in str(verdict), str(verdict)


def test_another_thread_s_patience_ends_too():
    """Where there is no timer, as on Windows, and where the notebook runs in a thread."""
    found = []

    def spin():
        try:
            with time_limit(0.3):
                while True:
                    pass
        except DoesNotEnd as error:
            found.append(error.seconds)

    runner = threading.Thread(target=spin)
    runner.start()
    runner.join(30)
    assert found == [0.3]


def test_patience_is_of_the_processor_not_of_the_clock():
    with time_limit(0.2):
        time.sleep(0.6)


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
