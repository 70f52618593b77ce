"""Fragments, layouts and tiles, against what is known of them from elsewhere."""

import pytest
from tensor_layouts import Layout, Swizzle, compose
from tensor_layouts.atoms_nv import (
    SM70_8x8x4_F32F16F16F32_NT,
    SM80_16x8x8_F32TF32TF32F32_TN,
    SM80_16x8x16_F32F16F16F32_TN,
    SM90_64x8x16_F16F16F16_SS,
)

import figures


def test_m16n8k16_is_held_as_the_ptx_manual_says():
    """PTX ISA, matrix fragments of mma.m16n8k16: group = lane / 4, thread = lane % 4."""
    atom = SM80_16x8x16_F32F16F16F32_TN
    held = {operand: figures.owners(atom, operand) for operand in "ABC"}
    for lane in range(32):
        group, thread = lane // 4, lane % 4
        for i in range(8):
            row = group + (8 if i in (2, 3, 6, 7) else 0)
            assert held["A"][row, thread * 2 + (i & 1) + (8 if i >= 4 else 0)] == (lane, i)
        for i in range(4):
            assert held["B"][thread * 2 + (i & 1) + (8 if i >= 2 else 0), group] == (lane, i)
            assert held["C"][group + (8 if i >= 2 else 0), thread * 2 + (i & 1)] == (lane, i)


def test_m16n8k8_tf32_is_held_as_the_ptx_manual_says():
    held = {operand: figures.owners(SM80_16x8x8_F32TF32TF32F32_TN, operand) for operand in "AB"}
    for lane in range(32):
        group, thread = lane // 4, lane % 4
        for i in range(4):
            assert held["A"][group + 8 * (i & 1), thread + 4 * (i >= 2)] == (lane, i)
        for i in range(2):
            assert held["B"][thread + 4 * i, group] == (lane, i)


def test_fragment_draws_every_element_once():
    drawing = figures.fragment(SM80_16x8x16_F32F16F16F32_TN)
    assert {operand: len(places) for operand, places in drawing.facts.items()} == {
        "A": 256,
        "B": 128,
        "C": 128,
    }
    assert "8 of A, 4 of B, 4 of C" in drawing.title
    volta = figures.fragment(SM70_8x8x4_F32F16F16F32_NT, "C", lane=17)
    assert {lane for lane, _ in volta.facts["C"].values()} == {0, 1, 2, 3, 16, 17, 18, 19}
    for bad in ({"lane": 5}, {"operands": "D"}, {"operands": ""}):
        with pytest.raises(ValueError):
            figures.fragment(SM70_8x8x4_F32F16F16F32_NT, **bad)
    with pytest.raises(ValueError):
        figures.fragment(SM90_64x8x16_F16F16F16_SS, "C")


def test_layout_grid_evaluates_the_layout():
    cells = figures.layout_grid(Layout((4, (2, 4)), (2, (1, 8)))).facts["cells"]
    assert cells[3, 5] == 3 * 2 + (5 % 2) * 1 + (5 // 2) * 8
    swizzled = figures.layout_grid(compose(Swizzle(3, 0, 3), Layout((8, 8), (8, 1)))).facts["cells"]
    assert all(
        swizzled[row, column] == row * 8 + (row ^ column) for row in range(8) for column in range(8)
    )
    held = figures.layout_grid(Layout(((4, 8), (2, 2)), ((32, 1), (16, 8))), (16, 8), "tv").facts[
        "cells"
    ]
    assert held[9, 3] == (5, 3)
    assert (
        figures.layout_grid(lambda row, column: 10 * row + column, (2, 3)).facts["cells"][1, 2]
        == 12
    )
    assert len(figures.layout_grid(Layout(12, 3)).facts["cells"]) == 12


@pytest.mark.parametrize(
    ("layout", "options"),
    [
        (Layout((2, 2, 2), (1, 2, 4)), {}),
        (Layout((100, 100), (1, 100)), {}),
        (lambda row, column: 0, {}),
        (Layout((4, 2), (2, 1)), {"cells": "tv"}),
        (Layout((4, 2), (9, 1)), {"cells": "tv", "shape": (4, 2)}),
        (Layout(4, 1), {"cells": "guess"}),
        (Layout(4, 1), {"color": "guess"}),
    ],
)
def test_layout_grid_refuses_what_it_cannot_draw(layout, options):
    with pytest.raises(ValueError):
        figures.layout_grid(layout, **options)


def test_tile_picture_counts_the_tiles():
    drawing = figures.tile_picture(
        {"BM": 128, "BN": 128, "BK": 8, "WM": 64, "WN": 32, "TM": 8, "TN": 4}, name="warp_tiled"
    )
    assert drawing.facts == {"warps": 8, "per_warp": 64, "per_block": 512}
    mma = figures.tile_picture({"BM": 128, "BN": 128, "BK": 32, "WM": 64, "WN": 64}, (16, 8))
    assert mma.facts["per_warp"] == 32 and "32 MMA tiles of 16 x 8" in mma.alt
    assert figures.tile_picture({"BM": 64, "BN": 64, "BK": 8, "TM": 8}).facts["per_block"] == 512
    for bad in (
        {"BM": 64, "BN": 64},
        {"BM": 64, "BN": 64, "BK": 8, "TM": 7},
        {"BM": 64, "BN": 64, "BK": 8, "WM": 48, "WN": 32},
    ):
        with pytest.raises(ValueError):
            figures.tile_picture(bad)


def test_thread_tiles_count_reads_per_multiply_add():
    drawn = figures.thread_tiles([(1, 1), (8, 1), (4, 8)])
    assert drawn.facts == {(1, 1): 2, (8, 1): 9 / 8, (4, 8): 12 / 32}
    assert "12 reads for 32 multiply-adds" in drawn.alt


@pytest.mark.parametrize("tiles", [[], [(0, 4)], [(4, 17)]])
def test_thread_tiles_that_cannot_be_drawn_are_refused(tiles):
    with pytest.raises(ValueError, match="thread tile"):
        figures.thread_tiles(tiles)
