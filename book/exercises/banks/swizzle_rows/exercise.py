"""Derive a swizzle for 64-byte rows."""

from book.exercises.banks.launches import chunks
from book.exercises.exercise import Exercise, Goal, Need


def no_spare_room(built, trace):
    room, tile = built.reports["swizzle_rows"].shared_bytes, 32 * 32 * 2
    said = (
        f"{room:,} bytes of shared memory: the tile has {tile:,}, and no padding is allowed here."
    )
    return [] if room <= tile else [said]


EXERCISE = Exercise.read(
    __file__,
    cases=chunks(32),
    at="one 32 x 32 tile",
    needs=(
        Need("bytes read from shared memory", 2_048, "the tile is read back from shared memory"),
    ),
    goals=(Goal("shared_wavefronts", 32),),
    inspect=no_spare_room,
    outside="A chunk must stay in its row: place() must return 0 to 3 for every row, so only two bits of the row may "
    "be mixed in. `chunk ^ row` grows with the row.",
    twin=lambda run: run.lane("ld.shared", 6, nth=1) % 64 // 16,
)
