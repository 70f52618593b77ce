# ruff: noqa: E501 (a row of a table of mistakes may run on)
"""What students write: right answers in their own way pass, and mistakes that once were not named have their cause named."""

import pytest

from book.exercises import find, judge
from book.exercises.cell import judge_answer

COPIED_AHEAD_IN_A_BRANCH = """\
        if (tile + 1 < tiles) {
            fetch(tile + 1);
            cp_async_wait<1>();
        } else {
            cp_async_wait<0>();
        }
        __syncthreads();
        for (int k = 0; k < COLS; ++k)
            sum += buffer[tile % 2][thread * PITCH + k];
        __syncthreads();
"""
DRAINED_AT_THE_END = """\
        if (tile + STAGES - 1 < tiles) cp_async_wait<STAGES - 2>();
        else cp_async_wait<0>();
        __syncthreads();
        if (tile + STAGES - 1 < tiles) {
            fetch(tile + STAGES - 1);
            cp_async_commit();
        }
"""


def between(text, first, last):
    """The part of the text from `first` on, up to `last`."""
    start = text.index(first)
    return text[start : text.index(last, start)]


def edited(text, edits):
    for old, new in edits:
        assert old in text, f"there is no {old!r}"
        text = text.replace(old, new)
    return text


def test_a_wait_in_both_branches_of_an_if_is_a_pipeline_too():
    """What is on its way while a tile is read is counted as the kernel runs, not as its instructions are listed."""
    source = find("two_stages").solution
    body = between(source, "        cp_async_wait<0>", "    }\n    y[")
    assert judge(find("two_stages"), source.replace(body, COPIED_AHEAD_IN_A_BRANCH))
    source = find("pipeline_stages").solution
    body = between(source, "        cp_async_wait<STAGES", "        for (int k")
    assert judge(find("pipeline_stages"), source.replace(body, DRAINED_AT_THE_END))


def test_one_tile_fetched_ahead_in_the_first_turn_only_is_no_pipeline():
    source = find("two_stages").solution
    body = between(source, "        cp_async_wait<0>", "        for (int k")
    late = """\
        if (tile == 0 && tiles > 1) fetch(1);
        if (tile == 0 && tiles > 1) cp_async_wait<1>();
        else cp_async_wait<0>();
        __syncthreads();
"""
    source = source.replace(body, late).replace(
        "[thread * PITCH + k];\n",
        "[thread * PITCH + k];\n        __syncthreads();\n        if (tile && tile + 1 < tiles) fetch(tile + 1);\n",
    )
    verdict = judge(find("two_stages"), source)
    assert "0 copies are in flight; 1 should be" in " ".join(str(verdict).split()), str(verdict)


COUNTS = {
    "s[lane]": 1.0, "s[2 * lane]": 2.0, "s[lane / 2]": 1.0, "s[32 * lane]": 32.0, "s[33 * lane]": 1.0, "float4 s[lane]": 4.0,
}  # fmt: skip
BLOCKS = {
    "256 threads, 32 registers, 16 KiB": 2048 / 256, "256 threads, 96 registers, 16 KiB": 2.0,
    "128 threads, 40 registers, 40 KiB": 164 / 41, "64 threads, 24 registers, 0 KiB": 32, "512 threads, 128 registers, 0 KiB": 1,
}  # fmt: skip


def element(lane, half):
    return lane // 4 + half // 2 % 2 * 8, 2 * (lane % 4) + half % 2 + half // 4 * 8


def test_whole_numbers_pass_whatever_their_type():
    import numpy as np

    assert judge_answer("count_wavefronts", COUNTS)
    assert judge_answer("count_blocks", BLOCKS)
    assert judge_answer("lane_map", lambda lane, half: np.array(element(lane, half)))


ANSWERS = {
    ("count_wavefronts", "a pitch of 33 taken for 33 conflicts"): (COUNTS | {"s[33 * lane]": 33}, "read words 0, 33, 66 and 528, in banks 0, 1, 2 and 16"),
    ("count_wavefronts", "conflicts, not wavefronts"): (COUNTS | {"s[lane]": 0}, "one wavefront even where there is no conflict"),
    ("count_wavefronts", "two words per bank"): (COUNTS | {"float4 s[lane]": 8}, "eight lanes fill the 32 banks once"),
    ("count_blocks", "not rounded down"): (BLOCKS | {"256 threads, 96 registers, 16 KiB": 65536 / (256 * 96)}, "round down"),
    ("lane_map", "no rows from 8"): (lambda lane, half: (lane // 4, element(lane, half)[1]), "register 1 begins eight rows below"),
    ("lane_map", "no columns from 8"): (lambda lane, half: (element(lane, half)[0], element(lane, half)[1] % 8), "register 2 begins eight columns to the right"),
    ("lane_map", "eight halves of a row"): (lambda lane, half: (lane // 2, lane % 2 * 8 + half), "register 1 begins eight rows below"),
    ("lane_map", "the map of B"): (lambda lane, half: (2 * (lane % 4) + half % 2 + half // 2 % 2 * 8, lane // 4 + half // 4 * 8), "one column to the right of half 0"),
}  # fmt: skip


@pytest.mark.parametrize("which", ANSWERS, ids=": ".join)
def test_a_wrong_answer_is_told_what_it_misses(which):
    answer, words = ANSWERS[which]
    verdict = judge_answer(which[0], answer)
    assert not verdict
    assert words in " ".join(str(verdict).split()), str(verdict)
