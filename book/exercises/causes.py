"""A reader's kernel, and what its addresses say of a mistake, whether a launch stopped or came out wrong."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import kernels

from .attempt import Attempt, compile_cell, in_ample_memory
from .exercise import Exercise
from .touched import astray


@dataclass(frozen=True)
class Kernel:
    exercise: Exercise
    source: str
    built: kernels.Build

    @property
    def name(self) -> str:
        return self.exercise.name

    @property
    def file(self) -> str:
        return self.built.name

    @property
    def entry(self) -> str:
        return find_entry(self.built, self.name)

    def solution(self) -> kernels.Build:
        """What the exercise's own solution compiles to, for the same GPU."""
        return compile_cell(self.name, self.exercise.solution, self.exercise.arch)


def find_entry(built: kernels.Build, name: str) -> str | None:
    """The entry point of this name, plain or as C++ mangles the lab's: two const half*, float*, three int."""
    mangled = f"_Z{len(name)}{name}PK6__halfS1_Pfiii"
    return next((entry for entry in (mangled, name) if entry in built.entries), None)


def sizes_differ(case) -> bool:
    if case.product is None:
        shape = case.args[0].shape if isinstance(case.args[0], np.ndarray) else case.expected.shape
        return len(set(shape)) == len(shape)
    (M, K), N = case.product.A.shape, case.product.B.shape[1]
    return len({M, N, K}) == 3


def new_here(tries: Sequence[Attempt]) -> str | None:
    """What is special at the last launch, where an earlier one was right."""
    right = [one.case.label for one in tries[:-1] if one.right]
    special = tries[-1].case.special
    return (
        f"It is right at {right[0]}; new at {tries[-1].case.label} is that {special}."
        if right and special
        else None
    )


def gone_astray(kernel: Kernel, case) -> list[str]:
    """What a block touches and must not, or must and does not, in this case."""
    if kernel.exercise.arch is not None or case.drawn:
        return []
    mine, right = (
        lambda block, built=built: in_ample_memory(
            built, find_entry(built, kernel.name), case, [block]
        )
        for built in (kernel.built, kernel.solution())
    )
    said = astray(case, mine, right, kernel.source, kernel.name, kernel.file)
    return [said] if said else []
