"""Is a rung right? Random inputs, sizes around every tile edge, alpha and beta, every element
against float64; every configuration that a search has found; the loop of a persistent kernel over
several tiles per block. And does it keep its promises: the wavefronts and sectors that its row names,
and no spills? A broken swizzle gives right results.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import cpu
from .accuracy import accuracy
from .build import Build, check_arch, normal_arch
from .errors import UnsupportedGPU
from .formats import encode
from .gemm import arch_on_emulator, gemm
from .gpus import choose, gpu
from .launch import loaded
from .rung import Rung, Types
from .rungs import RUNGS, find
from .settings import searched
from .table import table

SCALARS = ((1.75, 0.0), (-1.25, 0.75))
TILES_PER_BLOCK = 3  # at least, so that a persistent kernel goes round
SAMPLED = 64  # rows and columns of a matrix that is too large to compare whole
GPU_SIZES = ((127, 129, 131), (1, 1000, 257), (1000, 1, 999), (509, 1031, 523), (1024, 1024, 1024))


@dataclass(frozen=True)
class Checked:
    """One rung under one setting on one machine, over all sizes; without a `problem` all is right."""

    rung: str
    macros: Mapping[str, int]
    machine: str
    types: str
    sizes: int = 0
    worst: float = 0.0
    hazards: int = 0
    problem: str = ""
    skipped: bool = False

    @property
    def ok(self) -> bool:
        return not self.problem or self.skipped


@dataclass(frozen=True)
class NotSetBack:
    """A module variable in which a kernel counts, and which its next launch finds as this one left it."""

    name: str
    kind = "not-set-back"

    def __str__(self) -> str:
        return f"{self.name} is not as it was before the launch: the next one goes on counting from there"


def random_inputs(types: Types, M: int, N: int, K: int, seed: int = 0):
    """A `(M, K)`, B `(K, N)`, C `(M, N)`: independent, uniform in [-1, 1), in the rung's dtypes."""
    rng = np.random.default_rng((seed, M, N, K))
    formats = (((M, K), types.inputs), ((K, N), types.inputs), ((M, N), types.output))
    return tuple(encode(rng.uniform(-1, 1, shape), name) for shape, name in formats)


def edge_sizes(
    rung: str | Rung, macros: Mapping[str, int] | None = None, arch=None
) -> list[tuple[int, int, int]]:
    """(M, N, K) around the edges of this rung's tiles, the last two of several k-steps."""
    rung = find(rung)
    values = rung.resolve(macros, arch)
    bm, bn, bk = _tile(rung, values)
    steps = (values.get("STAGES", 1) + 2) * max(1, values.get("SPLIT", 1))  # of each block
    return [
        (1, 1, 1),
        (17, 19, 23),
        (bm - 1, bn + 1, bk + 1),
        (bm + 1, bn - 1, 2 * bk - 1),
        (2 * bm + 1, 3, steps * bk + 5),
        (3, 2 * bn + 1, steps * bk),
    ]


def persistent_case(
    rung: str | Rung, macros: Mapping[str, int] | None = None, arch=None
) -> tuple[dict[str, int], list[tuple[int, int, int]]] | None:
    """`(macros, sizes)` in which every block of a persistent kernel (one with a macro BLOCKS) walks
    three tiles and more, of more and of fewer k-steps than it has stages; None for other kernels.
    """
    rung = find(rung)
    values = rung.resolve(macros, arch)
    if "BLOCKS" not in values:
        return None
    bm, bn, bk = _tile(rung, values)
    cluster = [values.get(name, 1) for name in ("CLUSTER", "CLUSTER_M", "CLUSTER_N")]
    several = 2
    if "SPLIT" in values:
        values["SPLIT"] = 0  # stream-K: the setting in which blocks stay
        several = 3  # and share tiles, since their number does not divide that of all k-steps
    values["BLOCKS"] = blocks = several * math.prod(cluster)
    if "GROUP" in values:
        values["GROUP"] = 2  # so that few tiles make several groups
    rows = -(-TILES_PER_BLOCK * blocks // 2) + several - 1
    steps = values.get("STAGES", 2) + several - 1
    return values, [(rows * bm - 7, 2 * bn - 8, bk + 8), (bm + 1, (rows + 1) * bn, steps * bk - 8)]


def broken_promises(
    rung: str | Rung,
    macros: Mapping[str, int] | None = None,
    arch: int | str | None = None,
    built: Build | None = None,
) -> list[str]:
    """What a rung does worse than its row promises, in words: spilled bytes, wavefronts per
    execution, sectors per request. Counted on the emulator, over one block's whole tiles.
    """
    rung = find(rung)
    values = rung.resolve(macros, arch_on_emulator(rung, arch))
    bm, bn, bk = _tile(rung, values)
    A, B, _ = random_inputs(rung.types(values), bm, bn, 2 * bk)
    result = gemm(rung, A, B, macros=values, machine="emulator", arch=arch, built=built)
    spilled = result.build.spills
    broken = [f"{spilled} bytes spilled per thread, none promised"] if spilled else []
    for promise in rung.promises(**values):
        ran = (row for row in result.trace.instructions if row.warps)
        rows = [row for row in ran if re.match(promise.opcode, row.opcode)]
        for per, most, count, times in (
            ("wavefronts per execution", promise.wavefronts, "shared_wavefronts", "warps"),
            ("sectors per request", promise.sectors, "global_sectors", "global_requests"),
        ):
            total = sum(getattr(row, times) for row in rows)
            if most is None or not total:
                continue
            found = sum(getattr(row, count) for row in rows) / total
            if found > most * (1 + 1e-9):
                worst = max(rows, key=lambda row: getattr(row, count) / max(1, getattr(row, times)))
                at = worst.frames[-1] if worst.frames else worst.source  # in the rung's own file
                where = f" ({':'.join(map(str, at))})" if at else ""
                broken.append(f"{worst.opcode}{where}: {found:.4g} {per}, {most:g} promised")
    return broken


def _tile(rung: Rung, values: Mapping[str, int]) -> tuple[int, int, int]:
    """The tile's extents along M, N and K: of a kernel that copies by TMA, a k-step is as wide as a copy of A."""
    named = rung.tile or ("BM", "BN", "BK")
    bm, bn, bk = (
        name if isinstance(name, int) else values.get(name, values.get("BLOCK", 16))
        for name in named
    )
    return (values.get("BM", 128), bn, rung.boxes(**values)["A"][1]) if rung.boxes else (bm, bn, bk)


def check_one(
    rung: str | Rung,
    size: tuple[int, int, int],
    macros: Mapping[str, int] | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    machine: str = "emulator",
    arch: int | str | None = None,
    built: Build | None = None,
    seed: int = 0,
):
    """`(Accuracy, hazards)` of one run; a count that the kernel leaves behind is a hazard too. With beta = 0 the kernel
    gets a C full of NaN.
    """
    rung = find(rung)
    types = rung.types(macros)
    A, B, C = random_inputs(types, *size, seed)
    if "gpu" in (machine, rung.machine):
        import cupy

        A, B, C = map(cupy.asarray, (A, B, C))
    given = C if beta != 0 else None
    result = gemm(rung, A, B, given, alpha, beta, macros, machine, arch, built)
    hazards = list(result.trace.hazards) if result.trace is not None else []
    if result.trace is not None:
        hazards += map(NotSetBack, loaded(result.build.ptx).not_set_back(rung.entry))
    return accuracy(result.C, A, B, C, alpha, beta, types), hazards


def check(
    rungs: Iterable[str] | None = None,
    sizes: Sequence[tuple[int, int, int]] | None = None,
    machines: Sequence[str] | None = None,
    arch: int | str | None = None,
    show: bool = True,
    defaults: bool = False,
    large: bool = False,
) -> list[Checked]:
    """Check rungs (all of them unless named) on the emulator, and on the GPU where there is one.

    Every rung runs at `sizes`, or around the edges of its own tiles; the settings of alpha and beta
    alternate. Besides the row's configurations, those that it names for this (`Rung.checked`) and those that searches
    have found are checked (the last unless `defaults`), a persistent kernel's loop, and the row's promises. All sizes of
    a setting are launches in a row of one module, with what its variables then hold. `large` adds, on a GPU, matrices
    of nearly 2^31 elements. The error bound is `kernels.accuracy`'s. Prints one table unless `show`
    is false.
    """
    machines = machines or (("emulator", "gpu") if gpu() else ("emulator",))
    for machine in machines:
        choose(machine)
    if arch is not None:
        check_arch(normal_arch(arch))
    if wrong := [_size(size) for size in sizes or () if min(size) < 1]:
        raise ValueError(f"size {', '.join(wrong)}: M, N and K are at least 1")
    checked = []
    for name in rungs or RUNGS:
        rung = find(name)
        for machine in machines:
            for case in _cases(rung, machine, sizes, arch, defaults, large):
                checked.append(check_setting(rung, *case))
                if show:
                    _show(checked, len(checked) == 1)
    return checked


def _cases(rung: Rung, machine: str, sizes, arch, defaults: bool, large: bool):
    """What is checked of a rung on a machine: `(macros, machine, sizes, arch)` each."""
    for macros in rung.configurations():
        yield macros, machine, sizes, arch
    if rung.machine != "any":
        return
    target = arch_on_emulator(rung, arch) if machine == "emulator" else normal_arch()
    persistent = persistent_case(rung, None, target)
    if persistent and not sizes:
        yield persistent[0], machine, persistent[1], arch
    for macros in rung.checked:
        yield macros, machine, sizes or edge_sizes(rung, macros, target)[2:], arch
        again = persistent_case(rung, macros, target)
        if again and "SPLIT" not in again[0] and not sizes:
            yield again[0], machine, again[1], arch
    found = [] if defaults else searched(rung, arch if machine == "emulator" else target)
    for macros, its in found:
        if macros != rung.resolve(None, its):  # two launches in a row, the second with beta
            yield macros, machine, sizes or edge_sizes(rung, macros, its)[2:4], its
            if (again := persistent_case(rung, macros, its)) and not sizes:
                yield again[0], machine, again[1][:1], its
    if large and machine == "gpu":
        yield {}, "gpu", LARGE_SIZES, arch


# Nearly 2^31 elements in C, in A and in B: byte offsets pass 2^32, and products of indices come near
# the end of int.
LARGE_SIZES = ((46336, 46336, 64), (46336, 64, 46336), (64, 46336, 46336))


def check_setting(rung: Rung, macros, machine: str, sizes, arch) -> Checked:
    """What `check` finds of one setting; without sizes, around the edges of its tiles."""
    row = Checked(rung.name, macros, machine, str(rung.types(macros)))
    if rung.machine == "cpu":
        return _check_cpu(replace(row, machine="cpu"), sizes)
    if rung.machine == "gpu" and machine == "emulator":
        return replace(row, skipped=True, problem="needs a GPU")
    target = arch_on_emulator(rung, arch) if machine == "emulator" else normal_arch()
    chosen = list(sizes or edge_sizes(rung, macros, target))
    # Or `gemm` would take what a search has found for each size.
    setting = rung.resolve(macros, target)
    if machine == "gpu" and not sizes:
        chosen += GPU_SIZES
    for turn, size in enumerate(chosen):
        alpha, beta = SCALARS[turn % len(SCALARS)]
        where = f"{_size(size)} alpha={alpha} beta={beta}"
        row = replace(row, sizes=turn + 1)
        try:
            if size in LARGE_SIZES and machine == "gpu":
                found, races = check_sampled(rung, size, macros, alpha, beta), []
            else:
                found, races = check_one(rung, size, setting, alpha, beta, machine, arch)
        except UnsupportedGPU as error:
            return replace(row, skipped=True, problem=str(error))
        except Exception as error:  # a build error, or a fault that the emulator names
            return replace(row, problem=f"{where}: {_in_a_line(error)}")
        row = replace(row, worst=max(row.worst, found.of_bound), hazards=row.hazards + len(races))
        if not found.ok or races:
            return replace(row, problem=f"{where}: {races[0] if found.ok else found}")
    if machine == "emulator":
        try:
            broken = broken_promises(rung, macros, arch)
        except Exception as error:
            broken = [f"whole tiles: {_in_a_line(error)}"]
        return replace(row, problem="; ".join(broken))
    return row


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def check_sampled(
    rung: str | Rung, size: tuple[int, int, int], macros=None, alpha: float = 1.0, beta: float = 0.0
):
    """`Accuracy` of `SAMPLED` rows and columns, the first and last among them, of a product on the
    GPU whose matrices are too large to compare whole. UnsupportedGPU where they do not fit.
    """
    import cupy

    rung = find(rung)
    types = rung.types(macros)
    M, N, K = size
    formats = (((M, K), types.inputs), ((K, N), types.inputs), ((M, N), types.output))
    needed = 3 * sum(4 * rows * cols for (rows, cols), _ in formats)
    if cupy.cuda.runtime.memGetInfo()[0] < needed:
        raise UnsupportedGPU(f"{_size(size)} needs {needed >> 30} GiB of GPU memory")
    rng = cupy.random.default_rng(0)
    A, B, C = (
        encode(2 * rng.random(shape, dtype=cupy.float32) - 1, name) for shape, name in formats
    )
    result = gemm(rung, A, B, C if beta else None, alpha, beta, macros, "gpu").C
    draw = np.random.default_rng(1)
    rows, cols = (
        cupy.asarray(np.unique(np.r_[0, n - 1, draw.integers(0, n, SAMPLED)])) for n in (M, N)
    )
    part = cupy.ix_(rows, cols)
    return accuracy(result[part], A[rows], B[:, cols], C[part], alpha, beta, types)


def _check_cpu(row: Checked, sizes) -> Checked:
    for turn, size in enumerate(sizes or ((1, 1, 1), (17, 19, 23), (5, 64, 31))):
        alpha, beta = SCALARS[turn % len(SCALARS)]
        A, B, C = random_inputs(Types(), *size)
        row = replace(row, sizes=turn + 1)
        for way in (cpu.triple_loop, cpu.threads, cpu.blas):
            found = accuracy(way(A, B, C, alpha, beta), A, B, C, alpha, beta, Types())
            row = replace(row, worst=max(row.worst, found.of_bound))
            if not found.ok:
                return replace(row, problem=f"{way.__name__} {_size(size)}: {found}")
    return row


def _size(size) -> str:
    return "x".join(map(str, size))


def _show(checked: list[Checked], first: bool) -> None:
    """Print the newest row, and the header before the first: a long check shows how far it is."""
    row = checked[-1]
    setting = ",".join(f"{k}={v}" for k, v in row.macros.items())
    verdict = "skipped" if row.skipped else "ok" if row.ok else "WRONG"
    cells = [row.rung, setting, row.machine, row.types, row.sizes]
    cells += [f"{row.worst:.2f}", row.hazards, verdict, row.problem]
    widths = {"rung": 16, "setting": 13, "machine": 8, "types": 16, "sizes": 5, "of bound": 8}
    header = [name.ljust(width) for name, width in widths.items()] + ["hazards", "verdict", ""]
    lines = table(header, [cells], left=4).splitlines()
    print("\n".join(lines if first else lines[2:]), flush=True)
