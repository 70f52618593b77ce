"""The explorers of waves and of the order of tiles, against Python and against the kernels."""

import numpy as np
import pytest

import figures
import kernels
from book.cells import raster
from figures.raster_order import GROUPS, reads
from figures.waves import WAYS, shares
from kernels.source import source
from tests.figures.test_widgets import models


@pytest.mark.node
def test_waves_agree_with_python():
    cases = [
        {"tiles": tiles, "sms": sms, "steps": steps, "way": way, "cost": cost}
        for tiles in (1, 4, 9, 131, 132, 133, 300)
        for sms in (4, 16, 132)
        for steps in (1, 3, 64)
        for way in WAYS
        for cost in (0, 2)
    ]
    for case, model in zip(cases, models(figures.WaveExplorer(), cases), strict=True):
        known = figures.deal(*(case[key] for key in ("tiles", "sms", "steps", "way", "cost")))
        assert model["pieces"] == [list(piece) for piece in known.pieces], case
        assert model["time"] == known.time and model["busy"] == pytest.approx(known.busy)


def test_every_k_step_is_dealt_out_once():
    for way in WAYS:
        for tiles, sms, steps in ((9, 4, 5), (1, 8, 3), (17, 16, 4)):
            pieces = figures.deal(tiles, sms, steps, way, 1).pieces
            done = [0] * tiles
            for _, begin, end, tile in pieces:
                if tile >= 0:
                    done[tile] += end - begin
            assert done == [steps] * tiles


def test_nine_tiles_on_eight_multiprocessors():
    assert figures.deal(9, 8, 8).time == 16
    assert figures.deal(9, 8, 8).busy == 9 / 16
    assert figures.deal(9, 8, 8, "stream-K").time == 9
    assert figures.deal(9, 8, 8, "split in 2").time == 12


PROBE = """
#define SPLIT 0
{shares}
extern "C" __global__ void pieces(int* begins, int* owners, int units, int blocks) {{
    const Shares shares{{units, blocks}};
    if (threadIdx.x <= blocks) begins[threadIdx.x] = shares.begin(threadIdx.x);
    if (threadIdx.x < units) owners[threadIdx.x] = shares.owner(threadIdx.x);
}}
"""


def test_pieces_are_those_of_the_kernel():
    built = kernels.build(
        PROBE.format(shares=source("wgmma_split", "shares")), arch=80, name="pieces"
    )
    for units, blocks in ((8, 3), (100, 7), (132, 132), (129, 128)):
        begins, owners = np.full(blocks + 1, -1, np.int32), np.full(units, -1, np.int32)
        args = [begins, owners, np.int32(units), np.int32(blocks)]
        kernels.launch(built, "pieces", (1, 1, 1), (160, 1, 1), args, machine="emulator")
        assert begins.tolist() == shares(units, blocks)
        assert owners.tolist() == [
            b for b in range(blocks) for _ in range(begins[b], begins[b + 1])
        ]


@pytest.mark.node
def test_the_order_of_tiles_agrees_with_python():
    cases = [
        {"size": size, "blocks": blocks, "group": group, "at": at}
        for size in (4096, 8192)
        for blocks in (128, 132)
        for group in GROUPS
        for at in (0, 3, 15)
    ]
    for case, model in zip(cases, models(figures.RasterExplorer(), cases), strict=True):
        rows, cols = case["size"] // 128, case["size"] // 256
        order = figures.raster_order(rows, cols, case["group"])
        assert model["order"] == [list(place) for place in order]
        assert tuple(model["strips"]) == reads(order, case["blocks"], model["at"])


@pytest.mark.parametrize(("group", "rows", "cols"), [(4, 8, 8), (16, 24, 10), (3, 10, 7)])
def test_the_order_is_that_of_the_kernel(group, rows, cols):
    text = raster.PROBE.format(group=group, raster=source("wgmma_persistent", "raster"))
    built = kernels.build(text, arch=80, name=f"walk_{group}")
    numbers = np.full((rows, cols), -1, np.int32)
    args = [numbers, np.int32(rows), np.int32(cols)]
    kernels.launch(
        built, "order_of_tiles", (1, 1, 1), (rows * cols, 1, 1), args, machine="emulator"
    )
    for tile, place in enumerate(figures.raster_order(rows, cols, group)):
        assert numbers[place] == tile


@pytest.mark.parametrize(
    ("explorer", "options"),
    [
        (figures.WaveExplorer, {"sms": 5}),
        (figures.WaveExplorer, {"way": "by luck"}),
        (figures.WaveExplorer, {"tiles": 0}),
        (figures.RasterExplorer, {"group": 3}),
        (figures.RasterExplorer, {"size": 1000}),
    ],
)
def test_a_start_that_no_control_can_reach_is_refused(explorer, options):
    with pytest.raises(ValueError):
        explorer(**options)
