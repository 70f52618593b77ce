"""What a launch spent, under the names that goals and requirements use."""

from emulator.counts.trace import COLUMNS

_READS = ("ld", "wmma.load")


def _global_read(row) -> int:
    return row.bytes if row.global_requests and row.opcode.startswith((*_READS, "cp.async")) else 0


def _shared_read(row) -> int:
    return row.bytes if row.shared_wavefronts and row.opcode.startswith(_READS) else 0


def _copied(row) -> int:
    return row.bytes if row.opcode.startswith(("cp.async.ca", "cp.async.cg")) else 0


def _warps_at(*opcodes: str):
    return lambda row: row.warps if row.opcode.startswith(opcodes) else 0


# Name in a verdict: what a row of the trace adds to it.
COUNTS = {
    "barriers": lambda row: (
        row.warps if row.opcode.startswith("bar") and "warp" not in row.opcode else 0
    ),
    "bytes read from global memory": _global_read,
    "bytes read from shared memory": _shared_read,
    "bytes copied by cp.async": _copied,
    "matrix multiplications of a warp": _warps_at("mma.", "wmma.mma"),
    "wgmma (four warps issue each, so each counts four)": _warps_at("wgmma.mma_async"),
    "products started by tcgen05.mma": _warps_at("tcgen05.mma"),
    "bytes copied by TMA": lambda row: (
        row.bytes if row.opcode.startswith("cp.async.bulk.tensor") else 0
    ),
    "ldmatrix instructions": _warps_at("ldmatrix"),
    "warp shuffles": _warps_at("shfl"),
    "atomic operations of a warp": _warps_at("atom", "red."),
}
NAMES = (*COLUMNS, *COUNTS)


def of_row(row, name: str) -> int:
    """What a row of the trace spent. `name` is a column of the trace or a row of COUNTS; ValueError otherwise."""
    if name not in NAMES:
        raise ValueError(f"no count {name!r}; there are {', '.join(NAMES)}")
    return COUNTS[name](row) if name in COUNTS else getattr(row, name)


def count(trace, name: str) -> int:
    """The sum over a launch."""
    return sum(of_row(row, name) for row in trace.instructions)


def in_words(name: str) -> str:
    """ "shared_wavefronts" -> "shared-memory wavefronts"; names of COUNTS are words already."""
    return name.replace("shared_", "shared-memory ").replace("_", " ")
