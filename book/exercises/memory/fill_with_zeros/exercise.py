"""Fill a tile together, and its edges with zeros."""

from book.exercises.exercise import Case, Exercise, Goal, Need
from book.exercises.launches import ROW_SUSPECTS, row_sums
from kernels.shapes import ceil_div


def row_sums_of_tiles(rng) -> tuple[Case, ...]:
    """Sums of the rows of X, 16 rows per block, for any M and K."""
    drawn = tuple(map(int, rng.integers((1, 1), (60, 130))))
    cases = []
    for size in ((32, 48), (20, 48), (32, 41), (1, 1), drawn):
        rest = [
            f"{name}={n} is no multiple of 16" for name, n in zip("MK", size, strict=True) if n % 16
        ]
        cases.append(row_sums(rng, size, size, 16, (16, 16), " and ".join(rest)))
    return tuple(cases)


def twin(run) -> int:
    """Places of the tiles that no load fills, at M=32, K=41."""
    done = run(case=2)
    turns = ceil_div(done.case.args[0].shape[1], 16)
    return done.trace.blocks * 256 * turns - sum(
        row.threads for row in done.trace.rows("ld.global")
    )


EXERCISE = Exercise.read(
    __file__,
    cases=row_sums_of_tiles,
    at="M=32, K=48",
    needs=(
        Need(
            "bytes read from shared memory",
            6_144,
            "the rows are summed from the tile in shared memory",
        ),
    ),
    goals=(Goal("global_sectors", 256),),
    suspects=ROW_SUSPECTS,
    twin=twin,
)
