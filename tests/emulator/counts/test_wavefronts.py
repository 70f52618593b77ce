"""The counters against an H100's measurements and against a bank model written lane by lane."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.counts.sectors import global_sectors
from emulator.counts.wavefronts import shared_wavefronts, shared_wavefronts_ideal

DATA = Path(__file__).parents[3] / "results" / "accesses" / "h100_single_accesses.json"
ROWS = json.loads(DATA.read_text(encoding="utf-8"))["rows"]
ELEMENT_BYTES = {"b16": 2, "b32": 4}


def count(row, tile=1):
    """What the counters say for a measured row, given `tile` copies of it as so many warps."""
    addresses = np.tile(np.array([row["offsets"]], np.int64), (tile, 1))
    active = np.array([[row["active_mask"] >> lane & 1 for lane in range(32)]], bool)
    active = np.tile(active, (tile, 1))
    parts = row["access"].split(".")
    if parts[0] in ("ld", "st"):
        width = ELEMENT_BYTES[parts[-1]] * (int(parts[2][1]) if parts[2][0] == "v" else 1)
        if parts[1] == "global":
            return global_sectors(addresses, active, width)
        return shared_wavefronts(addresses, active, width, {"ld": "load", "st": "store"}[parts[0]])
    if parts[0] == "cp":
        return shared_wavefronts(addresses, active, int(parts[3]), ".".join(parts[:3]))
    return shared_wavefronts(addresses, active, 16, parts[0], matrices=int(parts[1][1]))


@pytest.mark.parametrize("access", sorted({row["access"] for row in ROWS}))
def test_every_measured_access_is_reproduced(access):
    rows = [row for row in ROWS if row["access"] == access]
    measured = [row.get("shared_wavefronts", row.get("global_sectors")) for row in rows]
    assert [int(count(row)[0]) for row in rows] == measured
    assert [count(row, tile=3).tolist() for row in rows] == [[m] * 3 for m in measured]


def banks_of(addresses, width):
    """Distinct words in each bank, written plainly."""
    words = defaultdict(set)
    for address in addresses:
        for byte in range(0, max(width, 4), 4):
            word = (address + byte) // 4
            words[word % 32].add(word)
    return max((len(w) for w in words.values()), default=0)


def brute_force(addresses, active, width, kind):
    lanes = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[width]
    on = [lane for lane in range(32) if active[lane]]
    sets = [[lane for lane in on if lane // lanes == s] for s in range(32 // lanes)]
    cost = [banks_of([addresses[lane] for lane in s], width) for s in sets]
    paired = any(all(addresses[n] == addresses[n ^ step] for n in on) for step in (1, 2))
    if kind == "load" and width >= 8 and paired:
        for s in range(0, len(sets), 2):
            joint = banks_of([addresses[lane] for lane in sets[s] + sets[s + 1]], width)
            if joint == 1:
                cost[s], cost[s + 1] = joint, 0
    return sum(cost)


@st.composite
def warps(draw):
    """A few warps' accesses: affine, swizzled, duplicated or random, with any active lanes."""
    width = draw(st.sampled_from([1, 2, 4, 8, 16]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        style = draw(st.sampled_from(["affine", "random", "pairs", "quads", "xor"]))
        lane = np.arange(32)
        if style == "affine":
            row = rng.integers(0, 40) + lane * rng.integers(0, 40)
        elif style == "xor":
            row = lane * rng.integers(1, 9) ^ rng.integers(0, 64)
        else:
            row = rng.integers(0, draw(st.sampled_from([8, 64, 4096])), 32)
        if style in ("pairs", "quads"):
            row = row[lane & ~{"pairs": 1, "quads": 2}[style]]
        rows.append(row * width)
    masks = draw(st.sampled_from(["all", "random", "none"]))
    active = {"all": np.ones, "none": np.zeros}.get(
        masks, lambda shape, dtype: rng.random(shape) < 0.6
    )((len(rows), 32), dtype=bool)
    return np.array(rows, np.int64), active, width


@settings(max_examples=150, deadline=None)
@given(warps(), st.sampled_from(["load", "store", "cp.async.ca"]))
def test_shared_wavefronts_agree_with_a_bank_model(accesses, kind):
    addresses, active, width = accesses
    expected = [brute_force(*row, width, kind) for row in zip(addresses, active, strict=True)]
    assert shared_wavefronts(addresses, active, width, kind).tolist() == expected


@settings(max_examples=100, deadline=None)
@given(warps())
def test_sectors_are_the_distinct_32_byte_segments(accesses):
    addresses, active, width = accesses
    expected = [
        len({a // 32 for a, on in zip(*row, strict=True) if on})
        for row in zip(addresses, active, strict=True)
    ]
    assert global_sectors(addresses, active, width).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(warps(), st.integers(0, 1000))
def test_copies_count_the_same_anywhere_and_in_any_order_of_warps(accesses, line):
    addresses, active, _ = accesses
    addresses = addresses % 4096 * 16
    alone = [
        int(shared_wavefronts(addresses[w : w + 1], active[w : w + 1], 16, "cp.async.cg")[0])
        for w in range(len(addresses))
    ]
    together = shared_wavefronts(addresses[::-1] + 128 * line, active[::-1], 16, "cp.async.cg")
    assert together.tolist() == alone[::-1]


def test_a_copy_packet_needs_one_line_rotation_and_sector_part():
    lane = np.arange(32)
    source = lane[None] * 16
    on = np.ones((1, 32), bool)
    swizzled = (lane ^ (lane // 8) % 8)[None] * 16
    assert shared_wavefronts(swizzled, on, 16, "cp.async.cg", sources=source)[0] == 4
    assert global_sectors(source, on, 16, "cp.async.cg", destinations=swizzled)[0] == 16
    without_first = on.copy()
    without_first[0, 0] = False  # sector 0 carries its second chunk only
    assert shared_wavefronts(source, without_first, 16, "cp.async.cg")[0] == 5
    strided = source * 2
    assert shared_wavefronts(strided, on, 16, "cp.async.cg", sources=strided)[0] == 8


def test_matrix_rows_are_served_eight_lanes_at_a_time():
    lane = np.arange(32)
    on = np.ones((2, 32), bool)
    padded = np.stack([lane * 144, lane * 128])
    for matrices in (1, 2, 4):
        expected = [matrices, 8 * matrices]
        got = shared_wavefronts(padded, on, 16, "ldmatrix", matrices=matrices)
        assert got.tolist() == expected
        assert shared_wavefronts_ideal(on, 16, "ldmatrix", matrices).tolist() == [matrices] * 2


def test_ideal_counts_the_sets_that_have_a_lane():
    active = np.zeros((3, 32), bool)
    active[0] = True
    active[1, ::2] = True
    active[2, :4] = True
    assert shared_wavefronts_ideal(active, 16).tolist() == [4, 4, 1]
    assert shared_wavefronts_ideal(active, 8).tolist() == [2, 2, 1]
    assert shared_wavefronts_ideal(active, 4).tolist() == [1, 1, 1]


def test_an_unknown_access_is_refused():
    with pytest.raises(ValueError, match="unknown kind"):
        shared_wavefronts(np.zeros((1, 32)), np.ones((1, 32), bool), 4, "ldmatrx")
    with pytest.raises(ValueError, match="width 3"):
        shared_wavefronts(np.zeros((1, 32)), np.ones((1, 32), bool), 3)
