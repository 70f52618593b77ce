"""From outputs, traces and errors to what is said of them: each finder by itself."""

import threading
import time

import numpy as np
import pytest

import emulator
import kernels
from book.exercises import attempt as attempts
from book.exercises import diagnose, find, judge
from book.exercises import finders_yield as held_out
from book.exercises.cell import judge_answer
from book.exercises.counts import NAMES, of_row
from book.exercises.finding import explained
from book.exercises.hopper.balance_roles.exercise import best_share
from book.exercises.launches import POISON_BITS, poisoned, product, unwritten
from book.exercises.signature import differences
from book.exercises.tensor_cores.lane_map.exercise import a_element
from book.exercises.time_limit import DoesNotEnd, time_limit
from book.exercises.touched import spans
from book.exercises.words import where, words
from tests.book.exercises.test_exercises import edited, plain


@pytest.fixture
def case():
    return product(np.random.default_rng(), (32, 48, 40), (16, 16), (32,))


def findings(*args):
    """In words."""
    return [words(one) for one in diagnose.findings(*args)]


def said_of(case, C):
    return " ".join(findings(case, C.astype(np.float32)))


def test_a_right_output_is_not_faulted(case):
    assert said_of(case, case.expected) == ""


def test_poison_is_a_nan_that_only_an_untouched_element_holds():
    array = poisoned((3, 4))
    array[1, 2] = np.nan
    array[0, 0] = 1
    assert np.isnan(poisoned((2,))).all() and POISON_BITS == poisoned((1,)).view(np.uint32)[0]
    assert unwritten(array).sum() == 10


@pytest.mark.parametrize(
    "change,words",
    [
        (lambda A, B: A[:, 16:] @ B[16:], "first tile of K (16 terms) is missing"),
        (lambda A, B: A[:, :-1] @ B[:-1], "last term along K"),
        (lambda A, B: 2 * A @ B, "added twice"),
        (lambda A, B: (A @ B).T.reshape(32, 48), "transposed"),
        (lambda A, B: A.reshape(40, 32).T @ B, "A is read transposed"),
        (lambda A, B: (A @ B)[np.arange(32) ^ 8], "Rows 8-15"),
        (lambda A, B: (A @ B)[np.arange(32) ^ 1], "holds what belongs in row"),
        (lambda A, B: A @ B + 1, "too large by 1: does the sum begin with 0?"),
        (lambda A, B: 5 * A @ B, "Every element is 5 times what it must be"),
        (lambda A, B: np.nan * A @ B, "NaN"),
    ],
)
def test_mistakes_are_told_apart(case, change, words):
    assert words in said_of(case, change(case.product.A, case.product.B))


def test_zeros_have_no_cause(case):
    (found,) = diagnose.findings(case, np.zeros_like(case.expected, np.float32))
    assert words(found) == "Every element is 0: nothing was added up there."
    assert not explained([found])


def test_what_was_never_written_is_said_first(case):
    C = case.expected.astype(np.float32)
    C[16:] = poisoned((16, 48))
    assert findings(case, C) == ["Rows 16 and up are never written."]
    C[:16] = 2 * C[:16]
    assert findings(case, C) == ["Rows 16 and up are never written.", "Everything is added twice."]


@pytest.mark.parametrize(
    "rows,cols,words",
    [
        (slice(None), slice(None), "every element is"),
        (slice(16, None), slice(None), "rows 16 and up are"),
        (slice(4, 9), slice(None), "rows 4-8 are"),
        (slice(None), slice(3, 4), "column 3 is"),
        (slice(1, None, 2), slice(None), "rows r with r % 2 = 1 are"),
        (slice(8, 12), slice(0, 5), "rows 8-11, there columns 0-4, are"),
    ],
)
def test_places_are_put_into_words(rows, cols, words):
    mask = np.zeros((32, 48), bool)
    mask[rows, cols] = True
    assert where(mask) == words


def test_what_is_said_does_not_hang_on_the_numbers():
    said = set()
    for seed in range(5):
        case = product(np.random.default_rng(seed), (32, 48, 40), (16, 16), (32,))
        C = case.expected.copy()
        C[5:9, 7:20] += case.product.A[5:9, :13]
        told, values = said_of(case, C).split(": ")
        assert values.startswith("[5, 7] holds ")
        said.add(told)
    assert len(said) == 1


def test_other_names_and_equal_types_are_the_reader_s_own():
    verdict = judge(
        find("rasterise"),
        edited(
            find("rasterise").solution,
            [
                (
                    "int* order, int tiles_m, int tiles_n",
                    "int order[], const unsigned tiles_m, int32_t tiles_n",
                )
            ],
        ),
    )
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
    assert not explained(diagnose.findings(case, np.cos(case.expected).astype(np.float32)))


def test_suspects_that_look_alike_here_are_told_apart_by_another_case():
    """0.5 times 2 is 1: with these scalars nothing tells `beta * old` from `old` under alpha."""
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
    assert attempts.EMULATOR_SECONDS <= 5
    monkeypatch.setattr(attempts, "EMULATOR_SECONDS", 0.5)
    verdict = judge(find(name), edited(find(name).solution, edits))
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


def test_an_address_below_the_array_that_the_offset_brings_back_is_right():
    """The compiler may leave s[255 - t] as a base of 32 bits below 0 and an offset; their sum wraps around."""
    source = find("block_reduce").solution.replace("s[t + half]", "s[2 * half - 1 - t]")
    assert judge(find("block_reduce"), source)


def test_places_have_the_indices_of_their_array():
    assert spans("X", (4, 8), np.array([8, 9, 10])) == "X[1][0] to X[1][2]"


def test_volatile_alone_is_no_mistake():
    exercise = find("find_race")
    source = edited(
        exercise.solution,
        [
            ("float* x", "float* all"),
            ("    const int i", "    volatile float* x = all;\n    const int i"),
        ],
    )
    assert judge(exercise, source)


COPIED_AHEAD_IN_A_BRANCH = """\
        if (tile + 1 < tiles) {
            fetch(tile + 1);
            cp_async_wait<1>();
        } else {
            cp_async_wait<0>();
        }
        __syncthreads();
        for (int k = 0; k < COLS; ++k)
            sum += buffer[tile % 2][thread * PITCH + k];
        __syncthreads();
"""


DRAINED_AT_THE_END = """\
        if (tile + STAGES - 1 < tiles) cp_async_wait<STAGES - 2>();
        else cp_async_wait<0>();
        __syncthreads();
        if (tile + STAGES - 1 < tiles) {
            fetch(tile + STAGES - 1);
            cp_async_commit();
        }
"""


def between(text, first, last):
    """The part of the text from `first` on, up to `last`."""
    start = text.index(first)
    return text[start : text.index(last, start)]


def test_a_wait_in_both_branches_of_an_if_is_a_pipeline_too():
    """What is on its way while a tile is read is counted as the kernel runs, not as its instructions are listed."""
    source = find("two_stages").solution
    body = between(source, "        cp_async_wait<0>", "    }\n    y[")
    assert judge(find("two_stages"), source.replace(body, COPIED_AHEAD_IN_A_BRANCH))
    source = find("pipeline_stages").solution
    body = between(source, "        cp_async_wait<STAGES", "        for (int k")
    assert judge(find("pipeline_stages"), source.replace(body, DRAINED_AT_THE_END))


def test_one_tile_fetched_ahead_in_the_first_turn_only_is_no_pipeline():
    source = find("two_stages").solution
    body = between(source, "        cp_async_wait<0>", "        for (int k")
    late = """\
        if (tile == 0 && tiles > 1) fetch(1);
        if (tile == 0 && tiles > 1) cp_async_wait<1>();
        else cp_async_wait<0>();
        __syncthreads();
"""
    source = source.replace(body, late).replace(
        "[thread * PITCH + k];\n",
        "[thread * PITCH + k];\n        __syncthreads();\n        if (tile && tile + 1 < tiles) fetch(tile + 1);\n",
    )
    verdict = judge(find("two_stages"), source)
    assert "0 copies are in flight; at least 1 should be" in " ".join(str(verdict).split()), str(
        verdict
    )


def test_a_count_has_a_name():
    with pytest.raises(ValueError, match="no count 'speed'; there are warps"):
        of_row(None, "speed")
    exercises = [e for e in map(find, ("place_barriers", "wmma_tile")) if e.needs]
    assert {need.metric for e in exercises for need in e.needs} <= set(NAMES)


def test_the_lane_map_is_that_of_the_instruction():
    """A 16 x 16 unit matrix with one element changed shows which half of which lane an element came from."""
    from tensor_layouts.atoms_nv import SM80_16x8x16_F32F16F16F32_TN as atom

    for lane in range(32):
        for half in range(8):
            row, col = a_element(lane, half)
            assert (
                atom.a_layout((lane % 4, lane // 4), (half % 2, half // 2 % 2, half // 4))
                == row + 16 * col
            )


@pytest.mark.parametrize("name", ["encode_map", "balance_roles"])
def test_an_answer_that_is_a_function_is_given_without_parentheses(name):
    assert "without parentheses" in plain(judge_answer(name, None))


def test_the_best_share_runs_and_a_larger_one_waits_for_ever():
    text = """#include "hopper.cuh"
extern "C" __global__ void __launch_bounds__(384, 1) roles(int* out) {
    if (threadIdx.x < 128) registers_shrink_to<SMALL>(); else registers_grow_to<LARGE>();
    out[threadIdx.x] = 1;
}"""
    small, large = best_share(168, 2, 40)
    for more in (0, 8):
        built = kernels.build(text, {"SMALL": small, "LARGE": large + more}, arch="90a")
        launch = (built, None, 1, 384, [np.zeros(384, np.int32)])
        if not more:
            kernels.launch(*launch, machine="emulator")
            continue
        with pytest.raises(emulator.Deadlock):
            kernels.launch(*launch, machine="emulator")


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
    launch = emulator.Module(text).launch
    args = [np.zeros(2048, np.float16)]
    if shift == 5:  # one for each warp
        launch("k", 1, 64, args, progress=False)
    else:
        with pytest.raises(emulator.ExecutionError, match="lanes 0 and 16 of a warp"):
            launch("k", 1, 64, args, progress=False)


def test_the_yield_of_the_finders_is_measured_on_answers_that_no_table_holds(tmp_path, capsys):
    every = list(held_out.answers(held_out.HELD_OUT))
    assert len(every) >= 60 and 10 <= sum(not row["cause"] for _, row, _ in every) <= 20
    assert len({exercise.name for exercise, *_ in every}) > 30
    few = tmp_path / "few.toml"
    row = '[[first_guard]]\nwhat = "{}"\nedits = [["{}", "{}"]]\ncause = "{}"\n'
    few.write_text(
        row.format("one too few", "i < n", "i < n - 1", "last element")
        + row.format("named otherwise", "i < n", "i < n - 1", "no such words")
        + row.format("called right", "i < n", "i < n - 1", "")
    )
    held_out.measure(few)
    told = capsys.readouterr().out
    assert "3 answers, misjudged: first_guard: called right" in told
    assert "cause named in 1 of 2 wrong ones; not in:\n  first_guard: named otherwise" in told
    assert any(line.split()[:4] == ["from", "the", "output", "3"] for line in told.splitlines())
