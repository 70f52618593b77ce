"""Mend a racy pipeline."""

import numpy as np

from book.exercises.copies_in_flight import fetches_ahead
from book.exercises.exercise import Exercise, Need
from book.exercises.launches import mapping


def reverse(rng):
    return tuple(
        mapping(
            rng, (blocks, 512), (blocks, 512), lambda x: np.ascontiguousarray(x[:, ::-1]), (blocks,), (128,),
            label=f"{blocks} blocks of 512",
        )
        for blocks in (3, int(rng.integers(4, 12)))
    )  # fmt: skip


EXERCISE = Exercise.read(
    __file__,
    cases=reverse,
    at="3 blocks of 512",
    needs=(
        Need("bytes copied by cp.async", 6_144, "each tile arrives by cp.async"),
        Need("bytes read from shared memory", 6_144, "the output is read from the buffers"),
    ),
    inspect=fetches_ahead(1),
    twin=lambda run: run.per_warp("barriers") // 4,
)
