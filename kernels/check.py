"""Is a rung right? Random inputs, sizes around every tile edge, alpha and beta, every element
against float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import cpu
from .accuracy import accuracy
from .build import Build, check_arch, normal_arch
from .errors import UnsupportedGPU
from .formats import encode
from .gemm import gemm
from .machine import choose, gpu
from .rungs import RUNGS, Rung, Types, find
from .table import table

SCALARS = ((1.75, 0.0), (-1.25, 0.75))
GPU_SIZES = ((127, 129, 131), (1, 1000, 257), (1000, 1, 999), (509, 1031, 523), (1024, 1024, 1024))


@dataclass(frozen=True)
class Checked:
    """One rung under one setting on one machine, over all sizes. `problem` is empty when all is
    right.
    """

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


def random_inputs(types: Types, M: int, N: int, K: int, seed: int = 0):
    """A `(M, K)`, B `(K, N)`, C `(M, N)`: independent, uniform in [-1, 1), never zero throughout,
    in the rung's dtypes.
    """
    rng = np.random.default_rng((seed, M, N, K))
    formats = (((M, K), types.inputs), ((K, N), types.inputs), ((M, N), types.output))
    return tuple(encode(rng.uniform(-1, 1, shape), name) for shape, name in formats)


def edge_sizes(
    rung: str | Rung, macros: Mapping[str, int] | None = None, arch=None
) -> list[tuple[int, int, int]]:
    """(M, N, K) around the edges of this rung's tiles: single, below, above, prime, tall, flat, and
    several k-steps.
    """
    rung = find(rung)
    values = rung.resolve(macros, arch)
    tile = rung.tile or ("BM", "BN", "BK")
    block = values.get("BLOCK", 16)
    bm, bn, bk = (values.get(t, t if isinstance(t, int) else block) for t in tile)
    steps = values.get("STAGES", 1) + 2
    return [
        (1, 1, 1),
        (17, 19, 23),
        (bm - 1, bn + 1, bk + 1),
        (bm + 1, bn - 1, 2 * bk - 1),
        (2 * bm + 1, 3, steps * bk + 5),
        (3, 2 * bn + 1, steps * bk),
    ]


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
    """`(Accuracy, hazards)` of one run. With beta = 0 the kernel gets a C full of NaN."""
    rung = find(rung)
    types = rung.types(macros)
    A, B, C = random_inputs(types, *size, seed)
    if "gpu" in (machine, rung.machine):
        A, B, C = _to_gpu(A, B, C)
    given = C if beta != 0 else None
    result = gemm(rung, A, B, given, alpha, beta, macros, machine, arch, built)
    hazards = list(result.trace.hazards) if result.trace is not None else []
    return accuracy(result.C, A, B, C, alpha, beta, types), hazards


def check(
    rungs: Iterable[str] | None = None,
    sizes: Sequence[tuple[int, int, int]] | None = None,
    machines: Sequence[str] | None = None,
    arch: int | str | None = None,
    show: bool = True,
) -> list[Checked]:
    """Check rungs (all of them unless named) on the emulator, and on the GPU where there is one.

    Every rung runs at `sizes`, or around the edges of its own tiles; the settings of alpha and beta
    alternate. The error bound is `kernels.accuracy`'s. Prints one table unless `show` is false.
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
            for macros in rung.configurations():
                checked.append(_check_setting(rung, macros, machine, sizes, arch))
                if show:
                    _show(checked, len(checked) == 1)
    return checked


def _check_setting(rung: Rung, macros, machine: str, sizes, arch) -> Checked:
    row = Checked(rung.name, macros, machine, str(rung.types(macros)))
    if rung.machine == "cpu":
        return _check_cpu(replace(row, machine="cpu"), sizes)
    if not rung.exists:
        return replace(row, skipped=True, problem=f"kernels/{rung.file} is not there")
    if rung.machine == "gpu" and machine == "emulator":
        return replace(row, skipped=True, problem="needs a GPU")
    target = arch if machine == "emulator" else normal_arch()
    chosen = list(sizes or edge_sizes(rung, macros, target))
    if machine == "gpu" and not sizes:
        chosen += GPU_SIZES
    for turn, size in enumerate(chosen):
        alpha, beta = SCALARS[turn % len(SCALARS)]
        where = f"{_size(size)} alpha={alpha} beta={beta}"
        row = replace(row, sizes=turn + 1)
        try:
            found, races = check_one(rung, size, macros, alpha, beta, machine, arch)
        except UnsupportedGPU as error:
            return replace(row, skipped=True, problem=str(error))
        except Exception as error:  # a build error, or a fault that the emulator names
            first = str(error).splitlines()[0] if str(error) else ""
            return replace(row, problem=f"{where}: {type(error).__name__}: {first}")
        row = replace(row, worst=max(row.worst, found.of_bound), hazards=row.hazards + len(races))
        if not found.ok or races:
            return replace(row, problem=f"{where}: {races[0] if found.ok else found}")
    return row


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


def _to_gpu(*arrays):
    import cupy

    return tuple(cupy.asarray(a) for a in arrays)


def _show(checked: list[Checked], first: bool) -> None:
    """Print the newest row, and the header before the first: a long check shows how far it is."""
    row = checked[-1]
    setting = ",".join(f"{k}={v}" for k, v in row.macros.items())
    verdict = "skipped" if row.skipped else "ok" if row.ok else "WRONG"
    cells = [
        row.rung,
        setting,
        row.machine,
        row.types,
        row.sizes,
        f"{row.worst:.2f}",
        row.hazards,
        verdict,
        row.problem,
    ]
    widths = {"rung": 16, "setting": 13, "machine": 8, "types": 16, "sizes": 5, "of bound": 8}
    header = [name.ljust(width) for name, width in widths.items()] + ["hazards", "verdict", ""]
    lines = table(header, [cells], left=4).splitlines()
    print("\n".join(lines if first else lines[2:]), flush=True)
