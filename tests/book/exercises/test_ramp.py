# ruff: noqa: E501 (a row of the table of mistakes may run on)
"""The first steps and the capstone: what is given fails, the solution passes, mistakes are named, other right ways pass."""

import pytest

from book.exercises import find, judge
from book.exercises.cell import judge_answer
from book.exercises.diagnose import explained

GIVEN = {
    "first_guard": "the last block has threads without an element",
    "fill_with_zeros": "M=20 is no multiple of 16",
    "two_stages": "0 copies are in flight; at least 1 should be",
    "shuffle_sum": "nothing is added",
    "block_reduce": "shared-memory wavefronts",
    "split_k": "a race on global memory",
    "find_race": "a race on global memory",
    "keep_precision": "both rounded to half",
    "tile_copy": "nothing in this kernel writes to it",
    "tile_swizzle": "shared-memory wavefronts",
    "tile_fragments": "0 ldmatrix instructions",
    "tile_multiply": "0 matrix multiplications",
    "tile_pipeline": "Only the first 32 terms of K are summed",
}
OUTSIDE = "out of bounds"
RACE = "a race"
AHEAD = "0 copies are in flight"

MISTAKES = {
    "first_guard": {
        "one too many": ([("i < n", "i <= n")], OUTSIDE),
        "threads of the first block only": ([("blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x")], "a race on global memory"),
        "one too few": ([("i < n", "i < n - 1")], "The last element is left out"),
        "a added": ([("a * x[i]", "a + x[i]")], "a is added to x"),
        "a forgotten": ([("a * x[i]", "x[i]")], "x is not multiplied by a"),
        "y overwritten": ([("a * x[i] + y[i]", "a * x[i]")], "The old y is not added"),
        "y multiplied too": ([("a * x[i] + y[i]", "a * (x[i] + y[i])")], "The old y is multiplied by a too"),
        "one thread does it all, and so do the others": ([("if (i < n) y[i] = a * x[i] + y[i];", "for (int j = 0; j < n; ++j) y[j] = a * x[j] + y[j];")], RACE),
    },
    "fill_with_zeros": {
        "threads beyond the edge return": ([("    float sum = 0.0f;\n", "    if (row >= M) return;\n    float sum = 0.0f;\n")], "no return and no `if`"),
        "nothing stored beyond the edge": (
            [("tile[ty][tx] =\n            row < M && first + tx < K ? X[row * K + first + tx] : 0.0f;", "if (row < M && first + tx < K) tile[ty][tx] = X[row * K + first + tx];")],
            "a thread with nothing to load must store a 0 there",
        ),
        "only the row is guarded": ([("row < M && first + tx < K ?", "row < M ?")], "K=41 is no multiple of 16|The rows"),
        "only the column is guarded": ([("row < M && first + tx < K ?", "first + tx < K ?")], "M=20 is no multiple of 16"),
        "no first barrier": ([("        __syncthreads();  // the tile is filled before it is read\n", "")], RACE),
        "no second barrier": ([("        __syncthreads();  // it has been read before it is filled again\n", "")], RACE),
        "the tail left out": ([("first < K; first += 16", "first + 16 <= K; first += 16")], "last K % 16 columns are left out"),
        "always the first tile": ([("X[row * K + first + tx]", "X[row * K + tx]")], "The first tile is summed in every turn"),
    },
    "two_stages": {
        "the same buffer": ([("&buffer[tile % 2][i", "&buffer[0][i")], RACE),
        "no barrier": ([("        __syncthreads();     // everyone's have", "        // everyone's have")], RACE),
        "fetched before the wait": (
            [("        if (tile + 1 < tiles) fetch(tile + 1);\n", ""), ("        cp_async_wait<0>();", "        if (tile + 1 < tiles) fetch(tile + 1);\n        cp_async_wait<0>();")],
            RACE,
        ),
        "fetched beyond the end": ([("if (tile + 1 < tiles) fetch", "fetch")], OUTSIDE),
        "fetched after the sum": (
            [("        if (tile + 1 < tiles) fetch(tile + 1);\n", ""), ("thread * PITCH + k];\n", "thread * PITCH + k];\n        if (tile + 1 < tiles) fetch(tile + 1);\n")],
            AHEAD,
        ),
        "the next tile read": ([("sum += buffer[tile % 2]", "sum += buffer[(tile + 1) % 2]")], "asynchronous copy has not finished|nobody has written"),
        "no wait": ([("        cp_async_wait<0>();  // this", "        // this")], "a race with a copy"),
    },
    "shuffle_sum": {
        "a step left out": ([("int step = 16", "int step = 8")], "The step over a distance of 16 is missing"),
        "the last step left out": ([("step > 0", "step > 1")], "The step over a distance of 1 is missing"),
        "always the neighbour": ([("sum, step)", "sum, 1)")], "the distance stays 1"),
        "set, not added": ([("sum += __shfl", "sum = __shfl")], "Only the last of the values is there"),
        "upwards": ([("__shfl_down_sync", "__shfl_up_sync")], "the values of higher lanes never come down"),
        "only the lanes with an element": ([("    for (int step", "    if (i >= n) return;\n    for (int step")], "The mask 0xffffffff names all 32 lanes"),
        "every lane stores": ([("if (lane == 0 && i < n) y[i / 32]", "if (i < n) y[i / 32]")], RACE),
        "through shared memory": (
            [("    for (int step = 16; step > 0; step /= 2)\n        sum += __shfl_down_sync(0xffffffff, sum, step);\n",
              "    __shared__ float s[128];\n    s[threadIdx.x] = sum;\n    __syncthreads();\n    sum = 0.0f;\n    if (lane == 0)\n        for (int j = 0; j < 32; ++j) sum += s[threadIdx.x + j];\n")],
            "0 warp shuffles",
        ),
    },
    "block_reduce": {
        "no barrier in the loop": ([("        __syncthreads();  // outside the if: all threads come to it\n", "")], RACE),
        "the barrier inside the if": ([("if (t < half) s[t] += s[t + half];\n        __syncthreads();", "if (t < half) { s[t] += s[t + half]; __syncthreads(); }")], "a barrier that not all threads reach"),
        "begins too low": ([("int half = 128", "int half = 64")], "The step over a distance of 128 is missing"),
        "always block 0": ([("blockIdx.x * 256 + t", "blockIdx.y * 256 + t")], "Element 1 of the output holds what belongs at 0"),
        "ends too early": ([("half > 0", "half > 1")], "The step over a distance of 1 is missing"),
        "no limit": ([("if (t < half) s[t]", "s[t]")], "s has 256 elements"),
        "the neighbour": ([("s[t + half];", "s[t + 1];")], RACE),
        "one thread does it all": (
            [("    for (int half = 128; half > 0; half /= 2) {\n        if (t < half) s[t] += s[t + half];\n        __syncthreads();  // outside the if: all threads come to it\n    }\n",
              "    if (t == 0)\n        for (int j = 1; j < 256; ++j) s[0] += s[j];\n")],
            "shared-memory wavefronts",
        ),
    },
    "split_k": {
        "only block 0 adds": ([("    atomicAdd(", "    if (blockIdx.z == 0) atomicAdd(")], "Only the terms of blockIdx.z = 0 arrive"),
        "every block has all of K": ([("int k = blockIdx.z; k < K; k += gridDim.z", "int k = 0; k < K; ++k")], "everything is added gridDim.z times"),
        "a fence is no lock": ([("atomicAdd(&C[row * N + col], sum);", "C[row * N + col] += sum;\n    __threadfence();")], "a race on global memory"),
        "a barrier is no lock": ([("atomicAdd(&C[row * N + col], sum);", "__syncthreads();\n    C[row * N + col] += sum;")], "a race on global memory|not all threads reach"),
        "each term by itself": ([("        sum += A[row * K + k] * B[k * N + col];", "        atomicAdd(&C[row * N + col], A[row * K + k] * B[k * N + col]);")], "atomic operations of a warp"),
        "one block does it all": (
            [("int k = blockIdx.z; k < K; k += gridDim.z", "int k = 0; k < K; ++k"), ("    atomicAdd(", "    if (blockIdx.z == 0) atomicAdd(")], "bytes read from global memory|atomic operations",
        ),
        "stored, not added": ([("atomicAdd(&C[row * N + col], sum);", "C[row * N + col] = sum;")], "a race on global memory"),
    },
    "find_race": {
        "a barrier between": ([("if (i < n / 2) {  // a pair belongs to one thread\n        const float other = x[n - 1 - i];\n        x[n - 1 - i] = x[i];\n        x[i] = other;", "const float other = i < n ? x[n - 1 - i] : 0.0f;\n    __syncthreads();\n    if (i < n) {\n        x[i] = other;")], "a race on global memory"),
        "everybody swaps": ([("i < n / 2", "i < n")], "a race on global memory"),
        "the middle pair twice": ([("i < n / 2", "i <= n / 2")], "a race on global memory"),
        "one too far": ([("const float other = x[n - 1 - i];\n        x[n - 1 - i] = x[i]", "const float other = x[n - i];\n        x[n - i] = x[i]")], OUTSIDE),
        "no third place": ([("        x[i] = other;", "        x[i] = x[n - 1 - i];")], "both hold the old"),
        "half of the half": ([("i < n / 2", "i < n / 4")], "a pair that no thread swaps"),
    },
    "keep_precision": {
        "products in half": ([("__half2float(A[row * K + k]) * __half2float(B[row * K + k])", "__half2float(__hmul(A[row * K + k], B[row * K + k]))")], "Each product is rounded to half"),
        "sums in half": ([("float sum = 0.0f", "half sum = __float2half(0.0f)"), ("sum += __half2float(A[row * K + k]) * __half2float(B[row * K + k]);", "sum = __hfma(A[row * K + k], B[row * K + k], sum);"), ("y[row] = sum", "y[row] = __half2float(sum)")], "The sum is kept in half"),
        "rounded at the end": ([("y[row] = sum", "y[row] = __half2float(__float2half(sum))")], "rounded to half at its end"),
        "sums in half, products exact": ([("float sum = 0.0f", "half sum = __float2half(0.0f)"), ("sum += __half2float(A[row * K + k]) * __half2float(B[row * K + k]);", "sum = __hadd(sum, __float2half(__half2float(A[row * K + k]) * __half2float(B[row * K + k])));"), ("y[row] = sum", "y[row] = __half2float(sum)")], "rounded to half"),
        "no guard": ([("    if (row >= M) return;\n", "")], OUTSIDE),
        "the sum begins anywhere": ([("float sum = 0.0f", "float sum")], "never given a value"),
    },
    "tile_copy": {
        "half of it": ([("i < 16 * 4; i += 32) {", "i < 16 * 2; i += 32) {")], "a read of shared memory that nobody has written"),
        "no wait": ([("    cp_async_wait<0>();\n", "")], "a race with a copy"),
        "no meeting": ([("    __syncwarp();\n", "")], RACE),
        "the meeting before the wait": ([("    cp_async_wait<0>();\n    __syncwarp();\n", "    __syncwarp();\n    cp_async_wait<0>();\n")], RACE),
        "no commit, and a wait that counts": ([("    cp_async_commit();\n", "")], "a race with a copy"),
        "rows taken 32 apart": ([("A + row * K +", "A + row * 32 +")], "holds what belongs at [1, 0]"),
        "by registers": ([("cp_async<16>(shared_address(tile + row * 32 + 8 * chunk),\n                     A + row * K + 8 * chunk);", "*reinterpret_cast<uint4*>(tile + row * 32 + 8 * chunk) = *reinterpret_cast<const uint4*>(A + row * K + 8 * chunk);")], "0 bytes copied by cp.async"),
        "chunks of 8 bytes": ([("8 * chunk),\n                     A", "4 * chunk),\n                     A")], "misaligned|nobody has written|a race"),
    },
    "tile_swizzle": {
        "every row its own": ([("chunk ^ row / 2 % 4", "chunk ^ row % 4")], "the goal is 20"),
        "out of the row": ([("chunk ^ row / 2 % 4", "chunk ^ row / 2")], "0 to 3 for every row"),
        "two chunks in one place": ([("chunk ^ row / 2 % 4", "chunk | row / 2 % 4")], "a race|nobody has written|holds what belongs"),
        "on one side only": ([("tile + row * 32 + 8 * place(row, chunk));", "tile + row * 32 + 8 * chunk);")], "holds what belongs at"),
        "one bit only": ([("chunk ^ row / 2 % 4", "chunk ^ row / 2 % 2")], "the goal is 20"),
        "by four rows": ([("chunk ^ row / 2 % 4", "chunk ^ row / 4 % 4")], "the goal is 20"),
    },
    "tile_fragments": {
        "matrices 1 and 2 swapped": ([("row = lane % 16, chunk = 2 * step + lane / 16", "row = lane % 8 + lane / 16 * 8, chunk = 2 * step + lane / 8 % 2")], "Registers 1 and 2 are the other way round"),
        "transposed": ([("ldmatrix_x4(", "ldmatrix_x4_trans(")], "Each 8 x 8 matrix is transposed"),
        "rows 0 to 7 only": ([("row = lane % 16", "row = lane % 8")], "lanes 8 to 15 have to point at rows 8 to 15"),
        "lanes in pairs": ([("row = lane % 16, chunk = 2 * step + lane / 16", "row = lane / 2, chunk = 2 * step + lane % 2")], "In step 0 lane 1 points at row 0, chunk 1"),
        "the chunk by the lowest bit": ([("chunk = 2 * step + lane / 16", "chunk = 2 * step + lane % 2")], "It should point at row 1, chunk 0"),
        "upside down": ([("row = lane % 16", "row = 15 - lane % 16")], "lane 0 points at row 15, chunk 0"),
        "the left chunk only": ([("chunk = 2 * step + lane / 16", "chunk = 2 * step")], "have to point at the chunk to the right"),
        "no swizzle": ([("tile + row * 32 + 8 * place(row, chunk)));\n", "tile + row * 32 + 8 * chunk));\n")], "without the swizzle"),
        "the step left out": ([("chunk = 2 * step + lane / 16", "chunk = lane / 16")], "Both steps read the first 16 columns"),
        "one chunk a step": ([("chunk = 2 * step + lane / 16", "chunk = step + lane / 16")], "one chunk after step 0, not two"),
        "all lanes at eight rows": ([("row = lane % 16, chunk = 2 * step + lane / 16", "row = lane % 8, chunk = 2 * step")], "Each register holds matrix 0"),

        "chunks swapped": ([("2 * step + lane / 16", "2 * step + 1 - lane / 16")], "The two chunks of a step are the other way round"),
    },
    "tile_multiply": {
        "b[0] and b[1]": ([("b[0], b[2])", "b[0], b[1])"), ("b[1], b[3])", "b[2], b[3])")], "are columns 0-7 and 8-15 of B, at the same k"),
        "the halves of C swapped": ([("mma_m16n8k16(acc[0], a, b[0], b[2]);\n        mma_m16n8k16(acc[1]", "mma_m16n8k16(acc[1], a, b[0], b[2]);\n        mma_m16n8k16(acc[0]")], "The two halves of C are the other way round"),
        "one half twice": ([("b[1], b[3])", "b[0], b[2])")], "Both halves of C are columns 0-7"),
        "b the wrong way round": ([("b[0], b[2])", "b[2], b[0])"), ("b[1], b[3])", "b[3], b[1])")], "terms 0-7 of each 16 of k go with terms 8-15"),
        "one half of C only": ([("        mma_m16n8k16(acc[1], a, b[1], b[3]);\n", "")], "Only columns 0-7 of C are summed"),
        "one step only": ([("step < 2; ++step", "step < 1; ++step")], "Only the first 16 terms of K are summed|The last tile of K (16 terms) is missing"),
        "the first step twice": ([("load(a, As, step);\n        load(b, Bs, step)", "load(a, As, 0);\n        load(b, Bs, 0)")], "first tile of K (16 terms) again"),
    },
    "tile_pipeline": {
        "no meeting": ([("        __syncwarp();  // all", "        // all")], RACE),
        "no wait": ([("        cp_async_wait<0>();\n        __syncwarp();", "        __syncwarp();")], "a race with a copy"),
        "fetched before the meeting": (
            [("        if (tile + 1 < tiles) start(tile + 1);\n", ""), ("        cp_async_wait<0>();\n        __syncwarp();", "        cp_async_wait<0>();\n        if (tile + 1 < tiles) start(tile + 1);\n        __syncwarp();")],
            RACE,
        ),
        "one buffer": ([("As[tile % 2], A", "As[0], A"), ("As[tile % 2], Bs[tile % 2]", "As[0], Bs[tile % 2]")], RACE),
        "nothing fetched ahead": (
            [("        if (tile + 1 < tiles) start(tile + 1);\n", ""), ("Bs[tile % 2]);\n    }", "Bs[tile % 2]);\n        __syncwarp();\n        if (tile + 1 < tiles) start(tile + 1);\n    }")],
            AHEAD,
        ),
        "no swizzle": ([("chunk ^ row / 2 % 4", "chunk")], "shared-memory wavefronts"),
        "the last tile left out": ([("tile < tiles; ++tile", "tile < tiles - 1; ++tile")], "last tile of K (32 terms) is missing"),
        "tiles of 16": ([("A + 32 * tile", "A + 16 * tile"), ("Bt + 32 * tile", "Bt + 16 * tile")], "terms 16-47 are added 2 times"),
    },
}  # fmt: skip

# Other ways that are right as well.
OTHER_WAYS = {
    "first_guard": {
        "leave early": [("    if (i < n) y[i]", "    if (i >= n) return;\n    y[i]")],
        "a loop over the grid": [("    if (i < n) y[i]", "    for (int j = i; j < n; j += gridDim.x * blockDim.x) y[j]"), ("a * x[i] + y[i]", "a * x[j] + y[j]")],
        "other names": [("const float* x, float* y, int n", "const float *__restrict__ in, float *out, int count"), ("i < n", "i < count"), ("y[i] = a * x[i] + y[i]", "out[i] += a * in[i]")],
    },
    "fill_with_zeros": {
        "an if and an else": [("tile[ty][tx] =\n            row < M && first + tx < K ? X[row * K + first + tx] : 0.0f;", "if (row < M && first + tx < K) tile[ty][tx] = X[row * K + first + tx];\n        else tile[ty][tx] = 0.0f;")],
        "zeros first": [("tile[ty][tx] =\n            row < M && first + tx < K ? X[row * K + first + tx] : 0.0f;", "tile[ty][tx] = 0.0f;\n        if (row < M && first + tx < K) tile[ty][tx] = X[row * K + first + tx];")],
        "no more than K": [("for (int k = 0; k < 16; ++k)", "for (int k = 0; k < min(16, K - first); ++k)")],
    },
    "two_stages": {
        "an empty group at the end, and one left in flight": [
            ("        cp_async_wait<0>();  // this thread's copies of this tile have landed\n        __syncthreads();     // everyone's have; the other buffer has been read\n        if (tile + 1 < tiles) fetch(tile + 1);\n",
             "        if (tile + 1 < tiles) fetch(tile + 1);\n        else cp_async_commit();\n        cp_async_wait<1>();\n        __syncthreads();\n"),
            ("            sum += buffer[tile % 2][thread * PITCH + k];\n", "            sum += buffer[tile % 2][thread * PITCH + k];\n        __syncthreads();\n"),
        ],
    },
    "shuffle_sum": {
        "exclusive or": [("__shfl_down_sync", "__shfl_xor_sync")],
        "the other order": [("int step = 16; step > 0; step /= 2", "int step = 1; step < 32; step *= 2")],
    },
    "block_reduce": {
        "the last warp by shuffles": [
            ("half > 0", "half > 16"),
            ("    if (t == 0) y[blockIdx.x] = s[0];", "    float sum = s[t % 32];\n    if (t < 32)\n        for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);\n    if (t == 0) y[blockIdx.x] = sum;"),
        ],
    },
    "split_k": {"nothing to add": [("    atomicAdd(", "    if (blockIdx.z < K) atomicAdd(")]},
    "find_race": {
        "from the other end": [("i < n / 2", "i < n && i >= (n + 1) / 2")],
        "before its partner": [("i < n / 2", "i < n - 1 - i")],
    },
    "keep_precision": {
        "a fused multiply-add": [("sum += __half2float(A[row * K + k]) * __half2float(B[row * K + k]);", "sum = fmaf(__half2float(A[row * K + k]), __half2float(B[row * K + k]), sum);")],
        "doubles": [("float sum = 0.0f", "double sum = 0.0")],
    },
    "tile_copy": {"a barrier for the block": [("__syncwarp()", "__syncthreads()")]},
    "tile_swizzle": {"another swizzle": [("chunk ^ row / 2 % 4", "(chunk + row / 2) % 4")]},
    "tile_fragments": {"by the lane's bits": [("lane % 16, chunk = 2 * step + lane / 16", "lane & 15, chunk = (step << 1) | (lane >> 4)")]},
    "tile_multiply": {"the other column first": [("mma_m16n8k16(acc[0], a, b[0], b[2]);\n        mma_m16n8k16(acc[1], a, b[1], b[3]);", "mma_m16n8k16(acc[1], a, b[1], b[3]);\n        mma_m16n8k16(acc[0], a, b[0], b[2]);")]},
    "tile_pipeline": {"a barrier for the block": [("__syncwarp()", "__syncthreads()")]},
}  # fmt: skip


def with_edits(name, edits):
    text = find(name).solution
    for old, new in edits:
        assert old in text, f"the solution of {name} has no {old!r}"
        text = text.replace(old, new)
    return text


def plain(verdict):
    return " ".join(str(verdict).split())


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


def test_each_has_five_mistakes():
    assert MISTAKES.keys() == GIVEN.keys()
    assert all(len(mistakes) >= 5 for mistakes in MISTAKES.values())


@pytest.mark.parametrize("name,way", [(n, w) for n in OTHER_WAYS for w in OTHER_WAYS[n]])
def test_other_right_ways_pass(name, way):
    verdict = judge(find(name), with_edits(name, OTHER_WAYS[name][way]))
    assert verdict, str(verdict)


RIGHT_BLOCKS = {
    "256 threads, 32 registers, 16 KiB": 8, "256 threads, 96 registers, 16 KiB": 2, "128 threads, 40 registers, 40 KiB": 4,
    "64 threads, 24 registers, 0 KiB": 32, "512 threads, 128 registers, 0 KiB": 1,
}  # fmt: skip
WRONG_ANSWERS = {
    "count_blocks": [
        (RIGHT_BLOCKS | {"256 threads, 96 registers, 16 KiB": 8}, "196,608 registers, and there are 65,536"),
        (RIGHT_BLOCKS | {"128 threads, 40 registers, 40 KiB": 8}, "KiB of shared memory, and there are 164"),
        (RIGHT_BLOCKS | {"64 threads, 24 registers, 0 KiB": 42}, "threads, and there are 2,048"),
        (RIGHT_BLOCKS | {"256 threads, 32 registers, 16 KiB": 10}, "threads, and there are 2,048"),
        (RIGHT_BLOCKS | {"512 threads, 128 registers, 0 KiB": 0}, "one more fits"),
        (RIGHT_BLOCKS | {"512 threads, 128 registers, 0 KiB": 1.5}, "an integer, not 1.5"),
        (RIGHT_BLOCKS | {"64 threads": 3}, "no such row"),
        ([8, 2, 4, 32, 1], "dictionary of counts"),
    ],
    "compose_layout": [
        ((((4, 8), 4), ((4, 16), 1)), "count elements of the tile column by column"),
        ((((4, 8), 4), ((1, 96), 24)), "the other way round"),
        ((((4, 8), 4), ((24, 1), 24)), "four rows down, not one"),
        ((((4, 8), 4), ((32, 1), 8)), "24 elements apart, not 8"),
        ((((4, 8), 4), ((96, 1), 1)), "v is a row down"),
        ((((4, 8), 4), ((95, 1), 24)), "One step of t % 4 is four rows down: 96 elements. This layout takes 95"),
        ((((4, 8), 4), (96, 24)), "the same parentheses"),
        ((((8, 8), 4), ((96, 1), 24)), "sizes 32 and 4"),
        (None, "a shape and a stride"),
        (((4, 8, 4), "96,1,24"), "a shape and a stride"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "name,answer,words", [(n, a, w) for n, rows in WRONG_ANSWERS.items() for a, w in rows]
)
def test_wrong_answers_are_told_why(name, answer, words):
    verdict = judge_answer(name, answer)
    assert not verdict and words in plain(verdict), str(verdict)


def test_right_answers_pass_however_they_are_written():
    assert judge_answer("count_blocks", RIGHT_BLOCKS)
    for answer in (
        (((4, 8), 4), ((96, 1), 24)),
        [[[4, 8], [4]], [[96, 1], [24]]],
        ((((2, 2), 8), 4), (((96, 192), 1), 24)),
        (((4, 8), (2, 2)), ((96, 1), (24, 48))),
    ):
        assert judge_answer("compose_layout", answer), answer
