"""How far ahead a kernel fetches: how many groups of asynchronous copies are on their way while it reads a tile."""

from collections import Counter

_READS = ("ld", "wmma.load")

_SHARE = 3  # the last turns of a loop have nothing more to fetch


def ahead(trace) -> int:
    """How many groups of copies are unfinished, or more, at a third of the reads of shared memory."""
    found: Counter = Counter()
    for row in trace.instructions:
        if row.opcode.startswith(_READS):
            found.update(row.copies_ahead)
    return max(
        (n for n in found if _SHARE * sum(found[m] for m in found if m >= n) >= found.total()),
        default=0,
    )


def fetches_ahead(groups: int):
    """An `inspect` for exercises: are this many groups on their way while a tile is read?"""

    def inspect(built, trace):
        found = ahead(trace)
        if found >= groups:
            return []
        return [
            f"While a tile is read, {found} {'copy is' if found == 1 else 'copies are'} in flight; at least {groups} should be. "
            "Start the copies of later tiles before this one is read, and let the wait leave them unfinished. "
            "A group without a copy in it does not count."
        ]

    return inspect
