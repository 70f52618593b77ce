"""Where a warp's clocks go, per multiply-add, by Nsight Compute's stall reasons: recorded, under the profiler's own names."""

from collections.abc import Sequence

from book.cells import columns, limits

# Nsight Compute's metric names: what the profiler's pages call it, and what it means (its guide, "Warp Stall Reasons").
REASONS = {
    "selected": ("issuing", "the scheduler starts an instruction of the warp"),
    "not_selected": (
        "not selected",
        "the warp is ready, but the scheduler starts an instruction of another one",
    ),
    "mio_throttle": (
        "MIO throttle",
        "the queue of instructions for shared memory is full (MIO: memory input/output)",
    ),
    "short_scoreboard": ("short scoreboard", "waits for data from shared memory"),
    "long_scoreboard": ("long scoreboard", "waits for data from L1, L2 or device memory"),
    "barrier": ("barrier", "waits at `__syncthreads()` for other warps"),
    "dispatch_stall": (
        "dispatch stall",
        "the instruction is ready, but the dispatch unit holds it back, for example because of a conflict",
    ),
    "wait": ("wait", "waits the fixed number of clocks that some instructions need"),
    "math_pipe_throttle": ("math pipe throttle", "the pipe that would compute it is busy"),
}


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
    heads = {"": "", **{REASONS[r][0]: REASONS[r][1] for r in reasons}}
    heads["all"] = "all reasons together, those not shown here included"
    columns.show(
        heads,
        rows,
        title="Clocks that a warp spends per multiply-add, by reason",
        caption=columns.sentence(limits.stored()["label"]),
    )
