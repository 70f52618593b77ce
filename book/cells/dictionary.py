"""The tables of the dictionary: the words of CuTe, MoYe and Tilus beside what our kernels write."""

from __future__ import annotations

import figures
from measure import with_tilus


def words():
    """The verbs of CuTe and MoYe."""
    return figures.table(
        {
            "CuTe": "the C++ name; Python has `make_tiled_copy_tv`, `make_fragment_A`, `retile`, "
            "`make_composed_layout` and `cp_async_wait_group` instead, and other names for atoms",
            "MoYe": "the Julia name",
            "means": "what it is, as a layout",
            "in our kernels": "where the same thing stands in CUDA",
        },
        [
            [
                "`local_tile(A, tile, coord)`",
                "`@tile A tile coord`",
                "the part of a matrix that a block works on",
                "`A + block_row * K + k0`",
            ],
            [
                "`make_tiled_copy(atom, threads, values)`",
                "the same",
                "who copies which element of a tile",
                "`thread / 4`, `thread % 4 * 8`",
            ],
            [
                "`get_slice(t)`, `partition_S`, `partition_D`",
                "the same",
                "thread t's elements, in the source and in the destination",
                "`a_source`, `a_target`",
            ],
            [
                "`make_tiled_mma(atom, warps, tile)`",
                "the same",
                "which warp and lane hold which element of A, B and C",
                "`warp_row`, `warp_col`, `lane / 4`",
            ],
            [
                "`partition_fragment_A`",
                "`make_fragment_A`",
                "registers for this thread's part of A",
                "`unsigned a[M_ATOMS][4]`",
            ],
            [
                "`UniversalFMA`, `UniversalCopy`",
                "the same",
                "atoms of one thread: a multiply-add, a load and a store",
                "`sum += a * b`, `b = a`",
            ],
            [
                "`SM80_CP_ASYNC_CACHEALWAYS<T>`",
                "`CPOP_ASYNC_CACHEALWAYS{T}`",
                "an asynchronous copy of one T per thread; CACHEGLOBAL passes L1 by",
                "`cp_async<4>`; `cp_async<16>` is CACHEGLOBAL",
            ],
            [
                "`retile_D`",
                "the same",
                "the same registers, grouped as a copy wants them",
                "`b[n / 2][n % 2 * 2]`",
            ],
            [
                "`composition(Swizzle<2,3,3>{}, layout)`",
                "`composition` too",
                "a layout whose places are permuted",
                "`chunk ^ row / 2 % 4`",
            ],
            [
                "`cp_async_wait<n>`, `__syncthreads`",
                "`cp_async_wait`, `sync_threads`",
                "wait for one's own copies; wait for everybody",
                "the same two",
            ],
        ],
        title="One meaning, three spellings",
    )


def moye():
    """MoYe's double-buffered kernel, line by line."""
    return figures.table(
        {
            "MoYe": "what stands in its kernel, in order",
            "what happens": "in plain words",
            "mma_tf32": "the same in our rung",
        },
        [
            [
                "`sA_layout (128, 16, 2):(1, 128, 2048)`",
                "two tiles of A, M-major, without padding",
                "`STAGES`, with rows padded by 8 floats",
            ],
            [
                "`@tile mA (bM, bK) (blockIdx().x, :)`",
                "a row of tiles; the loop picks one",
                "`A + a_row * M + block_row`",
            ],
            [
                "`gmem_copy_A`: `(16, 8)` threads, `(4, 1)` values",
                "128 threads copy 64 x 8 floats, 16 bytes each; two times down, two along K",
                "`a_row`, `a_col`, `A_COPIES`",
            ],
            [
                "`copyto!(gmem_copy_A, ...)` before the loop",
                "the first tile is on its way",
                "the prologue: `STAGES - 1` tiles",
            ],
            [
                "`partition_C`, `make_fragment_C`, `zeros!`",
                "accumulators in registers",
                "`float acc[...] = {}`",
            ],
            [
                "`partition_S`, `retile_D` of `smem_copy_A`",
                "shared memory and registers, as the copy wants them",
                "`load_fragment`",
            ],
            [
                "`cp_async_wait()`, `sync_threads()`",
                "own copies have landed; everybody's have",
                "`cp_async_wait`, `__syncthreads`",
            ],
            [
                "copy of `k_block` 1 into registers",
                "the first fragments",
                "`load_fragment(0, 0, 0, i)`",
            ],
            [
                "in the loop: `k_block_next`",
                "fragments of the next 8 of K, while these are multiplied",
                "`next = (k + 1) % 2`",
            ],
            [
                "if `k_block == k_block_max`: wait, sync",
                "the other tile has to be there before its fragments are read",
                "the wait before the last `multiply`",
            ],
            [
                "if `k_block == 1`: copy tile `k_tile + 1`, exchange the two",
                "the tile that was read before is filled again",
                "`write_stage = read_stage`",
            ],
            ["`gemm!(mma, ...)`", "all atoms of this `k_block`", "`multiply_row`"],
            ["`copyto!(tCgC, tCrC)`", "accumulators to global memory", "the part `store`"],
            [
                "`@views`, `@gc_preserve`, `@loopinfo unroll`",
                "Julia: slices without copies, arrays kept alive, unrolling",
                "`#pragma unroll`; C++ needs no others",
            ],
        ],
        title="Two tiles in turn, and two sets of fragments",
    )


def tilus():
    """The words of Tilus."""
    return figures.table(
        {
            "Tilus": "the word",
            "means": "what the compiler makes of it",
            "in our kernels": "what we write ourselves",
        },
        [
            ["`global_view(ptr, shape)`", "a matrix in global memory, row-major", "`A`, `M`, `K`"],
            [
                "`shared_tensor(shape)`",
                "a tile in shared memory; the layout, swizzle included, is inferred",
                "`a_offset`, `panel_offset`",
            ],
            [
                "`register_tensor(shape)`",
                "a tile spread over the threads' registers; `spatial` and `local` modes",
                "`float acc[M_ATOMS][N_ATOMS][4]`",
            ],
            [
                "`copy_async(src, dst, offsets)`",
                "every thread's share of a tile, by `cp.async`, with guards at the edges",
                "`cp_async<16>` in a loop",
            ],
            [
                "`copy_async_wait_all()`, `sync()`",
                "own copies, then everybody",
                "`cp_async_wait<0>`, `__syncthreads`",
            ],
            [
                "`load_shared(sa)`",
                "fragments, by `ldmatrix` where the layouts allow it",
                "`load_fragments`",
            ],
            ["`dot(a, b, acc, out=acc)`", "all `mma` of the tile", "`multiply_row`"],
            [
                "`m_size: int32`, `n_size: int`",
                "known at run time; known when the kernel is compiled",
                "arguments; macros",
            ],
            [
                "`annotate_layout(t, layout)`",
                "a hint, where the inferred layout is not the one that is wanted",
                "-",
            ],
            [
                "`@tilus.autotune(name, values)`",
                "a list of values to try",
                "`space` of a rung's row",
            ],
        ],
        title="What a block does, without threads",
    )


def blackwell():
    """The words of Blackwell's tensor cores, in PTX, CuTe, Tilus and our headers."""
    return figures.table(
        {
            "PTX": "the instruction, or the number that it takes",
            "CuTe": "C++, in CUTLASS's `include/cute` and `include/cutlass/arch`",
            "Tilus": "methods of `self.tcgen05`, or of `self.clc`, where its documentation has one",
            "in our kernels": "functions of `blackwell.cuh` and `launch_control.cuh`",
        },
        [
            ["`tcgen05.alloc`, `dealloc`", "`TMEM::Allocator1Sm`", "`alloc`, `dealloc`", "`tensor_alloc`, `tensor_free`"],
            ["matrix descriptor", "`UMMA::SmemDescriptor`", "inferred", "`tensor_descriptor`"],
            ["instruction descriptor", "`UMMA::InstrDescriptor`", "inferred", "`tensor_instruction`"],
            ["`tcgen05.mma`", "`SM100_MMA_F16BF16_SS`", "`mma`", "`tensor_multiply`"],
            ["`tcgen05.mma`, `cta_group::2`", "`SM100_MMA_F16BF16_2x1SM_SS`", "`mma`", "`tensor_multiply<true>`"],
            ["`tcgen05.mma`, block scales", "`SM100_MMA_MXF8F6F4_SS`, `SM100_MMA_MXF4_SS`", "-", "`tensor_multiply_scaled`"],
            ["`tcgen05.cp.32x128b.warpx4`", "`SM100_UTCCP_4x32dp128bit_1cta`", "`copy`", "`tensor_copy_scales`"],
            ["`tcgen05.commit`", "`umma_arrive`", "`commit`", "`tensor_commit`"],
            ["`tcgen05.ld.16x256b.x2`, `wait::ld`", "`SM100_TMEM_LOAD_16dp256b2x`, `fence_view_async_tmem_load`",
             "`load`, `wait_load`", "`tensor_load_atoms`"],
            ["`clusterlaunchcontrol`", "`PersistentTileSchedulerSm100`", "`try_cancel`, `query_response`",
             "`ask_for_cluster`, `cluster_taken_over`"],
        ],
        title="Blackwell's tensor cores in four languages",
    )  # fmt: skip


def matmul_v3():
    """Tilus's third tutorial kernel, line by line."""
    return figures.table(
        {
            "matmul_v3": "what stands in the kernel, in order",
            "what happens": "in plain words",
            "in our rungs": "the same in CUDA",
        },
        [
            [
                "`@tilus.autotune(...)`, three times",
                "12 settings; the fastest is kept for each size",
                "`space`, `python -m measure tune`",
            ],
            [
                "`attrs.blocks = [cdiv(m, block_m), cdiv(n, block_n)]`",
                "one block per tile of C, also where a tile is not whole; rows of tiles along x",
                "the grid; ours has columns along x",
            ],
            ["`attrs.warps = num_warps`", "4 or 8 warps per block", "`THREADS`"],
            [
                "`offset_m = block_m * blockIdx.x`",
                "where the block's tile begins",
                "`block_row`, `block_col`",
            ],
            [
                "`global_view`, twice",
                "pointers become matrices, whose shape guards the edges",
                "`A`, `B`, `M`, `N`, `K`",
            ],
            [
                "`shared_tensor`, twice",
                "one tile of A, one of B: 16 KiB together at 128 x 128 x 32",
                "`shared`, but for several stages",
            ],
            [
                "`register_tensor(..., init=0.0)`",
                "128 x 128 sums: 128 registers for each of 128 threads",
                "`float acc[M_ATOMS][N_ATOMS][4] = {}`",
            ],
            [
                "`for offset_k in range(0, k_size, block_k)`",
                "`k_size` is compiled in, so the number of turns is known",
                "`for (k0 ...)`, with K at run time",
            ],
            ["`copy_async`, twice", "both copies are started", "`load`"],
            [
                "`copy_async_wait_all()`, `sync()`",
                "own copies have landed; everybody's have",
                "`cp_async_wait<0>`, `__syncthreads`",
            ],
            [
                "`load_shared`, twice",
                "all fragments of the tile go to registers",
                "`ldmatrix`, for one 16 of k at a time",
            ],
            ["`dot(a, b, acc, out=acc)`", "all `mma` of the tile", "`multiply_row`"],
            [
                "`sync()`",
                "all have read before the tile is overwritten; it could also stand before `dot`",
                "one barrier per step, because tiles alternate",
            ],
            ["`free_shared`, twice", "the space may serve another tensor", "-"],
            [
                "`cast(acc, float16)`, `global_view`, `store_global`",
                "sums become halves and go to C, guarded",
                "`store`, after a trade between lanes",
            ],
        ],
        title="A whole kernel in fifteen lines, and one tile at a time",
    )


def measured():
    """Every setting of Tilus's third kernel as `measure.with_tilus` timed it, and three others of the same run."""
    recording = with_tilus.recorded()
    rows = []
    for row in recording["rows"]:
        at = row["setting"]
        tile = f"{at['block_m']} x {at['block_n']} x {at['block_k']}" if at else None
        rows.append([f"`{row['kernel']}`", tile, at.get("num_warps"), f"{row['tflops']:.0f}"])
    return figures.table(
        {
            "kernel": "what was timed",
            "tile": "rows, columns and depth of a block's tile",
            "warps": "of a block",
            "TFLOP/s": "at 4096 x 4096 x 4096, float16 in and out",
        },
        rows,
        title="All twelve settings of matmul_v3, and others in the same run",
        caption=recording["label"],
    )


def candidates(rows):
    """Thread layouts, with the sectors of a request."""
    return figures.table(
        {
            "threads": "the thread layout",
            "tile": "rows and columns that the copy covers at a time",
            "sectors": "32-byte sectors of one warp's request",
            "needed": "sectors that its 512 bytes would fill",
        },
        rows,
        title="A row per thread moves twice the sectors",
    )


def swizzles(rows):
    """Swizzles of a row of 128 bytes, with the wavefronts of both sides."""
    return figures.table(
        {
            "bits": "b of Swizzle(b, 3, 3)",
            "ldmatrix.x4": "wavefronts to read four 8 x 8 matrices; 4 is the least",
            "copy": "wavefronts to store 16 bytes per lane; 4 is the least",
        },
        rows,
        title="Three bits of the row keep eight rows apart",
    )
