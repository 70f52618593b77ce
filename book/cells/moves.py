"""What a rung's warps executed, sorted by purpose: copies of tiles, fragments, products, barriers."""

from collections.abc import Mapping

from book.cells import columns

PURPOSES = {
    "copies into shared memory": ("cp.async.cg", "cp.async.ca", "cp.async.bulk.tensor.2d.shared",
                                  "cp.async.bulk.tensor.2d.cta_group", "cp.async.bulk.shared"),
    "fragments (ldmatrix)": ("ldmatrix",),
    "products (mma, wgmma)": ("mma.sync", "wgmma.mma_async"),
    "products (tcgen05.mma)": ("tcgen05.mma",),
    "loads of sums from tensor memory": ("tcgen05.ld",),
    "barriers, fences, waits": ("tcgen05.", "mbarrier", "bar.", "barrier", "fence", "wgmma.", "cp.async", "membar"),
    "stores of C": ("st.", "stmatrix", "cp.async.bulk.tensor.2d.global"),
}  # fmt: skip
OTHERS = "everything else"


def purpose(opcode: str) -> str:
    """The name in `PURPOSES` whose beginning of an opcode is the longest that fits."""
    fits = [
        (len(start), name)
        for name, starts in PURPOSES.items()
        for start in starts
        if opcode.startswith(start)
    ]
    return max(fits)[1] if fits else OTHERS


def counted(trace) -> dict[str, dict[str, int]]:
    """{purpose: {"instructions", "sectors", "wavefronts"}}; instructions are counted once per warp."""
    names = ("instructions", "sectors", "wavefronts")
    found = {name: dict.fromkeys(names, 0) for name in (*PURPOSES, OTHERS)}
    for row in trace.instructions:
        counts = found[purpose(row.opcode)]
        counts["instructions"] += row.warps
        counts["sectors"] += row.global_sectors
        counts["wavefronts"] += row.shared_wavefronts
    return found


def per_step(short, long, steps: int) -> dict[str, dict[str, float]]:
    """`counted` per k-step: of two traces of a rung, the second of which goes `steps` k-steps (of all blocks) further."""
    before, after = counted(short), counted(long)
    return {
        name: {column: (number - before[name][column]) / steps for column, number in counts.items()}
        for name, counts in after.items()
    }


def show(column: str, found: Mapping[str, Mapping[str, Mapping]], caption: str = "") -> None:
    """Shows one column ("instructions", "sectors", "wavefronts") of several rungs' `counted` or `per_step` side by side."""
    rows = [
        [name, *(f"{counts[name][column]:,.5g}" for counts in found.values())]
        for name in (*PURPOSES, OTHERS)
        if any(counts[name][column] for counts in found.values())
    ]
    total = [sum(one[column] for one in counts.values()) for counts in found.values()]
    rows.append(["all", *(f"{number:,.5g}" for number in total)])
    what = {
        "instructions": "instructions that its warps executed, counted once per warp",
        "sectors": "32-byte pieces of global memory that were touched",
        "wavefronts": "passes through shared memory, 128 bytes at most; what TMA itself writes is not counted",
    }[column]
    columns.show({"": "", **{f"{name}: {column}": what for name in found}}, rows, caption=caption)
