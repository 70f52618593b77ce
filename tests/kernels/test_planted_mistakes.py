"""A hundred-odd mistakes, planted one by one, two or more in every rung: `check` misses none of them.

Some give wrong results, some races or faults, and some give right results more slowly: those break
what the rung's row promises of its accesses.
"""

import pytest

import emulator
from kernels import RUNGS, build, find
from kernels.check import SCALARS, broken_promises, check_one, edge_sizes, persistent_case
from kernels.mistakes import whole

# Lanes laid out row by row, as one would at first: right, but more turns at the banks.
PLAIN_LANES = (
    ("lane / 2 % LANES_M", "lane / LANES_N"),
    ("lane / (2 * LANES_M) * 2 + lane % 2", "lane % LANES_N"),
)
# (rung, the mistake, (what is right, what is wrong) ...): all places of each are changed.
MISTAKES = (
    ("uncoalesced", "a column taken from the row", ("B[k * N + col]", "B[k * N + row]")),
    ("uncoalesced", "the guard of columns forgotten", (" || col >= N", "")),
    ("naive", "the warp runs down a column of C",
     ("threadIdx.x", "threadIdx.z_"), ("threadIdx.y", "threadIdx.x"), ("threadIdx.z_", "threadIdx.y")),
    ("naive", "beta applied twice", ("+ beta * c", "+ beta * beta * c")),
    ("naive", "a transposed index", ("B[k * N + col]", "B[col * N + k]")),
    ("naive", "rows and columns swapped", ("row * K + k", "col * K + k")),
    ("naive", "no edge guard", ("if (row >= M || col >= N) return;", "")),
    ("naive", "the last k left out", ("k < K", "k < K - 1")),
    ("naive", "alpha forgotten", ("alpha * sum", "sum")),
    ("naive", "C read though beta is 0", ("beta == 0.0f ? alpha * sum :", "")),
    ("naive", "elements left out", ("row >= M", "row >= M - 1")),
    ("tiled", "the tile of B transposed", ("Bs[tile_row][tile_col]", "Bs[tile_col][tile_row]"),
     ("Bs[k][tile_col]", "Bs[tile_col][k]")),
    ("tiled", "the tile of A loaded down its columns", ("row * K + a_col", "a_row * K + k0 + tile_row"),
     ("As[tile_row][tile_col] = row < M && a_col < K", "As[tile_col][tile_row] = a_row < M && k0 + tile_row < K"),
     ("const int b_row", "const int a_row = blockIdx.y * BLOCK + tile_col;\n        const int b_row")),
    ("tiled", "k0 forgotten in the rows of B", ("k0 + tile_row", "tile_row")),
    ("tiled", "no barrier after the load", ("__syncthreads();\n        // [/load]", "// [/load]")),
    ("tiled", "no barrier after the products", ("__syncthreads();\n        // [/compute]", "// [/compute]")),
    ("tiled", "a barrier that half a block skips",
     ("__syncthreads();\n        // [/load]", "if (tile_row < 16) __syncthreads();\n        // [/load]")),
    ("tiled", "stale tile beyond the edge", ("a_col < K ?", "true ?")),
    ("tiled", "a tile transposed on one side", ("As[tile_row][k]", "As[k][tile_row]")),
    ("coarsened_1d", "the tile of B transposed", ("float Bs[BK][BN]", "float Bs[BN][BK]"),
     ("Bs[k][col]", "Bs[col][k]"), ("Bs[k][thread_col]", "Bs[thread_col][k]")),
    ("coarsened_1d", "only the last product kept", ("sums[i] += As", "sums[i] = As")),
    ("coarsened_2d", "a thread's columns are neighbours", ("% THREADS_N;", "% THREADS_N * TN;"),
     ("thread_col + j * THREADS_N", "thread_col + j")),
    ("coarsened_2d", "no barrier after the products", ("        __syncthreads();\n        // [/compute]", "")),
    ("coarsened_2d", "rows of the second half stored twice",
     ("thread_row + i * THREADS_M) * N", "thread_row + i % 4 * THREADS_M) * N")),
    ("vectorized", "a thread's quads of columns are neighbours", ("% THREADS_N * 4;", "% THREADS_N * TN;"),
     ("thread_col + j * THREADS_N", "thread_col + j")),
    ("vectorized", "two elements of a quad swapped", ("As[k + 1][row] = quad.y", "As[k + 1][row] = quad.z"),
     ("As[k + 2][row] = quad.z", "As[k + 2][row] = quad.y")),
    ("warp_tiled", "lanes row by row", *PLAIN_LANES),
    ("warp_tiled", "the next tile fetched into the buffer being read", ("write_a += BUFFER;\n", "")),
    ("warp_tiled", "the buffers not swapped for B", ("        read_b += flip;\n", "")),
    ("async_copy", "lanes row by row", *PLAIN_LANES),
    ("async_copy", "A moves by the pitch of B", ("A += size_t(BK) * M", "A += size_t(BK) * N")),
    ("async_pipeline", "lanes row by row", *PLAIN_LANES),
    ("async_pipeline", "one k-step too many fetched", ("fetched < K", "fetched <= K")),
    ("async_pipeline", "the stage does not move on",
     ("stage = stage + 1 == STAGES ? 0 : stage + 1;\n    }\n    // [/loop]", "}\n    // [/loop]")),
    ("async_pipeline", "copies waited for, but no barrier", ("__syncthreads();  // everybody's", "//")),
    ("async_pipeline", "a stage too many left in flight", ("wait_prior<STAGES - 2>", "wait_prior<STAGES - 1>")),
    ("warp_specialized", "a stage never released", ("        pipe.consumer_release();\n", "")),
    ("warp_specialized", "a stage read before it has landed", ("pipe.consumer_wait();", "")),
    ("warp_specialized", "lanes row by row", *PLAIN_LANES),
    ("wmma", "every fragment of A from the first rows", ("A + (row + m * FRAG) * K", "A + row * K")),
    ("wmma", "beta forgotten", ("+ beta * old.x[i]", "+ old.x[i]")),
    ("wmma_shared", "rows without spare bytes", ("A_PITCH = TILE_K + SPARE", "A_PITCH = TILE_K")),
    ("wmma_shared", "tiles overwritten while others read them", ("__syncthreads();  // every warp is done", "//")),
    ("wmma_async", "rows without spare bytes", ("A_PITCH = TILE_K + SPARE", "A_PITCH = TILE_K")),
    ("wmma_async", "the copies not waited for", ("pipe.consumer_wait();", "")),
    ("mma_atoms", "registers of the sum confused", ("2 * pair + i % 2", "2 * pair + i / 2"),
     ("group + i / 2 * 8", "group + i % 2 * 8")),
    ("mma_atoms", "B's registers confused", ("2 * pair + r * 8", "2 * pair + (1 - r) * 8")),
    ("mma_sync", "half of A's columns read twice", ("k / 8 + lane / 16", "k / 8")),
    ("mma_sync", "rows a whole line apart", ("PITCH = 64", "PITCH = 128")),
    ("mma_tiled", "one register of B used twice", ("b[n / 2][n % 2 * 2 + 1]", "b[n / 2][n % 2 * 2]")),
    ("mma_tiled", "panels of B confused", ("col / 4 * PANEL_BYTES", "col / 8 * PANEL_BYTES")),
    ("mma_padded", "no padding", ("PITCH = 80", "PITCH = 64")),
    ("mma_padded", "padding that breaks the alignment", ("PITCH = 80", "PITCH = 72")),
    ("mma_swizzled", "no swizzle", ("chunk ^ row / 2 % 4", "chunk")),
    ("mma_swizzled", "a swizzle that repeats too early", ("chunk ^ row / 2 % 4", "chunk ^ row % 4")),
    ("mma_swizzled", "a swizzle of two chunks only", ("chunk ^ row / 2 % 4", "chunk ^ row / 2 % 2")),
    ("mma_swizzled", "swizzled on one side only",
     ("panel_offset(a_row + row, a_chunk)", "(a_row + row) * PITCH + a_chunk * 16")),
    ("mma_swizzled", "a fragment not transposed", ("ldmatrix_x4_trans(b[n]", "ldmatrix_x4(b[n]")),
    ("mma_swizzled", "the other stage multiplied", ("multiply(stage);", "multiply(stage ^ 1);")),
    ("mma_swizzled", "copies not waited for", ("cp_async_wait<0>", "cp_async_wait<1>")),
    ("mma_swizzled", "a stage refilled while others read it", ("__syncthreads();     // now", "//")),
    ("mma_tf32", "rows of A without spare floats", ("A_PITCH = BM + 8", "A_PITCH = BM")),
    ("mma_tf32", "elements stored by another rule", ("i % 2 * 2 + pair", "pair * 2 + i % 2")),
    ("mma_tf32", "rounded while still being loaded", ("cp_async_wait<STAGES - 2>();", "")),
    ("mma_multistage", "B's swizzle repeats too early", ("chunk ^ (row & 7)", "chunk ^ (row & 3)")),
    ("mma_multistage", "A's swizzle repeats too early", ("? row & 7 :", "? row & 3 :")),
    ("mma_multistage", "half of the sums kept for the next tile",
     ("acc[m][n][i] = acc[m][n + 1][i] = 0.0f", "acc[m][n][i] = 0.0f")),
    ("mma_multistage", "the next tile's copies from the neighbour's", ("load_tile += gridDim.x", "load_tile += 1")),
    ("mma_multistage", "the last group of tiles as high as the others", ("min(tile_rows - first_row, GROUP)", "GROUP")),
    ("mma_multistage", "groups begin a row apart", ("tile / per_group * GROUP", "tile / per_group")),
    ("mma_multistage", "the next stage not waited for",
     ("cp_async_wait<STAGES - 2>();  // this", "cp_async_wait<STAGES - 1>();  // this")),
    ("mma_multistage", "a stage refilled while fragments are read", ("__syncthreads();              // everybody's", "//")),
    ("tma_mma", "rows of A read as if they were not swizzled", ("tile + a_lane ^ k * 32", "tile + a_lane + k * 32")),
    ("tma_mma", "a stage read before its copies have landed", ("barrier_wait(full0 + 8 * stage, phase);", "")),
    ("wgmma", "fewer bytes expected than are copied",
     ("barrier_expect(full, A_BYTES + B_BYTES)", "barrier_expect(full, A_BYTES)")),
    ("wgmma", "the sums stored before the products are done", ("        wgmma_wait<0>();\n", "")),
    ("wgmma_pipelined", "a stage filled again while wgmma reads it", ("wgmma_wait<1>();", "wgmma_wait<2>();")),
    ("wgmma_pipelined", "the parity of an empty stage the wrong way round",
     ("barrier_wait(empty + stage * 8, phase ^ 1)", "barrier_wait(empty + stage * 8, phase)")),
    ("wgmma_persistent", "a stage filled again while wgmma reads it", ("wgmma_wait<1>();", "wgmma_wait<2>();")),
    ("wgmma_persistent", "the phase not turned", ("phase ^= stage == 0;", "")),
    ("wgmma_cluster", "only its own copies expected",
     ("barrier_expect(landed, STAGE_BYTES)", "barrier_expect(landed, STAGE_BYTES / CLUSTER_M)")),
    ("wgmma_cluster", "a stage given back to this block alone",
     ("barrier_arrive_at(empty + stage * 8, thread)", "barrier_arrive(empty + stage * 8)")),
    ("wgmma_split", "sums added before they have landed", ("barrier_wait(sums_landed, 0);", "")),
    ("wgmma_split", "the share of a block one k-step short",
     ("k_steps * (me + 1) / SPLIT;", "k_steps * (me + 1) / SPLIT - 1;")),
    ("wgmma_fp8", "a stage filled again while wgmma reads it", ("wgmma_wait<1>();", "wgmma_wait<2>();")),
    ("wgmma_fp8", "no fence before the first product", ("wgmma_fence();", "")),
    ("tcgen05", "the sums read before the products are done",
     ("        barrier_wait(done, phase);  // the tiles have been read, and the sums are there\n", "")),
    ("tcgen05", "no fence between the wait and the loads", ("    tensor_fence_after();\n", "")),
    ("tcgen05", "columns that nobody gives back", ("    if (warp == 0) tensor_free<COLUMNS>(sums);\n", "")),
    ("tcgen05", "panels of B taken for neighbours", ("b_tile + k * PITCH, PANEL_BYTES)", "b_tile + k * PITCH, PITCH)")),
    ("tcgen05", "a descriptor of another swizzle than the tensor map's",
     ("tensor_descriptor(a_tile + k * 2)", "tensor_descriptor(a_tile + k * 2) ^ 6ull << 61")),
    ("tcgen05", "each warp reads the first lanes", ("sums + (warp * 32 << 16)", "sums")),
    ("tcgen05", "fewer columns than the sums need", ("COLUMNS = BN;", "COLUMNS = BN / 2;")),
    ("tcgen05_pipelined", "one set of sums for both", ("tensor_multiply(tensor + set * BN,", "tensor_multiply(tensor,")),
    ("tcgen05_pipelined", "sums written over while they are stored",
     ("barrier_wait(stored + set * 8, set_phase ^ 1);", "")),
    ("tcgen05_pipelined", "a stage given back before it has been read",
     ("tensor_commit(empty + stage * 8);", "barrier_arrive(empty + stage * 8);")),
    ("tcgen05_pipelined", "no fence before the arrival", ("            tensor_fence_before();\n", "")),
    ("tcgen05_pair", "both blocks start the products", ("if (rank == 0 && lane == 0)", "if (lane == 0)")),
    ("tcgen05_pair", "both blocks bring the same half of B", (" + rank * (BN / 2);", ";")),
    ("tcgen05_pair", "copies counted at each block's own barrier", ("in_first_block(full + stage * 8)", "full + stage * 8")),
    ("tcgen05_pair", "the wrong peer told that the sums are stored",
     ("barrier_arrive_at(stored + set * 8, 0)", "barrier_arrive_at(stored + set * 8, 1)")),
    ("tcgen05_pair", "only its own copies expected", ("2 * STAGE_BYTES);", "STAGE_BYTES);")),
    ("tcgen05_pair", "the other block's warps not waited for", ("2 * STORERS);", "STORERS);")),
    ("tcgen05_mxfp8", "the first scales for all of a stage",
     ("tensor_instruction_scaled<In>(BM, BN, k / 32)", "tensor_instruction_scaled<In>(BM, BN)")),
    ("tcgen05_mxfp8", "A's scales for B", ("b_scales = a_scales + BM / 32;", "b_scales = a_scales;")),
    ("tcgen05_mxfp8", "B's scales never copied", ("m < BM + BN; m += 128", "m < BM; m += 128")),
    ("tcgen05_mxfp8", "scales not waited for",
     ("barrier_expect(landed, TILE_BYTES + SCALE_BYTES)", "barrier_expect(landed, TILE_BYTES)")),
    ("tcgen05_mxfp8", "scales where the sums are", ("stage_scales = tensor + SETS * BN;", "stage_scales = tensor;")),
    ("tcgen05_nvfp4", "the first part's scales for all of a stage", (" + part * SCALE_TILE_BYTES;", ";")),
    ("tcgen05_nvfp4", "a copy placed by numbers, not by bytes",
     ("tma_load(b_tile, B, step * PITCH", "tma_load(b_tile, B, step * BK")),
    ("tcgen05_nvfp4", "an instruction for e4m3", ("tensor_instruction_scaled<In>", "tensor_instruction_scaled<e4m3>")),
    ("tcgen05_nvfp4", "the next tile's scales", ("/ 128) * k_steps + step)", "/ 128) * k_steps + step + 1)")),
)  # fmt: skip


# What the report says where a wrong result or another count would hide that a check is missing.
NAMED = {
    "a descriptor of another swizzle than the tensor map's": "wrong-swizzle",
    "C read though beta is 0": "C[0, 0] is nan",
    "elements left out": " is nan",
}


def arch_of(name):
    """The architecture that a rung is checked for: sm_80, or its oldest where that is newer."""
    return max(80, find(name).min_arch)


def planted(name, changes):
    """The rung built with these changes, at its row's configuration for its architecture."""
    rung, arch = find(name), arch_of(name)
    text = whole(name)
    for right, wrong in changes:
        assert right in text, f"{rung.file} no longer has {right!r}"
        text = text.replace(right, wrong)
    target = rung.target(str(arch))
    return lambda macros: build(text, rung.resolve(macros, arch), target, name=rung.file)


def caught(name, make):
    """By what `check` finds a kernel wrong, in words; "" when it finds nothing."""
    arch = arch_of(name)
    try:
        built = make(None)
        for turn, size in enumerate(edge_sizes(name, None, arch)[2:]):
            found, hazards = check_one(name, size, None, *SCALARS[turn % 2], arch=arch, built=built)
            if hazards or not found.ok:
                return str(hazards[0] if hazards else found)
        if case := persistent_case(name, None, arch):
            macros, sizes = case
            for turn, size in enumerate(sizes):
                found, hazards = check_one(
                    name, size, macros, *SCALARS[turn % 2], arch=arch, built=make(macros)
                )
                if hazards or not found.ok:
                    return str(hazards[0] if hazards else found)
        return "".join(broken_promises(name, None, arch, built)[:1])
    except emulator.ExecutionError as error:  # out of bounds, misaligned, a deadlock ...
        return str(error)


@pytest.mark.parametrize(
    ("name", "words", "changes"),
    [pytest.param(*one[:2], one[2:], id=f"{one[0]}: {one[1]}") for one in MISTAKES],
)
def test_a_mistake_is_caught(name, words, changes):
    said = caught(name, planted(name, changes))
    assert said and NAMED.get(words, "") in said


@pytest.mark.parametrize("name", [n for n, r in RUNGS.items() if r.path])
def test_every_rung_promises_something_of_its_accesses(name):
    assert find(name).promises(**find(name).resolve())


def test_there_are_forty_and_every_rung_has_one():
    assert len(MISTAKES) >= 40
    assert {name for name, *_ in MISTAKES} == {n for n, r in RUNGS.items() if r.path}


RIGHT = {
    "a persistent loop": ("mma_multistage",),
    # what their threads have waited for is over, though a relaxed barrier orders no memory
    "a pair that meets at a relaxed barrier alone": (
        "tcgen05_pair",
        (
            "    __syncthreads();\n    cluster_exchange();  // neither",
            "    cluster_sync();  // neither",
        ),
    ),
}


@pytest.mark.parametrize("words", RIGHT)
def test_what_is_right_is_not_caught(words):
    name, *changes = RIGHT[words]
    assert caught(name, planted(name, changes)) == ""
