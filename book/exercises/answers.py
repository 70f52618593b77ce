"""What the judges of answers that are no kernels share."""

from numbers import Real


def whole(value):
    """The integer that this number is, also where it was computed as 2048 / 256; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value // 1:
        return None
    return int(value)
