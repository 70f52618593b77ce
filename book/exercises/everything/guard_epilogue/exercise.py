"""An edge-guarded epilogue."""

from dataclasses import replace

from book.exercises.exercise import Exercise, Goal
from book.exercises.launches import product


def epilogues(rng):
    tried = (
        ((32, 64, 8), (1.0, 0.0)),
        ((33, 36, 5), (1.5, 0.0)),
        ((40, 44, 7), (0.7, 1.6)),  # no two of a, b, a + b, a * b, a * a, b * b are equal
        ((17, 35, 4), (-1.0, 0.25)),
        ((1, 2, 3), (2.0, 0.0)),
        (tuple(map(int, rng.integers(1, 70, 3))), (1.25, -0.5)),
    )
    made = []
    for size, scalars in tried:
        case = product(rng, size, (32, 32), (256,), scalars=scalars)
        if size[1] % 4:
            rows = f"N={size[1]} is no multiple of 4, so rows of C begin at addresses that are no multiple of 16"
            case = replace(case, special=f"{rows}, and a thread may have fewer than four columns")
        made.append(case)
    return tuple(made)


EXERCISE = Exercise.read(
    __file__,
    cases=epilogues,
    goals=(
        Goal("global_requests", 1_040, "M=32, N=64, K=8, alpha=1, beta=0"),
        Goal("global_requests", 738, "M=33, N=36, K=5, alpha=1.5, beta=0"),
    ),
    twin=lambda run: sum(row.threads for row in run(case=3).trace.rows("st.global")) // 17 - 32,
)
