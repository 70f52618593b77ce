"""Load an mma's registers by hand."""

import numpy as np

from book.exercises.exercise import Case, Exercise, Need
from book.exercises.launches import products
from book.exercises.mma_fragment import a_element, b_element

OPERANDS = {"A": (0, a_element, 8), "B": (1, b_element, 4)}


def fragments_by_hand(case: Case, trace) -> str | None:
    """The first lane that loads other elements of A or B than it must hold, of a kernel that loads halves by hand."""
    for name, (number, element, halves) in OPERANDS.items():
        columns = case.args[number].shape[1]
        loaded = _loaded(trace, number)
        if any(len(found) == 0 for found in loaded):
            continue  # nothing read, or not by each lane: through shared memory, say
        for lane, found in enumerate(loaded):
            must = {element(lane, half) for half in range(halves)}
            has = {divmod(int(i), columns) for i in found}
            if must == has:
                continue
            missing, more = sorted(must - has), sorted(has - must)
            said = f"Lane {lane} (group {lane // 4}, pair {lane % 4}) does not load {name}[{missing[0][0]}][{missing[0][1]}]"
            if missing and more:
                said += f", which it must hold, but {name}[{more[0][0]}][{more[0][1]}], which it must not"
            elif not missing:
                said = (
                    f"Lane {lane} loads {name}[{more[0][0]}][{more[0][1]}], which it must not hold"
                )
            else:
                said += ", which it must hold"
            return (
                f"{said}. {len(must & has)} of its {halves} elements of {name} are the right ones."
            )
    return None


def _loaded(trace, number: int) -> list[np.ndarray]:
    """For each lane, the halves of this argument that it loads."""
    found: list[list[np.ndarray]] = [[] for _ in range(32)]
    for row in trace.instructions:
        for access in trace.accesses(row):
            if access.buffer == f"argument {number}" and access.kind == "load":
                for lane in np.flatnonzero(access.active):
                    first = int(access.addresses[lane]) // 2
                    found[lane].append(np.arange(first, first + max(access.width // 2, 1)))
    return [np.unique(np.concatenate(one)) if one else np.zeros(0, np.int64) for one in found]


EXERCISE = Exercise.read(
    __file__,
    cases=products(
        ((16, 8, 16),), (16, 8), (32,), drawn=None, dtype=np.float16, sizes_passed=False
    ),
    at="M=16, N=8, K=16",
    needs=(Need("matrix multiplications of a warp", 1, "one mma.m16n8k16 multiplies"),),
    watch=fragments_by_hand,
    outside="Row r, column c is A[16 * r + c] in A, with columns 0 to 15, and B[8 * r + c] in B, with columns 0 to 7. Both "
    "have rows 0 to 15.",
    twin=lambda run: run.lane("ld.global", 13, buffer="argument 1") // 2 % 8,
)
