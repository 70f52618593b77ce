"""The setting that was timed: a chapter compiles, counts and dissects this one, and prints it.

A cell says `macros = setting.used("warp_tiled", 4096)` and passes `macros` to `kernels.gemm`,
`kernels.build` and `measure.bench` alike; the line that it prints tells the reader which it is.
"""

import textwrap

import kernels
from book.cells import columns
from kernels.gemm import gemm
from kernels.occupancy import occupancy
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


def build(rung: str, arch: int = 90, size: int = SIZE):
    """The rung compiled as it was timed."""
    return kernels.build(rung, timed(rung, size), arch=arch)


def run(rung: str, A, B):
    """`A @ B` on the emulator by the rung as it was timed: a result with its trace."""
    return gemm(rung, A, B, macros=timed(rung), machine="emulator")


def grid(rung: str, size: int) -> tuple[int, int]:
    """(blocks, threads per block) for square matrices of this size."""
    (x, y, z), (a, b, c), _ = kernels.find(rung).geometry(timed(rung, size), size, size, size)
    return x * y * z, a * b * c


def resident(rung: str, arch: int = 90, size: int = SIZE):
    """The occupancy of the rung as it was timed."""
    found, macros = kernels.find(rung), timed(rung, size)
    _, threads, dynamic = found.geometry(macros, size, size, size)
    report = build(rung, arch, size).report
    count = threads[0] * threads[1] * threads[2]
    return occupancy(arch, count, report.registers, report.shared_bytes + dynamic)


def show(*rungs: str, arch: int = 90) -> None:
    """Shows for each rung the setting that was timed and what the compiler made of it."""
    rows = []
    for name in rungs:
        macros, built, held = timed(name), build(name, arch), resident(name, arch)
        side = macros.get("BLOCK", 1)
        tile = [macros.get(key, side) for key in ("BM", "BN", "BK")]
        each = [macros.get("TM", 1), macros.get("TN", 1)]
        rows.append(
            [
                name,
                "x".join(map(str, tile)),
                "x".join(map(str, each)),
                grid(name, SIZE)[1],
                built.report.registers,
                built.spills,
                f"{held.warps} of {held.max_warps}",
                held.limited_by,
            ]
        )
    columns.show(
        {
            f"sm_{arch}": f"compiled for GPUs of compute capability {arch / 10:g}",
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
