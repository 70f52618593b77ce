# ruff: noqa: E501 (a row of the table of mistakes may run on)
"""The one small change that makes a wrong kernel right: what is said has been tried, and names a line."""

import numpy as np
import pytest

from book.exercises import find, judge, lab
from book.exercises.diagnose import findings
from book.exercises.exercise import ANSWER, FOLDER, Case, version
from book.exercises.one_change import smallest_change
from book.exercises.variants import own_lines, tokens_of
from emulator import ExecutionError, Module
from tests.book.exercises.test_no_wrong_answer_passes import edited

# (exercise, what is wrong): edits of the solution, what the verdict must say. None named a line, or the right one, before.
EDITED = {
    ("wmma_tile", "rows of tiles, not of 16"): ([("blockIdx.y * 16, col", "blockIdx.y, col")], "with `* 16` after `blockIdx.y`"),
    ("wmma_tile", "a lane's own row of A"): ([("A + row * K + k, K", "A + (row + threadIdx.x / 4) * K + k, K")], "the same pointer"),
    ("wmma_tile", "a lane's own row of C"): ([("C + row * N + col, acc", "C + (row + threadIdx.x / 16) * N + col, acc")], "the same pointer"),
    ("wmma_tile", "a lane's own stride"): ([("k * N + col, N", "k * N + col, N + threadIdx.x / 4 * 8")], "and the same stride"),
    ("fuse_gelu", "another bias for each block"): ([("bias + col", "bias + threadIdx.x % 8 * 4")], "with `col` in place of `threadIdx.x % 8 * 4`"),
    ("fuse_gelu", "two numbers exchanged"): ([("sum[1] + b.y", "sum[1] + b.z"), ("sum[2] + b.z", "sum[2] + b.y")], "would be right"),
    ("guard_epilogue", "the first old element for all"): ([("beta * c[j]", "beta * c[0]")], "would be right"),
    ("rasterise", "max for min"): ([("min(GROUP", "max(GROUP")], "with `min` in place of `max`"),
    ("rasterise", "the band not times GROUP"): ([("first_row = band * GROUP", "first_row = band")], "would be right"),
    ("beat_the_clock", "B one term ahead"): ([("&Bs[k][4 * tx]", "&Bs[(k + 1) % STEP][4 * tx]")], "would be right"),
    ("beat_the_clock", "a sum set to 0 on the way"): ([("            const float4 va", "            sum[0][0] = 0;\n            const float4 va")], "only the last term along K is there"),
    ("keep_precision", "a row's length forgotten"): ([("__half2float(B[row * K + k])", "__half2float(B[k])")], "with `row * K +` after `[`"),
    ("split_tf32", "low scaled"): ([("to_tf32(x - __uint_as_float(high))", "to_tf32((x - __uint_as_float(high)) * 2048.0f)")], "`low` is wrong"),
    ("tile_pipeline", "A's next tile is this one"): ([("A + 32 * tile, K", "A + 16 * tile, K")], "in place of `16`"),
    ("tile_copy", "lanes from 1"): ([("int i = lane; i < 16 * 4; i += 32) {\n        const int row", "int i = lane + 1; i < 16 * 4; i += 32) {\n        const int row")], "without `+ 1`"),
    ("tile_pipeline", "fetched before the wait, and never awaited"): ([("        cp_async_wait<0>();\n        __syncwarp();  // all lanes' copies have landed, the other pair is read\n        if (tile + 1 < tiles) start(tile + 1);\n", "        if (tile + 1 < tiles) start(tile + 1);\n        cp_async_wait<0>();\n        __syncwarp();\n")], "race"),
    ("choose_padding", "an array without its padding"): ([("half tile[32 * PITCH]", "half tile[32 * 64]")], "Line 12"),
    ("rasterise", "no more than four bands"): ([("block / (GROUP * tiles_n)", "block / (GROUP * tiles_n) % GROUP")], "would be right"),
    ("keep_precision", "blocks that overlap"): ([("blockIdx.x * 64", "blockIdx.x * 32")], "with `64` in place of `32`"),
    ("guard_epilogue", "alpha twice"): ([("alpha * sum[0]", "alpha * alpha * sum[0]"), ("alpha * sum[1]", "alpha * alpha * sum[1]"), ("alpha * sum[2]", "alpha * alpha * sum[2]"), ("alpha * sum[3]", "alpha * alpha * sum[3]")], "alpha is multiplied in twice"),
    ("fuse_gelu", "one column without gelu"): ([("gelu(sum[2] + b.z)", "sum[2] + b.z")], "the others right. There: gelu is missing"),
    ("fuse_gelu", "the bias multiplied"): ([(f" + b.{x}", f" * b.{x}") for x in "xyzw"], "The bias is multiplied, not added, before gelu"),
    ("load_fragments", "rows two apart"): ([("8 * (r % 2)", "8 * (r & 2)")], "which it must not"),
    ("split_steps", "a warp's sums for all"): ([("+= sums[i][thread]", "+= sums[i][thread % 32]")], "without `% 32`"),
}  # fmt: skip


@pytest.mark.parametrize("which", EDITED, ids=": ".join)
def test_the_verdict_names_the_change(which):
    name, _ = which
    edits, words = EDITED[which]
    exercise = find(name)
    verdict = judge(exercise, edited(exercise.solution, edits), np.random.default_rng(1))
    assert not verdict
    assert words in " ".join(str(verdict).split()), verdict


def test_what_is_said_has_been_tried():
    """A mistake that no one change mends is not explained by one."""
    exercise = find("rasterise")
    source = edited(
        exercise.solution,
        [("within % rows", "within % GROUP"), ("within / rows", "within / tiles_m")],
    )
    cases = [case for case in exercise.cases(np.random.default_rng(0)) if not case.drawn]
    answer = exercise.skeleton  # nothing to copy from
    said = smallest_change(source, exercise.skeleton, answer, "rasterise", cases[:3], 80, seconds=3)
    assert said is None


def test_no_time_is_no_answer():
    exercise = find("rasterise")
    source = edited(exercise.solution, [("min(GROUP", "max(GROUP")])
    cases = [case for case in exercise.cases(np.random.default_rng(0)) if not case.drawn]
    args = source, exercise.skeleton, exercise.solution, "rasterise", cases, 80
    assert smallest_change(*args) is not None
    assert smallest_change(*args, seconds=0) is None


def test_without_a_compiler_nothing_is_tried(monkeypatch):
    exercise = find("rasterise")
    monkeypatch.setattr("book.exercises.one_change.compiler", _no_compiler)
    source = edited(exercise.solution, [("min(GROUP", "max(GROUP")])
    cases = exercise.cases(np.random.default_rng(0))
    assert (
        smallest_change(source, exercise.skeleton, exercise.solution, "rasterise", cases, 80)
        is None
    )


def test_what_is_given_is_not_solved_for_the_reader():
    exercise = find("rasterise")
    cases = exercise.cases(np.random.default_rng(0))
    args = exercise.skeleton, exercise.skeleton, exercise.solution, "rasterise", cases, 80
    assert smallest_change(*args) is None


def _no_compiler():
    raise ImportError("no NVRTC")


def test_words_have_their_lines_and_comments_have_none():
    words = tokens_of("int a = 1;  // b\n/* c\n d */ a += threadIdx.x;\n")
    assert [(w.text, w.line) for w in words if w.text[0].isalpha()] == [
        ("int", 1),
        ("a", 1),
        ("a", 3),
        ("threadIdx.x", 3),
    ]


def test_lines_that_were_given_are_not_the_readers():
    assert own_lines("a;\nb;\nc;\n", "a;\n// Your turn\nc;\n") == {2}


@pytest.mark.parametrize(
    "kernel, right, wrong, said",
    [
        (
            "gemm_wmma_smem",
            "wmma::store_matrix_sync(C + row * N + col + warp * WMMA_N, acc",
            "wmma::store_matrix_sync(C + row * N + col, acc",
            ("4 stores of block (0, 0) go to one element", "`+ warp * WMMA_N` after `col`"),
        ),
        (
            "gemm_wmma_async",
            "float* c = C + row * N + col + warp * WMMA_N;",
            "float* c = C + row * N + col + warp * 8;",
            ("one element of C", "in place of `* 8;`"),
        ),
    ],
)
def test_the_labs_stores_that_meet_are_located(kernel, right, wrong, said):
    answer = version((FOLDER / "cuda" / "lab3.cu").read_text(encoding="utf-8"), ANSWER)
    assert answer.count(right) == 1
    run = lab.run(answer.replace(right, wrong), size=64, machine="emulator").run(kernel)
    advice = " ".join(run.advice)
    for words in said:
        assert words in advice


def test_too_few_digits_are_named():
    rng = np.random.default_rng(3)
    right = rng.standard_normal(64) + 100
    case = Case("", (right,), 0, right, (1,), (64,), tolerance=2.0**-20, scale=np.abs(right))
    off = right * (1 + 2.0**-12 * rng.uniform(0.5, 1, 64))
    said = findings(case, off.astype(np.float32))
    assert "nearly right: they agree to 12 bits" in said[-1]


WMMA = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 A)
{
    .reg .b32 %r<12>; .reg .b64 %d<4>;
    ld.param.u64 %d1, [A];
    mov.u32 %r1, %tid.x;
    LANE
    mul.wide.u32 %d2, %r1, 32;
    add.s64 %d1, %d1, %d2;
    wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r2,%r3,%r4,%r5,%r6,%r7,%r8,%r9}, [%d1], 16;
    ret;
}
"""


@pytest.mark.parametrize("shift", [4, 5])
def test_the_pointer_of_a_fragment_is_one_for_the_warp(shift):
    text = WMMA.replace("LANE", f"shr.u32 %r1, %r1, {shift};")
    launch = Module(text).launch
    args = [np.zeros(2048, np.float16)]
    if shift == 5:  # one for each warp
        launch("k", 1, 64, args, progress=False)
    else:
        with pytest.raises(ExecutionError, match="lanes 0 and 16 of a warp"):
            launch("k", 1, 64, args, progress=False)


def test_no_change_is_proposed_that_misses_what_is_asked_for():
    """A pipeline without its meeting would be right with fetch and product exchanged, but then it fetches nothing ahead."""
    exercise = find("tile_pipeline")
    meeting = next(line for line in exercise.solution.splitlines() if "all lanes' copies" in line)
    said = str(judge(exercise, exercise.solution.replace(f"{meeting}\n", "")))
    assert "overwrites what another thread may still be reading" in said
    assert "the other way round" not in said
