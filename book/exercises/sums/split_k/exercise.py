"""Split K between blocks."""

from dataclasses import replace

import numpy as np

from book.exercises.exercise import Case, Exercise, Goal, Need
from book.exercises.launches import product


def slices_of_k(rng) -> tuple[Case, ...]:
    """Products that add to a C of zeros, with four blocks along z for each tile; at last another number of them."""
    sizes = (
        (32, 48, 64), (33, 17, 41), (16, 16, 3), tuple(map(int, rng.integers((1, 1, 1), (60, 60, 90)))),
    )  # fmt: skip
    cases = []
    for size, slices in zip(sizes, (4, 4, 4, int(rng.choice([2, 3, 5]))), strict=True):
        case = product(rng, size, (16, 16), (16, 16))
        args = list(case.args)
        args[2] = np.zeros_like(args[2])
        special = case.special or (
            "there are fewer terms than blocks along z" if size[2] < slices else ""
        )
        if slices != 4:
            special = f"gridDim.z is {slices}, not 4"
        label = f"{case.label}, gridDim.z={slices}" if slices != 4 else case.label
        cases.append(
            replace(case, label=label, args=tuple(args), grid=(*case.grid, slices), special=special)
        )
    return tuple(cases)


def _of_slices(how_often):
    """A suspect from how often each term of K is added: how_often(k, slices) gives the weights."""
    return lambda case: case.product.weighted(lambda k: how_often(k, case.grid[2]))


SLICE_SUSPECTS = {
    "The running sum is added to C in every turn of the loop, so early terms are added many times: add it once, after the loop": (
        _of_slices(lambda k, n: (k.max() - k) // n + 1)
    ),
    **{
        f"Only the terms of blockIdx.z = {z} arrive": _of_slices(lambda k, n, z=z: k % n == z)
        for z in range(4)
    },
    "Every block along z sums all of K, so everything is added gridDim.z times": _of_slices(
        lambda k, n: n + 0 * k
    ),
    "The step along K is 4, where it should be gridDim.z": _of_slices(
        lambda k, n: sum(((k - z) % 4 == 0) & (k >= z) for z in range(n))
    ),
    "Every block along z begins at term 0, so all of them add the same terms": _of_slices(
        lambda k, n: np.where(k % n == 0, n, 0)
    ),
}

EXERCISE = Exercise.read(
    __file__,
    cases=slices_of_k,
    at="M=32, N=48, K=64",
    needs=(
        Need("atomic operations of a warp", 4, "sums of several blocks meet by atomic additions"),
    ),
    goals=(
        Goal("atomic operations of a warp", 192),
        Goal("bytes read from global memory", 786_432),
    ),
    suspects=SLICE_SUSPECTS,
    twin=lambda run: run.count("atomic operations of a warp"),
)
