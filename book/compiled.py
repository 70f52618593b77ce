"""What the compiler says of rungs, as one table for a chapter."""

from collections.abc import Mapping

import kernels
from kernels.occupancy import occupancy


def show(*rungs: str, arch: int = 80, macros: Mapping[str, int] | None = None) -> None:
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
    print(f"{f'sm_{arch}':18}" + "".join(f"{word:>14}" for word in head))
    for name in rungs:
        rung = kernels.find(name)
        built = kernels.build(rung, macros or {}, arch=arch)
        _, block, shared = rung.geometry(macros, 1024, 1024, 1024)
        shared += built.report.shared_bytes
        threads = block[0] * block[1] * block[2]
        resident = occupancy(arch, threads, built.report.registers, shared)
        cells = (
            built.report.registers,
            f"{shared:,}",
            built.spills,
            f"{resident.warps} of {resident.max_warps}",
            resident.limited_by,
            len(built.ptx.splitlines()),
        )
        print(f"{name:18}" + "".join(f"{cell!s:>14}" for cell in cells))
