# ruff: noqa: E501 (a row of a table of mistakes may run on)
"""What students write: right answers in their own way pass, and mistakes that once were not named have their cause named."""

import pytest

from book.exercises import cell, find, judge
from book.exercises.cell import judge_answer

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


def edited(text, edits):
    for old, new in edits:
        assert old in text, f"there is no {old!r}"
        text = text.replace(old, new)
    return text


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


COUNTS = {
    "s[lane]": 1.0, "s[2 * lane]": 2.0, "s[lane / 2]": 1.0, "s[32 * lane]": 32.0, "s[33 * lane]": 1.0, "float4 s[lane]": 4.0,
}  # fmt: skip
BLOCKS = {
    "256 threads, 32 registers, 16 KiB": 2048 / 256, "256 threads, 96 registers, 16 KiB": 2.0,
    "128 threads, 40 registers, 40 KiB": 164 / 41, "64 threads, 24 registers, 0 KiB": 32, "512 threads, 128 registers, 0 KiB": 1,
}  # fmt: skip


def element(lane, half):
    return lane // 4 + half // 2 % 2 * 8, 2 * (lane % 4) + half % 2 + half // 4 * 8


def test_whole_numbers_pass_whatever_their_type():
    import numpy as np

    assert judge_answer("count_wavefronts", COUNTS)
    assert judge_answer("count_blocks", BLOCKS)
    assert judge_answer("lane_map", lambda lane, half: np.array(element(lane, half)))


ANSWERS = {
    ("count_wavefronts", "a pitch of 33 taken for 33 conflicts"): (COUNTS | {"s[33 * lane]": 33}, "read words 0, 33, 66 and 528, in banks 0, 1, 2 and 16"),
    ("count_wavefronts", "conflicts, not wavefronts"): (COUNTS | {"s[lane]": 0}, "one wavefront even where there is no conflict"),
    ("count_wavefronts", "two words per bank"): (COUNTS | {"float4 s[lane]": 8}, "eight lanes fill the 32 banks once"),
    ("count_blocks", "not rounded down"): (BLOCKS | {"256 threads, 96 registers, 16 KiB": 65536 / (256 * 96)}, "round down"),
    ("lane_map", "no rows from 8"): (lambda lane, half: (lane // 4, element(lane, half)[1]), "register 1 begins eight rows below"),
    ("lane_map", "no columns from 8"): (lambda lane, half: (element(lane, half)[0], element(lane, half)[1] % 8), "register 2 begins eight columns to the right"),
    ("lane_map", "eight halves of a row"): (lambda lane, half: (lane // 2, lane % 2 * 8 + half), "register 1 begins eight rows below"),
    ("lane_map", "the map of B"): (lambda lane, half: (2 * (lane % 4) + half % 2 + half // 2 % 2 * 8, lane // 4 + half // 4 * 8), "one column to the right of half 0"),
}  # fmt: skip


@pytest.mark.parametrize("which", ANSWERS, ids=": ".join)
def test_a_wrong_answer_is_told_what_it_misses(which):
    answer, words = ANSWERS[which]
    verdict = judge_answer(which[0], answer)
    assert not verdict
    assert words in " ".join(str(verdict).split()), str(verdict)


CAUSES = {
    # a first guard
    ("first_guard", "one too many"): ([("i < n", "i <= n")], "exactly one too far"),
    ("first_guard", "y added twice"): ([("y[i] = a * x[i] + y[i]", "y[i] += a * x[i] + y[i]")], "The old y is added twice"),
    ("first_guard", "256 elements a block"): ([("blockIdx.x * blockDim.x", "blockIdx.x * 256")], "are not changed: no thread has them as its i"),
    ("first_guard", "whole blocks only"): ([("i < n", "blockIdx.x < n / 128")], "Elements 896 and up are not changed"),
    ("first_guard", "y multiplied"): ([("a * x[i] + y[i]", "a * y[i] + x[i]")], "x and y are the wrong way round"),
    ("first_guard", "a size written as a number"): ([("i < n", "i < 1000")], "1000 stands in line 5: must that be n"),
    # products
    ("coalesce", "one term too many"): ([("k < K;", "k <= K;")], "goes on to row 32 of B, and B has 32 rows (K)"),
    ("coalesce", "the number of terms written as a number"): ([("k < K;", "k < 32;")], "goes on to rows 17 to 31 of B, and B has 17 rows (K)"),
    ("coalesce", "the guard's sizes exchanged"): ([("row < M && col < N", "row < N && col < M")], "64 is M: is a column compared with M where N must stand"),
    ("coalesce", "sums of whole numbers"): ([("float sum = 0.0f;", "int sum = 0;")], "Every element is a whole number"),
    ("place_barriers", "64 terms of K, whatever K is"): ([("tile < K; tile", "tile < 64; tile")], "Only the first 64 terms of K are summed: the loop must end at K"),
    ("place_barriers", "nothing stored beyond K"): (
        [
            ("As[ty][tx] = row < M && tile + tx < K ? A[row * K + tile + tx] : 0.0f;", "if (row < M && tile + tx < K) As[ty][tx] = A[row * K + tile + tx];"),
            ("Bs[ty][tx] = tile + ty < K && col < N ? B[(tile + ty) * N + col] : 0.0f;", "if (tile + ty < K && col < N) Bs[ty][tx] = B[(tile + ty) * N + col];"),
        ],
        "the tiles keep what the turn before left there",
    ),
    ("coalesce", "a length written as a number"): ([("B[k * N + col]", "B[k * 96 + col]"), ("C[row * N + col]", "C[row * 96 + col]")], "96 stands in line 9: must that be N"),
    ("place_barriers", "the row of another thread"): ([("As[ty][k]", "As[tx][k]")], "tx stands where ty must"),
    # sums of rows
    ("two_stages", "the same column sixteen times"): ([("thread * PITCH + k]", "thread * PITCH]")], "The first column of each tile is summed 16 times"),
    ("fill_with_zeros", "ones beyond the last column"): ([(": 0.0f;", ": 1.0f;")], "beyond the last column of X is not 0"),
    ("fill_with_zeros", "the guard's sizes exchanged"): ([("row < M && first + tx < K", "row < K && first + tx < M")], "M and K are the wrong way round"),
    ("two_stages", "the last tile left out"): ([("tile < tiles; ++tile", "tile < tiles - 1; ++tile")], "A tile of 16 columns is left out"),
    # several outputs per thread
    ("coarsen", "all outputs in one sum"): ([("sum[i] += As", "sum[0] += As")], "All four rows are added up in one sum"),
    ("coarsen", "other rows computed than stored"): ([("As[ty + 8 * i][k]", "As[4 * ty + i][k]")], "row 2 what belongs in row 8: the row that is computed and the row that is stored are not the same"),
    ("coarsen", "a tile's row as long as K"): ([("k < TILE;", "k < K;")], "Bs has TILE x TILE elements"),
    ("coarsen", "beyond the last column of a tile"): ([("Bs[k][tx];", "Bs[k][tx + 8];")], "Bs has TILE x TILE elements"),
    ("coarsen", "into the next array"): ([("As[ty + 8 * i][k]", "As[ty + 16 * i][k]")], "As has TILE x TILE elements"),
    ("coarsen", "bounds that are no constants"): (
        [("for (int i = 0; i < TM; ++i) sum[i] += As[ty + 8 * i][k] * b;", "for (int r = ty, i = 0; r < TILE; r += 8, i++) sum[i] += As[r][k] * b;")],
        "unroll the loops, which needs bounds that are constants",
    ),
    # wide accesses
    ("vectorize", "the grid's other axis"): ([("blockIdx.y", "blockIdx.x")], "does not use blockIdx.y"),
    ("vectorize", "alpha forgotten"): ([("make_float4(alpha * v.x, alpha * v.y, alpha * v.z, alpha * v.w)", "v")], "Alpha is missing where the accesses are wide"),
    ("vectorize", "alpha for one of four"): ([("alpha * v.y, alpha * v.z, alpha * v.w", "v.y, v.z, v.w")], "Only one element of each float4 is multiplied by alpha"),
    ("vectorize", "the step of single floats"): ([("i += 4 * blockDim.x", "i += blockDim.x")], "are stored 2 times, by several threads|are stored 4 times, by several threads"),
    ("vectorize", "float4s counted as floats"): (
        [("i = 4 * threadIdx.x; i < N; i += 4 * blockDim.x", "i = threadIdx.x; i < N; i += blockDim.x"), ("(x + i)", "(x + 4 * i)"), ("(y + i)", "(y + 4 * i)")],
        "The index of a pointer to float4 counts float4s",
    ),
    # copies
    ("mend_pipeline", "a tile too many"): ([("if (tile + 1 < 4) fetch", "fetch")], "Test the number of the tile before the copy"),
    ("mend_pipeline", "copies that belong to no group"): ([("        cp_async_commit();\n", "")], "cp_async_commit() has to follow them"),
    ("mend_pipeline", "four bytes of sixteen"): ([("cp_async<16>", "cp_async<4>")], "Does each copy bring all of its bytes"),
    ("two_stages", "a tile too many"): ([("if (tile + 1 < tiles) fetch", "fetch")], "Test the number of the tile before the copy"),
    ("two_stages", "the other buffer"): ([("sum += buffer[tile % 2]", "sum += buffer[(tile + 1) % 2]")], "Is it the right buffer"),
    ("two_stages", "one buffer for both"): ([("buffer[tile % 2]", "buffer[0]")], "it fills a buffer that is still in use"),
    ("pipeline_stages", "no empty groups at the end"): (
        [("        if (tile + STAGES - 1 < tiles) fetch(tile + STAGES - 1);\n        cp_async_commit();", "        if (tile + STAGES - 1 < tiles) {\n            fetch(tile + STAGES - 1);\n            cp_async_commit();\n        }")],
        "cp_async_wait<2>() does not wait for the 2 newest groups",
    ),
    ("pipeline_stages", "no wait"): ([("        cp_async_wait<STAGES - 2>();\n", "")], "Nothing in this launch waits for its copies"),
    # fragments
    ("wmma_tile", "both layouts"): ([("half, wmma::row_major> a", "half, wmma::col_major> a"), ("half, wmma::row_major> b", "half, wmma::col_major> b")], "Each 16x16 tile of A and each of B is transposed"),
    ("wmma_tile", "steps of one"): ([("k += 16", "++k")], "goes on in steps of 16"),
    ("load_fragments", "neighbours in a row of B"): ([("B[(row + 1) * 8 + group]", "B[row * 8 + group + 1]")], "Lane 0 (group 0, pair 0) does not load B[1][0]"),
    ("load_fragments", "single columns of A"): ([("col = 2 * pair + 8", "col = pair + 8")], "Lane 1 (group 0, pair 1) does not load A[0][3]"),
    ("load_fragments", "rows of B like those of A"): ([("B[row * 8 + group], B[(row + 1) * 8 + group]", "B[row * 16 + group], B[(row + 1) * 16 + group]")], "does not load B[1][0], which it must hold, but B[2][0]"),
    ("transpose_operand", "two halves of eight rows"): ([("row = lane % 16, col = lane / 16 * 8", "row = lane % 8, col = lane / 8 % 2 * 8")], "Lane 8 points at row 0, column 8 of Bs. It has to point at row 0 of matrix 1|lanes address matrices 1 and 2"),
    ("transpose_operand", "rows from below"): ([("row = lane % 16", "row = 15 - lane % 16")], "Lane 0 points at row 15, column 0 of Bs"),
    ("transpose_operand", "rows of eight"): ([("Bs + row * 16 + col", "Bs + row * 8 + col")], "Lane 1 points at row 0, column 8 of Bs"),
    ("transpose_operand", "a row per lane"): ([("row = lane % 16, col = lane / 16 * 8", "row = lane, col = 0")], "Bs has rows 0 to 15"),
}  # fmt: skip


@pytest.mark.parametrize("which", CAUSES, ids=": ".join)
def test_the_cause_is_named(which):
    edits, words = CAUSES[which]
    verdict = judge(find(which[0]), edited(find(which[0]).solution, edits))
    assert not verdict
    told = " ".join(str(verdict).split())
    assert any(word in told for word in words.split("|")), str(verdict)
    assert "no guard is missing" not in told, (
        "where a guard is missing, or the cause is named, that leads astray"
    )


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
