"""The tiled product in CuTe's Python language, by the verbs that the book's dictionary explains.

Imported only where `nvidia-cutlass-dsl` is installed, which compiles it without a GPU.
"""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp

BM, BN, BK, THREADS = 128, 128, 32, 128


@cute.kernel
def tiled(
    A: cute.Pointer,
    B: cute.Pointer,
    C: cute.Pointer,
    M: cutlass.Int32,
    N: cutlass.Int32,
    K: cutlass.Int32,
):
    """C = A @ B, row-major, sizes in whole tiles: one block computes the BM x BN tile at its place in the grid."""
    thread, _, _ = cute.arch.thread_idx()
    tile_col, tile_row, _ = cute.arch.block_idx()
    half, single = cutlass.Float16, cutlass.Float32

    # The matrices. CuTe's B is (N, K), so for a row-major B the first index is the contiguous one.
    pitch_a, pitch_b = cute.assume(K, divby=8), cute.assume(N, divby=8)
    mA = cute.make_tensor(A, cute.make_layout((M, K), stride=(pitch_a, 1)))
    mB = cute.make_tensor(B, cute.make_layout((N, K), stride=(1, pitch_b)))
    mC = cute.make_tensor(C, cute.make_layout((M, N), stride=(pitch_b, 1)))
    gA = cute.local_tile(mA, (BM, BK), (tile_row, None))  # (BM, BK, steps)
    gB = cute.local_tile(mB, (BN, BK), (tile_col, None))  # (BN, BK, steps)
    gC = cute.local_tile(mC, (BM, BN), (tile_row, tile_col))

    # The tiles in shared memory: rows of 64 bytes for A, of 128 bytes for B.
    rows_a = cute.make_layout((8, 32), stride=(32, 1))
    rows_b = cute.make_layout((64, 8), stride=(1, 64))
    swizzled_a = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, rows_a)
    swizzled_b = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, rows_b)
    shared = cutlass.utils.SmemAllocator()
    sA = shared.allocate_tensor(half, cute.tile_to_shape(swizzled_a, (BM, BK), (0, 1)), 128)
    sB = shared.allocate_tensor(half, cute.tile_to_shape(swizzled_b, (BN, BK), (0, 1)), 128)

    # Who copies what: 16 bytes per thread and copy.
    op = cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL)
    chunk = cute.make_copy_atom(op, half, num_bits_per_copy=128)
    threads_a, values_a = cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8))
    threads_b, values_b = cute.make_layout((16, 8)), cute.make_layout((8, 1))
    copy_a = cute.make_tiled_copy_tv(chunk, threads_a, values_a)
    copy_b = cute.make_tiled_copy_tv(chunk, threads_b, values_b)
    my_a, my_b = copy_a.get_slice(thread), copy_b.get_slice(thread)
    from_a, to_a = my_a.partition_S(gA), my_a.partition_D(sA)
    from_b, to_b = my_b.partition_S(gB), my_b.partition_D(sB)

    # Who multiplies what: 2 x 2 warps. The tile gives each warp two atoms 16 columns apart, as ldmatrix.x4 brings them.
    atom = warp.MmaF16BF16Op(half, single, (16, 8, 16))
    warps = cute.make_layout((2, 2, 1), stride=(2, 1, 1))
    mma = cute.make_tiled_mma(atom, warps, permutation_mnk=(32, 32, 16))
    mine = mma.get_slice(thread)
    held_a = mma.make_fragment_A(mine.partition_A(sA))
    held_b = mma.make_fragment_B(mine.partition_B(sB))
    to_c = mine.partition_C(gC)
    sums = mma.make_fragment_C(to_c)
    sums.fill(0.0)

    # How fragments are read: ldmatrix.x4, which transposes for B. `retile` is MoYe's retile_D.
    ldmatrix_a = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose=False, num_matrices=4), half)
    ldmatrix_b = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose=True, num_matrices=4), half)
    read_a = cute.make_tiled_copy_A(ldmatrix_a, mma)
    read_b = cute.make_tiled_copy_B(ldmatrix_b, mma)
    out_a, in_a = read_a.get_slice(thread).partition_S(sA), read_a.retile(held_a)
    out_b, in_b = read_b.get_slice(thread).partition_S(sB), read_b.retile(held_b)

    for step in range(cute.size(gA, mode=[2])):
        cute.copy(copy_a, from_a[None, None, None, step], to_a)
        cute.copy(copy_b, from_b[None, None, None, step], to_b)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        cute.copy(read_a, out_a, in_a)
        cute.copy(read_b, out_b, in_b)
        cute.gemm(mma, sums, held_a, held_b, sums)
        cute.arch.sync_threads()
    cute.autovec_copy(sums, to_c)


@cute.jit
def launch(
    A: cute.Pointer,
    B: cute.Pointer,
    C: cute.Pointer,
    M: cutlass.Int32,
    N: cutlass.Int32,
    K: cutlass.Int32,
):
    """What the host calls; compiling it compiles the kernel."""
    tiled(A, B, C, M, N, K).launch(grid=(N // BN, M // BM, 1), block=(THREADS, 1, 1))
