"""The timeline of a rung's loop, from the order in which the emulator executed it."""

import numpy as np
import pytest

from book.cells import schedule
from kernels.gemm import gemm


@pytest.fixture(scope="module")
def loops():
    A, B = np.random.default_rng(0).uniform(-1, 1, (2, 128, 128)).astype(np.float16)
    small = {"BM": 64, "BN": 64, "BK": 64, "WM": 32, "WN": 32, "STAGES": 3}
    how = {"mma_swizzled": {"BM": 64, "BN": 64, "WM": 64, "WN": 64}, "mma_multistage": small}
    return {
        name: schedule.loop(gemm(name, A[:64], B[:, :64], macros=macros, machine="emulator").trace)
        for name, macros in how.items()
    }


def test_a_turn_has_the_mma_of_its_warp_tile(loops):
    assert loops["mma_swizzled"].mma == 4 * 8 * 2  # 64 x 64, two k of 16
    assert loops["mma_multistage"].mma == 2 * 4 * 4  # 32 x 32, four k of 16


def test_the_simple_loop_uses_fragments_at_once_and_the_pipelined_one_a_k_later(loops):
    assert set(schedule.lead(loops["mma_swizzled"])) == {0}
    assert max(schedule.lead(loops["mma_multistage"])) == 8
    assert min(schedule.lead(loops["mma_multistage"])) > 0


def test_waits_leave_as_many_groups_as_there_are_further_stages(loops):
    assert loops["mma_swizzled"].left == 0 and loops["mma_multistage"].left == 1
    assert len(loops["mma_multistage"].barriers) == len(loops["mma_swizzled"].barriers) == 1


def test_every_copy_of_the_tiles_is_there(loops):
    assert sum(count for _, count in loops["mma_swizzled"].copies) == 8 + 8  # of 32 threads
    assert sum(count for _, count in loops["mma_multistage"].copies) == 4 + 4  # of 128 threads


def test_bars_of_copies_end_at_the_wait_that_lets_the_block_read_them(loops):
    turn = loops["mma_multistage"]
    bars = [bar for bar in schedule.events(turn, turns=3) if bar["row"] == "copies"]
    first = next(bar for bar in bars if bar["start"] == turn.copies[0][0])
    assert first["end"] == turn.waits[0] + turn.mma
    assert first["stage"] == 2  # while stage 0 is multiplied
    before = [bar for bar in bars if not bar["start"]]  # issued a turn before, for stage 1
    assert {bar["end"] for bar in before} == {turn.waits[0]} and {
        bar["stage"] for bar in before
    } == {1}


def test_a_kernel_without_mma_is_refused():
    A = np.ones((16, 16), np.float32)
    with pytest.raises(ValueError, match="no mma"):
        schedule.loop(gemm("naive", A, A, machine="emulator").trace)
