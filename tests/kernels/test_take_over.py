"""tcgen05_pair with TAKE_OVER: pairs compute the tiles of pairs that have not begun."""

import numpy as np
import pytest

import emulator
from kernels import build, find, gemm
from kernels.accuracy import accuracy
from kernels.check import random_inputs

RUNG, MACROS = find("tcgen05_pair"), {"TAKE_OVER": 1, "BN": 128, "STAGES": 2}
SIZE = (600, 380, 72)  # 3 x 3 tiles, of which three pairs begin with one each

MISTAKES = {
    "the next answer over one that somebody still reads": (
        "if (rank == 0) barrier_wait(understood + turn * 8, turn_phase ^ 1);", ""
    ),
    "the other block's readers not waited for": ("READERS = 2 * (1 + STORERS) + 1", "READERS = 1 + STORERS + 1"),
    "an answer read before it is there": ("barrier_wait(answered + turn * 8, turn_phase);", ""),
    "an answer that only one block expects": (
        "barrier_expect(answered + turn * 8, sizeof(uint4));",
        "if (rank == 0) barrier_expect(answered + turn * 8, sizeof(uint4));",
    ),
    "blocks counted as pairs": ("first < 0 ? tiles : first / 2", "first < 0 ? tiles : first"),
}  # fmt: skip


def run(*change):
    """(accuracy, hazards, trace) of the rung with a change."""
    text = RUNG.path.read_text(encoding="utf-8")
    if change:
        assert change[0] in text
        text = text.replace(*change)
    built = build(text, RUNG.resolve(MACROS), "100a", name=RUNG.file)
    types = RUNG.types(MACROS)
    A, B, C = random_inputs(types, *SIZE)
    result = gemm(RUNG, A, B, macros=MACROS, machine="emulator", built=built)
    return accuracy(result.C, A, B, C, 1.0, 0.0, types), result.trace


def test_pairs_take_over_what_has_not_begun():
    found, trace = run()
    assert found.ok and not trace.hazards
    (asked,) = trace.rows("clusterlaunchcontrol.try_cancel")
    assert asked.warps == 9  # six tiles were taken over, and three pairs heard that none was left
    (freed,) = trace.rows("tcgen05.dealloc")
    assert freed.warps == 2 * 3  # blocks that began


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_caught(name):
    try:
        found, trace = run(*MISTAKES[name])
    except emulator.ExecutionError:
        return
    assert trace.hazards or not found.ok


def test_the_grid_has_a_pair_for_each_tile():
    grid, _, _ = RUNG.geometry(MACROS, *SIZE)
    assert grid == (18, 1, 1)
    assert RUNG.geometry({**MACROS, "TAKE_OVER": 0, "BLOCKS": 4}, *SIZE)[0][0] <= 4
    assert np.prod(RUNG.geometry({}, *SIZE)[0]) <= 148
