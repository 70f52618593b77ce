"""Where lanes of a warp meet in a bank."""

import numpy as np

BANKS, WORD = 32, 4


def meeting(trace, rows) -> str | None:
    """ "lanes 0 and 2 need different words of bank 0", of the worst access of these rows; None where no two meet."""
    worst, found = 0, None
    for row in rows:
        if not row.shared_wavefronts:
            continue
        excess = (row.shared_wavefronts - row.shared_wavefronts_ideal) / max(row.warps, 1)
        if excess <= worst:
            continue
        for access in trace.accesses(row):
            if access.space == "shared" and (told := _two_lanes(access)):
                worst, found = excess, told
                break
    return found


def _two_lanes(access) -> str | None:
    """The first two lanes that are served together and want different words of one bank."""
    width = max(access.width, WORD)
    together = max(1, BANKS * WORD // width)  # lanes of one wavefront, where none conflict
    seen: dict[tuple[int, int], tuple[int, int]] = {}
    for lane in np.flatnonzero(access.active).tolist():
        address = int(access.addresses[lane])
        for word in range(address // WORD, (address + width - 1) // WORD + 1):
            key = lane // together, word % BANKS
            other = seen.setdefault(key, (lane, word))
            if other[1] != word:
                return f"lanes {other[0]} and {lane} need different words of bank {word % BANKS}"
    return None
