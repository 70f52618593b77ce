"""Runs a build: on the GPU through CuPy, or on the emulator. What cannot run is refused before."""

import hashlib
import math
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from pathlib import Path

import numpy as np

from emulator import TensorMap

from .build import Build, cache_folder, write_whole
from .errors import UnsupportedGPU
from .gpus import choose, gpu
from .tensor_map import encode

# CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
MAX_THREADS = 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
DEFAULT_SHARED = 48 * 1024
PTX_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)")
PTX_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter as the PTX declares it: kind "u", "s", "b" or "f", and its bytes."""

    kind: str
    bytes: int

    def describe(self) -> str:
        if self.bytes == 8:
            return "an array (or a 64-bit NumPy number)"
        return f"a {8 * self.bytes}-bit {'float' if self.kind == 'f' else 'integer'}"


def launch(
    build: Build,
    entry: str | None,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence,
    shared_bytes: int = 0,
    machine: str = "auto",
    merged: Mapping[int, int] | None = None,
    together: bool = False,
):
    """Run one kernel; returns the emulator's Trace, or None from a GPU.

    `args`: NumPy arrays are read and written in place on either machine, CuPy arrays stay on the
    GPU, numbers go by value. `shared_bytes` is dynamic shared memory, `merged` is for the emulator
    (`emulator.Module.launch`), `together` for a GPU: all blocks wait for one another, and are not launched
    where they cannot run at the same time. ValueError or UnsupportedGPU
    before the launch say what was wrong and what would be right.
    """
    machine = choose(machine)
    entry = entry or build.entry
    grid, block = _extent(grid, MAX_GRID, "grid"), _extent(block, MAX_BLOCK, "block")
    if math.prod(block) > MAX_THREADS:
        raise ValueError(f"block {block} has {math.prod(block)} threads: at most {MAX_THREADS}")
    if entry not in build.entries:
        raise ValueError(f"{build.name} has no kernel {entry!r}; it has {', '.join(build.entries)}")
    args = _arguments(build, entry, args)
    if machine == "emulator":
        if any(_on_gpu(a) for a in args):
            raise ValueError("the emulator takes NumPy arrays: convert CuPy arrays with .get()")
        module = loaded(build.ptx)
        return module.launch(entry, grid, block, args, shared_bytes, merged=merged)
    _launch_on_gpu(build, entry, grid, block, args, shared_bytes, together)
    return None


def prepare_on_gpu(
    build: Build,
    entry: str | None,
    grid,
    block,
    args,
    shared_bytes: int = 0,
    early: bool = False,
    together: bool = False,
):
    """A function that launches this kernel on these CuPy arrays and returns at once: for timing.

    With `early`, a launch may begin while the kernel before it in the stream ends: for kernels that wait
    for that one themselves (CUDA C++ Programming Guide, "Programmatic Dependent Launch"). `together` as in `launch`.
    """
    entry = entry or build.entry
    grid, block = _extent(grid, MAX_GRID, "grid"), _extent(block, MAX_BLOCK, "block")
    given = _arguments(build, entry, args)
    encoded = _encoded(given)
    kernel = _kernel(build, entry, shared_bytes)
    if together:
        _check_room(kernel, entry, grid, block, shared_bytes)
    if early:
        launch_it = _early(kernel, grid, block, encoded, shared_bytes)
    else:

        def launch_it():
            kernel(grid, block, encoded, shared_mem=shared_bytes)

    launch_it.given = given  # an array that only a tensor map names lives as long as the function
    return launch_it


def _early(kernel, grid, block, encoded: tuple, shared_bytes: int):
    """A launch through the driver, with the attribute that CuPy has no word for."""
    import cupy
    from cuda.bindings import driver

    values = [np.asarray(a.data.ptr if _on_gpu(a) else a) for a in encoded]
    pointers = np.array([value.ctypes.data for value in values], np.uint64)
    attribute, config = driver.CUlaunchAttribute(), driver.CUlaunchConfig()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes = shared_bytes
    config.attrs, config.numAttrs = [attribute], 1
    function = driver.CUfunction(kernel.kernel.ptr)

    def launch_it(keep=values):
        config.hStream = driver.CUstream(cupy.cuda.get_current_stream().ptr)
        (status,) = driver.cuLaunchKernelEx(config, function, pointers.ctypes.data, 0)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"the driver refuses this launch: {status.name}")

    return launch_it


def parameters(build: Build, entry: str) -> list[Parameter]:
    """What the kernel takes, from its PTX."""
    match = re.search(rf"\.entry\s+{re.escape(entry)}\s*\(([^)]*)\)", build.ptx)
    kinds = PTX_PARAMETER.findall(match[1]) if match else []
    return [Parameter(kind[0], PTX_BYTES.get(kind[1:], 0)) for kind in kinds]


def _extent(values, limits, what) -> tuple[int, int, int]:
    given = [values] if isinstance(values, Integral) else values
    given = [*given] if isinstance(given, Iterable) else [given]
    fits = 1 <= len(given) <= 3 and all(
        isinstance(n, Integral) and 1 <= n <= limit for n, limit in zip(given, limits, strict=False)
    )
    if not fits:
        raise ValueError(f"{what} {values!r}: up to three integers, from 1 to {limits}")
    return (*map(int, given), 1, 1)[:3]


def _arguments(build: Build, entry: str, args: Sequence) -> list:
    expected = parameters(build, entry)
    if expected and len(expected) != len(args):
        raise ValueError(f"{entry} takes {len(expected)} arguments, not {len(args)}")
    return [
        _argument(position, value, expected[position] if expected else None, entry)
        for position, value in enumerate(args)
    ]


def _argument(position: int, value, parameter: Parameter | None, entry: str):
    if isinstance(value, TensorMap):
        return value
    if isinstance(value, int) and not isinstance(value, np.generic):
        value = np.int32(value)
    elif isinstance(value, float) and not isinstance(value, np.generic):
        value = np.float32(value)
    is_array = hasattr(value, "__array_interface__") and not isinstance(value, np.generic)
    is_array = is_array or _on_gpu(value)
    if is_array and not value.flags.c_contiguous:
        raise ValueError(
            f"{entry}, argument {position}: the array is not contiguous; copy it first"
        )
    if parameter is not None and not _fits(value, is_array, parameter):
        given = "an array" if is_array else repr(value)
        raise ValueError(f"{entry}, argument {position}: {given}, needs {parameter.describe()}")
    return value


def _fits(value, is_array: bool, parameter: Parameter) -> bool:
    if is_array:
        return parameter.bytes == 8
    same_kind = (parameter.kind == "f") == (value.dtype.kind == "f")
    return same_kind and parameter.bytes == value.dtype.itemsize


def _encoded(args: Sequence) -> tuple:
    """The arguments as the driver takes them: a tensor map is 128 bytes by value."""
    return tuple(encode(a) if isinstance(a, TensorMap) else a for a in args)


def _on_gpu(value) -> bool:
    return hasattr(value, "__cuda_array_interface__")


@lru_cache(maxsize=16)  # a large kernel decoded takes 15 MB and more
def loaded(ptx: str):
    """The emulator's module of a PTX text: one for all launches, so that its variables live on."""
    import emulator

    return emulator.Module(ptx)


def _launch_on_gpu(
    build: Build, entry: str, grid, block, args, shared_bytes: int, together: bool
) -> None:
    import cupy

    kernel = _kernel(build, entry, shared_bytes)
    if together:
        _check_room(kernel, entry, grid, block, shared_bytes)
    arrays = {i: a for i, a in enumerate(args) if isinstance(a, np.ndarray)}
    copies = {i: cupy.asarray(a) for i, a in arrays.items()}
    given = _encoded([copies.get(i, a) for i, a in enumerate(args)])
    kernel(grid, block, given, shared_mem=shared_bytes)
    for i, array in arrays.items():
        if array.flags.writeable:
            array[...] = copies[i].get()
    if not arrays:
        cupy.cuda.get_current_stream().synchronize()


def _kernel(build: Build, entry: str, shared_bytes: int):
    here = gpu()
    number = int(re.match(r"\d+", build.arch)[0])
    # A cubin runs on its own major version, from its minor version upwards.
    if here.arch // 10 != number // 10 or here.arch < number:
        raise UnsupportedGPU(
            f"{build.name} is built for sm_{build.arch}, this {here.name} is sm_{here.arch}: "
            f"build it with arch={here.arch}"
        )
    total = shared_bytes + build.reports[entry].shared_bytes
    if total > here.shared_per_block:
        raise UnsupportedGPU(
            f"{entry} needs {total} bytes of shared memory per block, this {here.name} has "
            f"{here.shared_per_block}: choose smaller tiles or fewer stages"
        )
    kernel = _loaded(hashlib.sha256(build.cubin).hexdigest(), build.cubin, entry)
    if total > DEFAULT_SHARED:
        kernel.max_dynamic_shared_size_bytes = shared_bytes
    return kernel


def _check_room(kernel, entry: str, grid, block, shared_bytes: int) -> None:
    """UnsupportedGPU where this GPU cannot run all blocks at the same time. (CUDA Driver API: cuOccupancyMaxActiveClusters.)"""
    from cuda.bindings import driver

    function = driver.CUfunction(kernel.kernel.ptr)
    width = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
    cluster, config = driver.CUlaunchAttribute(), driver.CUlaunchConfig()
    cluster.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    size = max(1, driver.cuFuncGetAttribute(width, function)[1])
    cluster.value.clusterDim.x, cluster.value.clusterDim.y, cluster.value.clusterDim.z = size, 1, 1
    config.gridDimX, config.gridDimY, config.gridDimZ = size, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes = shared_bytes
    config.attrs, config.numAttrs = [cluster], 1
    status, room = driver.cuOccupancyMaxActiveClusters(function, config)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(
            f"the driver does not say how many blocks of {entry} run at a time: {status}"
        )
    if math.prod(grid) > room * size:
        raise UnsupportedGPU(
            f"{math.prod(grid)} blocks of {entry} wait for one another, and this {gpu().name} runs {room * size} of "
            f"them at a time (clusters of {size}): give it no more, by BLOCKS"
        )


@lru_cache(maxsize=256)
def _loaded(digest: str, cubin: bytes, entry: str):
    """The kernel on the current device. CuPy loads a cubin from a file only."""
    import cupy

    path = _cubin_folder() / f"{digest}.cubin"
    if not path.exists():
        write_whole(path, cubin)
    return cupy.RawModule(path=str(path)).get_function(entry)


@lru_cache
def _cubin_folder() -> Path:
    folder = cache_folder() / "cubins"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="gemm-ladder-"))
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="gemm-ladder-"))
