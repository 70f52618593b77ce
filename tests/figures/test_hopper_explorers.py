"""The explorers of TMA, wgmma, mbarriers and roles: in the browser as in Python, in Python as on the emulator."""

import itertools
import random

import numpy as np
import pytest

import figures
from book.cells import probes
from emulator import TensorMap
from emulator.machine import boxes
from emulator.numbers import warpgroup
from figures.core_matrices import LEADINGS, STARTS, STRIDES
from tests.figures.test_widgets import models

SWIZZLES = (0, 32, 64, 128)
BOXES = [
    {"rows": r, "columns": c, "boxRows": br, "boxChunks": bc, "y": y, "x": x, "swizzle": s}
    for (r, c), (br, bc), (y, x), s in itertools.product(
        [(12, 10), (3, 2)], [(8, 8), (16, 4), (5, 2), (1, 1)], [(0, 0), (2, 1), (-3, -2), (14, 11)], SWIZZLES
    )
]  # fmt: skip


def chunks_of(case):
    return figures.box_chunks(
        (case["rows"], case["columns"]), (case["boxRows"], case["boxChunks"]),
        (case["y"], case["x"]), case["swizzle"],
    )  # fmt: skip


def test_a_box_lies_where_the_emulator_puts_it():
    tried = 0
    for case in BOXES:
        rows, columns, span = case["rows"], case["columns"], 16 * case["boxChunks"]
        if case["swizzle"] and span > case["swizzle"]:
            with pytest.raises(ValueError, match="swizzle's span"):
                chunks_of(case)
            continue
        numbers = np.repeat(1 + np.arange(rows * columns, dtype=np.uint16), 8)
        one = TensorMap(
            numbers.reshape(rows, 8 * columns), (case["boxRows"], 8 * case["boxChunks"])
        )
        data = boxes.gather(boxes.in_launch(one, 0, ""), (case["y"], 8 * case["x"]))
        found = data.view(np.uint16)[::8]
        for place, chunk in enumerate(chunks_of(case)):
            at = (case["y"] + chunk.row) * columns + case["x"] + chunk.chunk
            assert found[place] == (1 + at if chunk.inside else 0)
            assert chunk.byte == boxes.swizzled(np.int64(16 * place), case["swizzle"])
        tried += 1
    assert tried > 60


@pytest.mark.node
def test_a_box_is_in_the_browser_as_here():
    for case, model in zip(BOXES, models(figures.TensorBoxExplorer(), BOXES), strict=True):
        if "error" in model:
            assert 0 < case["swizzle"] < 16 * case["boxChunks"]
            continue
        chunks = chunks_of(case)
        assert model["chunks"] == [vars(chunk) for chunk in chunks]
        assert model["bytes"] == 16 * len(chunks)
        assert model["inside"] == sum(chunk.inside for chunk in chunks)
        for column in range(case["boxChunks"]):
            first = [c.byte for c in chunks if c.chunk == column and c.row < 8]
            lanes = tuple(first + [-1] * (32 - len(first)))
            assert figures.Access(lanes, 16, "ldmatrix", 1).wavefronts <= model["waves"]


DESCRIPTORS = [
    dict(zip(("major", "start", "stride", "leading", "swizzle"), values, strict=True))
    for values in random.Random(21).sample(
        list(itertools.product("KN", STARTS, STRIDES, LEADINGS, SWIZZLES)), 120
    )
]


def pieces_of(case):
    n_major = case["major"] == "N"
    given = {key: value for key, value in case.items() if key != "major"}
    return given, n_major, figures.descriptor_chunks(**given, n_major=n_major)


def test_a_descriptor_walks_as_on_the_emulator():
    for case in DESCRIPTORS:
        given, n_major, pieces = pieces_of(case)
        read = warpgroup.descriptor(figures.descriptor_bits(**given))
        assert (read.start, read.leading, read.stride, read.swizzle) == (
            case["start"], case["leading"], case["stride"], case["swizzle"],
        )  # fmt: skip
        chunks = warpgroup.chunks(read, 128 if n_major else 32, 8 * n_major)
        assert [piece.byte for piece in pieces] == chunks.reshape(-1).tolist()


@pytest.mark.node
def test_a_descriptor_walks_in_the_browser_as_here():
    for case, model in zip(
        DESCRIPTORS, models(figures.CoreMatrixExplorer(), DESCRIPTORS), strict=True
    ):
        given, _, pieces = pieces_of(case)
        assert model["chunks"] == [vars(piece) for piece in pieces]
        assert int(model["bits"], 16) == figures.descriptor_bits(**given)
        assert model["distinct"] == len({piece.byte for piece in pieces})


SEQUENCES = ["", "ec", "ecec", "ce", "aaa", "eac", "aeccc", "eecc", "ecac", "acae"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_barrier_goes_through_its_phases_as_on_the_emulator(count):
    for events in SEQUENCES:
        try:
            steps = figures.barrier_steps(count, events)
        except ValueError:
            continue
        assert probes.barrier(count, events) == [step.waits for step in steps]


@pytest.mark.node
def test_a_barrier_goes_through_its_phases_in_the_browser_as_here():
    cases = [{"count": n, "events": words} for n in (1, 2, 3) for words in [*SEQUENCES, "axe"]]
    stopped = 0
    for case, model in zip(cases, models(figures.BarrierExplorer(), cases), strict=True):
        try:
            steps = figures.barrier_steps(case["count"], case["events"])
        except ValueError as error:
            assert model["error"].split(":")[0][:9] == str(error)[:9]
            stopped += 1
            continue
        assert model["moments"] == [{**vars(step), "waits": list(step.waits)} for step in steps]
    assert 3 <= stopped < len(cases) - 10


ROLES = [
    {"stages": s, "consumers": c, "latency": la, "transfer": t, "multiply": m, "running": r}
    for s, c, (la, t), m, r in itertools.product(
        (1, 2, 4), (1, 2), [(700, 768), (0, 0), (2000, 64)], (128, 512), (0, 1)
    )
]


@pytest.mark.node
def test_roles_are_in_the_browser_as_here():
    for case, model in zip(ROLES, models(figures.RolesExplorer(), ROLES), strict=True):
        if case["running"] and case["stages"] == 1:
            assert "Deadlock" in model["error"]
            with pytest.raises(ValueError, match="deadlock"):
                figures.role_schedule(**case)
            continue
        turns = figures.role_schedule(**case)
        assert model["turns"] == [
            {**vars(turn), "products": [list(pair) for pair in turn.products]} for turn in turns
        ]
        assert model["time"] == turns[-1].products[-1][1]


def test_roles_by_hand():
    alone = figures.role_schedule(1, 2, 1, latency=5, transfer=2, multiply=3, gap=1, running=0)
    assert [(t.asked, t.landed, t.products) for t in alone] == [
        (0, 7, ((7, 10),)), (10, 17, ((17, 20),)),
    ]  # fmt: skip
    two = figures.role_schedule(2, 3, 1, latency=5, transfer=2, multiply=3, gap=1, running=1)
    assert [(t.asked, t.landed, t.products) for t in two] == [
        (0, 7, ((7, 10),)), (0, 9, ((10, 13),)), (10, 17, ((17, 20),)),
    ]  # fmt: skip


def test_a_warpgroup_holds_what_the_instruction_says():
    drawn = figures.warpgroup_tiles(256, 1)
    assert drawn.facts == {"registers": 128, "wavefronts": 80}
    for columns, groups in ((12, 1), (264, 1), (64, 3)):
        with pytest.raises(ValueError, match="N is 8 to 256"):
            figures.warpgroup_tiles(columns, groups)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: figures.TensorBoxExplorer(swizzle=16), "swizzle = 16"),
        (lambda: figures.TensorBoxExplorer(box_chunks=3), "box_chunks = 3"),
        (lambda: figures.CoreMatrixExplorer("M"), "major = 'M'"),
        (lambda: figures.BarrierExplorer(events="x"), "no event"),
        (lambda: figures.BarrierExplorer(count=9), "count = 9"),
        (lambda: figures.RolesExplorer(stages=0), "stages = 0"),
        (lambda: figures.role_schedule(multiply=0), "at least one"),
        (lambda: figures.core_matrices({}), "no descriptor"),
    ],
)
def test_what_cannot_be_explored_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
