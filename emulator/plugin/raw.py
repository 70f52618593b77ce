"""CuPy's RawKernel and RawModule, launched on the emulator."""

import re
import warnings
from pathlib import Path

import numpy as np

from . import nvrtc
from .arrays import MemoryPointer, ndarray
from .device import Device

HEADER = re.compile(r"#\s*include\s*<cupy/")


class CUDADriverError(RuntimeError):
    """What CuPy raises for an answer of the driver that is no success."""


class RawModule:
    """A module of CUDA source, or of a file of PTX; it is compiled when first used."""

    def __init__(
        self, *, code=None, path=None, options=(), backend="nvrtc", translate_cucomplex=False,
        enable_cooperative_groups=False, name_expressions=None, jitify=None,
    ):  # fmt: skip
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if name_expressions and backend != "nvrtc":
            raise ValueError(
                "only nvrtc supports retrieving the mangled names for the given name expressions"
            )
        if jitify is False:
            words = "The jitify argument is deprecated. Avoid passing jitify=False"
            warnings.warn(words, DeprecationWarning, stacklevel=2)
        if jitify or translate_cucomplex:
            Device.refuse("RawModule with jitify or translate_cucomplex, which rewrite the source")
        self.code, self.file_path, self.options = code, path, tuple(options)
        self.backend, self.name_expressions = backend, tuple(name_expressions or ())
        self.enable_cooperative_groups = enable_cooperative_groups
        self._module, self._names, self._log = None, {}, ""
        self._located = nvrtc.located(code) if isinstance(code, str) else ()

    def __reduce__(self):
        Device.refuse("pickling a module, for another process")

    def compile(self, log_stream=None) -> None:
        self.module  # noqa: B018
        if log_stream is not None:
            log_stream.write(self._log)

    @property
    def module(self):
        if self._module is None:
            ptx = self._file() if self.code is None else self.code
            if self._located:
                ptx, self._names, self._log = nvrtc.compiled(
                    *self._located, self._options(), self.name_expressions
                )
            self._module = Device.load(ptx)
        return self._module

    def _options(self) -> tuple[str, ...]:
        if not HEADER.search(self.code):
            return self.options
        folder = nvrtc.headers_of("cupy-cuda13x", "_core/include")
        return (*self.options, f"-I{folder}", "-DCUPY_USE_NVRTC")

    def _file(self) -> bytes:
        path = Path(self.file_path)
        if not path.exists():
            raise CUDADriverError("CUDA_ERROR_FILE_NOT_FOUND: file not found")
        return path.read_bytes()

    def entry(self, name: str) -> str:
        """The name in PTX. CUDADriverError where there is none."""
        entries = self.module.entries  # the names are known when it is compiled
        if (entry := self._names.get(name, name)) not in entries:
            raise CUDADriverError("CUDA_ERROR_NOT_FOUND: named symbol not found")
        return entry

    def get_function(self, name: str) -> "RawKernel":
        self.entry(name)
        made = RawKernel.__new__(RawKernel)
        made._of(self, name)
        return made

    def get_global(self, name: str) -> MemoryPointer:
        held = ndarray(None, _host=self.module.variable(name))
        return MemoryPointer(Device.memory.address_of(held._host), held)


class RawKernel:
    """A kernel: `kernel(grid, block, args, shared_mem=...)`."""

    def __init__(self, code, name, options=(), backend="nvrtc", translate_cucomplex=False, *,
                 enable_cooperative_groups=False, jitify=None):  # fmt: skip
        self._of(
            RawModule(code=code, options=options, backend=backend, translate_cucomplex=translate_cucomplex,
                      enable_cooperative_groups=enable_cooperative_groups, jitify=jitify), name,
        )  # fmt: skip

    def _of(self, module: RawModule, name: str) -> None:
        self._raw, self.name, self.max_dynamic_shared_size_bytes = module, name, 48 << 10
        self.code, self.options, self.backend = module.code, module.options, module.backend
        self.enable_cooperative_groups = module.enable_cooperative_groups
        self.file_path = module.file_path
        self.preferred_shared_memory_carveout = -1

    def compile(self, log_stream=None) -> None:
        self._raw.compile(log_stream)

    @property
    def kernel(self):
        self._raw.entry(self.name)
        return self

    def __call__(self, grid, block, args, *, shared_mem=0, stream=None) -> None:
        __tracebackhide__ = True
        entry, limit = self._raw.entry(self.name), self.max_dynamic_shared_size_bytes
        if shared_mem > limit:
            raise CUDADriverError(
                f"CUDA_ERROR_INVALID_VALUE: {shared_mem} bytes of dynamic shared memory; the limit is {limit}"
            )
        given = [argument(one) for one in args]
        Device.launch(self._raw.module, entry, grid, block, given, shared_mem,
                      cooperative=self.enable_cooperative_groups)  # fmt: skip

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        Device.refuse(f"RawKernel.{name}: the machine code's, which ptxas makes")


def argument(value):
    """As CuPy passes it. TypeError for what CuPy refuses."""
    if isinstance(value, ndarray):
        return value.data.ptr
    if isinstance(value, MemoryPointer):
        return value.ptr
    if hasattr(value, "__cuda_array_interface__"):
        return value.__cuda_array_interface__["data"][0]
    if value is None:
        return 0
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError(f"Unsupported type {type(value)}")
    return value
