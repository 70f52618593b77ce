"""Split K between warpgroups."""

from collections.abc import Callable

import numpy as np

from book.exercises.attempt import attempt
from book.exercises.exercise import Case, Exercise, Goal, Need
from book.exercises.hopper.launches import ARCH, STEP, mapped, tile_products
from book.exercises.launches import poisoned
from kernels.shapes import ceil_div


def _steps(pick) -> Callable:
    """A suspect from how often each step of 64 along K is summed: pick(steps) gives that many weights."""
    return lambda case: case.product.weighted(
        lambda k: np.asarray(pick(np.arange(k[-1] // STEP + 1)))[k // STEP]
    )


STEP_SUSPECTS = {
    "Only the steps of warpgroup 0 arrive (0, 2, 4 ...): nobody adds the sums of warpgroup 1, or these are of no step": (
        _steps(lambda s: s % 2 == 0)
    ),
    "Only the steps of warpgroup 1 arrive (1, 3, 5 ...): its sums replace those of warpgroup 0": (
        _steps(lambda s: s % 2 == 1)
    ),
    "Both warpgroups take steps 0, 2, 4 ..., and nobody takes the others; or warpgroup 0 adds its own sums once more": _steps(
        lambda s: 2 * (s % 2 == 0)
    ),
    "Only half of warpgroup 1's registers are added: each thread has 32 sums": lambda case: (
        np.where(
            np.arange(case.expected.shape[1]) % 64 < 32,
            case.expected,
            _steps(lambda s: s % 2 == 0)(case),
        )
    ),
    "Both warpgroups take all steps, so everything is added twice": _steps(lambda s: 2 + 0 * s),
    "The last step is left out where the number of steps is odd": _steps(
        lambda s: s < len(s) // 2 * 2
    ),
    "The last step is left out": _steps(lambda s: s < len(s) - 1),
    "The sums are subtracted from one another, not added": _steps(lambda s: 1 - 2 * (s % 2)),
}

HEAVY = 4096.0  # its square is 2 ** 24, from where a float cannot hold odd numbers


def steps_by_groups(built, trace) -> list[str]:
    """Are the steps shared, and does a warpgroup meet before its tiles are filled again?"""
    return shared_steps(built, trace) or _group_meets(built, trace)


def _group_meets(built, trace) -> list[str]:
    """At K = 192 warpgroup 0 has two steps and warpgroup 1 one. Counted is who comes to barriers that order its warps."""
    meetings = sum(
        row.warps
        for row in trace.instructions
        if row.opcode.startswith(("bar.", "barrier.sync", "mbarrier.arrive"))
        and "expect_tx" not in row.opcode
        and "warp" not in row.opcode
        and (
            row.opcode.startswith("mbarrier") or "," in row.text
        )  # one operand: the whole block meets
    )
    if meetings < 4:  # warps of one of them
        return [
            "Nothing keeps thread 0 of a warpgroup from asking for the next tiles while another of its warps still multiplies "
            "these. After wgmma_wait<0>() all four warps have to meet, as named_barrier(1 + group, 128) makes them."
        ]
    return []


def shared_steps(built, trace) -> list[str]:
    """Do two warpgroups have two of four steps each? The rounding of their sums tells.

    Step 0 contributes 2 ** 24 to every sum, each of the others 1. A 1 that is added to 2 ** 24 is lost, and two of them that
    are added up first are not. So the sums tell how many steps were added up apart from step 0.
    """
    A, B = np.zeros((64, 4 * STEP), np.float16), np.zeros((4 * STEP, 64), np.float16)
    A[:, ::STEP], B[::STEP] = 1, 1
    A[:, 0], B[0] = HEAVY, HEAVY
    maps = mapped(A, (64, STEP)), mapped(B, (STEP, STEP))
    args = (*maps, poisoned((64, 64)), np.int32(64), np.int32(64), np.int32(4 * STEP))
    done = attempt(built, "split_steps", Case("", args, 2, poisoned((64, 64)), (1, 1), (256,)))
    if done.error is None and (done.output == HEAVY**2 + 2).all():
        return []
    apart = {
        0: "all four were added into the same sum as step 0",
        4: "three were added into another sum than step 0",
    }.get(
        float(done.output[0, 0]) - HEAVY**2,
        "the number of those that were added into another sum than step 0 is not two",
    )
    return [
        f"In a trial with four steps along K, {apart}. Each warpgroup should add up two of the four in a sum of its own, and "
        "the two sums should meet at the end."
    ]


EXERCISE = Exercise.read(
    __file__,
    cases=tile_products(
        ((64, 64, 128), (64, 64, 192), (100, 72, 200), (33, 40, 40)),
        (64, 64),
        256,
        numbers=3,
        most=(130, 20, 32),
    ),
    at="M=64, N=64, K=192",
    needs=(
        Need("wgmma (four warps issue each, so each counts four)", 48, "wgmma multiplies"),
        Need("bytes copied by TMA", 49_152, "the tiles arrive by TMA"),
    ),
    goals=(
        Goal("wgmma (four warps issue each, so each counts four)", 48),
        Goal("bytes copied by TMA", 49_152),
    ),
    suspects=STEP_SUSPECTS,
    inspect=steps_by_groups,
    arch=ARCH,
    twin=lambda run: len(range(0, ceil_div(300, STEP), 2)),
)
