"""What the compiler and the checker say of rungs, as tables that fit a page."""

from collections.abc import Mapping, Sequence

import kernels
from book.cells import columns, setting
from kernels.check import check_setting
from kernels.settings import BOOK_ARCH, types_of

TIMED = 4096  # the size of which a page's times are, where it names no other


def compiled(*rungs: str, arch: int = 80, macros: Mapping[str, int] | None = None) -> None:
    """Shows for each rung: registers per thread, shared bytes per block, spills, occupancy, PTX lines.

    The architecture is named, not this machine's, so that the numbers are the same everywhere. Without macros each rung
    has the setting that was timed, or its row's defaults for a generation of which no time is recorded.
    """
    rows, repairs = [], []
    for name in rungs:
        timed = setting.used(name, TIMED, show=False) if arch == BOOK_ARCH else {}
        one = setting.held(name, timed if macros is None else macros, arch, TIMED)
        repairs += [f"{name}: ptxas says {said}" for said in one.build.repairs]
        words = [f"{macro} = {value}" for macro, value in (macros or {}).items()]
        rows.append(
            [
                ", ".join([name, *words]),
                one.report.registers,
                one.shared,
                one.build.spills,
                one.warps,
                one.resident.limited_by,
                len(one.build.ptx.splitlines()),
            ]
        )
    columns.show(
        {
            f"sm_{arch}": f"compiled for GPUs of compute capability {arch / 10:g}",
            **dict.fromkeys(("registers", "shared bytes", "spills", "warps per SM"), ""),
            "limited by": "",
            "PTX lines": "",
        },
        rows,
    )
    for said in repairs:
        print(said)


def checked(*rungs: str, sizes: Sequence[tuple[int, int, int]] | None = None) -> None:
    """Shows for each rung and number format whether it is right on the emulator, at these sizes.

    "of bound" is the largest error as a part of what rounding explains (`kernels.accuracy`). Without
    sizes, those around the edges of its tiles. The setting is the one that the pages time: of all others
    `python -m kernels check` tells.
    """
    _table(_found(rungs, sizes))


def right(*rungs: str, sizes: Sequence[tuple[int, int, int]] | None = None) -> None:
    """What `checked` finds in a line for each rung, where it finds nothing wrong; else its table."""
    found = _found(rungs, sizes)
    if any(row.problem or row.hazards for row in found.values()):
        _table(found)
        return
    for rung in rungs:
        mine = {types: row for (name, types), row in found.items() if name == rung}
        worst = max(row.worst for row in mine.values())
        most = max(row.sizes for row in mine.values())
        print(
            f"{rung}: right at {most} size{'s' * (most > 1)}, in {', '.join(mine)};\n"
            f"  the largest error is {worst:.2f} of what rounding explains; no hazards"
        )


def _found(rungs, sizes) -> dict:
    """{(rung, types): what was found of the setting that the pages time}."""
    found = {}
    for rung in map(kernels.find, rungs):
        arch = max(BOOK_ARCH, rung.min_arch)
        for formats, types in types_of(rung):
            timed = kernels.configuration(rung, TIMED, arch, formats).macros
            found[rung.name, str(types)] = check_setting(rung, timed, "emulator", sizes, arch)
    return found


def _table(found) -> None:
    rows = [
        [*name, row.sizes, f"{row.worst:.2f}", row.hazards, row.problem or "ok"]
        for name, row in found.items()
    ]
    names = ("", "types", "sizes", "of bound", "hazards", "verdict")
    columns.show(dict.fromkeys(names, ""), rows)
