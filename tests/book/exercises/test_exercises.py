# ruff: noqa: E501 (a row of the table of mistakes may run on)
"""Each exercise: what is given fails, the solution passes, and plausible mistakes are told apart by their cause."""

import re
import time

import nbformat
import numpy as np
import pytest

from book.exercises import EXERCISES, attempt, check, find, judge, notebooks, progress
from book.exercises.cell import judge_answer
from book.exercises.diagnose import explained
from book.exercises.exercise import FOLDER
from tests.book.exercises import test_hopper_exercises, test_ramp

RAMP = {  # tested there
    name for one in (test_ramp, test_hopper_exercises) for name in (*one.GIVEN, *one.WRONG_ANSWERS)
}
KERNELS = [e.name for e in EXERCISES if e.is_kernel and e.name not in RAMP]
ANSWERS = [e.name for e in EXERCISES if not e.is_kernel and e.name not in RAMP]

# What is said of the version that the reader is given.
GIVEN = {
    "coalesce": "global sectors",
    "place_barriers": "a race",
    "coarsen": "sum[1] to sum[3] stay 0",
    "vectorize": "global requests",
    "mend_pipeline": "a race",
    "pipeline_stages": "barriers",
    "wmma_tile": "A and B are not read",
    "load_fragments": "A and B are not read",
    "transpose_operand": "Every lane points at row 0 of B",
    "choose_padding": "shared-memory wavefronts",
    "swizzle_rows": "shared-memory wavefronts",
    "transpose_tile": "shared-memory wavefronts",
    "guard_epilogue": "out of bounds",
    "fuse_gelu": "The bias and gelu are missing",
    "rasterise": "This is row-major order",
    "beat_the_clock": "what is read is not used",
}

# Mistakes: edits to the solution, and words that the verdict must hold.
MISTAKES = {
    "coalesce": {
        "both indices from y": (
            [("* 32 + threadIdx.x;", "* 32 + threadIdx.y;")],
            "must never have the same row and the same column",
        ),
        "output written transposed": ([("C[row * N + col] = sum", "C[col * M + row] = sum")], "transposed"),
        "guard the wrong way round": ([("row < M && col < N", "row < N && col < M")], "64 is M: is a column compared with M where N must stand"),
        "last term forgotten": ([("k < K; ++k", "k < K - 1; ++k")], "last term along K is missing"),
        "no semicolon": ([("sum = 0.0f;", "sum = 0.0f")], 'expected a ";"'),
    },
    "place_barriers": {
        "only the first": ([("        __syncthreads();  // everyone has read", "        // everyone")], "a race"),
        "only the second": ([("        __syncthreads();  // the tiles", "        // the tiles")], "a race"),
        "inside a branch": (
            [("        __syncthreads();  // the tiles", "        if (row < M) __syncthreads();  // the tiles")],
            "a barrier that not all threads reach",
        ),
        "after the loop": (
            [
                ("        __syncthreads();  // everyone has read them: overwrite them\n    }", "    }\n    __syncthreads();"),
            ],
            "a race",
        ),
    },
    "coarsen": {
        "sums side by side, stores too": ([("As[ty + 8 * i][k]", "As[ty * TM + i][k]")], "holds what belongs in row 4"),
        "no guard on the store": ([("if (row < M && col < N) C", "if (col < N) C")], "out of bounds"),
        "only half the steps": ([("k < TILE; ++k", "k < TILE; k += 2")], "Of every 2 terms along K only the first is summed"),
        "Bs read again for each output": (
            [("sum[i] += As[ty + 8 * i][k] * b", "sum[i] += As[ty + 8 * i][k] * *(volatile float*)&Bs[k][tx]")],
            "shared-memory wavefronts",
        ),
        "the last barrier forgotten": ([("        __syncthreads();\n    }\n    for", "    }\n    for")], "a race"),
    },
    "vectorize": {
        "no look at N": ([("if (N % 4 == 0)", "if (true)")], "misaligned"),
        "by the number of rows": ([("N % 4 == 0", "M % 4 == 0")], "misaligned"),
        "only where N is a multiple of 8": ([("N % 4 == 0", "N % 8 == 0")], "the goal is 18"),
        "tail forgotten": ([("for (int i = threadIdx.x; i < N; i +=", "for (int i = threadIdx.x; i < N / 4 * 4; i +=")], "N=301 is no multiple of 4"),
        "index not times four": ([("int i = 4 * threadIdx.x", "int i = threadIdx.x")], "misaligned"),
        "a quarter of the row": ([("i < N; i += 4 * blockDim.x", "i < N / 4; i += 4 * blockDim.x")], "stores to row 0, columns 0 to 127 of Y, and must store to row 0, columns 0 to 511"),
    },
    "mend_pipeline": {
        "barrier before the wait": (
            [
                ("        cp_async_wait<0>();  // this thread's copies have landed ...\n", ""),
                ("        if (tile + 1 < 4) fetch", "        cp_async_wait<0>();\n        if (tile + 1 < 4) fetch"),
            ],
            "a race",
        ),
        "a warp's barrier": ([("__syncthreads();     //", "__syncwarp();     //")], "a race"),
        "fetch before the barrier": (
            [
                ("        cp_async_wait<0>();  //", "        if (tile + 1 < 4) fetch(tile + 1);\n        cp_async_wait<1>();  //"),
                ("        if (tile + 1 < 4) fetch(tile + 1);\n        out", "        out"),
            ],
            "a race",
        ),
        "same buffer twice": ([("buffer[tile % 2][thread]", "buffer[(tile + 1) % 2][thread]")], "a race with a copy"),
    },
    "pipeline_stages": {
        "waits for one too few": ([("cp_async_wait<STAGES - 2>", "cp_async_wait<STAGES - 1>")], "a race with a copy"),
        "no empty groups at the end": (
            [
                ("if (tile + STAGES - 1 < tiles) fetch(tile + STAGES - 1);\n        cp_async_commit();",
                 "if (tile + STAGES - 1 < tiles) { fetch(tile + STAGES - 1); cp_async_commit(); }"),
            ],
            "a race with a copy",
        ),
        "reads the next slot": ([("buffer[tile % STAGES][thread * PITCH", "buffer[(tile + 1) % STAGES][thread * PITCH")], "nobody has written"),
        "no barrier": ([("        __syncthreads();", "        //")], "a race"),
        "waits for all": ([("cp_async_wait<STAGES - 2>", "cp_async_wait<0>")], "1 copy is in flight; at least 2 should be"),
    },
    "wmma_tile": {
        "B taken for column-major": ([("matrix_b, 16, 16, 16, half, wmma::row_major", "matrix_b, 16, 16, 16, half, wmma::col_major")], "col_major where the tile lies row by row"),
        "the tile's stride": ([("A + row * K + k, K)", "A + row * K + k, 16)")], "stride of 16"),
        "last step forgotten": ([("k < K; k += 16", "k + 16 < K; k += 16")], "The last tile of K (16 terms) is missing"),
        "stored column-major": ([("mem_row_major", "mem_col_major")], "transposed"),
    },
    "load_fragments": {
        "registers 1 and 2 swapped": (
            [("8 * (r % 2), col = 2 * pair + 8 * (r / 2)", "8 * (r / 2), col = 2 * pair + 8 * (r % 2)")],
            "wrong order",
        ),
        "group and pair swapped in B": ([("const int row = 2 * pair + 8 * r;\n        b[r] = pack(B[row * 8 + group], B[(row + 1) * 8 + group])",
                                          "const int row = 2 * pair + 8 * r;\n        b[r] = pack(B[(8 * r + group) * 8 + 2 * pair], B[(8 * r + group) * 8 + 2 * pair + 1])")], "block of B is transposed"),
        "halves swapped": ([("pack(A[row * 16 + col], A[row * 16 + col + 1])", "pack(A[row * 16 + col + 1], A[row * 16 + col])")], "halves of each register"),
        "second register of B forgotten": ([("for (int r = 0; r < 2; ++r)", "for (int r = 0; r < 1; ++r)")], "last tile of K (8 terms) is missing"),
    },
    "transpose_operand": {
        "matrices 1 and 2 swapped": (
            [("row = lane % 16, col = lane / 16 * 8", "row = lane % 8 + lane / 16 * 8, col = lane / 8 % 2 * 8")],
            "wrong order",
        ),
        "no transposition": ([("ldmatrix_x4_trans(b,", "ldmatrix_x4(b,")], "block of B is transposed"),
        "halves of K swapped": ([("row = lane % 16,", "row = (lane + 8) % 16,")], "swapped with terms 0-7"),
        "beyond the row": ([("Bs + row * 16 + col", "Bs + row * 16 + col + 1")], "out of bounds"),
    },
    "choose_padding": {
        "one": ([("PAD = 8;", "PAD = 1;")], "misaligned"),
        "half a chunk": ([("PAD = 8;", "PAD = 4;")], "misaligned"),
        "too much": ([("PAD = 8;", "PAD = 16;")], "the goal is 64"),
        "a whole row": ([("PAD = 8;", "PAD = 64;")], "the goal is 64"),
    },
    "swizzle_rows": {
        "every row its own": ([("chunk ^ row / 2 % 4", "chunk ^ row % 4")], "the goal is 32"),
        "out of the row": ([("chunk ^ row / 2 % 4", "chunk ^ row / 2")], "out of bounds"),
        "two chunks in one place": ([("chunk ^ row / 2 % 4", "chunk | row / 2 % 4")], "so one of two values is lost"),
        "on one side only": ([("tile + lane * 32 + 8 * place(lane, chunk)", "tile + lane * 32 + 8 * chunk")], "holds what belongs at"),
    },
    "transpose_tile": {
        "two": ([("PITCH = 33", "PITCH = 34")], "the goal is 64"),
        "four": ([("PITCH = 33", "PITCH = 36")], "the goal is 64"),
        "swizzled on one side": (
            [("PITCH = 33", "PITCH = 32"), ("tile[tx * PITCH + r]", "tile[tx * PITCH + (r ^ tx)]")],
            "holds what belongs at",
        ),
        "edges forgotten": ([("if (left + r < N && top + tx < M) Y", "if (left + r < N) Y")], "out of bounds"),
        "no barrier": ([("    __syncthreads();\n", "")], "a race"),
    },
    "guard_epilogue": {
        "row not guarded": ([("    if (row >= M) return;\n", "")], "out of bounds"),
        "float4 on any N": ([("col + 4 <= N && N % 4 == 0", "col + 4 <= N")], "misaligned"),
        "C read when beta is 0": (
            [("beta != 0.0f ? *reinterpret_cast<float4*>(c) : make_float4(0, 0, 0, 0)", "*reinterpret_cast<float4*>(c)")],
            "0 * NaN is NaN",
        ),
        "alpha forgotten": ([("alpha * sum", "sum")], "Alpha is missing"),
        "one by one": ([("col + 4 <= N && N % 4 == 0", "false")], "global requests"),
        "only where N is a multiple of 8": ([("N % 4 == 0", "N % 8 == 0")], "global requests"),
    },
    "fuse_gelu": {
        "no gelu": ([("gelu(sum[0] + b.x), gelu(sum[1] + b.y), gelu(sum[2] + b.z), gelu(sum[3] + b.w)",
                      "sum[0] + b.x, sum[1] + b.y, sum[2] + b.z, sum[3] + b.w")], "gelu is missing"),
        "no bias": ([("+ b.x", ""), ("+ b.y", ""), ("+ b.z", ""), ("+ b.w", "")], "The bias is missing"),
        "bias after gelu": ([("gelu(sum[0] + b.x), gelu(sum[1] + b.y), gelu(sum[2] + b.z), gelu(sum[3] + b.w)",
                      "gelu(sum[0]) + b.x, gelu(sum[1]) + b.y, gelu(sum[2]) + b.z, gelu(sum[3]) + b.w")], "added after gelu"),
        "bias of the row": ([("bias + col)", "bias + row / 4 * 4)")], "taken by the row"),
        "one bias for four columns": ([("b.y", "b.x"), ("b.z", "b.x"), ("b.w", "b.x")], "the bias of the first"),
        "one by one": (
            [("*reinterpret_cast<float4*>(c) = make_float4(gelu(sum[0] + b.x), gelu(sum[1] + b.y), gelu(sum[2] + b.z), gelu(sum[3] + b.w));",
              "c[0] = gelu(sum[0] + b.x); c[1] = gelu(sum[1] + b.y); c[2] = gelu(sum[2] + b.z); c[3] = gelu(sum[3] + b.w);")],
            "global requests",
        ),
        "relu": ([("return 0.5f * x * (1.0f + erff(x * 0.70710678f));", "return fmaxf(x, 0.0f);")], "relu"),
    },
    "rasterise": {
        "last band too high": ([("min(GROUP, tiles_m - first_row)", "GROUP")], "out of bounds"),
        "column by column": (
            [("const int rows = min(GROUP, tiles_m - first_row);", "const int rows = tiles_m;"),
             ("const int band = block / (GROUP * tiles_n);", "const int band = 0;")],
            "column-major",
        ),
        "row and column swapped": (
            [("first_row + within % rows", "first_row + within / rows"), ("n = within / rows", "n = within % rows")],
            "out of bounds",
        ),
        "not minus the bands before": ([("block - first_row * tiles_n", "block")], "out of bounds"),
    },
    "beat_the_clock": {
        "no second barrier": ([("= b;\n        __syncthreads();", "= b;")], "a race"),
        "no first barrier": ([("        __syncthreads();\n        As", "        As")], "a race"),
        "tile taken for its transpose": ([("&As[k][4 * ty]", "&As[k][4 * tx]"), ("&Bs[k][4 * tx]", "&Bs[k][4 * ty]")], "4x4 blocks of each 64x64 tile"),
        "last step forgotten": ([("k < STEP; ++k", "k < STEP - 1; ++k")], "The last of every 16 terms"),
    },
}  # fmt: skip


def solution_with(name, edits):
    """The solution with each (old, new) made; white space in `old` stands for any."""
    text = find(name).solution
    for old, new in edits:
        pattern = r"\s+".join(re.escape(word) for word in old.split())
        text, times = re.subn(pattern, lambda _, new=new: new, text)
        assert times, f"{name}: the solution has no {old!r}"
    return text


def test_every_kernel_has_its_mistakes():
    assert set(GIVEN) == set(MISTAKES) == set(KERNELS)
    assert all(len(mistakes) >= 3 for mistakes in MISTAKES.values())
    assert len(EXERCISES) >= 16


def plain(verdict):
    """Without the line ends that fold it to a page."""
    return " ".join(str(verdict).split())


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_given_fails(name):
    verdict = judge(find(name), find(name).skeleton)
    assert not verdict
    assert GIVEN[name] in plain(verdict)


@pytest.mark.parametrize("name", KERNELS)
def test_the_solution_passes(name):
    verdict = judge(find(name), find(name).solution)
    assert verdict, str(verdict)


@pytest.mark.parametrize("name,mistake", [(n, m) for n in MISTAKES for m in MISTAKES[n]])
def test_a_mistake_is_told_by_its_cause(name, mistake):
    edits, words = MISTAKES[name][mistake]
    verdict = judge(find(name), solution_with(name, edits))
    assert not verdict
    assert words in plain(verdict), str(verdict)
    assert explained(str(verdict).splitlines()), "the fallback stands where a cause should"


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_said_does_not_hang_on_the_numbers(name):
    said = {
        str(judge(find(name), find(name).skeleton, np.random.default_rng(seed))) for seed in (1, 2)
    }
    assert len(said) == 1


def answer_of(exercise, text):
    names = {}
    exec(text, names)
    if exercise.name == "swizzle_parameters":
        return names["B"], names["M"], names["S"]
    return names["counts" if exercise.name == "count_wavefronts" else "element"]


RIGHT_COUNTS = {
    "s[lane]": 1, "s[2 * lane]": 2, "s[lane / 2]": 1, "s[32 * lane]": 32, "s[33 * lane]": 1, "float4 s[lane]": 4,
}  # fmt: skip
WRONG_ANSWERS = {
    "count_wavefronts": [
        (RIGHT_COUNTS | {"s[lane / 2]": 2}, "broadcast"),
        (RIGHT_COUNTS | {"float4 s[lane]": 1}, "128 bytes"),
        (RIGHT_COUNTS | {"s[33 * lane]": 32}, "32 different banks"),
        (RIGHT_COUNTS | {"s[2 * lane]": 1}, "bank 0"),
    ],
    "lane_map": [
        (lambda lane, half: (2 * (lane % 4) + half % 2 + half // 4 * 8, lane // 4 + half // 2 % 2 * 8), "Row and column"),
        (lambda lane, half: (lane // 4 + half // 4 * 8, 2 * (lane % 4) + half % 2 + half // 2 % 2 * 8), "Registers 1 and 2"),
        (lambda lane, half: (lane // 4, 2 * (lane % 4) + half % 2), "Only the first register"),
        (lambda lane, half: (lane // 4 + half // 2 % 2 * 8, lane % 4 + half % 2 + half // 4 * 8), "Lanes hold pairs"),
        (lambda lane, half: (lane, half), "register 1 begins eight rows below register 0"),
        (lambda lane, half: lane / 0, "ZeroDivisionError"),
    ],
    "swizzle_parameters": [
        ((2, 3, 2), "the goal is 4"),
        ((2, 4, 3), "leave their row"),
        ((3, 3, 3), "leave their row"),
        ((2, 0, 3), "chunks apart"),
        ((2, 3, 1), "meet themselves"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_judged(name):
    exercise = find(name)
    assert not judge_answer(name, answer_of(exercise, exercise.given))
    assert judge_answer(name, answer_of(exercise, exercise.answer))
    assert len(WRONG_ANSWERS[name]) >= 3
    for answer, words in WRONG_ANSWERS[name]:
        verdict = judge_answer(name, answer)
        assert not verdict
        assert words in str(verdict)


def test_the_lane_map_is_that_of_the_instruction():
    """A 16 x 16 unit matrix with one element changed shows which half of which lane an element came from."""
    from tensor_layouts.atoms_nv import SM80_16x8x16_F32F16F16F32_TN as atom

    from book.exercises.answers import a_element

    for lane in range(32):
        for half in range(8):
            row, col = a_element(lane, half)
            assert (
                atom.a_layout((lane % 4, lane // 4), (half % 2, half // 2 % 2, half // 4))
                == row + 16 * col
            )


@pytest.mark.parametrize("part", notebooks.PARTS)
def test_the_notebook_is_what_the_catalogue_says(part):
    stored = nbformat.read(FOLDER / f"{notebooks.file_name(part)}.ipynb", as_version=4)
    assert [c.source for c in stored.cells] == [c.source for c in notebooks.notebook(part).cells]


@pytest.mark.parametrize("name", ["lab3", "progress"])
def test_the_other_notebooks_are_what_their_sources_say(name):
    stored = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    assert [c.source for c in stored.cells] == [
        c.source for c in notebooks.all_notebooks()[name].cells
    ]


def test_a_kernel_that_does_not_end_is_stopped(monkeypatch):
    monkeypatch.setattr(attempt, "EMULATOR_SECONDS", 1)
    endless = solution_with("place_barriers", [("tile < K; tile += 16", "tile < K;")])
    began = time.process_time()
    verdict = judge(find("place_barriers"), endless)
    assert time.process_time() - began < 3, "one endless launch is enough"
    assert not verdict
    assert "does not end" in str(verdict)
    assert "line " in str(verdict)


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
