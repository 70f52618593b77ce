"""Write an instruction descriptor."""

import numpy as np

import figures
from book.exercises.exercise import Exercise

FIELDS = {
    "sums": (4, 2),
    "A's type": (7, 3),
    "B's type": (10, 3),
    "B's direction": (16, 1),
    "N": (17, 6),
    "M": (24, 5),
}


def described(idesc, rng) -> list[str]:
    drawn = (
        int(rng.choice((64, 128))),
        16 * int(rng.integers(1, 17)),
        bool(rng.integers(2)),
        bool(rng.integers(2)),
    )
    for asked in ((128, 256, False, True), (128, 64, False, False), (64, 32, True, True), drawn):
        what = f"idesc{asked}"
        found = idesc(*asked)
        if isinstance(found, bool) or not isinstance(found, int | np.integer):
            more = "; / gives a float, // an integer" if isinstance(found, float) else ""
            return [f"{what} gives {found!r}: the answer is an integer{more}"]
        m, n, bf16, n_major = asked
        right = figures.instruction_bits(m, n, bf16=bf16, b_major="N" if n_major else "K")
        if int(found) != right:
            return [f"{what} gives {int(found):#x}. {_wrong_field(int(found), right, m, n)}"]
    return []


def _wrong_field(found: int, right: int, m: int, n: int) -> str:
    for name, (low, bits) in FIELDS.items():
        mask = (1 << bits) - 1
        has, wanted = found >> low & mask, right >> low & mask
        if has == wanted:
            continue
        where = f"bits {low} to {low + bits - 1}" if bits > 1 else f"bit {low}"
        if name in ("N", "M") and found >> low == (n if name == "N" else m):
            return f"The field of {name}, {where}, counts in {'eights' if name == 'N' else 'sixteens'}."
        return f"The field of {name}, {where}, is {has}, and should be {wanted}."
    return f"The fields are right, but other bits are set: {found & ~right:#x}."


EXERCISE = Exercise.read(
    __file__,
    judge=described,
    variable="idesc",
    twin=lambda run: run.python()(128, 128, False, True) >> 17 & 63,
)
