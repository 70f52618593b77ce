"""What the chapters on banks and swizzles count and measure: single accesses, a rung's ceiling, small tiles, clocks."""

import numpy as np
import pytest

from book.cells import measured, shared_ceiling, shared_clocks, small_tiles
from kernels.gemm import gemm


@pytest.fixture(scope="module")
def halves():
    rng = np.random.default_rng(5)
    return [rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((128, 64), (64, 128))]


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
    measured.agreement()
    assert tables[1].rows
    for row in tables[1].rows:
        assert row[-1] == row[-2]


# ---- what one mma needs


def test_one_mma_of_three_rungs(halves):
    found = {
        name: shared_ceiling.count(gemm(name, *halves, machine="emulator").trace)
        for name in ("mma_tiled", "mma_padded", "mma_swizzled")
    }
    assert found["mma_tiled"] == shared_ceiling.PerMma(4.0, 1.0, 2.0)
    assert found["mma_swizzled"] == shared_ceiling.PerMma(1.0, 1.0, 2.0)
    assert found["mma_padded"].loads == 1.0
    assert found["mma_padded"].copies > found["mma_swizzled"].copies
    assert found["mma_padded"].sectors == 3.0


def test_the_ceiling_is_one_wavefront_a_clock():
    needs = shared_ceiling.PerMma(loads=2.0, copies=1.0, sectors=2.0)
    assert needs.ceiling(sms=100, clock_mhz=1000) == pytest.approx(4096 / 2 * 100 * 1e9 / 1e12)


def test_recorded_speeds_stay_below_the_ceiling(tables):
    shared_ceiling.show("mma_tiled", "mma_swizzled")
    assert len(tables[0].rows) == 2
    for row in tables[0].rows:
        assert 0 < float(row[-1].rstrip("%")) < 100


# ---- small tiles


@pytest.mark.parametrize("tiles", [1, 2])
def test_small_tiles_are_right_and_the_swizzle_removes_every_conflict(tiles):
    rng = np.random.default_rng(tiles)
    A, B = rng.uniform(-1, 1, (64, 96)).astype(np.float16), rng.uniform(-1, 1, (96, 128))
    B = B.astype(np.float16)
    extra = {}
    for swizzled in (False, True):
        C, trace = small_tiles.run(A, B, swizzled, tiles)
        assert np.allclose(C, A.astype(float) @ B.astype(float), atol=1e-4)
        assert not trace.hazards
        extra[swizzled] = trace.total("shared_wavefronts") - trace.total("shared_wavefronts_ideal")
    # Two ldmatrix of four matrices for each 16 x 16 x 16 product, each 12 wavefronts too many.
    assert extra == {False: 2 * 12 * (4 * 8 * 6), True: 0}


def test_small_tiles_refuse_other_sizes():
    with pytest.raises(ValueError, match="64"):
        small_tiles.run(np.zeros((32, 32), np.float16), np.zeros((32, 64), np.float16), False, 2)


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


def test_recorded_small_tiles(recorded, tables):
    small_tiles.show()
    assert [row[1] for row in tables[0].rows[-2:]] == ["786,432", "0"]
    assert list(small_tiles.waits().pages) == ["8 x 8 tiles, as it was", "8 x 8 tiles, swizzled"]
    assert "data from L1" in repr(small_tiles.waits())
    assert small_tiles.row("as it was")["ms_median"] == 20.5
    assert small_tiles.row("as it was", 1) is None


def test_clocks_of_small_tiles(recorded, tables):
    small_tiles.show_share()
    assert tables[0].rows[0][1:] == ("3.1", "30.5", "10%")
    small_tiles.show_clocks()
    # 20 instructions for each mma, 9 clocks of each waiting for global memory, 3 at a barrier
    assert tables[1].rows[-1][1:] == ("180", "0", "60", "240", "20.0")


def test_the_swizzle_has_fewer_loads_in_a_row():
    assert small_tiles.loads_in_a_row(True) < small_tiles.loads_in_a_row(False)


def test_what_was_not_recorded_is_said(monkeypatch, capsys):
    monkeypatch.setattr(small_tiles, "stored", lambda: None)
    monkeypatch.setattr(shared_clocks, "stored", lambda: None)
    small_tiles.show()
    small_tiles.show_share()
    small_tiles.show_clocks()
    assert small_tiles.waits() is None
    assert small_tiles.row("swizzled") is None
    shared_clocks.show_loads()
    assert capsys.readouterr().out.count("not recorded") == 5


# ---- clocks


def test_wavefronts_of_the_clock_kernel():
    assert shared_clocks.wavefronts("pitch 80", "no copies") == (4, 0)
    assert shared_clocks.wavefronts("pitch 128", "no copies") == (32, 0)
    assert shared_clocks.wavefronts("pitch 64", "64, padded") == (16, 15)
    assert shared_clocks.wavefronts("no loads", "lines of 128") == (0, 4)


def test_clocks_stand_beside_wavefronts(monkeypatch, capsys):
    rows = [
        {"load": "pitch 64", "copy": "no copies", "clocks": 16.04},
        {"load": "no loads", "copy": "rows of 64", "clocks": 8.5},
        {"load": "pitch 64", "copy": "rows of 64", "clocks": 20.0},
    ]
    source = {"machine": {"gpu": "Some GPU"}, "recorded": "2026-01-02T03", "turns": rows}
    monkeypatch.setattr(shared_clocks, "stored", lambda: source)
    shared_clocks.show_loads()
    shared_clocks.show_together("pitch 64")
    printed = capsys.readouterr().out
    assert "Some GPU, 2026-01-02" in printed
    assert ["pitch", "64", "16", "16.0"] in [line.split() for line in printed.splitlines()]
    assert ["pitch", "64", "rows", "of", "64", "16", "+", "8", "16.0", "8.5", "20.0"] in [
        line.split() for line in printed.splitlines()
    ]
