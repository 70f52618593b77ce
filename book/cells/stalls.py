"""Where a warp's clocks go, per multiply-add, by Nsight Compute's stall reasons: recorded, under the profiler's own names."""

from collections.abc import Sequence

from book.cells import columns, limits
from measure.limits import STALLS


def per_multiply_add(rung: str, reason: str) -> float:
    """Clocks that a warp spends for this reason per multiply-add. KeyError for a reason the profiler does not have."""
    row = limits.row(rung)
    m, n, k = row["size"]
    return row["stalls"][reason] * row["instructions"] / (m * n * k / 32)


def show(rungs: Sequence[str], *reasons: str) -> None:
    """Shows these reasons and the sum of all, for each rung."""
    rows = []
    for rung in rungs:
        every = sum(per_multiply_add(rung, reason) for reason in limits.row(rung)["stalls"])
        each = [f"{per_multiply_add(rung, reason):.2f}" for reason in reasons]
        rows.append([rung, *each, f"{every:.2f}"])
    heads = {"": "", **{STALLS[r].name: STALLS[r].means for r in reasons}}
    heads["all"] = "all reasons together, those not shown here included"
    columns.show(
        heads,
        rows,
        title="Clocks that a warp spends per multiply-add, by reason",
        caption=columns.sentence(limits.stored()["label"]),
    )
