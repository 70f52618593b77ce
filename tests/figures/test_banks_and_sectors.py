"""Accesses and their pictures: what is shown is what the emulator counts."""

import numpy as np
import pytest

import figures
from emulator.counts.sectors import global_sectors
from emulator.counts.trace import Access as Recorded
from emulator.counts.wavefronts import shared_wavefronts
from figures.access import as_access
from figures.swizzles import chunk_addresses

LANES = np.arange(32)


def random_accesses(seed, count):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        width = int(rng.choice([1, 2, 4, 8, 16]))
        kind = str(rng.choice(["load", "store"]))
        style = rng.integers(4)
        if style == 0:
            units = rng.integers(0, 512, 32)
        elif style == 1:
            units = LANES * int(rng.integers(0, 66)) + int(rng.integers(0, 9))
        elif style == 2:
            units = np.repeat(rng.integers(0, 512, 16), 2)
        else:
            units = rng.integers(0, 512, 4)[(LANES // 4) % 4 if rng.integers(2) else LANES % 4]
        active = rng.random(32) < rng.choice([0.3, 1.0, 1.0])
        active[rng.integers(32)] = True
        yield (
            figures.Access(tuple(np.where(active, units * width, -1).tolist()), width, kind),
            active,
        )


def test_each_lane_is_served_in_one_of_the_wavefronts_that_the_emulator_counts():
    for access, active in random_accesses(1, 400):
        served = access.wavefront_of_lane()
        addresses = np.maximum(np.array([access.addresses]), 0)
        counted = shared_wavefronts(addresses, active[None], access.width, access.kind)[0]
        assert access.wavefronts == counted
        assert set(served) == set(np.flatnonzero(active))
        assert set(served.values()) == set(range(counted)), access


def test_one_wavefront_asks_each_bank_for_one_word():
    for access, _ in random_accesses(2, 300):
        asked = {}
        for lane, wavefront in access.wavefront_of_lane().items():
            for word in range(
                access.addresses[lane] // 4, (access.addresses[lane] + access.width - 1) // 4 + 1
            ):
                asked.setdefault((wavefront, word % 32), set()).add(word)
        assert max(len(words) for words in asked.values()) == 1


def test_ldmatrix_serves_eight_rows_a_phase():
    rows = tuple(int(64 * lane) for lane in LANES)
    assert figures.Access(rows, 16, "ldmatrix").wavefronts == 16
    padded = tuple(int(80 * lane) for lane in LANES)
    served = figures.Access(padded, 16, "ldmatrix").wavefront_of_lane()
    assert [served[lane] for lane in LANES] == [lane // 8 for lane in LANES]
    assert figures.Access(padded, 16, "ldmatrix", 1).lanes == tuple(range(8))


def test_global_access_shows_the_sectors_that_the_emulator_counts():
    for access, active in random_accesses(3, 15):
        drawing = figures.global_access(access)
        addresses = np.maximum(np.array([access.addresses]), 0)
        sectors = global_sectors(addresses, active[None], access.width)[0]
        assert drawing.facts[""]["sectors"] == sectors
        words = "1 sector" if sectors == 1 else f"{sectors} sectors"
        assert words in drawing.alt and words in drawing.title and words in drawing.svg()


def test_two_kernels_side_by_side():
    drawing = figures.global_access({"uncoalesced": 16384 * LANES, "naive": 4 * LANES})
    assert (
        drawing.facts["uncoalesced"]["sectors"] == 32 and drawing.facts["uncoalesced"]["ideal"] == 4
    )
    assert drawing.facts["naive"] == {"sectors": 4, "ideal": 4, "lines": 1, "used_bytes": 128}
    assert "32 in uncoalesced, 4 in naive" in drawing.title
    assert "1,024 bytes moved, 128 used (12%)" in drawing.svg()


@pytest.mark.parametrize("rows", ["lane", "wavefront"])
@pytest.mark.parametrize(
    ("stride", "wavefronts"), [(1, 1), (2, 2), (32, 32), (33, 1), (0, 1), (8, 8)]
)
def test_shared_banks_states_the_wavefronts(rows, stride, wavefronts):
    drawing = figures.shared_banks(4 * stride * LANES, rows=rows)
    assert drawing.facts[""] == {"wavefronts": wavefronts, "ideal": 1}
    assert str(wavefronts) in drawing.title


def test_a_recorded_access_of_a_trace_is_drawn_as_it_is():
    active = LANES < 20
    recorded = Recorded("shared", "shared", (0, 0, 0), 0, 0, active, 8 * LANES, 4, "load")
    access = as_access(recorded)
    assert (
        access.lanes == tuple(range(20))
        and access.addresses[19] == 152
        and access.addresses[20] == -1
    )
    rows = Recorded("shared", "shared", (0, 0, 0), 0, 0, LANES < 16, 64 * LANES, 16, "ldmatrix")
    assert as_access(rows).matrices == 2


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.arange(31), "32 lanes"),
        (np.full(32, -1), "no lane is active"),
        (LANES * 4 + 2, "not a multiple"),
        (LANES * 0.5, "integers"),
        ({}, "nothing to draw"),
    ],
)
@pytest.mark.parametrize("draw", [figures.global_access, figures.shared_banks])
def test_what_is_no_access_is_refused(draw, bad, message):
    with pytest.raises(ValueError, match=message):
        draw(bad)


def test_unknown_views_and_widths_are_refused():
    with pytest.raises(ValueError, match="rows are"):
        figures.shared_banks(4 * LANES, rows="bank")
    with pytest.raises(ValueError, match="bytes, not 3"):
        figures.Access(tuple((3 * LANES).tolist()), width=3)
    with pytest.raises(ValueError, match="unknown kind"):
        figures.Access(tuple((4 * LANES).tolist()), kind="guess")


def test_swizzle_grid_counts_what_each_column_costs():
    facts = figures.swizzle_grid(4, pad_bytes=16, swizzled=(2, 3, 3)).facts
    plain, padded, swizzled = facts.values()
    assert plain["wavefronts"] == [4] * 4 and plain["bytes"] == 512
    assert padded["wavefronts"] == [1] * 4 and padded["bytes"] == 640
    assert swizzled["wavefronts"] == [1] * 4 and swizzled["bytes"] == 512
    for panel in (
        plain,
        swizzled,
    ):  # the same chunks, moved: every group of banks holds four of them
        groups = [group for line in panel["groups"] for group in line]
        assert sorted(groups) == sorted(list(range(8)) * 4)


@pytest.mark.parametrize(
    "bad",
    [
        {"pad_bytes": 2},
        {"swizzled": (3, 3, 2)},
        {"swizzled": (2, 1, 3)},
        {"chunks": 0},
    ],
)
def test_swizzle_grid_refuses_what_splits_a_chunk(bad):
    with pytest.raises(ValueError):
        figures.swizzle_grid(**bad)


def test_a_tile_with_a_negative_shift_keeps_every_chunk_once():
    table = chunk_addresses(8, 8, swizzled=(3, 3, -3))
    places = sorted(address for line in table for address in line)
    assert places == list(range(0, 8 * 8 * 16, 16))
    assert table != chunk_addresses(8, 8)
