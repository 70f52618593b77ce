"""The configuration that was timed: a chapter compiles, counts and dissects this one, and prints it."""

import kernels
from book.cells import columns
from kernels.gemm import gemm
from kernels.occupancy import occupancy
from measure.results import recorded

SIZE = 4096


def setting(rung: str, size: int = SIZE, inputs: str = "float32") -> dict[str, int]:
    """The macros with which a rung was timed. LookupError where it was not."""
    rows = recorded().select(rung, size, inputs=inputs)
    if not rows:
        raise LookupError(f"{rung} was not timed at {size} with {inputs}")
    return dict(rows[0]["config"])


def build(rung: str, arch: int = 90, size: int = SIZE):
    """The rung compiled as it was timed."""
    return kernels.build(rung, setting(rung, size), arch=arch)


def run(rung: str, A, B):
    """`A @ B` on the emulator by the rung as it was timed: a result with its trace."""
    return gemm(rung, A, B, macros=setting(rung), machine="emulator")


def grid(rung: str, size: int) -> tuple[int, int]:
    """(blocks, threads per block) for square matrices of this size."""
    (x, y, z), (a, b, c), _ = kernels.find(rung).geometry(setting(rung, size), size, size, size)
    return x * y * z, a * b * c


def resident(rung: str, arch: int = 90, size: int = SIZE):
    """The occupancy of the rung as it was timed."""
    found, macros = kernels.find(rung), setting(rung, size)
    _, threads, dynamic = found.geometry(macros, size, size, size)
    report = build(rung, arch, size).report
    count = threads[0] * threads[1] * threads[2]
    return occupancy(arch, count, report.registers, report.shared_bytes + dynamic)


def show(*rungs: str, arch: int = 90) -> None:
    """Shows for each rung the setting that was timed and what the compiler made of it."""
    rows = []
    for name in rungs:
        macros, built, held = setting(name), build(name, arch), resident(name, arch)
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
