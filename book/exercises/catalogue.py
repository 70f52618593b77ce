"""Every exercise, in reading order: task, hints, explanation, the launches that try it and the goals it must reach."""

from __future__ import annotations

import numpy as np

from . import answers, fragments, functions, hopper, lanes, launches, precision, ramp
from .exercise import Exercise, Goal, Need, Race
from .inflight import fetches_ahead
from .launches import last_drawn, products
from .shuffles import distances, turns

MEMORY = "Memory"
MORE_WORK = "More work per thread"
COPIES = "Copies that do not wait"
TENSOR_CORES = "Tensor cores"
BANKS = "Bank conflicts and swizzles"
EVERYTHING = "Everything at once"
ACROSS = "Sums across threads"
CAPSTONE = "The capstone"
HOPPER = "Hopper"
PARTS = (MEMORY, MORE_WORK, COPIES, TENSOR_CORES, BANKS, EVERYTHING, ACROSS, CAPSTONE, HOPPER)


SIZES = ((64, 96, 32), (33, 65, 17), (1, 40, 3), (50, 7, 20))

EXERCISES = (
    Exercise(
        "first_guard", MEMORY, "A first kernel, and its guard", 5,
        "This kernel computes `y = a * x + y` for n elements, one element per thread, in blocks of 128 threads. A launch "
        "has only whole blocks, so the last block has threads without an element where n is no multiple of 128. Add the "
        "test that keeps these threads from reading and writing, whatever n is.",
        (
            "`i` is the number of the thread in the whole grid. The elements are numbered 0 to n - 1.",
            "A thread whose `i` is n or more must do nothing at all: neither read nor write.",
        ),
        "`if (i < n)` is the guard. With n = 1000 there are eight blocks, 1024 threads, and the last 24 of them have no "
        "element. Without the guard they would read and write whatever lies behind the arrays.",
        cases=lambda rng: last_drawn(ramp.axpy(rng)),
        suspects=ramp.AXPY_SUSPECTS,
        decode=ramp.kept,
    ),
    Exercise(
        "coalesce", MEMORY, "Coalesce a kernel", 5,
        "This kernel computes the right product, and is slow. The 32 outputs of a warp lie in 32 different rows, so a warp "
        "reads A and writes C down a column, and each of its 32 accesses needs a sector (32 bytes of memory) of its own. "
        "Give each thread another output, so that the 32 accesses of a warp to B, and to C, fall into four sectors.",
        (
            "A warp is 32 threads whose `threadIdx.x` runs from 0 to 31 at the same `threadIdx.y`.",
            "Two outputs with neighbouring `col` are neighbours in memory. So `col` must come from `threadIdx.x`.",
        ),
        "Now `col` counts along the warp. A warp reads 32 neighbouring floats at `B[k * N + col]`, which are 128 bytes or four "
        "sectors. At `A[row * K + k]` all its lanes read the same address, which takes one sector. (The check's picture names "
        "four as the goal for A, because it always compares with 32 neighbouring floats.) The number of "
        "instructions has not changed.",
        cases=products(SIZES, (32, 32), (32, 32)),
        goals=(Goal("global_sectors", 31_500, "M=64, N=96, K=32"),),
    ),
    Exercise(
        "place_barriers", MEMORY, "Place the two barriers", 10,
        "The threads of a block fill two tiles in shared memory together, and then each thread reads elements that other "
        "threads have written. Place `__syncthreads()` twice, so that nobody reads an element too early and nobody "
        "overwrites one too early.",
        (
            "Whose element of `As` does a thread read in the inner loop? When was it written?",
            "The second danger is in the next turn of the loop: a quick warp fills the tiles again while a slow one still reads "
            "them.",
        ),
        "The first barrier stands between writing and reading, so no thread reads the tiles before all threads have written "
        "them. The second barrier stands between reading and the writing of the next turn. Neither may stand inside an `if` "
        "that some threads of the block skip, because a barrier is only complete when all threads come to it.",
        cases=products(((16, 16, 32), (32, 48, 40), (17, 5, 23), (20, 36, 81)), (16, 16), (16, 16)),
        needs=(
            Need(
                "bytes read from shared memory", 245_760, "M=32, N=48, K=40",
                "the products are formed from the tiles in shared memory",
            ),
        ),
        goals=(Goal("bytes read from global memory", 31_000, "M=32, N=48, K=40"),),
    ),
    Exercise(
        "fill_with_zeros", MEMORY, "Fill a tile together, and its edges with zeros", 10,
        "The threads of a block fill a 16 x 16 tile of X together, one element per thread. Then 16 of these threads sum one row "
        "of the tile each. Where M or K is no multiple of 16, the last tiles reach beyond the matrix. Make the sums right "
        "for every M and K.",
        (
            "The sum always reads all 16 columns of the tile, also those that lie beyond K. Which value changes no sum?",
            "Choose the value with `condition ? X[...] : 0.0f`. Both conditions matter: the row and the column.",
        ),
        "Every thread stores something in every turn: its element, or a 0, which changes no sum. No thread may return early: "
        "a thread that has returned stores no 0, and the check asks that every thread comes to every barrier. And no place "
        "of the tile may keep what the turn before left there, because it would be summed again.",
        cases=lambda rng: last_drawn(ramp.row_sums_of_tiles(rng)),
        needs=(
            Need("bytes read from shared memory", 6_144, "M=32, K=48", "the rows are summed from the tile in shared memory"),
        ),
        goals=(Goal("global_sectors", 256, "M=32, K=48"),),
        suspects=ramp.ROW_SUSPECTS,
    ),
    Exercise(
        "count_wavefronts", MEMORY, "Count wavefronts by hand", 10,
        "One warp reads shared memory in six ways. `lane` is the number of the thread in the warp, 0 to 31, and `s` is an array "
        "of floats in shared memory. A wavefront is one pass of shared memory, which serves all or part of a warp's "
        "request. How many wavefronts does each of the six reads take? Write your numbers into the cell. The check compares "
        "them with the trace of a kernel that makes these reads.",
        (
            "Word `i` lies in bank `i % 32`. A wavefront serves one word of every bank.",
            "Lanes that ask for the same word are served together, and count once. And a wavefront carries at most 128 bytes.",
        ),
        "Count the different words that the busiest bank has to serve. `s[lane / 2]` asks for 16 words in 16 banks, which takes "
        "one wavefront. `s[32 * lane]` asks for 32 words in one bank, which takes 32. `s[33 * lane]` asks for 32 words in 32 "
        "banks, which takes one: this is why rows of 32 words are padded to 33. With a `float4` per lane the warp asks for "
        "512 bytes, and eight lanes are served at a time, which takes four.",
        judge=answers.wavefront_counts,
        given=(
            "counts = {\n"
            '    "s[lane]": None,\n    "s[2 * lane]": None,\n    "s[lane / 2]": None,\n    "s[32 * lane]": None,\n'
            '    "s[33 * lane]": None,\n    "float4 s[lane]": None,\n}\n'
        ),
        answer=(
            "counts = {\n"
            '    "s[lane]": 1,\n    "s[2 * lane]": 2,\n    "s[lane / 2]": 1,\n    "s[32 * lane]": 32,\n'
            '    "s[33 * lane]": 1,\n    "float4 s[lane]": 4,\n}\n'
        ),
        variable="counts",
    ),
    Exercise(
        "coarsen", MORE_WORK, "Four outputs per thread: beat a rung's wavefronts", 30,
        "Each thread of this kernel has four outputs in one column of C, and computes only one of them. Compute all four, so "
        "that each value of `Bs` is read once and used four times. For comparison: the `tiled` rung of the ladder has one "
        "output per thread. On the emulator it spends 16,896 wavefronts of shared memory on the same product at 64 x 64 x 64.",
        (
            "The outputs are rows `ty`, `ty + 8`, `ty + 16` and `ty + 24` of the tile: one `Bs[k][tx]` serves all four.",
            "Loop over k outside and over the four outputs inside. `sum[i]` adds `As[ty + 8 * i][k] * Bs[k][tx]`.",
        ),
        "For each k, `b` is read once and used for four outputs. The compiler saves more wavefronts by itself. Four steps of k "
        "read four neighbouring floats of a row of `As`, and the compiler makes one 16-byte load of them, because it can "
        "unroll the loops and can see that the row is aligned. You find this load as `ld.shared.v4` in the PTX. Its address "
        "is the same for the whole warp. It takes two wavefronts for four steps, where four single loads would take four.",
        cases=products(((64, 64, 64), (32, 64, 96), (33, 65, 17), (8, 40, 70)), (32, 32), (32, 8)),
        goals=(
            Goal("shared_wavefronts", 7_000, "M=64, N=64, K=64"),
            Goal("bytes read from global memory", 66_000, "M=64, N=64, K=64"),
        ),
        suspects={
            "All four rows are added up in one sum: sum[i] is the output of row ty + 8 * i": launches.four_rows_in_one,
            "Only the first of each thread's four outputs is summed: sum[1] to sum[3] stay 0": lambda case: np.where(
                np.arange(len(case.expected))[:, None] % 32 < 8, case.expected, 0
            ),
        },
    ),
    Exercise(
        "count_blocks", MORE_WORK, "Registers, shared memory and occupancy", 15,
        "A multiprocessor of an A100 has 65,536 registers, 164 KiB of shared memory, and room for 2,048 threads and for 32 "
        "blocks. Each block takes 1 KiB of shared memory more than it asks for, for the system. How many blocks of each of "
        "these five kernels can be resident on a multiprocessor at once? Each row names the threads per block, the registers "
        "per thread, and the KiB of shared memory per block.",
        (
            "For each of the four resources, divide what there is by what a block takes, and round down. The smallest of the "
            "four results is the number of blocks.",
            "A block takes as many registers as threads times registers per thread. 256 threads with 96 registers each take "
            "24,576 of the 65,536.",
        ),
        "The smallest of the four quotients decides. In the first row, both the threads and the registers allow 8 blocks. In the "
        "second row, the registers allow 2. In the third row, the shared memory allows 4, because 41 KiB fit four times into "
        "164. In the fourth row, the threads and the limit on blocks both allow 32. In the fifth row one block takes all "
        "65,536 registers.",
        judge=answers.resident_blocks,
        given=(
            "blocks = {\n"
            '    "256 threads, 32 registers, 16 KiB": None,\n    "256 threads, 96 registers, 16 KiB": None,\n'
            '    "128 threads, 40 registers, 40 KiB": None,\n    "64 threads, 24 registers, 0 KiB": None,\n'
            '    "512 threads, 128 registers, 0 KiB": None,\n}\n'
        ),
        answer=(
            "blocks = {\n"
            '    "256 threads, 32 registers, 16 KiB": 8,\n    "256 threads, 96 registers, 16 KiB": 2,\n'
            '    "128 threads, 40 registers, 40 KiB": 4,\n    "64 threads, 24 registers, 0 KiB": 32,\n'
            '    "512 threads, 128 registers, 0 KiB": 1,\n}\n'
        ),
        variable="blocks",
    ),
    Exercise(
        "vectorize", MORE_WORK, "Wide accesses where they are allowed", 20,
        "This kernel multiplies each element of a matrix by alpha, and moves 4 bytes per access. Move 16 bytes per access "
        "where every row begins at a multiple of 16 bytes, and keep the result right for any M and N. The rows "
        "of the matrix follow each other without a gap, so a row begins wherever the previous one ended.",
        (
            "A `float4` may be read only at a multiple of 16 bytes. Row `y` begins at byte `4 * N * y`.",
            "So all rows are aligned if `N % 4 == 0`. For other N, keep the scalar loop. With float4, a thread goes on by four "
            "times as many floats in each turn.",
        ),
        "The address of an access must be a multiple of its width. With `N = 301`, row 1 begins at byte 1204, which is no "
        "multiple of 16, and a float4 there faults. Where every row is aligned, each lane moves 16 bytes per request. This takes "
        "a quarter of the requests at N = 512. At N = 300 it takes 18 instead of 60, which is more than a quarter: a row fills "
        "two requests of 128 floats, and needs a third for its last 44.",
        cases=lambda rng: last_drawn(launches.scale_rows(rng)),
        goals=(Goal("global_requests", 32, "M=4, N=512"), Goal("global_requests", 18, "M=3, N=300")),
        suspects={
            "Alpha is missing": lambda case: case.args[0],
            "Alpha is multiplied twice": lambda case: case.args[4] * case.expected,
            "Alpha is added, not multiplied": lambda case: case.args[4] + case.args[0],
            "Alpha is missing where the accesses are wide": launches.some_of_four(()),
            **{
                f"Only {words} of each float4 is multiplied by alpha": launches.some_of_four(some)
                for words, some in (("one element", (0,)), ("two elements", (0, 1)), ("three elements", (0, 1, 2)))
            },
        },
        outside="A float4 at x + i holds elements i to i + 3 of the row, so i goes on in steps of 4 and ends at N. The index of "
        "a pointer to float4 counts float4s, and a row has N / 4 of them.",
    ),
    Exercise(
        "mend_pipeline", COPIES, "Mend a racy pipeline", 20,
        "Tiles arrive in two buffers through `cp.async`, copies that run while the threads go on. This kernel has three races. "
        "It does not wait for its last copy. It reads what other threads have copied, without waiting for them. And it "
        "fills a buffer again while other threads may still read it. Mend all three, and keep fetching ahead: while a tile "
        "is read, the copy of the next tile has to be on its way.",
        (
            "`cp_async_wait<0>()` waits for the calling thread's own copies. Who copied the element that you read?",
            "One barrier per turn is enough, if it stands after the wait and before the next fetch. Which copies lie before it, "
            "and which reads?",
        ),
        "`cp_async_wait<0>()` leaves no copy of the calling thread under way, so the last tile has landed too. The barrier after "
        "it makes the copies of every thread visible to all threads. The same barrier also orders the reads of the turn "
        "before: when a thread passes it, all threads have read the buffer that is filled next.",
        cases=lambda rng: last_drawn(launches.reverse(rng)),
        needs=(
            Need("bytes copied by cp.async", 6_144, "3 blocks of 512", "each tile arrives by cp.async"),
            Need("bytes read from shared memory", 6_144, "3 blocks of 512", "the output is read from the buffers"),
        ),
        inspect=fetches_ahead(1),
    ),
    Exercise(
        "two_stages", COPIES, "Two stages: fetch one tile ahead", 20,
        "This loop fetches a tile, waits for it and sums it, so nothing is on its way while it sums. There are two buffers: "
        "fetch tile t + 1 into one of them while tile t is summed from the other. This is the step before a pipeline of any "
        "number of stages.",
        (
            "Start with `fetch(0)` before the loop. In turn t: wait for tile t, a barrier, fetch tile t + 1, sum tile t.",
            "The last turn has nothing to fetch. When a thread passes the barrier, all threads have read the buffer that is "
            "filled next.",
        ),
        "When turn t begins, only the copies of tile t are in flight, so `cp_async_wait<0>()` waits for just these. The barrier "
        "makes them visible to all threads. When a thread passes it, all threads have also read the other buffer, in the turn "
        "before, so it may be filled again.",
        cases=lambda rng: last_drawn(launches.row_sums(rng)),
        needs=(
            Need("bytes copied by cp.async", 131_072, "M=64, K=512", "each tile arrives by cp.async"),
            Need("bytes read from shared memory", 131_072, "M=64, K=512", "the sums are formed from the buffers"),
        ),
        goals=(Goal("bytes read from global memory", 131_072, "M=64, K=512"),),
        inspect=fetches_ahead(1),
        suspects=ramp.ROW_SUSPECTS,
    ),
    Exercise(
        "pipeline_stages", COPIES, "Write a pipeline of N stages", 60,
        "This loop fetches a tile, waits for it and sums it. Turn it into a pipeline that keeps `STAGES - 1` tiles in flight, so "
        "that the time a copy takes is covered by the work on the tiles before it. Use one barrier per tile, and at least "
        "three stages. The check counts a barrier once per warp, and the block has two warps.",
        (
            "Before the loop, start `STAGES - 1` tiles. In turn t, wait for tile t, then start tile `t + STAGES - 1`.",
            "`cp_async_wait<n>()` leaves the n newest groups unfinished. If every turn commits a group, even one without a copy, "
            "then n is the same in all turns.",
        ),
        "When turn t waits, `t + STAGES - 1` groups have been committed. Tile t is the oldest that may still be in flight, so "
        "the newest `STAGES - 2` groups may stay unfinished. The barrier then makes the tile visible to all threads. When a "
        "thread passes it, all threads have also read slot `(t - 1) % STAGES`, which is filled next.",
        cases=lambda rng: last_drawn(launches.row_sums(rng)),
        needs=(
            Need("bytes copied by cp.async", 131_072, "M=64, K=512", "each tile arrives by cp.async"),
            Need("bytes read from shared memory", 131_072, "M=64, K=512", "the sums are formed from the buffers"),
        ),
        goals=(
            Goal("barriers", 66, "M=64, K=512"),
            Goal("bytes read from global memory", 131_072, "M=64, K=512"),
        ),
        inspect=fetches_ahead(2),
        suspects=ramp.ROW_SUSPECTS,
    ),
    Exercise(
        "wmma_tile", TENSOR_CORES, "A tile on the tensor cores", 20,
        "One warp computes one 16 x 16 tile of C with the WMMA API. Declare the fragments of A and B, and walk along K in steps "
        "of 16: load both fragments, multiply them, and add to the accumulator.",
        (
            "`wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>`, and `matrix_b` likewise.",
            "`load_matrix_sync(a, pointer, stride)` loads a fragment. The stride is the distance between two rows in memory, in "
            "elements: K for A, N for B.",
        ),
        "Both operands are row-major, and the stride of a load is that of the whole matrix, not of the tile. The 32 lanes of the "
        "warp make every call together, so no call may stand in an `if` that only some lanes take.",
        cases=products(
            ((16, 16, 16), (32, 48, 64), (16, 64, 48)), (16, 16), (32,), drawn=((1, 4), (1, 4), (3, 8)), step=16,
            dtype=np.float16,
        ),
        needs=(
            Need(
                "matrix multiplications of a warp", 24, "M=32, N=48, K=64",
                "the tensor cores multiply (wmma::mma_sync)",
            ),
        ),
        suspects={
            "A is loaded with a stride of 16, the tile's, where its rows are K apart": launches.tile_stride("A"),
            "B is loaded with a stride of 16, the tile's, where its rows are N apart": launches.tile_stride("B"),
        },
    ),
    Exercise(
        "lane_map", TENSOR_CORES, "Who holds what", 20,
        "In `mma.m16n8k16`, each lane holds eight elements of the 16 x 16 operand A: numbers of 16 bits (halves), two of them in "
        "each of four registers. Halves 0 and 1 are in register 0, halves 2 and 3 in register 1, and so on. Write "
        "`element(lane, half)`, which returns the row and the column of A that half 0 to 7 of this lane holds.",
        (
            "In register 0, lane 0 holds elements (0, 0) and (0, 1), lane 1 holds (0, 2) and (0, 3), and lane 4 begins the next "
            "row with (1, 0).",
            "The elements of register 1 lie eight rows below those of register 0, those of register 2 eight columns to the "
            "right, and those of register 3 eight rows below and eight columns to the right.",
        ),
        "Within a block of eight rows and eight columns, `lane // 4` is the row and `2 * (lane % 4)` the first column. The three "
        "bits of `half` add to these: bit 0 one column, bit 1 eight rows, bit 2 eight columns.",
        judge=answers.lane_map,
        given="def element(lane, half):\n    return 0, 0\n",
        answer=(
            "def element(lane, half):\n"
            "    return lane // 4 + 8 * (half // 2 % 2), 2 * (lane % 4) + half % 2 + 8 * (half // 4)\n"
        ),
        variable="element",
    ),
    Exercise(
        "load_fragments", TENSOR_CORES, "Load an mma's registers by hand", 30,
        "One warp multiplies with one `mma.m16n8k16`. Load the registers `a[4]` and `b[2]` from row-major A and B, so that each "
        "lane has the elements that the instruction expects of it.",
        (
            "The registers of A are those of the exercise before. B is 16 x 8, and a register of B holds two neighbouring rows "
            "of one column.",
            "`b[r]` holds rows `2 * pair + 8 * r` and `2 * pair + 8 * r + 1` of column `group`.",
        ),
        "The two halves of a register are neighbours along K in both operands. In A these are two neighbours in a row, in B two "
        "neighbours in a column. A column of a row-major matrix is not contiguous, so B needs two loads per register, "
        "where one load of 4 bytes would do for A. This is why `ldmatrix` has a `.trans` form.",
        cases=products(((16, 8, 16),), (16, 8), (32,), drawn=None, dtype=np.float16, sizes_passed=False),
        needs=(
            Need("matrix multiplications of a warp", 1, "M=16, N=8, K=16", "one mma.m16n8k16 multiplies"),
        ),
        watch=lanes.fragments_by_hand,
        outside="Row r, column c is A[16 * r + c] in A, with columns 0 to 15, and B[8 * r + c] in B, with columns 0 to 7. Both "
        "have rows 0 to 15.",
    ),
    Exercise(
        "transpose_operand", TENSOR_CORES, "ldmatrix for a transposed operand", 30,
        "B lies row by row in shared memory. One `ldmatrix.x4.trans` loads four 8 x 8 matrices and transposes each of them. "
        "Lanes 0 to 7 give the addresses of the eight rows of matrix 0, lanes 8 to 15 those of matrix 1, and so on; matrix i "
        "goes to register `b[i]`. Which row and column of B does each lane have to point at?",
        (
            "Matrices 0 and 1 are the upper and the lower half of the left eight columns. So lanes 0 to 15 point at rows 0 to "
            "15.",
            "Lanes 16 to 31 point at the same rows, eight columns to the right.",
        ),
        "`lane % 16` is the row, and `lane / 16 * 8` the column. Matrices 0 and 1 are rows 0-7 and 8-15 of the left half of B, "
        "which the first `mma` takes in its two registers. Matrices 2 and 3 are those of the right half, for the second "
        "`mma`. `.trans` transposes inside each 8 x 8 matrix, and never exchanges matrices.",
        cases=products(((16, 16, 16),), (16, 16), (32,), drawn=None, dtype=np.float16, sizes_passed=False),
        needs=(
            Need("matrix multiplications of a warp", 2, "M=16, N=16, K=16", "two mma.m16n8k16 multiply"),
            Need("ldmatrix instructions", 2, "M=16, N=16, K=16", "ldmatrix loads A and B from shared memory"),
        ),
        inspect=launches.warp_meets,
        watch=lanes.rows_of_ldmatrix,
        outside="Bs has rows 0 to 15 of 16 halves, and a row of one of the four matrices begins in column 0 or in column 8.",
        suspects={
            f"Every lane points at row {row} of B: each lane must point at a row of its own": launches.one_row_of_b(row)
            for row in range(16)
        },
    ),
    Exercise(
        "compose_layout", BANKS, "A layout, composed by hand", 20,
        "A CuTe layout `shape : stride` maps coordinates to an offset: `(4,8):(1,4)` sends (i, j) to `i + 4 * j`. The stride is "
        "how far one step of each coordinate leads. A tile of 16 rows and 8 columns is part of a matrix whose rows have 24 "
        "elements, so its layout is `(16,8):(24,1)`. Each thread t of 32 has four elements of the tile, numbered v = 0 to 3: "
        "they lie in rows `4 * (t % 4) + v` of column `t / 4`. Which layout sends (t, v) to the offset in memory? Write its "
        "shape and its stride, with t split into t % 4 and t / 4.",
        (
            "One step of `t % 4` is four rows down, one step of `t / 4` is a column to the right, one step of v is a row down.",
            "So the shape is `((4, 8), 4)`: four values of t % 4, eight of t / 4, four of v. Each needs its step in elements.",
        ),
        "`((4,8),4):((96,1),24)`. Four rows down are 4 x 24 = 96 elements, a column to the right is 1, a row down 24. This is "
        "the composition of the tile's layout with the layout ((4,8),4):((4,16),1) of threads and values, whose numbers "
        "count the elements of the tile column by column.",
        judge=answers.composed_layout,
        given="shape = ((4, 8), 4)\nstride = ((4, 16), 1)\n",
        answer="shape = ((4, 8), 4)\nstride = ((96, 1), 24)\n",
        variable="(shape, stride)",
    ),
    Exercise(
        "choose_padding", BANKS, "A padding that keeps alignment", 10,
        "A kernel reads a tile in shared memory column by column, in chunks of 16 bytes (eight halves). Choose `PAD`, the "
        "number of spare halves at the end of each row, so that these reads have no bank conflicts and every chunk still "
        "begins at a multiple of 16 bytes.",
        (
            "Eight lanes are served at a time, and each takes four banks. So eight neighbouring rows must begin in eight "
            "different groups of four banks.",
            "With 4-byte accesses one spare word per row is enough. Here every row must still begin at a multiple of 16 bytes.",
        ),
        "A row of 64 halves is 128 bytes: all rows begin in bank 0. With 8 spare halves a row is 144 bytes, and each row "
        "begins four banks after the one before. 1, 2 or 4 spare halves would break the alignment; 16 would put rows 0 and "
        "4 in the same banks again.",
        cases=launches.chunks(64),
        needs=(
            Need("bytes read from shared memory", 4_096, "one 32 x 64 tile", "the tile is read back from shared memory"),
        ),
        goals=(Goal("shared_wavefronts", 64, "one 32 x 64 tile"),),
    ),
    Exercise(
        "swizzle_rows", BANKS, "Derive a swizzle for 64-byte rows", 30,
        "This time the rows have 64 bytes, and there is no padding. Instead each 16-byte chunk may move to another place "
        "within its row. Write `place`, so that of any eight neighbouring rows the chunks of one column lie in different "
        "banks.",
        (
            "Two 64-byte rows fill the 32 banks once. So chunk 0 of row 2 lies in the same banks as chunk 0 of "
            "row 0, and chunk 0 of row 1 lies in others.",
            "The chunk must move with `row / 2`, and must stay within 0 to 3: XOR it with two bits of the row.",
        ),
        "Even rows cover banks 0 to 15, odd rows banks 16 to 31. Among the four even rows of any eight, `row / 2 % 4` takes "
        "all four values, so `chunk ^ row / 2 % 4` puts a column's chunks in four different places.",
        cases=launches.chunks(32),
        needs=(
            Need("bytes read from shared memory", 2_048, "one 32 x 32 tile", "the tile is read back from shared memory"),
        ),
        goals=(Goal("shared_wavefronts", 32, "one 32 x 32 tile"),),
        inspect=launches.no_spare_room,
        outside="A chunk must stay in its row: place() must return 0 to 3 for every row, so only two bits of the row may "
        "be mixed in. `chunk ^ row` grows with the row.",
    ),
    Exercise(
        "swizzle_parameters", BANKS, "The same swizzle in three numbers", 20,
        "CuTe writes this swizzle as `Swizzle<B, M, S>`: of an element's index, take B bits from bit M + S on, and XOR them "
        "into the B bits from bit M on. The index counts halves, 32 a row. Which B, M and S keep chunks whole, keep every "
        "element in its row, and leave no conflicts?",
        (
            "Index bits 0-2 lie within a chunk, bits 3-4 are the chunk, bits 5 and up the row.",
            "The chunk's two bits are XORed with bits 1 and 2 of the row, which are bits 6 and 7 of the index.",
        ),
        "M = 3 keeps chunks of 8 halves whole, B = 2 covers four chunks, and S = 3 leads from bit 3 to bit 6: `row / 2`.",
        judge=answers.swizzle_parameters,
        given="B, M, S = 2, 3, 2\n",
        answer="B, M, S = 2, 3, 3\n",
        variable="(B, M, S)",
    ),
    Exercise(
        "transpose_tile", BANKS, "Transpose without conflicts", 15,
        "The tile is written by rows and read by columns, and in a column all elements lie in one bank: a 32 x 32 tile takes "
        "1,056 wavefronts, where 64 would do. Place the elements so that no two lanes of a warp meet in a bank.",
        (
            "A column's elements are `PITCH` words apart. In which banks are words 0, 32, 64 and 96?",
            "Any odd pitch from 33 on will do. With an XOR, use the XOR on both sides: write to `tile[r * 32 + (tx ^ r)]`, and "
            "read from `tile[tx * 32 + (r ^ tx)]`.",
        ),
        "With a pitch of 33, lane `tx` reads word `33 * tx + r`, in bank `(tx + r) % 32`: all different. Accesses are of 4 "
        "bytes, so no alignment is lost.",
        cases=lambda rng: last_drawn(launches.transposes(rng)),
        goals=(Goal("shared_wavefronts", 64, "32 x 32"), Goal("global_sectors", 256, "32 x 32")),
    ),
    Exercise(
        "guard_epilogue", EVERYTHING, "An edge-guarded epilogue", 30,
        "The epilogue is what a kernel does after its inner loop. Here it stores `alpha * sum + beta * C`, for any M and N. With "
        "`beta == 0`, C may hold anything, NaN too, and must not be read. Where all four columns of a thread exist and every "
        "row of C begins at a multiple of 16 bytes, store a `float4`.",
        (
            "Three guards: the row, the columns, and `N % 4 == 0` before a float4.",
            "`0 * NaN` is NaN: with beta 0, do not multiply the old value, leave it out.",
        ),
        "A thread beyond the last row does nothing. A thread whose four columns reach beyond the last one stores those that "
        "exist, one by one. The float4 needs all four columns and rows that begin at multiples of 16 bytes. And beta decides "
        "whether C is read at all.",
        cases=lambda rng: last_drawn(launches.epilogues(rng)),
        goals=(
            Goal("global_requests", 1_040, "M=32, N=64, K=8, alpha=1, beta=0"),
            Goal("global_requests", 738, "M=33, N=36, K=5, alpha=1.5, beta=0"),
        ),
    ),
    Exercise(
        "fuse_gelu", EVERYTHING, "A fused bias and GELU", 20,
        "A layer of a language model computes `gelu(A @ B + bias)`. The bias is one number per column, and `gelu` is a function "
        "of one number, which the kernel below defines. The sums are in registers. Finish the layer there: one load of the bias, "
        "one store of C, and no other traffic.",
        (
            "The bias belongs to the *column*: thread columns `col` to `col + 3` need `bias[col]` to `bias[col + 3]`.",
            "`col` and N are multiples of 4, so the four numbers of the bias are a float4, and so are the four of C.",
        ),
        "A float4 of the bias is added before `gelu`, and C is written once. As three kernels the same would write C three "
        "times and read it twice. [Use](../35_use.ipynb) times the same idea in `mma_multistage`.",
        cases=lambda rng: last_drawn(launches.layers(rng)),
        goals=(
            Goal("global_requests", 672, "M=32, N=64, K=8"),
        ),
        suspects={
            "The bias and gelu are missing: this is A @ B": launches.end_of_layer(lambda c, bias: c),
            "gelu is missing: this is A @ B + bias": launches.end_of_layer(lambda c, bias: c + bias),
            "The bias is missing: this is gelu(A @ B)": launches.end_of_layer(lambda c, bias: launches.gelu(c)),
            "The bias is subtracted, not added": launches.end_of_layer(
                lambda c, bias: launches.gelu(c - bias)
            ),
            "The bias is added twice": launches.end_of_layer(
                lambda c, bias: launches.gelu(c + 2 * bias)
            ),
            "The bias is multiplied, not added, before gelu": launches.end_of_layer(
                lambda c, bias: launches.gelu(c * bias)
            ),
            "The bias is multiplied, not added, after gelu": launches.end_of_layer(
                lambda c, bias: launches.gelu(c) * bias
            ),
            "gelu is applied twice": launches.end_of_layer(
                lambda c, bias: launches.gelu(launches.gelu(c + bias))
            ),
            "The bias is added before gelu and once more after it": launches.end_of_layer(
                lambda c, bias: launches.gelu(c + bias) + bias
            ),
            "The bias is added after gelu": launches.end_of_layer(lambda c, bias: launches.gelu(c) + bias),
            "This is relu instead of gelu": launches.end_of_layer(lambda c, bias: np.maximum(c + bias, 0)),
            "The bias is taken by the row: each column has one": launches.end_of_layer(launches.with_bias_of_rows),
            "Every column of four gets the bias of the first": launches.end_of_layer(
                lambda c, bias: launches.gelu(c + np.repeat(bias[::4], 4))
            ),
        },
    ),
    Exercise(
        "rasterise", EVERYTHING, "Visit the tiles in bands", 30,
        "A GPU usually starts blocks in the order of their index, and many run at once. If these visit C's tiles in bands, "
        "each of `GROUP` rows of tiles, they share rows of A and columns of B, which then stay in L2. Within a band the blocks "
        "go down the first column of tiles, then down the next. Give each block its tile.",
        (
            "A band of GROUP rows has `GROUP * tiles_n` tiles. Which band is a block in, and which of the band's blocks is it?",
            "Within a band, the row of the tile changes with every block, the column when a column of the band is done. The last "
            "band may have fewer rows: divide by its own number of rows.",
        ),
        "`block / (GROUP * tiles_n)` is the band, and what is left counts down the band's columns. The last band has "
        "`min(GROUP, tiles_m - first_row)` rows; with GROUP there, some blocks would get tiles below the last row of C, and "
        "some tiles no block.",
        cases=lambda rng: last_drawn(launches.orders(rng)),
        suspects={
            "This is row-major order: no bands": launches.rows_of_order,
            "This is column-major order over the whole of C: no bands": launches.columns_of_order,
            "order is stored as if its rows had tiles_m elements, with m and n the other way round": launches.turned_order,
        },
        decode=launches.first_tile_astray,
        outside="A band has GROUP rows of tiles, the last one as many as are left. So for every block m has to be below "
        "tiles_m and n below tiles_n, which is so when the place in the band is divided by the band's own number of rows.",
    ),
    Exercise(
        "beat_the_clock", EVERYTHING, "Beat a rung's time", 60,
        "A block of 256 threads computes a 64 x 64 tile of C, sixteen outputs per thread. The inner loop is missing. On a "
        "GPU, be faster than the rung `coarsened_1d` at 2048 cubed; what else you change is up to you.",
        (
            "Four rows of A and four columns of B, from shared memory into registers, give sixteen products.",
            "`As` is stored transposed, so that both are one float4: 8 values read, 16 multiply-adds done.",
        ),
        "Per step of k a thread reads two float4s, which are 32 bytes, and does sixteen multiply-adds, which are 32 "
        "operations. That is one operation per byte, four times as many as with one output per thread. Wider tiles go "
        "further; the ladder's rungs show where that ends.",
        cases=products(
            ((64, 64, 64), (128, 192, 64), (64, 128, 192)), (64, 64), (256,), drawn=((1, 2), (1, 3), (1, 4)), step=64,
        ),
        goals=(
            Goal("shared_wavefronts", 4_000, "M=64, N=64, K=64"),
            Goal("bytes read from global memory", 65_536, "M=64, N=64, K=64"),
        ),
        race=Race("coarsened_1d", 2048),
    ),
    Exercise(
        "shuffle_sum", ACROSS, "Sum a warp with shuffles", 15,
        "Each warp has 32 values, one per lane. A shuffle gives a lane the value that another lane of its warp holds in a "
        "register. Add the values with `__shfl_down_sync`, in five steps, so that lane 0 has the sum.",
        (
            "`__shfl_down_sync(0xffffffff, sum, 16)` gives lane l the value that lane l + 16 has. Then 16 sums are left. The "
            "mask 0xffffffff has a bit for each of the 32 lanes, and says that all of them take part.",
            "Halve the distance in each step: 16, 8, 4, 2, 1. All 32 lanes must make each call.",
        ),
        "After the step over a distance of 16, lanes 0 to 15 hold sums of two; after 8, lanes 0 to 7 sums of four; after 1, lane "
        "0 has all 32. The values go from register to register: no shared memory, and no barrier.",
        cases=lambda rng: last_drawn(ramp.pieces(32, 128)(rng)),
        needs=(Need("warp shuffles", 16, "n=512", "values go from lane to lane by shuffles"),),
        goals=(Goal("shared_wavefronts", 0, "n=512"), Goal("warp shuffles", 80, "n=512")),
        suspects=ramp.piece_suspects(32),
        watch=distances,
    ),
    Exercise(
        "block_reduce", ACROSS, "Sum a block", 20,
        "256 values lie in shared memory. The given loop is right, and wasteful: the words that a warp reads lie ever further "
        "apart, so its lanes meet in the same banks. Let the first half of the threads add the second "
        "half's values, then the first quarter, and so on.",
        (
            "In the first turn thread t, for t below 128, adds `s[t + 128]` to `s[t]`. Neighbouring threads read "
            "neighbouring words.",
            "All threads must come to the barrier of every turn, so it stands outside the `if`.",
        ),
        "With the halves in this order, a warp reads 32 neighbouring words, one per bank. As before, the working threads are "
        "neighbours, so whole warps finish early, and the number of additions is the same.",
        cases=lambda rng: last_drawn(ramp.pieces(256, 256)(rng)),
        needs=(Need("bytes read from shared memory", 1_000, "n=512", "the values of other threads are read from shared memory"),),
        goals=(Goal("shared_wavefronts", 100, "n=512"), Goal("atomic operations of a warp", 0, "n=512")),
        suspects=ramp.piece_suspects(256),
        watch=turns,
    ),
    Exercise(
        "split_k", ACROSS, "Split K between blocks", 15,
        "With few tiles of C most multiprocessors have no block. Here four blocks share each tile: block z has every fourth term "
        "of K. All four add to the same elements of C, which are 0 before. Make the additions safe.",
        (
            "`C[...] += sum` is three steps: read, add, write. What if another block reads in between?",
            "`atomicAdd(&C[...], sum)` does the three as one.",
        ),
        "An atomic addition cannot be interrupted by another to the same address, so none is lost. The order of the four "
        "is open, so the last bits of C may differ from run to run.",
        cases=lambda rng: last_drawn(ramp.slices_of_k(rng)),
        needs=(Need("atomic operations of a warp", 4, "M=32, N=48, K=64", "sums of several blocks meet by atomic additions"),),
        goals=(
            Goal("atomic operations of a warp", 192, "M=32, N=48, K=64"),
            Goal("bytes read from global memory", 786_432, "M=32, N=48, K=64"),
        ),
        suspects=ramp.SLICE_SUSPECTS,
    ),
    Exercise(
        "find_race", ACROSS, "Find a race on global memory", 10,
        "This kernel reverses an array in place, and is wrong now and then. Find out who else touches the elements of a "
        "thread, and mend it without a second array.",
        (
            "Thread i reads `x[n - 1 - i]`. Which thread writes that element, and in which block is it?",
            "If each pair of elements belongs to one thread only, nobody else can interfere.",
        ),
        "Thread i and thread n - 1 - i touch the same two elements, mostly from different blocks, which `__syncthreads()` "
        "does not order. "
        "If only the first n / 2 threads work, and each swaps its pair, every element has one owner.",
        cases=lambda rng: last_drawn(ramp.reversals(rng)),
        suspects=ramp.REVERSAL_SUSPECTS,
        decode=ramp.left_in_place,
    ),
    Exercise(
        "keep_precision", ACROSS, "Keep the digits of a sum", 15,
        "Inputs of 16 bits are fine here, sums of 16 bits are not: a half has 11 significant bits, so near 1024 it cannot tell "
        "1024 from 1024.4. Compute the dot products to the accuracy of a float.",
        (
            "The product of two halves has up to 22 significant bits. Which type holds it without rounding?",
            "Convert before you multiply: `__half2float(a) * __half2float(b)`, and keep the sum in a float.",
        ),
        "A float has 24 significant bits, so it holds each product exactly, and rounds the sum only at its 24th bit. "
        "Tensor cores "
        "work the same way: halves in, products exact, sums in float.",
        cases=lambda rng: last_drawn(precision.dot_products(rng)),
        suspects=precision.PRECISION_SUSPECTS,
    ),
    Exercise(
        "split_tf32", ACROSS, "Three products of TF32 for one of floats", 20,
        "Tensor cores also multiply floats, if these may be rounded to TF32 first, which keeps 10 of 23 bits of mantissa. "
        "A float is the sum of two such numbers, up to a very small rest: `high`, which is the float rounded to TF32, and "
        "`low`, which is what the rounding lost. Use both to compute C to 20 bits.",
        (
            "`(a + a_low) * (b + b_low)` has four terms. How large is each of them, compared with `a * b`?",
            "`a * b_low` and `a_low * b` are about 2,000 times smaller than `a * b`, and matter. `a_low * b_low` is another "
            "2,000 "
            "times smaller, and lies below the 20th bit.",
        ),
        "Three products give nearly the accuracy of floats at a third of the speed of TF32. The small terms go first, so that "
        "in the first step along K they are added to each other while the sum is small. In later steps the sum is large "
        "already, and the order matters less. The method is called 3xTF32.",
        cases=lambda rng: last_drawn(precision.tf32_products(rng)),
        needs=(Need("matrix multiplications of a warp", 72, "M=16, N=24, K=64", "tensor cores multiply both parts"),),
        suspects=precision.TF32_SUSPECTS,
        settings=ramp.TF32_SETTINGS,
    ),
    Exercise(
        "tile_copy", CAPSTONE, "Step 1: bring a tile into shared memory", 15,
        "The capstone builds one kernel in five steps: copies that do not wait, a swizzle, ldmatrix, mma, and a pipeline. Begin "
        "with the copy: 16 rows of 64 bytes, in copies of 16 bytes.",
        (
            "There are 16 x 4 chunks, two for each lane. Chunk i is row `i / 4`, chunk `i % 4` of it, 8 halves each.",
            "`cp_async<16>(shared_address(...), pointer)`, then `cp_async_commit()`, `cp_async_wait<0>()` and `__syncwarp()`.",
        ),
        "A lane's wait is for its own copies. Only `__syncwarp()` after it makes the copies of the other lanes safe to read.",
        cases=lambda rng: last_drawn(fragments.tiles((16, 32), lambda x: x)(rng)),
        needs=(Need("bytes copied by cp.async", 1_024, "K=32", "the tile arrives by cp.async"),),
        goals=(Goal("global_requests", 4, "K=32"),),
    ),
    Exercise(
        "tile_swizzle", CAPSTONE, "Step 2: swizzle the tile", 15,
        "Rows of 64 bytes put rows 0, 2, 4 and 6 into the same banks. Choose where each chunk of a row lies, so that eight "
        "chunks of a column are read in one wavefront. Writing and reading both use `place`.",
        (
            "Number the even rows: `row / 2 % 4` is 0, 1, 2, 3, and again.",
            "The exclusive or of the chunk and that number is a different place in each of the four rows.",
        ),
        "`chunk ^ row / 2 % 4`, as in the exercises on swizzles. The copies are still of 16 whole bytes, since only "
        "whole chunks move.",
        cases=lambda rng: last_drawn(fragments.tiles((4, 16, 8), fragments.by_chunks)(rng)),
        needs=(Need("bytes copied by cp.async", 1_024, "K=32", "the tile arrives by cp.async"),),
        goals=(Goal("shared_wavefronts", 20, "K=32"),),
        outside="place() must return 0 to 3 for every row, or chunks leave their row.",
    ),
    Exercise(
        "tile_fragments", CAPSTONE, "Step 3: registers by ldmatrix", 20,
        "Load the registers that `mma.m16n8k16` wants of A from the swizzled tile, first for columns 0 to 15 and then for "
        "columns 16 to 31. One `ldmatrix_x4` loads four matrices of 8 x 8 halves, and lanes 8i to 8i + 7 give the addresses of "
        "the eight rows of matrix i.",
        (
            "Matrices 0 and 1 are rows 0 to 7 and 8 to 15 of the left chunk, so lane l points at row `l % 16`.",
            "Lanes 16 and up point at the chunk to the right. Columns 16 to 31 begin two chunks further on. Then apply `place`.",
        ),
        "The row is `lane % 16`, the chunk `2 * step + lane / 16`, and `place` finds it. Eight lanes read eight rows of one "
        "chunk, and the swizzle has put these into eight different groups of four banks.",
        cases=lambda rng: last_drawn(fragments.tiles((2, 32, 4), fragments.fragments, np.int32)(rng)),
        needs=(Need("ldmatrix instructions", 2, "K=32", "ldmatrix loads the registers"),),
        goals=(Goal("shared_wavefronts", 16, "K=32"),),
        suspects=fragments.FRAGMENT_SUSPECTS,
        decode=fragments.pointed_at,
    ),
    Exercise(
        "tile_multiply", CAPSTONE, "Step 4: multiply a tile", 20,
        "Both tiles are in shared memory and `load` fills the registers of either. Multiply: two `mma` for each half of k, one "
        "for columns 0 to 7 of C and one for columns 8 to 15.",
        (
            "A row of the tile of Bt is a column of B. So matrices 0 and 1, registers b[0] and b[1], are columns 0-7 "
            "and 8-15 of B.",
            "`mma_m16n8k16(acc[0], a, b[0], b[2])`: the left and the right chunk of k for columns 0 to 7.",
        ),
        "One mma takes 16 terms of k, that is both chunks: b[0] and b[2] are columns 0-7 of B at the left and at the "
        "right chunk. "
        "For A the four registers go in as they are.",
        cases=lambda rng: last_drawn(fragments.transposed_products(((16, 16, 32), (16, 16, 96)), True)(rng)),
        needs=(Need("matrix multiplications of a warp", 4, "K=32", "four mma.m16n8k16 multiply"),),
        goals=(Goal("shared_wavefronts", 32, "K=32"),),
        suspects=fragments.B_SUSPECTS,
        decode=fragments.products_of_blocks,
    ),
    Exercise(
        "tile_pipeline", CAPSTONE, "Step 5: a pipeline along K", 30,
        "Go along K, and fetch the next pair of tiles while this one is multiplied. With this the kernel has the main ideas of "
        "the rung `mma_multistage`, at the size of one warp.",
        (
            "As in the exercise two_stages: fetch pair 0. Then in each turn wait for the copies, let all lanes meet, fetch the "
            "next pair, and multiply this one.",
            "Commit once for each pair. One warp is the whole block, so `__syncwarp()` does what `__syncthreads()` would.",
        ),
        "Wait, meet, fetch, multiply. The meeting makes all lanes' copies visible, and proves that the other pair of buffers has "
        "been read. `mma_multistage` adds more warps per block, more stages, guards at the edges, and more.",
        cases=lambda rng: last_drawn(fragments.transposed_products(((16, 16, 32), (32, 48, 96), (48, 16, 64)), False)(rng)),
        needs=(
            Need("bytes copied by cp.async", 36_864, "M=32, N=48, K=96", "the tiles arrive by cp.async"),
            Need("matrix multiplications of a warp", 72, "M=32, N=48, K=96", "mma multiplies"),
            Need("ldmatrix instructions", 72, "M=32, N=48, K=96", "ldmatrix loads the registers"),
        ),
        goals=(Goal("shared_wavefronts", 900, "M=32, N=48, K=96"),),
        inspect=fetches_ahead(1),
    ),
    Exercise(
        "encode_map", HOPPER, "Encode a tensor map", 15,
        "TMA, the Tensor Memory Accelerator, copies whole tiles. The host describes a matrix to it once, before the launch, by a "
        "tensor map. Write `describe`, which returns a tensor map of `matrix`: its box, the tile that one copy moves, has "
        "`rows` rows of `row_bytes` bytes, and its 16-byte chunks are swizzled within each row. The matrix may hold any "
        "type, and may be a part of a wider one. `TensorMap(array, box, swizzle=...)` knows where an array lies.",
        (
            "A box is given like the shape of an array: rows first, then columns, both in elements.",
            "`matrix.itemsize` is the number of bytes of an element. So the box has `row_bytes // matrix.itemsize` columns.",
        ),
        "The box is `(rows, row_bytes // matrix.itemsize)`, and the swizzle spans `row_bytes`. Address, extents and the "
        "distance between rows come from the array, so a part of a wider matrix needs nothing more.",
        judge=functions.encoded_map,
        given="from emulator import TensorMap\n\n\ndef describe(matrix, rows, row_bytes):\n"
        "    # Your turn: the box, and the swizzle.\n"
        "    return TensorMap(matrix, box=(8, 16 // matrix.itemsize))\n",
        answer="from emulator import TensorMap\n\n\ndef describe(matrix, rows, row_bytes):\n"
        "    columns = row_bytes // matrix.itemsize\n"
        "    return TensorMap(matrix, box=(rows, columns), swizzle=row_bytes)\n",
        variable="describe",
    ),
    Exercise(
        "mend_parity", HOPPER, "Mend a wrong parity", 20,
        "One thread asks for tiles, 64 threads add them up, and two stages lie between. Each stage has two barriers: `full` "
        "says that its tile has landed, `empty` that its tile has been read. A barrier goes through phases 0, 1, 2 and so on. "
        "The call `barrier_wait(b, p)` returns when a phase of parity p is over, p being 0 for an even phase and 1 for an odd "
        "one. Both roles wait for the wrong parities. Mend them.",
        (
            "Stage s is filled with tiles s, s + 2, s + 4 and so on. For the first of these, phase 0 of `full` has to end, for "
            "the second phase 1.",
            "Counted from 0, tile i is number `i / STAGES` of its stage, so the consumers wait for parity `i / STAGES % 2`. "
            "Before the first filling nobody releases a stage, so the producer's first wait has to pass at once. Which parity "
            "passes on a fresh barrier?",
        ),
        "The consumers wait for parity `i / STAGES % 2`. The producer waits for the other one, `i / STAGES % 2 ^ 1`. On a "
        "fresh barrier that is parity 1, and passes at once. For the second filling it is parity 0: the first release has to "
        "be over.",
        cases=lambda rng: last_drawn(hopper.row_sums(rng)),
        needs=(Need("bytes copied by TMA", 131_072, "M=128, K=256", "the tiles arrive by TMA"),),
        goals=(Goal("shared_wavefronts", 2_100, "M=128, K=256"),),
        suspects=hopper.PARITY_SUSPECTS,
        arch=hopper.ARCH,
    ),
    Exercise(
        "write_descriptor", HOPPER, "Write a descriptor", 30,
        "`wgmma` finds its operands by descriptors: 64 bits that say where in shared memory an operand begins, and how far apart "
        "its parts lie. The stride offset leads from eight rows to the next eight, the leading offset from one panel of 64 "
        "columns to the next. Pack a descriptor in `describe`. Then describe the part of A and the part of B that each of the "
        "four products takes, which is 16 elements of k.",
        (
            "A is K-major: 16 elements of k are 32 bytes of a row, and eight rows are 8 x 128 bytes. B is N-major: 16 elements "
            "of k are 16 rows, and the next panel of 64 columns begins 8,192 bytes further.",
            "So A starts at `a_tile + 2 * k`, with a stride offset of 1,024. B starts at `b_tile + 128 * k`, with a leading "
            "offset of 8,192 and a stride offset of 1,024. Divide each by 16 where you pack it, and convert it to a 64-bit "
            "type before you shift it.",
        ),
        "Addresses and offsets are multiples of 16 bytes, so their four lowest bits are left out. A's leading offset is not "
        "used with a swizzle. The hardware adds up the address first and applies the swizzle to the sum, so a start in the "
        "middle of a row needs nothing more.",
        cases=lambda rng: last_drawn(hopper.tile_products(((64, 128, 64), (100, 200, 64), (64, 128, 40)), (64, 128), 128)(rng)),
        needs=(
            Need("wgmma (four warps issue each, so each counts four)", 16, "M=64, N=128, K=64", "wgmma multiplies"),
            Need("bytes copied by TMA", 24_576, "M=64, N=128, K=64", "the tiles arrive by TMA"),
        ),
        goals=(Goal("wgmma (four warps issue each, so each counts four)", 16, "M=64, N=128, K=64"),),
        suspects=hopper.DESCRIPTOR_SUSPECTS,
        outside="Compare what the descriptor holds with what you meant: swizzle 0 means that bits 62 and 63 are not set, and "
        "32 that they hold another code. The last start of B is `b_tile + 48 * 128`, and its last row of k must not lie beyond "
        "the tile. A number that is 16 times too large was not divided by 16.",
        arch=hopper.ARCH,
    ),
    Exercise(
        "place_fences", HOPPER, "Place the fences", 20,
        "Threads, TMA and the tensor cores touch the same memory and the same registers, and this kernel orders nothing "
        "between them. Five calls are missing: `barrier_init_fence()`, `async_fence()`, `wgmma_fence()`, `wgmma_commit()` and "
        "`wgmma_wait<0>()`. Place each of them.",
        (
            "Four things have to be seen by somebody else. TMA has to see the fresh barrier. The tensor cores have to see the "
            "doubled elements in shared memory, and the sums that the threads have loaded. The threads have to see the "
            "finished sums.",
            "`barrier_init_fence()` follows `barrier_init`. `async_fence()` is called by every thread that has written the "
            "tile, before the `__syncthreads()` that follows. `wgmma_fence()` stands before the first product. Commit and wait "
            "follow the last.",
        ),
        "The first two fences are called by the threads that wrote. `barrier_init_fence()` stands before the first copy that "
        "counts at the fresh barrier, and `async_fence()` before the `__syncthreads()` after which the products read the "
        "tile. `__syncthreads()` "
        "orders threads with threads, but TMA and `wgmma` go another way to shared memory, which is called the async proxy. "
        "`wgmma_fence()` orders a warpgroup's own accesses before its products.",
        cases=lambda rng: last_drawn(
            hopper.tile_products(((64, 64, 64), (100, 72, 64), (64, 64, 40)), (64, 64), 128, alpha=2.0, beta=1.0)(rng)
        ),
        needs=(
            Need("wgmma (four warps issue each, so each counts four)", 16, "M=64, N=64, K=64", "wgmma multiplies"),
            Need("bytes copied by TMA", 16_384, "M=64, N=64, K=64", "the tiles arrive by TMA"),
        ),
        goals=(Goal("wgmma (four warps issue each, so each counts four)", 16, "M=64, N=64, K=64"),),
        suspects=hopper.FENCE_SUSPECTS,
        arch=hopper.ARCH,
    ),
    Exercise(
        "balance_roles", HOPPER, "Balance the registers of two roles", 15,
        "A block has one warpgroup that loads and `consumers` warpgroups that multiply. At launch every thread was given "
        "`launched` registers. By `setmaxnreg` the producer shrinks to as few as its code needs (`producer`), and each "
        "consumer then grows to as many as are left for it. The numbers are multiples of 8. "
        "The least is 24, and the most, 256, is not reached here. Write `share`, "
        "which returns both: the registers of a thread of the producer, and those of a thread of a consumer.",
        (
            "All warpgroups have 128 threads, so count registers per thread. Four warpgroups with 128 registers per "
            "thread make 512.",
            "Round the producer's number up to a multiple of 8, and to 24 at least. Divide what is left by the number of "
            "consumers, and round that down to a multiple of 8.",
        ),
        "With 168 registers at launch and two consumers the three warpgroups have 3 x 168 = 504. The producer keeps 40, so 464 "
        "are left, which is 232 for each consumer. A consumer that wanted more would wait for ever, since nobody gives more "
        "back.",
        judge=functions.shared_registers,
        given="def share(launched, consumers, producer):\n    # Your turn: registers of the producer, and of each consumer.\n"
        "    return launched, launched\n",
        answer="def share(launched, consumers, producer):\n    small = max(24, -(-producer // 8) * 8)\n"
        "    left = launched * (consumers + 1) - small\n    return small, left // consumers // 8 * 8\n",
        variable="share",
    ),
    Exercise(
        "split_steps", HOPPER, "Split K between warpgroups", 30,
        "With few tiles of C most multiprocessors are idle, and a block can at least share its work: two warpgroups take half "
        "of the steps along K each, and add up their sums at the end. Divide the steps, and let the sums meet in shared memory.",
        (
            "Warpgroup 0 can take steps 0, 2, 4 and so on, and warpgroup 1 the others. Each has a barrier of its own, so the "
            "parity flips once per step taken.",
            "At the end warpgroup 1 writes its 32 sums per thread to shared memory. After a `__syncthreads()` of both, "
            "warpgroup 0 adds them to its own, and stores.",
        ),
        "The loop begins at `group` and takes every second step. The sums of a thread lie side by side with those of its "
        "neighbours, as `sums[i][thread]`, so nobody meets in a bank. All 256 threads come to both "
        "barriers. The first is needed because the sums are written where the tiles of warpgroup 0 were, and warpgroup 0 may "
        "still be multiplying them. After the second, the sums can be read, and warpgroup 1 leaves.",
        cases=lambda rng: last_drawn(
            hopper.tile_products(
                ((64, 64, 128), (64, 64, 192), (100, 72, 200), (33, 40, 40)), (64, 64), 256, with_k=True,
            )(rng)
        ),
        needs=(
            Need("wgmma (four warps issue each, so each counts four)", 48, "M=64, N=64, K=192", "wgmma multiplies"),
            Need("bytes copied by TMA", 49_152, "M=64, N=64, K=192", "the tiles arrive by TMA"),
        ),
        goals=(
            Goal("wgmma (four warps issue each, so each counts four)", 48, "M=64, N=64, K=192"),
            Goal("bytes copied by TMA", 49_152, "M=64, N=64, K=192"),
        ),
        suspects=hopper.STEP_SUSPECTS,
        inspect=hopper.steps_by_groups,
        decode=hopper.sums_astray,
        arch=hopper.ARCH,
    ),
)  # fmt: skip

_BY_NAME = {exercise.name: exercise for exercise in EXERCISES}


def find(name: str) -> Exercise:
    """The exercise of this name. ValueError lists the names there are."""
    if not isinstance(name, str) or name not in _BY_NAME:
        raise ValueError(f"no exercise {name!r}; there are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]
