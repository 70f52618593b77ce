# ruff: noqa: E501 (a row of the table of mistakes may run on)
"""What a wrong element is made of, which part of a matrix a block touches, and at which settings a kernel is right: by launches."""

import numpy as np
import pytest

from book.exercises import find, judge
from book.exercises.attempt import attempt, compile_cell
from book.exercises.diagnose import findings
from book.exercises.places_in_words import numbers, spans
from book.exercises.trials import TrialFailed, Trials
from tests.book.exercises.test_no_wrong_answer_passes import edited

ROW, COL = "blockIdx.y * 32 + threadIdx.y", "blockIdx.x * 32 + threadIdx.x"
SUM_UP = "        if (t < half) s[t] += s[t + half];\n"
DOWN = "__shfl_down_sync(0xffffffff, sum, step)"
ADD = "atomicAdd(&C[row * N + col], sum);"
PAIR = "        const float other = x[n - 1 - i];\n        x[n - 1 - i] = x[i];\n        x[i] = other;\n"
FILLED = "row < M && first + tx < K ? X[row * K + first + tx] : 0.0f"
NEXT = "if (tile + 1 < tiles) fetch(tile + 1);"

# (exercise, what is wrong): edits of the solution, what the verdict must say. None of these was told by its cause before.
EDITED = {
    # What an element is made of.
    ("first_guard", "x in place of y"): ([("+ y[i];", "+ x[i];")], "y[0] takes x[0] 2 times. y[0] takes nothing of y, and must take y[0]"),
    ("first_guard", "an absolute value"): ([("a * x[i]", "a * fabsf(x[i])")], "where all of x is negative"),
    ("first_guard", "an int on the way"): ([("a * x[i]", "(int)(a * x[i])")], "This drops what stands behind the point: line 5"),
    ("coalesce", "B without its stride"): ([("B[k * N + col]", "(B + col)[k]")], "C[0][0] takes elements of 32 columns of B (0 to 31), and must take all of column 0"),
    ("coalesce", "a maximum"): ([("sum += A[row * K + k] * B[k * N + col]", "sum = max(sum, A[row * K + k] * B[k * N + col])")], "C[0][0] is no sum"),
    ("coalesce", "terms that do not meet"): ([("A[row * K + k]", "A[row * K + K - 1 - k]")], "C[0][0] multiplies A[0][0] with B[31][0], and must multiply it with B[0][0]"),
    ("coarsen", "B by the thread's row"): ([("= Bs[k][tx];", "= Bs[k][ty];")], "C[0][1] takes column 0 of B, and must take column 1"),
    ("coarsen", "terms of some rows are missing"): ([("for (int k = 0; k < TILE; ++k) {\n", "for (int k = ty; k < TILE; ++k) {\n")], "C[1][0] lacks the terms k = 0 and 32"),
    ("fill_with_zeros", "the next row's elements"): ([(FILLED, "row * K + first + tx < M * K ? X[row * K + first + tx] : 0.0f")], "y[0] must be made of X[0][0] to X[0][40], each once. It takes X[1][0] to X[1][6], which it must not"),
    ("vectorize", "one element scaled twice"): ([("alpha * v.y", "alpha * alpha * v.y")], "Y[0][1] is multiplied by alpha twice"),
    ("vectorize", "alpha in the denominator"): ([("alpha * v.x, alpha * v.y, alpha * v.z, alpha * v.w", "v.x / alpha, v.y / alpha, v.z / alpha, v.w / alpha")], "Y[0][0] is divided by alpha"),
    ("keep_precision", "terms that do not meet"): ([("B[row * K + k]", "B[row * K + K - 1 - k]")], "y[0] multiplies A[0][0] with B[0][4], and must multiply it with B[0][0]"),
    ("split_k", "the running sum, in every turn"): ([("        sum += A[row * K + k] * B[k * N + col];\n", "    {\n        sum += A[row * K + k] * B[k * N + col];\n        " + ADD + "\n    }\n"), ("    " + ADD + "\n}", "}")], "The running sum is added to C in every turn"),
    ("coalesce", "sums multiplied"): (
        [("        float sum = 0.0f;", "        float sum = 0.0f, other = 0.0f;"), ("sum += A[row * K + k] * B[k * N + col];\n        C[row * N + col] = sum;", "{\n            sum += A[row * K + k];\n            other += B[k * N + col];\n        }\n        C[row * N + col] = sum * other;")],
        "C[0][0] multiplies A[0][0] with B[1][0] too",
    ),
    ("coalesce", "a sum that decays"): ([("sum += A", "sum = 0.5f * sum + A")], "has the term k = 0 4.66e-10 times and the term k = 31 1 times"),
    ("coarsen", "an int between"): ([("const float b", "const int b")], "digits behind the point are lost, as in an int. This drops what stands behind the point: line 21"),
    ("coarsen", "rows that cancel"): ([("sum[i] += As[ty + 8 * i][k] * b;", "sum[i] += (As[ty + 8 * i][k] - (i == 3 ? As[ty][k] : 0)) * b;")], "C[24][0] adds and subtracts rows of A (row 0 -64 times, row 24 64 times)"),
    ("block_reduce", "a product that overflows"): ([("s[t] += s", "s[t] *= s")], "y[0] is inf where x holds whole numbers"),
    ("first_guard", "values that are tested"): ([("if (i < n)", "if (i < n && x[i] > 0)")], "where x is negative: a value is tested"),
    ("shuffle_sum", "doubled in each step"): ([("sum +=", "sum += sum +")], "In each step the sum so far is doubled"),
    ("split_k", "stored a row down"): ([(ADD, "atomicAdd(&C[(row + 1) % M * N + col], sum);")], "The 4 blocks (0, 0, z) store to rows 1 to 16"),
    # Behind a function of the sum.
    ("fuse_gelu", "the bias of the row"): ([("bias + col);", "bias + col);\n    const float mine = bias[row];"), ("+ b.x", "+ mine"), ("+ b.y", "+ mine"), ("+ b.z", "+ mine"), ("+ b.w", "+ mine")], "C[0][1] takes bias[0], and must take bias[1] (the row of the output stands where its column must)"),
    ("fuse_gelu", "the bias of the first columns"): ([("(bias + col)", "(bias)")], "C[0][4] takes bias[0], and must take bias[4]. Block (0, 0, 0) reads bias[0] to bias[3], and must read bias[0] to bias[31]"),
    # What a block touches.
    ("coalesce", "columns far apart"): ([(COL, "blockIdx.x + 32 * threadIdx.x")], "Block (0, 0, 0) stores to rows 0 to 31, columns 0, 32, 64 of C, and must store to rows 0 to 31, columns 0 to 31 of C (line 10)"),
    ("coalesce", "stored at the mirrored place"): ([("C[row * N + col] =", "C[col * N + row] =")], "Block (1, 0, 0) stores to rows 32 to 63, columns 0 to 31 of C, and must store to rows 0 to 31, columns 32 to 63 of C"),
    ("vectorize", "rows a quarter apart"): ([("X + blockIdx.y * N", "X + blockIdx.y * (N / 4)"), ("Y + blockIdx.y * N", "Y + blockIdx.y * (N / 4)")], "Block (0, 1, 0) stores to Y[0][128] to Y[1][127], and must store to row 1, columns 0 to 511 of Y"),
    ("vectorize", "rows one element too short"): ([("X + blockIdx.y * N", "X + blockIdx.y * (N - 1)")], "Block (0, 1, 0) reads X[0][511] to X[1][510], and must read row 1"),
    ("vectorize", "rows rounded up"): ([("X + blockIdx.y * N", "X + blockIdx.y * ((N + 3) / 4 * 4)")], "Block (0, 1, 0) reads X[1][3] to X[2][2], and must read row 1, columns 0 to 300"),
    ("two_stages", "a copy's source without the tile"): ([("tile * COLS + i % 4 * 4", "tile + i % 4 * 4")], "Block (0, 0, 0) reads rows 0 to 63, columns 0 to 17 of X, and must read rows 0 to 63, columns 0 to 47"),
    ("tile_pipeline", "tiles down the rows of Bt"): ([("Bt + 32 * tile", "Bt + 32 * tile * K")], "must read rows 0 to 15, columns 0 to 95 of Bt (line 10). Line 41: without `* K` it would be right"),
    ("tile_fragments", "the step added behind the swizzle"): ([("chunk = 2 * step + lane / 16", "chunk = lane / 16"), ("8 * place(row, chunk)));\n        for", "8 * (2 * step + place(row, chunk))));\n        for")], "In step 1 lane 4 points at row 5, chunk 2 of the tile. It should point at row 4, chunk 2"),
    ("block_reduce", "stored by the first block only"): ([("if (t == 0) y", "if (blockIdx.x + t == 0) y")], "Block (1, 0, 0) stores nothing to y, and must store to y[1]"),
    # Steps of a sum.
    ("block_reduce", "the distance grows"): ([("int half = 128; half > 0; half /= 2", "int half = 1; half < 256; half *= 2")], "In turn 1 thread 0 reads s[1], and must read s[128]"),
    ("block_reduce", "half of the threads idle"): ([("t < half", "t % 2 == 0 && t < half")], "In turn 1 thread 1 adds nothing, and must add s[129] to its sum"),
    ("block_reduce", "a race within a turn"): ([("s[t + half];", "s[t + half - 1];")], "thread (0, 0, 0) reads s[127], and thread (127, 0, 0) writes it"),
    ("block_reduce", "the first block only adds"): ([("if (t < half)", "if (i < half)")], "In block 1, no thread adds what another one has stored"),
    ("shuffle_sum", "distances that do not halve"): ([("step /= 2", "step -= 4")], "The shuffles go over distances of 16, 12, 8, 4. They have to go over 16, 8, 4, 2 and 1"),
    ("shuffle_sum", "parts of the warp"): ([(DOWN, DOWN.replace("step", "step, 16"))], "With a width of 16 each 16 lanes are by themselves"),
    ("shuffle_sum", "the first values again"): ([("    for (int step", "    const float mine = sum;\n    for (int step"), (DOWN, DOWN.replace("sum, step", "mine, step"))], "not the sum that it has by then"),
    ("shuffle_sum", "another lane stores"): ([("lane == 0", "lane == 1")], "Lane 1 stores its sum"),
    # Other settings.
    ("split_tf32", "one register twice"): ([("(acc, a_low, b[0], b[1]);  // small", "(acc, a_low, b[0], b[0]);  // small")], "the product with a_low is at fault"),
    ("split_tf32", "low is scaled"): ([("to_tf32(x - __uint_as_float(high))", "to_tf32(0.5f * (x - __uint_as_float(high)))")], "so the product of a and b is right: `low` is wrong"),
    ("keep_precision", "parts summed in half"): (
        [("    float sum = 0.0f;\n", "    float sum = 0.0f;\n    half part = __float2half(0.0f);\n"), ("        sum += __half2float(A[row * K + k]) * __half2float(B[row * K + k]);", "    {\n        part = __hfma(A[row * K + k], B[row * K + k], part);\n        if (k % 32 == 31 || k == K - 1) {\n            sum += __half2float(part);\n            part = __float2half(0.0f);\n        }\n    }")],
        "no term is missing, and digits are lost on the way. This computes in half",
    ),
    ("two_stages", "a wait too weak"): ([("cp_async_wait<0>", "cp_async_wait<1>")], "The result would be right if each copy were done at once"),
    ("pipeline_stages", "another slot is read"): ([("sum += buffer[tile % STAGES]", "sum += buffer[tile % (STAGES - 1)]")], "The result would be wrong even if each copy were done at once"),
    ("two_stages", "a tile fetched twice"): ([("    fetch(0);\n", "    fetch(0);\n    fetch(0);\n")], "a tile is fetched twice"),
    ("split_k", "an old value added, by luck right"): ([(ADD, "atomicAdd(&C[row * N + col], C[row * N + col] + sum);")], "With the blocks one after the other the result is wrong"),
    ("place_barriers", "a barrier of half of the threads"): ([("__syncthreads();  // the tiles", 'asm volatile("bar.sync 1, 128;");  // the tiles')], "It lets threads go on as soon as 128 have come, and the block has 256"),
    ("find_race", "both hold one value"): ([(PAIR, "        x[n - 1 - i] = x[i];\n        x[i] = x[n - 1 - i];\n")], "x[0] and x[511] both hold the old x[0], and the old x[511] is lost"),
    ("find_race", "all threads swap"): ([("i < n / 2", "i < n")], "thread (0, 0, 0) of block (0, 0, 0) writes it"),
    ("fill_with_zeros", "added to what is not there"): ([("tile[ty][tx] =\n", "tile[ty][tx] +=\n")], "`+=` adds to what is in it, which is nothing yet"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "what", "edits", "words"), [(*key, *row) for key, row in EDITED.items()], ids=map(": ".join, EDITED))  # fmt: skip
def test_it_fails_with_its_cause(name, what, edits, words):
    verdict = judge(find(name), edited(find(name).solution, edits))
    assert not verdict.passed
    assert words in " ".join(str(verdict).split()), str(verdict)


def test_an_address_below_the_array_that_the_offset_brings_back_is_right():
    """The compiler may leave s[255 - t] as a base of 32 bits below 0 and an offset; their sum wraps around."""
    source = find("block_reduce").solution.replace("s[t + half]", "s[2 * half - 1 - t]")
    assert judge(find("block_reduce"), source)


def test_no_number_of_the_solution_is_taken_for_a_size():
    source = find("vectorize").solution.replace("N % 4 == 0", "M * N % 4 == 0")
    assert "must that be" not in str(judge(find("vectorize"), source))


def test_large_sums_are_no_whole_numbers_by_that():
    case = find("coalesce").cases(np.random.default_rng())[0]
    got = (case.expected * 1e9).astype(np.float32)
    assert "int" not in " ".join(findings(case, got))


def test_weights_of_any_size_are_read_off_and_what_is_no_sum_is_not():
    exercise = find("shuffle_sum")
    case = exercise.cases(np.random.default_rng())[0]

    def weights(source):
        trials = Trials(compile_cell("shuffle_sum", source), "shuffle_sum", case)
        return trials.weights(0, 0, np.arange(32), {})

    assert (weights(exercise.solution) == 1).all()
    assert (
        weights(exercise.solution.replace("sum +=", "sum = 8 * sum +"))[[0, 16]] == [8**5, 8**4]
    ).all()
    with pytest.raises(TrialFailed):
        weights(exercise.solution.replace("sum +=", "sum = sum * sum +"))


def test_a_kernel_that_stops_has_no_trials():
    exercise = find("coalesce")
    case = exercise.cases(np.random.default_rng())[0]
    built = compile_cell(
        "coalesce", exercise.solution.replace("row * K + k", "row * K + k + 100000")
    )
    with pytest.raises(TrialFailed):
        Trials(built, "coalesce", case).run({})
    assert attempt(built, "coalesce", case).error is not None


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([7], "7"),
        ([3, 4], "3 and 4"),
        ([3, 4, 5], "3 to 5"),
        ([0, 1, 2, 8, 9, 10], "0 to 2 and 8 to 10"),
        (list(range(1, 32, 2)), "1, 3, 5 and so on (16 in all, the last 31)"),
    ],
)
def test_places_in_words(found, words):
    assert numbers(np.array(found)) == words


def test_places_have_the_indices_of_their_array():
    assert spans("X", (4, 8), np.array([8, 9, 10])) == "X[1][0] to X[1][2]"
