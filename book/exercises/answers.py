"""What the judges of answers that are no kernels share."""

from collections.abc import Callable, Mapping
from numbers import Real


def whole(value):
    """The integer that this number is, also where it was computed as 2048 / 256; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value // 1:
        return None
    return int(value)


def wrong_counts(
    answer: Mapping, right: Mapping[str, int], slip: Callable[[str, int], str], of: str = "row"
) -> list[str]:
    """What is wrong with counts of so many rows, each an `of`. slip(row, number): what to look at, for a wrong number."""
    mistakes = [f"{row}: there is no such {of}" for row in answer if row not in right]
    for row, truth in right.items():
        given = answer.get(row)
        number = whole(given)
        if given is None:
            mistakes.append(f"{row}: no count yet")
        elif number is None:
            fraction = isinstance(given, float)
            more = "; a part of one does not count, so round down" if fraction else ""
            mistakes.append(f"{row}: a count is an integer, not {given!r}{more}")
        elif number != truth:
            mistakes.append(f"{row}: not {number}; {slip(row, number)}")
    return mistakes
