"""One call that runs a rung: checks what it is given, pads, launches, crops."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from emulator import TensorMap
from emulator.machine.tensor_map import FORMATS

from .blocks import FORMATS as BLOCK_FORMATS
from .blocks import quantise, tiled
from .build import DEFAULT_ARCH, Build, build, normal_arch
from .errors import UnsupportedGPU
from .gpus import MACHINES, choose
from .launch import launch
from .rung import Rung, Types
from .rungs import find
from .settings import Configuration, configuration

LARGEST_INDEX = 2**31 - 1  # the kernels index with int


@dataclass(frozen=True)
class Plan:
    """How one rung computes one problem: sizes before and after padding, launch geometry, build."""

    rung: Rung
    macros: Mapping[str, int]
    types: Types
    size: tuple[int, int, int]
    padded: tuple[int, int, int]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    build: Build = field(repr=False)
    configuration: Configuration | None = None

    def arguments(self, A, B, C, alpha: float, beta: float) -> list:
        """Kernel arguments for padded arrays."""
        sizes = [np.int32(n) for n in self.padded]
        scales = []
        if self.types.inputs in BLOCK_FORMATS:
            form, boxes = BLOCK_FORMATS[self.types.inputs], self.rung.boxes(**self.macros)
            sides = [quantise(matrix, self.types.inputs) for matrix in (A, B)]
            A, B = (side.codes for side in sides)
            for side, (rows, columns) in zip(sides, (boxes["A"], boxes["B"]), strict=True):
                scales.append(tiled(side.scales, rows, columns // form.block))
                alpha *= side.factor
        *matrices, C = self._matrices(A, B, C)
        return [*matrices, *scales, C, *sizes, np.float32(alpha), np.float32(beta)]

    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Shapes of A, B and C as the kernel reads them."""
        return self.layout(*self.padded)

    def layout(self, M: int, N: int, K: int) -> tuple[tuple[int, int], ...]:
        """Shapes of A, B and C of a problem, in the order that this rung reads them in."""
        a = (K, M) if self.rung.a_major == "M" else (M, K)
        return a, ((N, K) if self.rung.b_major == "K" else (K, N)), (M, N)

    def _matrices(self, A, B, C) -> list:
        """A, B and C as the kernel takes them: pointers, or tensor maps where it copies by TMA."""
        if self.rung.boxes is None:
            return [A, B, C]
        boxes = dict(self.rung.boxes(**self.macros))
        if self.types.inputs in BLOCK_FORMATS:  # of codes, in bytes
            bits = BLOCK_FORMATS[self.types.inputs].bits
            boxes |= {name: (boxes[name][0], boxes[name][1] * bits // 8) for name in "AB"}
        formats = {"A": self.types.inputs, "B": self.types.inputs, "C": self.types.output}
        maps = []
        for name, array in (("A", A), ("B", B), ("C", C)):
            if name in boxes:
                stored = formats[name] if formats[name] in FORMATS else None
                span = boxes[name][1] * array.dtype.itemsize
                maps.append(TensorMap(array, boxes[name], stored, swizzle=span, promotion=256))
        return [*maps, C]


@dataclass(frozen=True)
class Result:
    """What a run gave. `C` is `(M, N)`, NumPy's or CuPy's as A was; `trace` is None from a GPU."""

    C: Any = field(repr=False)
    trace: Any = field(default=None, repr=False)
    plan: Plan | None = field(default=None, repr=False)
    machine: str = "emulator"

    @property
    def build(self) -> Build | None:
        """The compiled kernel, None for a rung written in Python."""
        return self.plan.build if self.plan else None


def plan(
    rung: str | Rung,
    M: int,
    N: int,
    K: int,
    macros: Mapping[str, int] | None = None,
    arch: int | str | None = None,
    built: Build | None = None,
    defaults: bool = False,
) -> Plan:
    """Geometry and build for one problem, at the configuration that `kernels.settings` names for its
    size (`macros` and `defaults` as there). `built` replaces the rung's own build (a wrong variant,
    say), which has the row's defaults where no macros are given.
    """
    rung = find(rung)
    arch = normal_arch(arch)
    if min(M, N, K) < 1:
        raise ValueError(f"M, N, K = {M}, {N}, {K}: each must be at least 1")
    chosen = configuration(rung, (M, N, K), arch, macros, defaults or built is not None)
    values = dict(chosen.macros)
    rung.check_needs(values)
    padded = tuple(-(-n // p) * p for n, p in zip((M, N, K), rung.padding(values), strict=True))
    Mp, Np, Kp = padded
    if max(Mp * Kp, Kp * Np, Mp * Np) > LARGEST_INDEX:
        raise ValueError(
            f"M, N, K = {M}, {N}, {K}: a matrix has more than {LARGEST_INDEX} elements"
        )
    if built is None:
        if not rung.runs_on(arch):
            newer = "" if rung.max_arch == rung.min_arch else " or newer"
            raise UnsupportedGPU(f"{rung.name} needs sm_{rung.min_arch}{newer}, this is sm_{arch}")
        built = build(rung, values, arch)
    geometry = rung.geometry(values, *padded)
    return Plan(rung, values, rung.types(values), (M, N, K), padded, *geometry, built, chosen)


def gemm(
    rung: str | Rung,
    A,
    B,
    C=None,
    alpha: float = 1.0,
    beta: float = 0.0,
    macros: Mapping[str, int] | None = None,
    machine: str = "auto",
    arch: int | str | None = None,
    built: Build | None = None,
    defaults: bool = False,
    merged: Mapping[int, int] | None = None,
) -> Result:
    """`alpha * A @ B + beta * C` by one rung of the ladder; C itself is left as it is.

    A is `(M, K)`, B `(K, N)`, C `(M, N)`, row-major, any M, N, K >= 1, in the rung's dtypes. A rung
    that needs whole tiles works on zero-padded copies, one that reads A M-major on a transposed
    copy. It runs at the configuration that `kernels.settings` names for this size, unless `macros`
    are given or `defaults` asks for the row's own: `result.plan.configuration` says which and why.
    On the emulator the kernel is compiled for `arch`, unless given sm_80 or the rung's oldest; `merged` says which of its
    loads are one in machine code (`emulator.Module.launch`). ValueError says which
    shape or dtype is wrong and what would be right, UnsupportedGPU which GPU the rung needs.
    """
    rung = find(rung)
    if macros is not None and not isinstance(macros, Mapping):
        raise TypeError(f"macros is a mapping, as in {{'BM': 64}}, not {macros!r}")
    if machine not in MACHINES:
        raise ValueError(f"no machine {machine!r}: choose auto, gpu or emulator")
    rung.resolve(macros)
    types = rung.types(macros)
    alpha, beta = _factor("alpha", alpha), _factor("beta", beta)
    M, N, K = _check(rung, types, A, B, C, beta)
    if rung.machine == "cpu":
        from . import cpu

        return Result(cpu.blas(A, B, C, alpha, beta), machine="cpu")
    if rung.machine == "gpu":
        from . import cublas

        return Result(_like(A, cublas.gemm(A, B, C, alpha, beta)), machine="gpu")
    if machine == "auto" and hasattr(A, "__cuda_array_interface__"):
        machine = "gpu"
    machine = choose(machine)
    if arch is None and machine == "emulator":
        arch = arch_on_emulator(rung)
    how = plan(rung, M, N, K, macros, arch, built, defaults)
    given = A
    xp, A, B, C = _at(machine, A, B, C)
    Mp, Np, Kp = how.padded
    a = _pad(xp, A, Mp, Kp)
    if rung.a_major == "M":
        a = xp.ascontiguousarray(a.T)
    b = _pad(xp, B, Kp, Np)
    if rung.b_major == "K":
        b = xp.ascontiguousarray(b.T)
    poison = C if beta != 0 else _poison(xp, (M, N), types)
    c = _pad(xp, poison, Mp, Np, copy=True)  # an element that the kernel leaves out is seen
    trace = launch(
        how.build, rung.entry, how.grid, how.block, how.arguments(a, b, c, alpha, beta),
        how.shared_bytes, machine, merged, rung.together(**how.macros),
    )  # fmt: skip
    return Result(_like(given, c[:M, :N]), trace, how, machine)


def arch_on_emulator(rung: str | Rung, arch: int | str | None = None) -> int | str:
    """What a rung is compiled for on the emulator: `arch`, else sm_80 (or $GEMM_ARCH), or the oldest that it is about."""
    rung = find(rung)
    return arch or max(DEFAULT_ARCH, rung.min_arch, rung.counted_on)


def _factor(name: str, value) -> float:
    """alpha or beta. TypeError for what is no number, ValueError for what float32 cannot hold."""
    if np.ndim(value) or isinstance(value, str | bytes | complex | np.complexfloating):
        raise TypeError(f"{name} is one real number, not {value!r}")
    try:
        number = float(value)
    except (TypeError, OverflowError):
        raise TypeError(f"{name} is one real number, not {value!r}") from None
    if np.isfinite(number) and abs(number) > float(np.finfo(np.float32).max):
        raise ValueError(f"{name} = {number:g} does not fit float32")
    return number


def _check(rung: Rung, types: Types, A, B, C, beta: float) -> tuple[int, int, int]:
    for name, array in (("A", A), ("B", B), ("C", C)):
        if array is None and name == "C":
            continue
        plain = not isinstance(array, np.ma.MaskedArray | np.matrix)
        if not (plain and hasattr(array, "__array_function__")):
            kind = type(array).__name__
            raise TypeError(f"{name} is a NumPy or CuPy array, plain and unmasked, not {kind}")
    if A.ndim != 2 or B.ndim != 2 or A.shape[1] != B.shape[0] or 0 in (*A.shape, *B.shape):
        raise ValueError(
            f"A {A.shape} @ B {B.shape}: shapes must be (M, K) and (K, N), all at least 1"
        )
    M, K, N = *A.shape, B.shape[1]
    # The rungs in Python take what their library takes.
    if rung.machine == "any":
        for name, array in (("A", A), ("B", B)):
            if array.dtype != types.input_dtype:
                raise ValueError(f"{rung.name} takes {_accepted(rung)}; {name} is {array.dtype}")
    if C is None and beta != 0:
        raise ValueError(f"beta = {beta} needs C, of shape {(M, N)}")
    if C is not None and C.shape != (M, N):
        raise ValueError(f"C has shape {C.shape}; A @ B has {(M, N)}")
    if rung.machine == "any" and C is not None and C.dtype != types.output_dtype:
        raise ValueError(
            f"{rung.name} writes {types.output_dtype} under these macros; C is {C.dtype}"
        )
    return M, N, K


def _accepted(rung: Rung) -> str:
    choices = [rung.types().input_dtype]
    for setting in rung.configurations()[1:]:
        dtype = rung.types(setting).input_dtype
        if dtype not in choices[0]:
            choices.append(f"{dtype} with macros={setting}")
    return ", or ".join(choices)


def _at(machine: str, *arrays):
    """NumPy arrays for the emulator, CuPy arrays for the GPU."""
    if machine == "emulator":
        if any(hasattr(a, "__cuda_array_interface__") for a in arrays):
            raise ValueError("the emulator takes NumPy arrays: convert CuPy arrays with .get()")
        return np, *arrays
    import cupy

    return cupy, *(None if a is None else cupy.asarray(a) for a in arrays)


def _like(given, result):
    """The result as NumPy where NumPy was given."""
    if isinstance(given, np.ndarray) and not isinstance(result, np.ndarray):
        return result.get()
    return result


def _poison(xp, shape: tuple[int, int], types: Types):
    """What C holds before a kernel that must not read it: NaN in every format."""
    if types.output_dtype.startswith("float"):
        return xp.full(shape, np.nan, types.output_dtype)
    return xp.full(shape, -1, np.int64).astype(types.output_dtype)  # all bits set


def _pad(xp, array, rows: int, cols: int, copy: bool = False):
    fits = array.shape == (rows, cols) and array.flags.c_contiguous
    if fits and getattr(array.flags, "writeable", True):  # the emulator takes no read-only buffers
        return array.copy() if copy else array
    padded = xp.zeros((rows, cols), array.dtype)
    padded[: array.shape[0], : array.shape[1]] = array
    return padded
