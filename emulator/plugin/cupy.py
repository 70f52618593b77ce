"""The modules that stand for CuPy: `cupy`, `cupy.cuda`, `cupy.testing` and those that its own tests import."""

import contextlib
import os
import types
from pathlib import Path

import numpy as np
import pytest

from . import arrays, nvrtc, raw
from .device import CAPABILITY, MULTIPROCESSORS, Device
from .parts import MODULES, Part
from .streams import Event, GpuDevice, Stream


class Arrays(Part):
    """A module whose other functions are NumPy's, on the host."""

    def __init__(self, name: str, source, **contents):
        super().__init__(name, **contents)
        self._source = source

    def __getattr__(self, name):
        value = None if name.startswith("_") else getattr(self._source, name, None)
        if value is None or isinstance(value, types.ModuleType):
            return super().__getattr__(name)
        return value if isinstance(value, type) or not callable(value) else arrays.wrapped(value)


class DiskKernelCacheBackend:
    def __init__(self, path):
        if type(self) is not DiskKernelCacheBackend:
            Device.refuse("CuPy's cache of compiled kernels")


def run_cc(cmd, cwd, backend, log_stream=None) -> str:
    """What CuPy's tests ask of nvcc: its version, and PTX of a file."""
    if cmd[-1] == "--version":
        return "release {}.{}".format(*nvrtc.version())
    if cmd[0] != "nvcc" or "-ptx" not in cmd:
        Device.refuse(
            f"nvcc {' '.join(w for w in cmd if w in ('-cubin', '--genco'))}: NVRTC stands for it, and makes PTX"
        )
    source = next(word for word in cmd if word.endswith(".cu"))
    made = nvrtc.compiled(Path(source).read_text(encoding="utf-8"), source)[0]
    Path(cmd[cmd.index("-o") + 1]).write_text(made, encoding="utf-8")
    return ""


def _properties(device=0) -> dict:
    return {
        "name": b"emulated GPU", "major": CAPABILITY[0], "minor": CAPABILITY[1], "warpSize": 32,
        "multiProcessorCount": MULTIPROCESSORS, "sharedMemPerBlock": 49152, "sharedMemPerBlockOptin": 232448,
        "maxThreadsPerBlock": 1024, "totalGlobalMem": 1 << 36,
    }  # fmt: skip


def _assertion(name: str):
    function = getattr(np.testing, name)
    return lambda *args, **kwargs: function(*map(arrays.host_of, args[:2]), *args[2:], **kwargs)


def shaped_arange(shape, xp=np, dtype=np.float32, order="C"):
    made = np.arange(1, int(np.prod(shape)) + 1).reshape(shape).astype(dtype, order=order)
    return made if xp is np else arrays.to_device(made)


def shaped_random(shape, xp=None, dtype=np.float32, scale=10, seed=0, order="C"):
    draw, dtype = np.random.RandomState(seed).rand, np.dtype(dtype)
    made = draw(*shape) * scale + (1j * draw(*shape) * scale if dtype.kind == "c" else 0)
    made = np.asarray(draw(*shape) > 0.5 if dtype.kind == "b" else made, order=order).astype(dtype)
    return made if xp is np else arrays.to_device(made)


def _generator(made):
    """`default_rng` and `RandomState`: NumPy's numbers, not cuRAND's."""
    return lambda seed=None: Arrays("cupy.random", made(seed))


def _sampled(shape=None, dtype=float, **kwargs):
    return arrays.to_device(np.atleast_1d(np.random.random(shape)).astype(dtype))


def _integers(low, high=None, size=None):
    ends = (1, low + 1) if high is None else (low, high + 1)
    return arrays.to_device(np.random.randint(*ends, size))


driver = Part("cupy.cuda.driver", CUDADriverError=raw.CUDADriverError, get_build_version=lambda: _runtime_version(),
              _is_cuda_python=lambda: False)  # fmt: skip


def _runtime_version() -> int:
    major, minor = nvrtc.version()
    return major * 1000 + minor * 10


runtime = Part(
    "cupy.cuda.runtime", is_hip=False, getDevice=lambda: 0, getDeviceCount=lambda: 1, runtimeGetVersion=_runtime_version,
    driverGetVersion=_runtime_version, deviceSynchronize=lambda: None, getDeviceProperties=_properties, setDevice=GpuDevice,
    CUDARuntimeError=raw.CUDADriverError,
)  # fmt: skip
compiler = Part(
    "cupy.cuda.compiler", CompileException=nvrtc.CompileError, JitifyException=nvrtc.CompileError, _run_cc=run_cc,
    _get_arch=lambda: "".join(map(str, CAPABILITY)), _kernel_cache_backend=None, _empty_file_preprocess_cache={},
    _get_bool_env_variable=lambda name, default: bool(int(os.environ.get(name) or default)),
)  # fmt: skip
cuda = Part(
    "cupy.cuda", Device=GpuDevice, Stream=Stream, Event=Event, ExternalStream=Stream, runtime=runtime, driver=driver,
    compiler=compiler, alloc=arrays.alloc, MemoryPointer=arrays.MemoryPointer, is_available=lambda: True,
    get_nvcc_path=lambda: "nvcc",
    get_current_stream=lambda device=0: Stream.null, get_elapsed_time=lambda a, b: (b.at - a.at) * 1e3,
    _compiler_cache=Part("cupy.cuda._compiler_cache", DiskKernelCacheBackend=DiskKernelCacheBackend),
    memory=Part("cupy.cuda.memory", alloc=arrays.alloc, MemoryPointer=arrays.MemoryPointer),
    device=Part("cupy.cuda.device", Device=GpuDevice, get_compute_capability=lambda: "".join(map(str, CAPABILITY))),
    stream=Part("cupy.cuda.stream", Stream=Stream, Event=Event, get_current_stream=lambda: Stream.null),
    using_allocator=contextlib.nullcontext,
)  # fmt: skip
testing = Part(
    "cupy.testing", slow=pytest.mark.slow, shaped_arange=shaped_arange, shaped_random=shaped_random,
    gpu=lambda function: function,
    multi_gpu=lambda count: pytest.mark.skipif(count > 1, reason="not emulated: a second GPU"),
    **{name: _assertion(name) for name in dir(np.testing) if name.startswith("assert_a")},
)  # fmt: skip
random = Arrays(
    "cupy.random", np.random, default_rng=_generator(np.random.default_rng), random=_sampled,
    random_integers=_integers, RandomState=_generator(np.random.RandomState),
)  # fmt: skip


class _Pool:
    def free_all_blocks(self, stream=None):
        pass

    used_bytes = total_bytes = n_free_blocks = lambda self: 0


def array_module(*given):
    return root if any(isinstance(one, arrays.ndarray) for one in given) else np


accelerator = Part("cupy._core._accelerator", ACCELERATOR_CUB=1, get_reduction_accelerators=list)
root = Arrays(
    "cupy", np, __version__="14.0.0", ndarray=arrays.ndarray, RawKernel=raw.RawKernel, RawModule=raw.RawModule,
    array=arrays.array, asarray=arrays.asarray, asnumpy=arrays.asnumpy, cuda=cuda, testing=testing, random=random,
    ascontiguousarray=lambda a, dtype=None: arrays.asarray(a, dtype, "C"), get_array_module=array_module,
    get_default_memory_pool=_Pool, get_default_pinned_memory_pool=_Pool, is_available=lambda: True,
    _util=Part("cupy._util", clear_memo=lambda: None),
    _core=Part("cupy._core", _accelerator=accelerator),
)  # fmt: skip
backends = Part("cupy_backends")
MODULES["cupy_backends.cuda.libs.nvrtc"] = Part(
    "cupy_backends.cuda.libs.nvrtc", getVersion=nvrtc.version
)
for _part in (root, backends):
    _part.tree()
