"""The pictures that carry an argument: waterfall, timeline, machine and data path."""

import numpy as np
import pytest
from tensor_layouts.atoms_nv import SM80_16x8x16_F32F16F16F32_TN

import figures
from figures.fragments import owners

STEPS = {"base": 40.0, "tiles": 46.0, "buffers": 45.0, "larger": 52.0}


def texts(figure) -> list[str]:
    return [text.words for text in figure.texts]


def test_steps_begin_where_the_one_before_ended():
    drawn = figures.waterfall(STEPS)
    assert drawn.facts == {"tiles": 6.0, "buffers": -1.0, "larger": 7.0}
    assert "larger" in drawn.title and "52" in drawn.title
    assert {"+6 to 46", "−1 to 45"} <= set(texts(drawn.figure))
    assert "slower" in [words for _, words in drawn.legend]


@pytest.mark.parametrize("steps", [{"base": 1.0}, {"base": 1.0, "x": 0.0}, {}])
def test_a_waterfall_without_steps_is_refused(steps):
    with pytest.raises(ValueError, match=r"base and at least one step|must be positive"):
        figures.waterfall(steps)


def event(row, start, end, kind="load", **more):
    return {"row": row, "start": start, "end": end, "kind": kind, **more}


def test_a_timeline_knows_who_works_how_long():
    events = [
        event("copies", 0, 40, stage=0),
        event("copies", 20, 60, stage=1),
        event("tensor core", 60, 80, "compute", stage=0),
        event("tensor core", 80, 100, "wait"),
    ]
    drawn = figures.timeline(events)
    assert drawn.facts == {"copies": 0.6, "tensor core": 0.2}
    assert "20% of the time" in drawn.title
    assert [words for _, words in drawn.legend] == ["copy under way", "multiplying", "waiting"]
    assert texts(drawn.figure).count("0") == 3  # two bars of stage 0, and the axis


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([], "nothing to draw"),
        ([{"row": "a", "start": 0, "end": 1}], "without 'kind'"),
        ([event("a", 0, 1, "sleep")], "'sleep' is no kind; there are load"),
        ([event("a", 2, 1)], "ends before it begins"),
        ([event("a", 2, 2)], "take no time"),
    ],
)
def test_a_timeline_says_what_it_cannot_draw(events, says):
    with pytest.raises(ValueError, match=says):
        figures.timeline(events)


ROWS = [
    {"kind": "latency", "name": "shared memory", "value": 29.0},
    {"kind": "latency", "name": "device memory", "value": 812.4},
    {"kind": "bandwidth", "name": "L2", "value": 5612.0},
    {"kind": "per clock", "name": "ffma", "value": 254.9},
]


def test_the_machine_shows_what_was_measured_and_nothing_else():
    drawn = figures.machine(ROWS, {"gpu": "Some GPU", "sms": 132, "l2_bytes": 50 << 20})
    assert drawn.title == "Device memory is 28 times as far away as shared memory"
    assert drawn.facts["L2 cache"] == {"GB/s": 5612.0}
    for figure in (drawn.figure, drawn.narrow):
        words = texts(figure)
        assert words.count("scheduler") == 4
        assert {"L2 cache, 50 MiB", "812 clocks until the data is there"} <= set(words)
        assert not any("bytes per clock" in one for one in words)


@pytest.mark.parametrize(("rows", "about"), [([], {"gpu": "x", "sms": 1}), (ROWS, {"gpu": "x"})])
def test_a_machine_that_is_not_known_is_refused(rows, about):
    with pytest.raises(ValueError, match=r"no measurement|lacks sms"):
        figures.machine(rows, about)


def test_lanes_receive_what_the_atom_says():
    receives = figures.data_path().facts["receives"]
    held = owners(SM80_16x8x16_F32F16F16F32_TN, "A")
    for (row, column), (lane, register, half) in receives.items():
        assert held[row, column] == (lane, 2 * register + half), (row, column)


def test_lanes_point_to_the_rows_of_the_four_matrices():
    points = figures.data_path(chunks=4).facts["points"]
    assert points[0] == (0, 0) and points[15] == (15, 0) and points[16] == (0, 1)
    assert len(set(points.values())) == 32


def test_a_row_of_less_than_an_mma_takes_is_refused():
    with pytest.raises(ValueError, match="two chunks of a row, which has 1"):
        figures.data_path(chunks=1)


def test_copies_cover_the_tile_once():
    copies = figures.data_path().facts["copies"]
    assert np.bincount(list(copies.values())).tolist() == [2] * 32
