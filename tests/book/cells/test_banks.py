"""What the chapters on banks and swizzles count and measure: single accesses, small tiles, clocks."""

import numpy as np
import pytest

import kernels
from book.cells import measured, shared_clocks, small_tiles
from measure.small_tiles import ENTRY, THREADS, TILE, built, loads_in_a_row

# ---- single accesses


def test_every_measured_access_is_read_as_what_it_was():
    rows = measured.accesses()
    assert len(rows) > 350
    assert all(row.predicted == row.wavefronts for row in rows)
    widths = {row.instruction: row.access.width for row in rows}
    assert widths["ld.shared.b16"] == 2
    assert widths["st.shared.v2.b32"] == 8
    assert widths["cp.async.ca.4"] == 4
    assert widths["ldmatrix.x1"] == 16


def test_an_unknown_pattern_names_those_that_there_are():
    with pytest.raises(KeyError, match="stride33"):
        measured.find("ld.shared.b32", "stride77")
    with pytest.raises(KeyError, match="none"):
        measured.find("ld.shared.b128", "stride1")


def test_table_and_summary(tables):
    measured.show(["stride1", "broadcast"], "ld.shared.v4.b32", "st.shared.v4.b32")
    assert tables[0].rows[0] == ("stride1", "4", "4", "4", "4")
    assert tables[0].rows[1] == ("broadcast", "2", "2", "4", "4")


# ---- small tiles


@pytest.mark.parametrize(("tiles", "batch"), [(1, 0), (2, 0), (1, 1), (1, 8)])
def test_small_tiles_are_right_and_the_swizzle_removes_every_conflict(tiles, batch):
    rng = np.random.default_rng(tiles)
    A, B = rng.uniform(-1, 1, (64, 96)).astype(np.float16), rng.uniform(-1, 1, (96, 128))
    B = B.astype(np.float16)
    extra = {}
    for swizzled in (False, True):
        C = np.full((64, 128), np.nan, np.float32)
        grid = (128 // TILE // tiles, 64 // TILE // tiles, 1)
        arguments = [A, B, C, np.int32(128), np.int32(96)]
        made = built(swizzled, tiles, 80, batch)
        trace = kernels.launch(made, ENTRY, grid, THREADS, arguments, machine="emulator")
        assert np.allclose(C, A.astype(float) @ B.astype(float), atol=1e-4)
        assert not trace.hazards
        extra[swizzled] = trace.total("shared_wavefronts") - trace.total("shared_wavefronts_ideal")
    # Two ldmatrix of four matrices for each 16 x 16 x 16 product, each 12 wavefronts too many.
    assert extra == {False: 2 * 12 * (4 * 8 * 6), True: 0}


ROW = {
    "kernel": "as it was", "tiles": 8, "size": 4096, "blocks": 256, "ms_median": 20.5,
    "at_512": {"ldmatrix wavefronts": 1048576, "bank conflicts, all": 800000},
    "at_4096": {"cycles": 30.5e6, "instructions": 20 * 2**25,
                "shared-memory pipe, %": 10.2, "warps resident, %": 12.0, "issue slots used, %": 21.0,
                "waits: long_scoreboard": 9.0, "waits: barrier": 3.0},
}  # fmt: skip


@pytest.fixture
def recorded(monkeypatch):
    rows = [
        ROW,
        {**ROW, "kernel": "swizzled", "at_512": {**ROW["at_512"], "ldmatrix wavefronts": 262144}},
    ]
    source = {
        "machine": {"gpu": "Some GPU", "sms": 132},
        "recorded": "2026-01-02T03",
        "kernels": rows,
    }
    monkeypatch.setattr(small_tiles, "stored", lambda: source)


def test_conflicts_of_small_tiles(recorded):
    assert [small_tiles.conflicts(row) for row in small_tiles.stored()["kernels"]] == [786_432, 0]


def test_clocks_of_small_tiles(recorded, tables):
    small_tiles.show_share()
    assert tables[0].rows[0][1:] == ("3.1", "30.5", "10%")


def test_the_swizzle_has_fewer_loads_in_a_row():
    assert loads_in_a_row(True) < loads_in_a_row(False)


# ---- clocks


def test_wavefronts_of_the_clock_kernel():
    assert shared_clocks.wavefronts("pitch 80", "no copies") == (4, 0)
    assert shared_clocks.wavefronts("pitch 128", "no copies") == (32, 0)
    assert shared_clocks.wavefronts("pitch 64", "64, padded") == (16, 15)
    assert shared_clocks.wavefronts("no loads", "lines of 128") == (0, 4)


def test_clocks_stand_beside_wavefronts(monkeypatch, capsys):
    rows = [
        {"load": load, "copy": copy, "clocks": clocks}
        for load in shared_clocks.LOADS
        for copy, clocks in (("no copies", 16.04), ("rows of 64", 20.0))
    ]
    source = {"machine": {"gpu": "Some GPU"}, "recorded": "2026-01-02T03", "turns": rows}
    monkeypatch.setattr(shared_clocks, "stored", lambda: source)
    shared_clocks.show_loads()
    printed = capsys.readouterr().out
    assert "Some GPU, 2026-01-02" in printed
    assert ["pitch", "64", "16", "16.0"] in [line.split() for line in printed.splitlines()]
