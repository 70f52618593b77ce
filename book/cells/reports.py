"""What the compiler and the checker say of rungs, as tables that fit a page."""

from collections.abc import Mapping, Sequence

import kernels
from kernels.check import check
from kernels.occupancy import occupancy

WIDTHS = (11, 14, 8, 13, 15, 11)


def compiled(*rungs: str, arch: int = 80, macros: Mapping[str, int] | None = None) -> None:
    """Prints for each rung: registers a thread, shared bytes a block, spills, occupancy, PTX lines.

    The architecture is named, not this machine's, so that the numbers are the same everywhere.
    """
    head = (
        "registers",
        "shared bytes",
        "spills",
        "warps an SM",
        "limited by",
        "PTX lines",
    )
    print(f"{f'sm_{arch}':17}" + _row(head))
    for name in rungs:
        rung = kernels.find(name)
        built = kernels.build(rung, macros or {}, arch=arch)
        _, block, shared = rung.geometry(macros, 1024, 1024, 1024)
        report = built.reports[rung.entry]  # a file may hold other kernels too
        shared += report.shared_bytes
        threads = block[0] * block[1] * block[2]
        resident = occupancy(arch, threads, report.registers, shared)
        cells = (
            report.registers,
            f"{shared:,}",
            built.spills,
            f"{resident.warps} of {resident.max_warps}",
            resident.limited_by,
            len(built.ptx.splitlines()),
        )
        print(f"{name:17}" + _row(cells))


def checked(*rungs: str, sizes: Sequence[tuple[int, int, int]] | None = None) -> None:
    """Prints for each rung and number format whether it is right on the emulator, at these sizes.

    "of bound" is the largest error as a part of what rounding explains (`kernels.accuracy`). Without
    sizes, those around the edges of the rung's own tiles.
    """
    print(f"{'':17}{'types':>20}{'sizes':>7}{'of bound':>10}{'hazards':>9}  verdict")
    for row in check(rungs, sizes, machines=("emulator",), show=False):
        verdict = row.problem or "ok"
        print(
            f"{row.rung:17}{row.types:>20}{row.sizes:7}{row.worst:10.2f}{row.hazards:9}  {verdict}"
        )


def _row(cells: Sequence) -> str:
    return "".join(f"{cell!s:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
