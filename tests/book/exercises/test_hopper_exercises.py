# ruff: noqa: E501 (a row of the table of mistakes may run on)
"""The Hopper exercises: what is given fails, the solution passes, mistakes are named, other right ways pass."""

import numpy as np
import pytest

import emulator
import kernels
from book.exercises import find, judge
from book.exercises.cell import judge_answer
from book.exercises.diagnose import explained
from book.exercises.functions import best_share
from tests.book.exercises.test_ramp import plain, with_edits

GIVEN = {
    "mend_parity": "wait for parity 0 passes when the first phase has ended",
    "write_descriptor": "descriptor and tensor map disagree",
    "place_fences": "the fence after barrier_init is missing",
    "split_steps": "96 wgmma (four warps issue each, so each counts four)",
    "split_tf32": "10 bits of mantissa are left",
}
HANGS = "it hangs"
ADD = "    __syncthreads();\n    float (*sums)[128] = reinterpret_cast<float (*)[128]>(tiles);\n    if (group == 1)\n        for (int i = 0; i < 32; ++i) sums[i][thread] = acc[i / 4][i % 4];\n    __syncthreads();\n    if (group == 1) return;\n    for (int i = 0; i < 32; ++i) acc[i / 4][i % 4] += sums[i][thread];\n"
STEPS = "for (int step = group; step < steps; step += 2)"
FULL, EMPTY = (
    "barrier_wait(full + 8 * s, i / STAGES % 2);",
    "barrier_wait(empty + 8 * s, i / STAGES % 2 ^ 1);",
)

MISTAKES = {
    "mend_parity": {
        "the producer as the consumers": ([(EMPTY, "barrier_wait(empty + 8 * s, i / STAGES % 2);")], HANGS),
        "the consumers as the producer": ([(FULL, "barrier_wait(full + 8 * s, i / STAGES % 2 ^ 1);")], "a wait with the wrong parity"),
        "by the tile's number": ([(FULL, "barrier_wait(full + 8 * s, i % 2);")], "a wait with the wrong parity|" + HANGS),
        "the producer by the tile's number": ([(EMPTY, "barrier_wait(empty + 8 * s, i % 2 ^ 1);")], HANGS),
        "always 0": ([(FULL, "barrier_wait(full + 8 * s, 0);")], HANGS + "|a wait with the wrong parity"),
        "the producer does not wait": ([(EMPTY, "")], "is that wait there"),
        "the consumers do not wait": ([(FULL, "")], "a copy by TMA has not finished writing"),
        "a phase, not its parity": ([(EMPTY, "barrier_wait(empty + 8 * s, (i / STAGES - 1) % 2);")], "neither 0 nor 1"),
        "the other barrier": ([(FULL, "barrier_wait(empty + 8 * s, i / STAGES % 2);")], HANGS),
        "one thread waits": ([(FULL, "if (thread == 0) barrier_wait(full + 8 * s, i / STAGES % 2);")], "a tile read by a thread that has not waited"),
        "nobody releases": ([("            barrier_arrive(empty + 8 * s);\n", "")], "lacks 64 of 64 arrivals"),
        "half of the bytes": ([("TILE_BYTES);\n            tma", "TILE_BYTES / 2);\n            tma")], "bytes"),
        "always 1": ([(EMPTY, "barrier_wait(empty + 8 * s, 1);")], "right parity"),
    },
    "write_descriptor": {
        "A stays": ([("a_tile + k * 2", "a_tile")], "A's start does not move along k"),
        "B stays": ([("b_tile + k * 128", "b_tile")], "B's start does not move along k"),
        "A by elements": ([("a_tile + k * 2", "a_tile + k")], "an element has two"),
        "B as A": ([("b_tile + k * 128", "b_tile + k * 2")], "B's start moves along its row"),
        "no panel": ([("PANEL_BYTES, 8 * 128, 1)", "0, 8 * 128, 1)")], "both panels are read from the first one"),
        "B's offsets swapped": ([("PANEL_BYTES, 8 * 128, 1)", "8 * 128, PANEL_BYTES, 1)")], "the wrong way round"),
        "from row to row": ([("16, 8 * 128, 1)", "16, 128, 1)")], "from eight rows to the next eight"),
        "the swizzle of 64 bytes": ([("8 * 128, 1);\n        const auto b", "8 * 128, 2);\n        const auto b")], "another swizzle"),
        "A as B": ([("a_tile + k * 2", "a_tile + k * 128")], "A's start moves by 128 x k bytes"),
        "half a panel": ([("PANEL_BYTES, 8 * 128, 1)", "64 * 64, 8 * 128, 1)")], "leading offset is 4,096 bytes"),
        "16 rows": ([("16, 8 * 128, 1)", "16, 16 * 128, 1)")], "A's stride offset is 2,048 bytes"),
        "no start": ([("= (start & 0x3ffff) >> 4;", "= 0;")], "The starts are missing"),
        "the sums of before": ([("a, b, k > 0)", "a, b, true)")], "The first product has to replace the sums"),
        "no swizzle": ([("static_cast<unsigned long long>(swizzle_code) << 62", "0")], "swizzle 0 means that bits 62 and 63 are not set"),
        "bytes are not divided": ([("(stride >> 4)", "(stride)")], "divided by 16 before they are packed|out of bounds|stride"),
        "the start is not divided": ([("(start & 0x3ffff) >> 4", "start & 0x3ffff")], "divided by 16 before they are packed|misaligned|out of bounds|another swizzle"),
        "shifted in 32 bits": ([("static_cast<unsigned long long>(stride >> 4) << 32", "(stride >> 4) << 31 << 1")], "stride offsets are 0"),
    },
    "place_fences": {
        "no fence after the initialising": ([("        barrier_init_fence();\n", "")], "barrier_init_fence() has to follow"),
        "no proxy fence": ([("    async_fence();\n", "")], "async_fence() after its stores"),
        "the proxy fence by one thread": ([("    async_fence();\n", "    if (threadIdx.x == 0) async_fence();\n")], "async_fence() after its stores"),
        "no wgmma fence": ([("    wgmma_fence();\n", "")], "wgmma_fence() has to come before"),
        "the wgmma fence too early": ([("    wgmma_fence();\n", ""), ("    copy_sums(true);\n", "    wgmma_fence();\n    copy_sums(true);\n")], "wgmma_fence() has to come before"),
        "no wait": ([("    wgmma_wait<0>();\n", "")], "wgmma_wait<0>() have to come before"),
        "no commit": ([("    wgmma_commit();\n", "")], "wgmma_commit()"),
        "a wait for all but one": ([("wgmma_wait<0>", "wgmma_wait<1>")], "wgmma_wait<0>() have to come before"),
        "one barrier for all": ([("    async_fence();\n    __syncthreads();\n", "    async_fence();\n")], "a race|read by the async proxy|async_fence"),
        "no zeros, no old C": ([("    copy_sums(true);\n", "")], "The old C is not added"),
    },
    "split_steps": {
        "nobody adds": ([(ADD, "    if (group == 1) return;\n")], "nobody adds the sums of warpgroup 1"),
        "warpgroup 0 takes all": ([(STEPS, "for (int step = 0; step < (group ? 0 : steps); ++step)")], "all four were added into the same sum as step 0"),
        "one step, and all others": ([(STEPS, "for (int step = group; step < (group ? steps : 1); ++step)")], "three were added into another sum"),
        "both take all": ([(STEPS, "for (int step = 0; step < steps; ++step)")], "everything is added twice"),
        "both the even ones": ([(STEPS, "for (int step = 0; step < steps; step += 2)")], "Both warpgroups take steps 0, 2, 4"),
        "half of the registers": ([("i < 32; ++i) acc", "i < 16; ++i) acc")], "Only half of warpgroup 1's registers are added"),
        "no wait for the product": ([("        wgmma_wait<0>();\n", "")], "wgmma_wait<0>() have to come before|a product"),
        "no barrier": ([("    __syncthreads();\n    if (group == 1) return;\n", "    if (group == 1) return;\n")], "a race"),
        "the odd step is lost": ([(STEPS, "for (int step = group * (steps / 2); step < (group + 1) * (steps / 2); ++step)")], "left out where the number of steps is odd"),
        "set, not added": ([("acc[i / 4][i % 4] += sums[i][thread]", "acc[i / 4][i % 4] = sums[i][thread]")], "Only the steps of warpgroup 1 arrive"),
        "a barrier after the return": ([("    __syncthreads();\n    if (group == 1) return;\n", "    if (group == 1) return;\n    __syncthreads();\n")], "a barrier that not all threads reach|a race"),
        "both write, both add": ([("    if (group == 1)\n        for", "    for")], "a race"),
    },
    "split_tf32": {
        "one cross term": ([("        mma_m16n8k8_tf32(acc, a, b_low[0], b_low[1]);\n", "")], "a * b_low is missing"),
        "the other": ([("        mma_m16n8k8_tf32(acc, a_low, b[0], b[1]);  // small terms first\n", "")], "a_low * b is missing"),
        "low times low": ([("        mma_m16n8k8_tf32(acc, a_low, b[0], b[1]);  // small terms first\n", ""), ("acc, a, b_low[0]", "acc, a_low, b_low[0]")], "a * b_low and a_low * b are missing"),
        "large parts missing": ([("        mma_m16n8k8_tf32(acc, a, b[0], b[1]);\n", "")], "The product of what tf32 keeps is missing"),
        "one term twice": ([("acc, a, b_low[0], b_low[1]", "acc, a_low, b[0], b[1]")], "a_low * b is added twice"),
        "large parts for low": ([("low = to_tf32(x - __uint_as_float(high))", "low = to_tf32(x)")], "low is x itself"),
        "the other sign": ([("low = to_tf32(x - __uint_as_float(high))", "low = to_tf32(__uint_as_float(high) - x)")], "low has the wrong sign"),
        "high is not rounded": ([("high = to_tf32(x)", "high = __float_as_uint(x)")], "mma ignores the 13 low bits"),
        "no tensor cores": (
            [("        mma_m16n8k8_tf32(acc, a_low, b[0], b[1]);  // small terms first\n", ""), ("        mma_m16n8k8_tf32(acc, a, b_low[0], b_low[1]);\n", ""),
             ("        mma_m16n8k8_tf32(acc, a, b[0], b[1]);\n", "        for (int j = 0; j < 8; ++j) for (int i = 0; i < 4; ++i)\n            acc[i] += A[(row + i / 2 * 8) * K + k + j] * B[(k + j) * N + col + 2 * pair + i % 2];\n")],
            "0 matrix multiplications of a warp",
        ),
        "registers of B swapped": ([("acc, a, b_low[0], b_low[1]", "acc, a, b_low[1], b_low[0]")], "b_low[0] and b_low[1] are the other way round"),
    },
}  # fmt: skip

OTHER_WAYS = {
    "mend_parity": {
        "a bit that flips": [
            ("        for (int i = 0; i < tiles; ++i) {\n            const int s = i % STAGES;\n            barrier_wait(full + 8 * s, i / STAGES % 2);",
             "        unsigned phase = 0;\n        for (int i = 0; i < tiles; ++i) {\n            const int s = i % STAGES;\n            barrier_wait(full + 8 * s, phase);\n            if (s == STAGES - 1) phase ^= 1;"),
        ],
        "the first fillings do not wait": [(EMPTY, "if (i >= STAGES) barrier_wait(empty + 8 * s, (i / STAGES - 1) % 2);")],
        "one plus": [(EMPTY, "barrier_wait(empty + 8 * s, (i / STAGES + 1) & 1);")],
    },
    "write_descriptor": {
        "the header's own function": [("describe(a_tile + k * 2, 16, 8 * 128, 1)", "wgmma_descriptor(a_tile + k * 2)"), ("describe(b_tile + k * 128, PANEL_BYTES, 8 * 128, 1)", "wgmma_descriptor(b_tile + k * 128, PANEL_BYTES)")],
        "no leading offset for A": [("describe(a_tile + k * 2, 16, ", "describe(a_tile + k * 2, 0, ")],
        "numbers": [("PANEL_BYTES, 8 * 128, 1)", "8192, 1024, 1)")],
    },
    "place_fences": {
        "each reader's fence, behind the barrier": [("    async_fence();\n    __syncthreads();\n", "    __syncthreads();\n    async_fence();\n")],
        "a fence for all": [("        barrier_init_fence();\n", "        async_fence();\n")],
        "a fence before each product": [("        wgmma_k16<half", "        wgmma_fence(),\n        wgmma_k16<half")],
        "a fence in the loop": [("i += 128)\n        pairs[i] = __hadd2(pairs[i], pairs[i]);\n    async_fence();", "i += 128) {\n        pairs[i] = __hadd2(pairs[i], pairs[i]);\n        async_fence();\n    }")],
    },
    "split_steps": {
        "halves": [(STEPS, "for (int step = group * ((steps + 1) / 2); step < (group ? steps : (steps + 1) / 2); ++step)")],
        "warpgroup 0 takes the odd ones": [(STEPS, "for (int step = 1 - group; step < steps; step += 2)")],
        "an array of their own": [
            ("    __syncthreads();\n    float (*sums)[128] = reinterpret_cast<float (*)[128]>(tiles);\n", "    __shared__ float sums[32][128];\n"),
        ],
    },
    "split_tf32": {
        "all four terms": [("        mma_m16n8k8_tf32(acc, a_low, b[0]", "        mma_m16n8k8_tf32(acc, a_low, b_low[0], b_low[1]);\n        mma_m16n8k8_tf32(acc, a_low, b[0]")],
        "large terms first": [("        mma_m16n8k8_tf32(acc, a_low, b[0], b[1]);  // small", "        mma_m16n8k8_tf32(acc, a, b[0], b[1]);\n        mma_m16n8k8_tf32(acc, a_low, b[0], b[1]);  // small"), ("b_low[1]);\n        mma_m16n8k8_tf32(acc, a, b[0], b[1]);\n", "b_low[1]);\n")],
        "low left as it is": [("low = to_tf32(x - __uint_as_float(high))", "low = __float_as_uint(x - __uint_as_float(high))")],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_given_fails(name):
    verdict = judge(find(name), find(name).skeleton)
    assert not verdict
    assert GIVEN[name] in plain(verdict), str(verdict)


@pytest.mark.parametrize("name", GIVEN)
def test_the_solution_passes(name):
    verdict = judge(find(name), find(name).solution)
    assert verdict, str(verdict)


@pytest.mark.parametrize("name,mistake", [(n, m) for n in MISTAKES for m in MISTAKES[n]])
def test_a_mistake_is_told_by_its_cause(name, mistake):
    edits, words = MISTAKES[name][mistake]
    verdict = judge(find(name), with_edits(name, edits))
    assert not verdict
    assert any(word in plain(verdict) for word in words.split("|")), str(verdict)
    assert explained(str(verdict).splitlines()), str(verdict)


@pytest.mark.parametrize("name,way", [(n, w) for n in OTHER_WAYS for w in OTHER_WAYS[n]])
def test_other_right_ways_pass(name, way):
    verdict = judge(find(name), with_edits(name, OTHER_WAYS[name][way]))
    assert verdict, str(verdict)


def test_each_has_five_mistakes():
    assert all(len(mistakes) >= 5 for mistakes in (*MISTAKES.values(), *WRONG_ANSWERS.values()))


def _python(body):
    names = {}
    exec("from emulator import TensorMap\nimport numpy as np\n" + body, names)
    return names.get("describe") or names.get("share")


MAP = "def describe(matrix, rows, row_bytes):\n    "
SHARE = "def share(launched, consumers, producer):\n    "
WRONG_ANSWERS = {
    "encode_map": {
        "sides swapped": (MAP + "return TensorMap(matrix, (row_bytes // matrix.itemsize, rows), swizzle=row_bytes)", "the other way round|TensorMap refuses"),
        "bytes": (MAP + "return TensorMap(matrix, (rows, row_bytes), swizzle=row_bytes)", "The box counts elements"),
        "two bytes": (MAP + "return TensorMap(matrix, (rows, row_bytes // 2), swizzle=row_bytes)", "ask matrix.itemsize"),
        "64 columns": (MAP + "return TensorMap(matrix, (rows, 64), swizzle=128)", "the box is|TensorMap refuses"),
        "no swizzle": (MAP + "return TensorMap(matrix, (rows, row_bytes // matrix.itemsize))", "there is no swizzle"),
        "always 128": (MAP + "return TensorMap(matrix, (rows, row_bytes // matrix.itemsize), swizzle=128)", "spans 128 bytes, and a row of the box has 64"),
        "a part of it": (MAP + "return TensorMap(matrix[:rows], (rows, row_bytes // matrix.itemsize), swizzle=row_bytes)", "The map describes the whole matrix"),
        "the whole matrix": (MAP + "return TensorMap(matrix, matrix.shape, swizzle=row_bytes)", "A box is a tile"),
        "another swizzle": (MAP + "return TensorMap(matrix, (rows, row_bytes // matrix.itemsize), swizzle=64)", "The box is right"),
        "a float": (MAP + "return TensorMap(matrix, (rows, row_bytes / matrix.itemsize), swizzle=row_bytes)", "// an integer"),
        "transposed": (MAP + "return TensorMap(matrix.T, (rows, row_bytes // matrix.itemsize), swizzle=row_bytes)", "do not transpose it"),
        "a copy": (MAP + "return TensorMap(np.ascontiguousarray(matrix), (rows, row_bytes // matrix.itemsize), swizzle=row_bytes)", "describes a copy"),
        "no return": (MAP + "TensorMap(matrix, (rows, row_bytes // matrix.itemsize), swizzle=row_bytes)", "returns nothing"),
        "a tuple": (MAP + "return (rows, row_bytes // matrix.itemsize)", "the answer is a TensorMap, not tuple"),
    },
    "balance_roles": {
        "no eights": (SHARE + "return producer, (launched * (consumers + 1) - producer) // consumers", "no multiple of 8"),
        "rounded down": (SHARE + "p = max(24, producer // 8 * 8)\n    return p, (launched * (consumers + 1) - p) // consumers // 8 * 8", "are too few"),
        "at least 24 forgotten": (SHARE + "p = -(-producer // 8) * 8\n    return p, (launched * (consumers + 1) - p) // consumers // 8 * 8", "from 24 to 256"),
        "the whole file": (SHARE + "p = max(24, -(-producer // 8) * 8)\n    return p, (65536 // 128 - p) // consumers // 8 * 8", "was given"),
        "the producer's are not counted": (SHARE + "p = max(24, -(-producer // 8) * 8)\n    return p, launched * (consumers + 1) // consumers // 8 * 8", "wait for ever"),
        "only the consumers' own": (SHARE + "p = max(24, -(-producer // 8) * 8)\n    return p, launched", "there is room for"),
        "swapped": (SHARE + "p = max(24, -(-producer // 8) * 8)\n    return (launched * (consumers + 1) - p) // consumers // 8 * 8, p", "the other way round"),
        "a float": (SHARE + "return 24.0, 240.0", "// an integer"),
        "always 40": (SHARE + "return 40, (launched * (consumers + 1) - 40) // consumers // 8 * 8", "needs no more than 24"),
        "not divided": (SHARE + "p = max(24, -(-producer // 8) * 8)\n    return p, launched * (consumers + 1) - p", "to 256|wait for ever"),
    },
}  # fmt: skip


@pytest.mark.parametrize("name,mistake", [(n, m) for n in WRONG_ANSWERS for m in WRONG_ANSWERS[n]])
def test_wrong_answers_are_told_why(name, mistake):
    text, words = WRONG_ANSWERS[name][mistake]
    verdict = judge_answer(name, _python(text))
    assert not verdict and any(word in plain(verdict) for word in words.split("|")), str(verdict)


@pytest.mark.parametrize("name", WRONG_ANSWERS)
def test_answers_that_are_no_kernel(name):
    assert not judge_answer(name, _python(find(name).given))
    assert judge_answer(name, _python(find(name).answer))
    assert "without parentheses" in plain(judge_answer(name, None))


def test_the_best_share_runs_and_a_larger_one_waits_for_ever():
    text = """#include "hopper.cuh"
extern "C" __global__ void __launch_bounds__(384) roles(int* out) {
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
