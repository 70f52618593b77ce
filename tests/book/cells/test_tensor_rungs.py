"""What one product costs on tensor cores: counts by hand beside the emulator's."""

from book.cells import tensor_rungs

TILES = {"BM": 128, "BN": 128, "WM": 64, "WN": 64}


def test_a_product_of_mma_tiled_costs_what_its_tiles_say():
    found = tensor_rungs.cost("mma_tiled", TILES)
    # per k-step of 16 and warp: 4 + 4 ldmatrix for 32 mma
    assert found.loads == 8 / 32
    # a k-step of the block: 2 x 128 rows of 16 halves, 32 bytes each; 128 mma
    assert found.sectors == 2 * 128 / 128


def test_a_product_of_wmma_counts_fragments():
    found = tensor_rungs.cost("wmma", TILES)
    assert found.loads == 0.5
    assert found.sectors == 16  # half a load of 32 sectors


def test_tiles_that_a_file_fixes_are_named():
    assert tensor_rungs._tile("mma_sync", {"BM": 64, "BN": 64}, "BM", "BN", "BK") == "64x64x32"
    assert tensor_rungs._tile("mma_atoms", {}, "WM", "WN") == "16x8"
