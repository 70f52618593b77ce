"""The setting that was timed: a chapter compiles, counts and dissects this one, and prints it.

A cell says `macros = setting.used("warp_tiled", 4096)` and passes `macros` to `kernels.gemm`,
`kernels.build` and `measure.bench` alike; the line that it prints tells the reader which it is.
"""

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

import kernels
from book.cells import columns
from kernels.build import Build, Report
from kernels.gemm import gemm
from kernels.occupancy import Occupancy, occupancy
from kernels.settings import BOOK_ARCH
from measure.results import recorded

SIZE = 4096
WIDTH = 88


def used(rung: str, size=SIZE, show: bool = True, **formats: int) -> dict[str, int]:
    """All macros of a rung as it was timed at this size on the GPU that the pages show.

    formats: macros that choose number formats, such as HALF_OUTPUT=1. They come from the recorded row
    of that size; where none was recorded, from `kernels.settings` for that GPU's generation.
    """
    found = kernels.find(rung)
    types = found.types(formats)
    macros, source = _recorded(rung, size, types)
    if macros is None:
        chosen = kernels.configuration(rung, size, BOOK_ARCH, formats)
        macros, source = dict(chosen.macros), chosen.source
    if show:
        values = " ".join(f"{name}={value}" for name, value in macros.items()) or "no macros"
        print(textwrap.fill(f"{rung} as timed at {_size(size)}: {values} ({source})", WIDTH))
    return macros


def timed(rung: str, size: int = SIZE, inputs: str = "float32") -> dict[str, int]:
    """The macros with which a rung was timed, as the row has them. LookupError where it was not."""
    rows = recorded().select(rung, size, inputs=inputs)
    if not rows:
        raise LookupError(f"{rung} was not timed at {size} with {inputs}")
    return dict(rows[0]["config"])


def build(rung: str):
    """The rung compiled as it was timed."""
    return kernels.build(rung, timed(rung), arch=90)


def run(rung: str, A, B):
    """`A @ B` on the emulator by the rung as it was timed: a result with its trace."""
    return gemm(rung, A, B, macros=timed(rung), machine="emulator")


def grid(rung: str, size: int) -> tuple[int, int]:
    """(blocks, threads per block) for square matrices of this size."""
    (x, y, z), (a, b, c), _ = kernels.find(rung).geometry(timed(rung, size), size, size, size)
    return x * y * z, a * b * c


@dataclass(frozen=True)
class Held:
    """A rung compiled, and what an SM holds of it: `threads` and `shared` bytes of a block, `resident` the occupancy."""

    build: Build
    report: Report
    threads: int
    shared: int
    resident: Occupancy

    @property
    def warps(self) -> str:
        return f"{self.resident.warps} of {self.resident.max_warps}"


def held(rung: str, macros: Mapping[str, int], arch: int = 90, size: int = SIZE) -> Held:
    """The rung at a setting, for square matrices of this size."""
    found = kernels.find(rung)
    built = kernels.build(found, macros, arch=arch)
    report = built.reports[found.entry]  # a file may hold other kernels too
    _, block, dynamic = found.geometry(macros, size, size, size)
    threads, shared = math.prod(block), report.shared_bytes + dynamic
    resident = occupancy(arch, threads, report.registers, shared)
    return Held(built, report, threads, shared, resident)


def show(*rungs: str) -> None:
    """Shows for each rung the setting that was timed and what the compiler made of it."""
    rows = []
    for name in rungs:
        macros = timed(name)
        one = held(name, macros)
        side = macros.get("BLOCK", 1)
        tile = [macros.get(key, side) for key in ("BM", "BN", "BK")]
        each = [macros.get("TM", 1), macros.get("TN", 1)]
        rows.append(
            [
                name,
                "x".join(map(str, tile)),
                "x".join(map(str, each)),
                one.threads,
                one.report.registers,
                one.build.spills,
                one.warps,
                one.resident.limited_by,
            ]
        )
    columns.show(
        {
            "sm_90": "compiled for GPUs of compute capability 9",
            "block tile": "rows and columns of C per block, and the depth of K per step: BM x BN x BK",
            "thread tile": "outputs per thread: TM x TN",
            "threads": "threads per block",
            **dict.fromkeys(("registers", "spills", "warps per SM", "limited by"), ""),
        },
        rows,
        caption=f"The settings that were timed at {SIZE}; {recorded().label}.",
    )


def _recorded(rung: str, size, types) -> tuple[dict[str, int] | None, str]:
    M, N, K = (size, size, size) if isinstance(size, int) else size
    try:
        recording = recorded()
    except FileNotFoundError:
        return None, ""
    rows = recording.select(rung, m=M, n=N, k=K, inputs=types.inputs, output=types.output)
    known = set(kernels.find(rung).macros)
    if not rows or set(rows[0]["config"]) - known:
        return None, ""
    return kernels.find(rung).resolve(rows[0]["config"]), recording.label_of(rows[:1])


def _size(size) -> str:
    return str(size) if isinstance(size, int) else "x".join(map(str, size))
