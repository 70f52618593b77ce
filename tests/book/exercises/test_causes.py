# ruff: noqa: E501 (a row of the table of mistakes may run on)
"""What students write and what they are told: each row was accepted, or told without its cause, before it stood here."""

import numpy as np
import pytest

from book.exercises import find, judge
from book.exercises.cell import judge_answer
from book.exercises.diagnose import explained
from book.exercises.places import declared_shared
from book.exercises.terms import in_words
from tests.book.exercises.test_no_wrong_answer_passes import edited

SUM_UP = "    for (int half = 128; half > 0; half /= 2) {\n        if (t < half) s[t] += s[t + half];\n        __syncthreads();  // outside the if: all threads come to it\n    }\n"
SWAP = "    if (i < n / 2) {  // a pair belongs to one thread\n        const float other = x[n - 1 - i];\n        x[n - 1 - i] = x[i];\n        x[i] = other;\n    }\n"
READ = "tile[tx * PITCH + r]"
MEET = "        named_barrier(1 + group, 128);\n"
ADD = "atomicAdd(&C[row * N + col], sum);"

# (exercise, what is wrong): edits of the solution, what the verdict must say
EDITED = {
    # Accepted before.
    ("find_race", "volatile accesses, which race as others do"): (
        [(SWAP, "    volatile float* v = x;\n    if (i < n) {\n        const float other = v[n - 1 - i];\n        v[i] = other;\n    }\n")], "orders no thread before another",
    ),
    ("split_k", "an atomic of one block"): ([("atomicAdd(", "atomicAdd_block(")], "atomic for the threads of one block only"),
    ("split_k", "four blocks taken for granted"): ([("k += gridDim.z", "k += 4")], "The step along K is 4, where it should be gridDim.z"),
    ("block_reduce", "atomics to one word"): (
        [(SUM_UP, "    const float mine = s[t];\n    __syncthreads();\n    if (t == 0) s[0] = 0;\n    __syncthreads();\n    atomicAdd(&s[0], mine);\n    __syncthreads();\n")], "atomic operations of a warp at n=512; the goal is 0",
    ),
    ("split_steps", "tiles filled again while they are read"): ([(MEET, "")], "four warps have to meet"),
    ("split_steps", "one barrier for both warpgroups"): ([("named_barrier(1 + group, 128)", "named_barrier(1, 128)")], "Both warpgroups meet at barrier 1"),
    ("split_steps", "sums added elsewhere"): ([("+= sums[i][thread]", "+= sums[i][127 - thread]")], "all added, but to other elements"),
    ("split_steps", "one barrier for both tiles"): ([("shared_address(barriers) + 8 * group", "shared_address(barriers)")], "several threads use this one barrier"),
    ("place_fences", "half of the warpgroup"): ([("    wgmma_fence();", "    if (threadIdx.x >= 64) return;\n    wgmma_fence();")], "All 128 threads of the warpgroup have to come to it together"),
    # A traceback before.
    ("mend_parity", "coordinates the wrong way round"): ([("X, 32 * i, 64 * blockIdx.x", "X, 64 * blockIdx.x, 32 * i")], "coordinates of tma_load are the other way round"),
    # Told without a cause before, or with another one.
    ("split_k", "all blocks begin at term 0"): ([("int k = blockIdx.z", "int k = 0")], "begins at term 0, so all of them add the same terms"),
    ("split_k", "the sum is an int"): ([(ADD, "atomicAdd((int*)&C[row * N + col], (int)sum);")], "the bits of whole numbers"),
    ("split_k", "no atomic"): ([(ADD, "C[row * N + col] = sum;")], "stores to element [0, 0] of C by thread"),
    ("rasterise", "bands of columns"): (
        [("block / (GROUP * tiles_n)", "block / (GROUP * tiles_m)"), ("tiles_m - first_row", "tiles_n - first_row"), ("first_row * tiles_n", "first_row * tiles_m"), ("const int m = first_row", "const int n = first_row"), ("const int n = within", "const int m = within")],
        "Block 1 visits tile (0, 1) of 8 x 6, and should visit tile (1, 0)",
    ),
    ("rasterise", "two blocks at one tile"): ([("const int m = first_row + within % rows", "const int m = within % rows")], "stores to element [0, 0] of order by thread (0, 0, 0) of block"),
    ("rasterise", "the last band taken for a whole one"): ([("min(GROUP, tiles_m - first_row)", "GROUP")], "divided by the band's own number of rows"),
    ("transpose_tile", "padded on one side only"): ([(READ, "tile[tx * 32 + r]")], "though every thread has stored"),
    ("transpose_tile", "not transposed"): ([(READ, "tile[r * PITCH + tx]")], "row and column are the other way round"),
    ("transpose_tile", "an array too small"): ([("tile[32 * PITCH]", "tile[32 * 32]")], "beyond the end of an array"),
    ("swizzle_rows", "two chunks in one place"): ([("chunk ^ row / 2 % 4", "chunk | row / 2 % 4")], "stores to one place of tile by thread"),
    ("swizzle_rows", "rows that meet"): ([("chunk ^ row / 2 % 4", "chunk ^ row % 4")], "lanes 0 and 4 need different words of bank 0"),
    ("choose_padding", "rows that are not aligned"): ([("PAD = 8", "PAD = 4")], "So do the start of the array and the length of its rows"),
    ("beat_the_clock", "begins at 1"): ([("for (int k = 0; k < STEP; ++k)", "for (int k = 1; k < STEP; ++k)")], "Terms k with k % 16 = 0 are never added"),
    ("beat_the_clock", "the sums are ints"): ([("float sum[4][4]", "int sum[4][4]")], "Every element is a whole number"),
    ("beat_the_clock", "the sums are rounded"): (
        [("constexpr int TILE", "#include <cuda_fp16.h>\nconstexpr int TILE"), ("sum[i][j] += av[i] * bv[j]", "sum[i][j] = __half2float(__float2half(sum[i][j] + av[i] * bv[j]))")], "All values fit a half",
    ),
    ("beat_the_clock", "other outputs than those that are stored"): (
        [("*reinterpret_cast<float4*>(&As[k][4 * ty]);", "make_float4(As[k][ty], As[k][ty + 16], As[k][ty + 32], As[k][ty + 48]);"), ("*reinterpret_cast<float4*>(&Bs[k][4 * tx]);", "make_float4(Bs[k][tx], Bs[k][tx + 16], Bs[k][tx + 32], Bs[k][tx + 48]);")],
        "[0, 1] of the output holds what belongs at [0, 16]",
    ),
    ("block_reduce", "neighbours in pairs"): ([("if (t < half) s[t] += s[t + half];", "if (t < half) s[2 * t] += s[2 * t + 1];")], "In turn 1 thread 0 reads s[1], and must read s[128]"),
    ("block_reduce", "one too few"): ([("int half = 128", "int half = 127")], "In turn 1 thread 0 reads s[127], and must read s[128]"),
    ("keep_precision", "begins at 1"): ([("int k = 0", "int k = 1")], "It lacks A[0][0]"),
    ("keep_precision", "down a column"): ([("B[row * K + k]", "B[k * M + row]")], "B is read at k * M + row"),
    ("find_race", "one pair left out"): ([("i < n / 2", "i < n / 2 - 1")], "x[255] and x[256] are a pair that no thread swaps"),
    ("find_race", "arithmetic in place of a copy"): (
        [(SWAP, "    if (i < n / 2) {\n        x[i] += x[n - 1 - i];\n        x[n - 1 - i] = x[i] - x[n - 1 - i];\n        x[i] -= x[n - 1 - i];\n    }\n")], "their last digits have changed",
    ),
    ("find_race", "a sign"): ([("x[i] = other", "x[i] = -other")], "of the wrong sign"),
    ("guard_epilogue", "the old C by alpha"): ([("beta * c[j]", "alpha * c[j]"), ("beta * old", "alpha * old")], "* (the old C), and must be"),
    ("tile_copy", "no commit"): ([("    cp_async_commit();\n", "")], "these copies belong to none"),
    ("tile_copy", "no wait"): ([("    cp_async_wait<0>();\n", "")], "Nothing in this launch waits for its copies"),
    ("tile_copy", "a wait that leaves one"): ([("cp_async_wait<0>", "cp_async_wait<1>")], "does not wait for the newest group"),
    ("tile_copy", "one lane waits for all"): ([("    cp_async_wait<0>();", "    if (lane == 0) cp_async_wait<0>();")], "Not all threads come to cp_async_wait<n>()"),
    ("tile_fragments", "half of the lanes"): ([("        ldmatrix_x4(", "        if (lane < 16) ldmatrix_x4(")], "All 32 lanes of the warp have to come to it together"),
    ("tile_multiply", "half of the lanes"): ([("        mma_m16n8k16(acc[0]", "        if (lane < 16) mma_m16n8k16(acc[0]")], "The lanes of one warp wait at different places"),
    ("tile_multiply", "both products in one half"): ([("mma_m16n8k16(acc[1]", "mma_m16n8k16(acc[0]")], "In columns 0-7 of C, terms 0-7 of A are multiplied with terms 0-7 of B's columns 0-7 and with"),
    ("tile_multiply", "both from A"): ([("load(b, Bs, step)", "load(b, As, step)")], "Both operands are taken from A"),
    ("tile_pipeline", "B stays"): ([("Bt + 32 * tile", "Bt")], "A moves on along K, and B stays at its first tile (32 terms)"),
    ("split_tf32", "a pair of both parts"): ([("mma_m16n8k8_tf32(acc, a, b_low[0], b_low[1]);", "mma_m16n8k8_tf32(acc, a, b[0], b_low[1]);")], "both registers have to be of the same part of B"),
    ("write_descriptor", "B in A's place"): ([("describe(b_tile", "describe(a_tile + A_BYTES - A_BYTES")], "B's descriptor names the tile of A"),
}  # fmt: skip


@pytest.mark.parametrize("which", EDITED, ids=": ".join)
def test_it_fails_with_its_cause(which):
    edits, words = EDITED[which]
    exercise = find(which[0])
    verdict = judge(exercise, edited(exercise.solution, edits), np.random.default_rng(7))
    assert not verdict
    said = " ".join(str(verdict).split())
    assert any(word in said for word in words.split("|")), str(verdict)
    assert explained(str(verdict).splitlines())


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


@pytest.mark.parametrize(
    "shape_and_stride, words",
    [
        ((((4, 8), 4), ((1, 24), 96)), "One step of v is a row down: 24 elements. This layout takes 96."),
        ((((4, 8), 4), ((192, 2), 48)), "One step of t / 4 is a column to the right: 1 elements. This layout takes 2."),
        ("((4,8),4):((96,1),24)", "two tuples, not a text"),
    ],
)  # fmt: skip
def test_a_layout_is_told_its_wrong_steps(shape_and_stride, words):
    verdict = judge_answer("compose_layout", shape_and_stride)
    assert not verdict
    assert words in " ".join(str(verdict).split())


def test_weights_in_words():
    assert in_words(np.ones(32), "k") is None
    assert in_words(2 * np.ones(32), "k") is None
    assert (
        in_words(np.isin(np.arange(32), [0, 4]), "k") == "Of 32 terms only k = 0 and 4 are added."
    )
    assert in_words(np.arange(32) % 16 > 0, "k") == "Terms k with k % 16 = 0 are never added."
    assert in_words(np.where(np.arange(32) == 3, 2, 1), "k") == "Term 3 is added 2 times."


def test_the_arrays_of_a_line_as_they_are_declared():
    source = "void f() {\n    __shared__ __align__(16) float As[STEP][TILE + 4], Bs[8];\n    float x =\n        Bs[9];\n}\n"
    assert declared_shared(source, 4) == ["Bs[8]"]
    assert declared_shared(source, None) == ["As[STEP][TILE + 4]", "Bs[8]"]
