"""Put scales into the order of a group."""

import numpy as np

from book.exercises.exercise import Exercise
from kernels import blocks


def ordered(order, rng) -> list[str]:
    for groups in (2, 1, int(rng.integers(3, 6))):
        scales = rng.integers(0, 255, (128, 4 * groups)).astype(np.uint8)
        what = f"For 128 x {4 * groups} scales"
        found = order(scales.copy())
        if found is None:
            return [f"{what}, the function returns nothing. Does it end with return?"]
        found = np.asarray(found)
        if found.size != scales.size:
            return [f"{what}, the answer has {found.size} bytes: it should have {scales.size}"]
        if said := _wrong(found.reshape(-1), scales):
            return [f"{what}: {said}"]
    return []


def _wrong(found: np.ndarray, scales: np.ndarray) -> str:
    right = blocks.tiled(scales, 128, 4)
    if (found == right).all():
        return ""
    groups = scales.shape[1] // 4
    split = scales.reshape(4, 32, groups, 4)
    others = {
        "the scales are in the order of the matrix. A group is 128 rows of four scales": scales,
        "each group holds its rows one after the other. Rows 0, 32, 64 and 96 share a lane": split.transpose(2, 0, 1, 3),
        "the groups of all lanes stand side by side. One group is 512 bytes in one piece": split.transpose(1, 0, 2, 3),
        "within a lane, the scale comes before the 32 rows. The four scales of a row are one word": split.transpose(2, 1, 3, 0),
    }  # fmt: skip
    for words, other in others.items():
        if (found == other.reshape(-1)).all():
            return words
    at = int((found != right).argmax())
    group, byte = divmod(at, 512)
    row, scale = byte // 16 + byte % 16 // 4 * 32, 4 * group + byte % 4
    return f"byte {at} should be scale {scale} of row {row}"


EXERCISE = Exercise.read(
    __file__,
    judge=ordered,
    variable="order",
    twin=lambda run: int(
        np.flatnonzero(run.python()(np.eye(128, 4, -70, dtype=np.uint8)).reshape(-1))[0]
    ),
)
