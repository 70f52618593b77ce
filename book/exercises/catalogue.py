"""Every exercise, in reading order: task, hints, explanation, the launches that try it and the goals it must reach."""

from __future__ import annotations

import numpy as np

from . import answers
from .cases import ceil_div, poisoned, product
from .exercise import Case, Exercise, Goal, Race

MEMORY = "Memory"
MORE_WORK = "More work per thread"
COPIES = "Copies that do not wait"
TENSOR_CORES = "Tensor cores"
BANKS = "Bank conflicts and swizzles"
EVERYTHING = "Everything at once"
PARTS = (MEMORY, MORE_WORK, COPIES, TENSOR_CORES, BANKS, EVERYTHING)


def products(sizes, tile, block, **options):
    """`cases` for a GEMM kernel: one launch per size."""
    return lambda rng: tuple(product(rng, size, tile, block, **options) for size in sizes)


def mapping(
    rng,
    shape,
    output,
    rearrange,
    grid,
    block,
    *,
    dtype=np.float32,
    extra=(),
    label=None,
):
    """A launch that moves or scales its one input of this shape; `rearrange` gives the right output."""
    x = rng.standard_normal(shape).astype(dtype)
    expected = rearrange(x)
    label = label or " x ".join(map(str, shape))
    return Case(label, (x, poisoned(output, dtype), *extra), 1, expected, grid, block)


def _scale_rows(rng):
    alpha = np.float32(rng.uniform(1, 2))
    return tuple(
        mapping(
            rng, (M, N), (M, N), lambda x: alpha * x, (1, M), (64,),
            extra=(np.int32(M), np.int32(N), alpha), label=f"M={M}, N={N}",
        )
        for M, N in ((4, 512), (3, 300), (3, 301), (2, 130), (5, 3))
    )  # fmt: skip


def _chunks(columns):
    """Launches for a kernel that reads a 32-row tile of halves back chunk by chunk."""

    def cases(rng):
        chunks = columns // 8
        return tuple(
            mapping(
                rng, (32, columns), (chunks, 32, 8),
                lambda x: np.ascontiguousarray(x.reshape(32, chunks, 8).swapaxes(0, 1)),
                (1,), (32,), dtype=np.float16, label=f"one 32 x {columns} tile",
            )
        for _ in range(1))  # fmt: skip

    return cases


def _reverse(rng):
    return (
        mapping(
            rng, (3, 512), (3, 512), lambda x: np.ascontiguousarray(x[:, ::-1]), (3,), (128,),
            label="three blocks of 512",
        ),
    )  # fmt: skip


def _row_sums(rng):
    cases = []
    for M, K in ((64, 16), (128, 48), (64, 176), (64, 512)):
        x = rng.standard_normal((M, K)).astype(np.float32)
        wide = x.astype(float)
        cases.append(
            Case(
                f"M={M}, K={K}", (x, poisoned((M,)), np.int32(K)), 1, wide.sum(1), (M // 64,), (64,),
                tolerance=(K + 4) * 2.0**-23, scale=np.abs(wide).sum(1),
            )
        )  # fmt: skip
    return tuple(cases)


def _copies_in_flight(trace):
    """Does the steady state leave STAGES - 2 = 2 groups unfinished?"""
    waits = [int(row.text.rstrip(";").split()[-1]) for row in trace.rows("cp.async.wait_group")]
    if waits and max(waits) >= 2:
        return []
    left = max(waits, default=0)
    return [
        f"Each wait leaves {left} copies in flight; with four stages, two may stay while the oldest is used."
    ]


def _transposes(rng):
    return tuple(
        mapping(
            rng, (M, N), (N, M), lambda x: np.ascontiguousarray(x.T), (ceil_div(N, 32), ceil_div(M, 32)), (32, 8),
            extra=(np.int32(M), np.int32(N)), label=f"{M} x {N}",
        )
        for M, N in ((32, 32), (64, 96), (33, 70), (1, 65))
    )  # fmt: skip


def _orders(rng):
    def right(tiles_m, tiles_n, group=4):
        visits = [
            (m, n)
            for top in range(0, tiles_m, group)
            for n in range(tiles_n)
            for m in range(top, min(top + group, tiles_m))
        ]
        order = np.empty((tiles_m, tiles_n), np.int32)
        for block, place in enumerate(visits):
            order[place] = block
        return order

    return tuple(
        Case(
            f"{m} x {n} tiles",
            (poisoned((m, n), np.int32), np.int32(m), np.int32(n)),
            0,
            right(m, n),
            (m * n,),
            (32,),
        )
        for m, n in ((8, 6), (10, 3), (3, 5), (1, 7), (9, 1))
    )


def _epilogues(rng):
    tried = (
        ((32, 32, 8), (1.0, 0.0)),
        ((33, 36, 5), (1.5, 0.0)),
        ((40, 44, 7), (0.5, 2.0)),
        ((17, 35, 4), (-1.0, 0.25)),
        ((1, 2, 3), (2.0, 0.0)),
    )
    return tuple(product(rng, size, (32, 32), (256,), scalars=scalars) for size, scalars in tried)


def _rows_of_order(case):
    m, n = case.expected.shape
    return np.arange(m * n, dtype=np.int32).reshape(m, n)


def _columns_of_order(case):
    m, n = case.expected.shape
    return np.arange(m * n, dtype=np.int32).reshape(n, m).T


def _tile_stride(operand):
    """The product if fragments of this operand are loaded with the tile's stride, 16, from the right corners."""

    def guess(case):
        p = case.product
        X = getattr(p, operand)
        rows, cols = np.indices(X.shape)
        corner = rows // 16 * 16 * X.shape[1] + cols // 16 * 16
        read = X.ravel()[corner + rows % 16 * 16 + cols % 16]
        return read @ p.B if operand == "A" else p.A @ read

    return guess


SIZES = ((64, 64, 32), (33, 65, 17), (1, 40, 3), (50, 7, 20))

EXERCISES = (
    Exercise(
        "coalesce", MEMORY, "Coalesce a kernel", 5,
        "This kernel is right, and slow: the outputs of a warp lie in 32 rows, so it reads A and writes C down a column. "
        "Give each thread another output, so that a warp's 32 accesses to B and C fall into four sectors.",
        (
            "A warp is 32 threads whose `threadIdx.x` runs from 0 to 31 at the same `threadIdx.y`.",
            "Neighbours in memory are neighbours in `col`. So `col` must come from `threadIdx.x`.",
        ),
        "With `col` along the warp, `B[k * N + col]` is 32 neighbouring floats: 128 bytes, four sectors. `A[row * K + k]` "
        "is one address for the whole warp, and costs one sector. The number of instructions has not changed.",
        cases=products(SIZES, (32, 32), (32, 32)),
        goals=(Goal("global_sectors", 21_000, "M=64, N=64, K=32"),),
    ),
    Exercise(
        "place_barriers", MEMORY, "Place the two barriers", 10,
        "A block fills its two shared tiles together, and reads what others have written. Place `__syncthreads()` twice.",
        (
            "Whose element of `As` does a thread read in the inner loop? When was it written?",
            "The second danger is the next turn of the loop: a quick warp fills the tiles that a slow one still reads.",
        ),
        "The first barrier stands between writing and reading: no thread reads the tiles before all have written them. The "
        "second stands between reading and the next writing. Neither may stand inside an `if` that some threads skip.",
        cases=products(((16, 16, 32), (32, 48, 40), (17, 5, 23)), (16, 16), (16, 16)),
    ),
    Exercise(
        "count_wavefronts", MEMORY, "Count wavefronts by hand", 10,
        "One warp reads shared memory in six ways; `lane` is 0 to 31, `s` is an array of floats. How many wavefronts does "
        "each read take? Write the six numbers down, then let the trace of a kernel that makes these reads check them.",
        (
            "Word `i` lies in bank `i % 32`. A wavefront serves one word of every bank.",
            "Lanes that ask for the same word count once. And a wavefront carries 128 bytes at most.",
        ),
        "Count the different words that the busiest bank must serve. `s[lane / 2]` is 16 words in 16 banks: one wavefront. "
        "`s[32 * lane]` is 32 words in one bank: 32. `s[33 * lane]` is 32 words in 32 banks: one, which is why `+ 1` pads. "
        "A `float4` a lane is 512 bytes, and eight lanes are served at a time: four.",
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
    ),
    Exercise(
        "coarsen", MORE_WORK, "Four outputs a thread: beat a rung's wavefronts", 30,
        "A thread of this kernel has four outputs of one column, and computes one of them. Compute all four, with fewer "
        "wavefronts of shared memory than the `tiled` rung spends on the same product (16,896 at 64 x 64 x 64).",
        (
            "The outputs are rows `ty`, `ty + 8`, `ty + 16` and `ty + 24` of the tile: one `Bs[k][tx]` serves all four.",
            "Four steps of k at a time: four values of `Bs` in registers, then one `float4` from each of the four rows.",
        ),
        "Each value of `Bs` is read once and used four times. A row of `As` is the same for the whole warp: a `float4` "
        "of it costs two wavefronts, and serves four steps of k, where four single floats would cost four.",
        cases=products(((64, 64, 64), (33, 65, 17), (8, 40, 70)), (32, 32), (32, 8)),
        goals=(Goal("shared_wavefronts", 7_000, "M=64, N=64, K=64"),),
    ),
    Exercise(
        "vectorize", MORE_WORK, "Wide accesses where they are allowed", 20,
        "Scale a matrix with 16-byte accesses, for any M and N. A row begins wherever the previous one ended.",
        (
            "A `float4` may be read only at a multiple of 16 bytes. Row `y` begins at byte `4 * N * y`.",
            "So all rows are aligned if `N % 4 == 0`. For other N, keep the scalar loop. Each thread's step is in float4s.",
        ),
        "The width of an access must divide its address: with `N = 301`, row 1 begins at byte 1204, and a float4 there "
        "faults. Where every row is aligned, each lane moves 16 bytes a request: a quarter of the requests.",
        cases=_scale_rows,
        goals=(Goal("global_requests", 32, "M=4, N=512"),),
    ),
    Exercise(
        "mend_pipeline", COPIES, "Mend a racy pipeline", 20,
        "Tiles arrive through `cp.async` in two buffers. The kernel waits for its copies, but not for the last; it reads what "
        "others copied, and refills what others may still read. Mend all three.",
        (
            "`cp_async_wait<0>()` waits for the calling thread's own copies. Who copied the element that you read?",
            "One barrier a turn is enough: after the wait, before the next fetch. What does it order, backwards and forwards?",
        ),
        "The wait makes a thread's own copies visible to itself, the last one too, now that it leaves none under way; the "
        "barrier after it makes everyone's visible to all. The same barrier also proves that the buffer about to be filled, "
        "read in the turn before, has been read by all.",
        cases=_reverse,
    ),
    Exercise(
        "pipeline_stages", COPIES, "Write a pipeline of N stages", 60,
        "Turn this one-stage loop into a pipeline that keeps `STAGES - 1` copies in flight, so that a tile's flight is "
        "covered by the work on the tiles before it. One barrier a tile must do.",
        (
            "Before the loop, start `STAGES - 1` tiles. In turn t, wait for tile t, then start tile `t + STAGES - 1`.",
            "`cp_async_wait<n>()` leaves the n newest groups unfinished. Commit a group in every turn, even an empty one, "
            "and n is the same to the end.",
        ),
        "When turn t waits, `t + STAGES - 1` groups have been committed, and the newest `STAGES - 2` may stay in flight. The "
        "barrier then shows the tile to all threads, and shows that slot `(t - 1) % STAGES`, filled next, has been read.",
        cases=_row_sums,
        goals=(Goal("barriers", 66, "M=64, K=512"),),
        inspect=_copies_in_flight,
    ),
    Exercise(
        "wmma_tile", TENSOR_CORES, "A tile on the tensor cores", 20,
        "One warp, one 16 x 16 tile of C, with the WMMA API: declare the fragments, load, multiply, go on along K.",
        (
            "`wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>`, and `matrix_b` likewise.",
            "`load_matrix_sync(a, pointer, stride)`: the stride is the distance between rows in memory: K for A, N for B.",
        ),
        "Both operands are row-major, and the stride of a load is that of the whole matrix, not of the tile. The warp acts "
        "as one: every lane makes every call.",
        cases=products(
            ((16, 16, 16), (32, 48, 64), (16, 64, 48)), (16, 16), (32,), dtype=np.float16
        ),
        suspects={
            "A is loaded with a stride of 16, the tile's, where its rows are K apart": _tile_stride("A"),
            "B is loaded with a stride of 16, the tile's, where its rows are N apart": _tile_stride("B"),
        },
    ),
    Exercise(
        "lane_map", TENSOR_CORES, "Who holds what", 20,
        "In `mma.m16n8k16`, a lane holds eight halves of the 16 x 16 operand A, two in each of four registers. Which ones? "
        "Write `element(lane, half)`, the row and column that `half` (0 to 7) of this lane holds.",
        (
            "Lane 0 holds (0, 0) and (0, 1) in register 0. Lane 1 holds (0, 2) and (0, 3). Lane 4 is one row down.",
            "Register 1 is eight rows below register 0, register 2 eight columns to its right, register 3 both.",
        ),
        "`lane // 4` is the row within eight, `2 * (lane % 4)` the column within eight. Bit 0 of `half` is the next column, "
        "bit 1 eight rows down, bit 2 eight columns on.",
        judge=answers.lane_map,
        given="def element(lane, half):\n    return 0, 0\n",
        answer=(
            "def element(lane, half):\n"
            "    return lane // 4 + 8 * (half // 2 % 2), 2 * (lane % 4) + half % 2 + 8 * (half // 4)\n"
        ),
    ),
    Exercise(
        "load_fragments", TENSOR_CORES, "Load an mma's registers by hand", 30,
        "One warp, one `mma.m16n8k16`. Load `a[4]` and `b[2]` from row-major A and B, each lane what it must hold.",
        (
            "A's registers are those of the exercise before. B is 16 x 8: a register holds two rows of one column.",
            "`b[r]`: rows `2 * pair + 8 * r` and the next, column `group`.",
        ),
        "A's pairs run along a row, B's down a column: along K in both. That is why B in row-major order needs two loads a "
        "register, and why `ldmatrix` has `.trans`.",
        cases=products(((16, 8, 16),), (16, 8), (32,), dtype=np.float16, sizes_passed=False),
    ),
    Exercise(
        "transpose_operand", TENSOR_CORES, "ldmatrix for a transposed operand", 30,
        "B lies row by row in shared memory. `ldmatrix.x4.trans` loads four 8 x 8 matrices of it and transposes each. Lanes "
        "8i to 8i + 7 give the addresses of the rows of matrix i. Which row does each lane point at?",
        (
            "Matrices 0 and 1 are the upper and lower half of the left eight columns. So lanes 0 to 15 point at rows 0 to 15.",
            "Lanes 16 to 31 point at the same rows, eight columns to the right.",
        ),
        "`lane % 16` is the row, `lane / 16 * 8` the column: matrices 0 and 1 are rows 0-7 and 8-15 of the left half, the two "
        "registers of the first `mma`. The transposition happens inside each 8 x 8 matrix, never between them.",
        cases=products(((16, 16, 16),), (16, 16), (32,), dtype=np.float16, sizes_passed=False),
    ),
    Exercise(
        "choose_padding", BANKS, "A padding that keeps alignment", 10,
        "Choose `PAD` so that reading a column of 16-byte chunks has no conflicts, and every chunk stays aligned.",
        (
            "Eight lanes are served at a time, and each takes four banks. Eight rows must begin in eight different places.",
            "`+ 1` is the cure for 4-byte accesses. Here every row must still begin at a multiple of 16 bytes.",
        ),
        "A row of 64 halves is 128 bytes: all rows begin in bank 0. With 8 spare halves a row is 144 bytes, and each row "
        "begins four banks after the one before. 1, 2 or 4 spare halves would break the alignment; 16 put rows 0 and 4 in "
        "the same banks again.",
        cases=_chunks(64),
        goals=(Goal("shared_wavefronts", 64, "one 32 x 64 tile"),),
    ),
    Exercise(
        "swizzle_rows", BANKS, "Derive a swizzle for 64-byte rows", 30,
        "No padding this time. Place each 16-byte chunk of a 64-byte row elsewhere in its row, so that eight rows' chunks "
        "of one column lie in different banks.",
        (
            "Two 64-byte rows fill the 32 banks once. So rows 0 and 2 meet, and rows 0 and 1 do not.",
            "The chunk must move with `row / 2`, and must stay within 0 to 3: XOR it with two bits of the row.",
        ),
        "Even rows cover banks 0 to 15, odd rows banks 16 to 31. Among the four even rows of any eight, `row / 2 % 4` takes "
        "all four values, so `chunk ^ row / 2 % 4` puts a column's chunks in four different places.",
        cases=_chunks(32),
        goals=(Goal("shared_wavefronts", 32, "one 32 x 32 tile"),),
    ),
    Exercise(
        "swizzle_parameters", BANKS, "The same swizzle in three numbers", 20,
        "CuTe writes it as `Swizzle<B, M, S>`: of an element's index, take B bits from bit M + S on, and XOR them into the B "
        "bits from bit M on. The index counts halves, 32 a row. Which B, M and S keep chunks whole, keep every element in "
        "its row, and leave no conflicts?",
        (
            "Index bits 0-2 lie within a chunk, bits 3-4 are the chunk, bits 5 and up the row.",
            "The chunk's two bits are XORed with bits 1 and 2 of the row, which are bits 6 and 7 of the index.",
        ),
        "M = 3 keeps chunks of 8 halves whole, B = 2 covers four chunks, and S = 3 leads from bit 3 to bit 6: `row / 2`.",
        judge=answers.swizzle_parameters,
        given="B, M, S = 2, 3, 2\n",
        answer="B, M, S = 2, 3, 3\n",
    ),
    Exercise(
        "transpose_tile", BANKS, "Transpose without conflicts", 15,
        "The tile is written by rows and read by columns. A 32 x 32 tile takes 1,056 wavefronts.",
        (
            "A column's elements are `PITCH` words apart. Which banks are 0, 32, 64, 96 ...?",
            "Any odd pitch from 33 on will do. With an XOR, use it on both sides: `tile[r * 32 + (tx ^ r)]`.",
        ),
        "With a pitch of 33, lane `tx` reads word `33 * tx + r`, in bank `(tx + r) % 32`: all different. Accesses are of 4 "
        "bytes, so no alignment is lost.",
        cases=_transposes,
        goals=(Goal("shared_wavefronts", 64, "32 x 32"),),
    ),
    Exercise(
        "guard_epilogue", EVERYTHING, "An edge-guarded epilogue", 30,
        "Store the sums for any M and N, with alpha and beta. With `beta == 0`, C may hold anything, NaN too, and must not be "
        "read. Where four columns fit and are aligned, store a `float4`.",
        (
            "Three guards: the row, the columns, and `N % 4 == 0` before a float4.",
            "`0 * NaN` is NaN: with beta 0, do not multiply the old value, leave it out.",
        ),
        "A thread beyond the last row does nothing; one across the last column stores what fits, one by one. The float4 needs "
        "all four columns and rows that begin at multiples of 16 bytes. And beta decides whether C is read at all.",
        cases=_epilogues,
        goals=(Goal("global_requests", 520, "M=32, N=32, K=8, alpha=1, beta=0"),),
    ),
    Exercise(
        "rasterise", EVERYTHING, "Visit the tiles in bands", 30,
        "Blocks run in order of their index, many at once. Visiting C's tiles in bands of `GROUP` rows lets the blocks that "
        "run together share rows of A and columns of B in L2. Give each block its tile.",
        (
            "A band of GROUP rows has `GROUP * tiles_n` tiles. Which band is a block in, and which of the band's blocks is it?",
            "Within a band, the row runs fastest. The last band may have fewer rows: divide by its own number of rows.",
        ),
        "`block / (GROUP * tiles_n)` is the band, and what is left counts down the band's columns. The last band has "
        "`min(GROUP, tiles_m - first_row)` rows; with GROUP there, tiles would be visited twice or not at all.",
        cases=_orders,
        suspects={
            "This is row-major order: no bands": _rows_of_order,
            "This is column-major order over the whole of C: no bands": _columns_of_order,
        },
    ),
    Exercise(
        "beat_the_clock", EVERYTHING, "Beat a rung's time", 60,
        "A 64 x 64 tile, 256 threads, sixteen outputs each. The inner product is missing. On a GPU, be faster than "
        "`coarsened_1d` at 2048 cubed; what else you change is up to you.",
        (
            "Four rows of A and four columns of B, from shared memory into registers, give sixteen products.",
            "`As` is stored transposed, so that both are one float4: 8 values read, 16 multiply-adds done.",
        ),
        "Per step of k a thread reads two float4s and does sixteen multiply-adds: one operation for each byte, four times "
        "as many as with one output a thread. Wider tiles go further; the ladder's rungs show where that ends.",
        cases=products(((64, 64, 64), (128, 192, 64), (64, 128, 192)), (64, 64), (256,)),
        goals=(Goal("shared_wavefronts", 4_000, "M=64, N=64, K=64"),),
        race=Race("coarsened_1d", 2048),
    ),
)  # fmt: skip

_BY_NAME = {exercise.name: exercise for exercise in EXERCISES}


def find(name: str) -> Exercise:
    """The exercise of this name. ValueError lists the names there are."""
    if name not in _BY_NAME:
        raise ValueError(f"no exercise {name!r}; there are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]
