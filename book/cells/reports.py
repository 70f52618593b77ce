"""What the compiler and the checker say of rungs, as tables that fit a page."""

from collections.abc import Mapping, Sequence

import kernels
from book.cells import columns, setting
from kernels.check import check, check_setting
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
    sizes, those around the edges of the rung's own tiles. Beside the row's settings runs the one that the pages time: of the
    others that a search has found `python -m kernels check` tells.
    """
    _table(_found(rungs, sizes))


def right(*rungs: str, sizes: Sequence[tuple[int, int, int]] | None = None) -> None:
    """What `checked` finds in a line for each rung, where it finds nothing wrong; else its table."""
    found = _found(rungs, sizes)
    if any(row.problem or row.hazards for same in found.values() for row in same):
        _table(found)
        return
    for rung in rungs:
        mine = {types: same for (name, types), same in found.items() if name == rung}
        worst = max(row.worst for same in mine.values() for row in same)
        most = max(row.sizes for same in mine.values() for row in same)
        print(
            f"{rung}: right at {most} size{'s' * (most > 1)}, in {', '.join(mine)};\n"
            f"  the largest error is {worst:.2f} of what rounding explains; no hazards"
        )


def _found(rungs, sizes) -> dict:
    """{(rung, types): rows}: several settings of one format, the timed one among them, share a line."""
    found = {}
    for row in check(rungs, sizes, machines=("emulator",), show=False, defaults=True):
        found.setdefault((row.rung, row.types), []).append(row)
    for rung in map(kernels.find, rungs):
        for formats, types in types_of(rung):
            arch, rows = max(BOOK_ARCH, rung.min_arch), found[rung.name, str(types)]
            timed = kernels.configuration(rung, TIMED, arch, formats).macros
            if timed not in [rung.resolve(row.macros) for row in rows]:
                rows.append(check_setting(rung, timed, "emulator", sizes, arch))
    return found


def _table(found) -> None:
    rows = [
        [
            *name,
            max(row.sizes for row in same),
            f"{max(row.worst for row in same):.2f}",
            sum(row.hazards for row in same),
            next((row.problem for row in same if row.problem), "ok"),
        ]
        for name, same in found.items()
    ]
    names = ("", "types", "sizes", "of bound", "hazards", "verdict")
    columns.show(dict.fromkeys(names, ""), rows)
