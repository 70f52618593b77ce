"""The modules that stand for `cuda.core`: programs, kernels, launches, buffers; and what Numba asks of them."""

import ctypes
import types
from functools import partial

import numpy as np

from . import nvrtc
from .device import CAPABILITY, MULTIPROCESSORS, Device
from .parts import Part, Partial
from .streams import Event, Scope, Stream


class Options(types.SimpleNamespace):
    """Options by name; those that are not given are None."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class ProgramOptions(Options):
    def words(self) -> tuple[str, ...]:
        """As NVRTC takes them. What only changes speed, or how much is said, is left out."""
        given = self.define_macro
        macros = [given] if isinstance(given, str | tuple) else given
        named = [one if isinstance(one, str) else f"{one[0]}={one[1]}" for one in macros or ()]
        folders = [self.include_path] if isinstance(self.include_path, str) else self.include_path
        words = [f"-D{one}" for one in named] + [f"-I{one}" for one in folders or ()]
        words += [f"-std={self.std}"] if self.std else []
        words += ["-rdc=true"] if self.relocatable_device_code else []
        words += ["-use_fast_math"] if self.use_fast_math else []
        for name in ("ftz", "prec_sqrt", "prec_div", "fmad"):
            if getattr(self, name) is not None:
                words.append(f"--{name.replace('_', '-')}={str(bool(getattr(self, name))).lower()}")
        return tuple(words)


class ObjectCode(Partial):
    """Code of some kind. Of PTX it has kernels."""

    def __init__(self, code, kind: str, name: str = "", symbol_mapping=None):
        self.code, self.code_type, self.name = code, kind, name
        self.symbol_mapping = symbol_mapping or {}
        self._module = None

    @property
    def module(self):
        if self._module is None:
            if self.code_type not in ("ptx", "cubin"):  # of what Linker made, it says cubin
                Device.refuse(f"loading of {self.code_type}")
            self._module = Device.load(self.code)
            LOADED[id(self)] = self._module
        return self._module

    @property
    def handle(self) -> int:
        self.module  # noqa: B018
        return id(self)

    def get_kernel(self, name) -> "Kernel":
        name = name.decode() if isinstance(name, bytes) else name
        entry = self.symbol_mapping.get(name, name)
        entry = entry.decode() if isinstance(entry, bytes) else entry
        if entry not in self.module.entries:
            raise RuntimeError(f"CUDA_ERROR_NOT_FOUND: named symbol not found: {entry}")
        return Kernel(self, entry)


for _kind in ("ptx", "cubin", "ltoir", "fatbin", "object", "library"):
    setattr(ObjectCode, f"from_{_kind}", staticmethod(partial(ObjectCode, kind=_kind)))
KERNELS: dict = {}  # by handle
LOADED: dict = {}  # handle of an ObjectCode -> its module


class Unknown:
    """What ptxas alone knows: the test that looks at it is skipped."""

    def __init__(self, what: str):
        self._what = what

    def _refuse(self, *args):
        Device.refuse(f"{self._what}: the machine code's, which ptxas makes")

    __int__ = __index__ = __float__ = __bool__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = (
        __add__
    ) = __radd__ = _refuse
    __mul__ = __rmul__ = __sub__ = __mod__ = __floordiv__ = __str__ = __format__ = _refuse
    __hash__ = None


class Kernel(Partial):
    def __init__(self, held: ObjectCode, entry: str):
        self.held, self.name, self.handle = held, entry, id(self)
        KERNELS[self.handle] = self

    @property
    def attributes(self):
        code = Device.code(self.held.module, self.name)
        return types.SimpleNamespace(
            num_regs=Unknown("registers"), const_size_bytes=Unknown("constant bytes"), local_size_bytes=Unknown("local bytes"),
            shared_size_bytes=code.shared_static, max_threads_per_block=1024,
        )  # fmt: skip

    @property
    def num_arguments(self) -> int:
        return len(Device.code(self.held.module, self.name).params)


class Program(Partial):
    """A source; `compile` makes PTX of it."""

    def __init__(self, code, code_type: str, options=None):
        self.options = options or ProgramOptions()
        self.code_type = code_type.lower()
        if self.code_type not in ("c++", "ptx"):
            Device.refuse(f"Program of {code_type}")
        self._located = (code, "") if self.code_type == "ptx" else nvrtc.located(code)
        self.backend = "NVRTC"

    def compile(self, target_type: str, name_expressions=(), logs=None) -> ObjectCode:
        if self.code_type == "ptx":
            return ObjectCode(self._located[0], "ptx")
        kind = "ltoir" if target_type == "ltoir" else "ptx"
        made, names, log = nvrtc.compiled(
            *self._located, self.options.words(), tuple(name_expressions), kind
        )
        if logs is not None and log:
            logs.write(log)
        code = made if kind == "ltoir" else made.encode()
        return ObjectCode(code, target_type, self.options.name or "", names)

    def close(self) -> None:
        pass


class Linker(Partial):
    """Links LTO-IR by nvJitLink, which needs no GPU, and gives PTX whatever it is asked for."""

    def __init__(self, *codes: ObjectCode, options=None):
        # cudadevrt has machine code alone.
        self.codes = [one for one in codes if "cudadevrt" not in (one.name or "")]
        self.options = options or Options()

    def link(self, target_type: str) -> ObjectCode:
        kinds = {one.code_type for one in self.codes}
        if kinds == {"ptx"}:
            texts = [bytes(one.code).decode() for one in self.codes]
            return ObjectCode(nvrtc.joined(texts).encode(), target_type)
        if kinds != {"ltoir"}:
            Device.refuse(f"linking of {', '.join(sorted(kinds))}")
        made = nvrtc.linked([bytes(one.code) for one in self.codes])
        return ObjectCode(made.encode(), target_type)

    def get_info_log(self) -> str:
        return ""

    get_error_log = get_info_log

    def close(self) -> None:
        pass


class LaunchConfig(Options):
    pass


def launch(stream, config: LaunchConfig, kernel: Kernel, *args) -> None:
    __tracebackhide__ = True
    given = [argument(one) for one in args]
    Device.launch(kernel.held.module, kernel.name, config.grid, config.block, given, config.shmem_size or 0, config.cluster,
                  bool(config.is_cooperative))  # fmt: skip


def argument(value):
    if isinstance(value, Buffer):
        return value.handle
    if isinstance(value, ctypes.c_float | ctypes.c_double):
        return bytes(value)
    if isinstance(value, ctypes._SimpleCData):
        return np.dtype(type(value)).type(value.value or 0)
    if hasattr(value, "__cuda_array_interface__"):
        return value.__cuda_array_interface__["data"][0]
    return int(value) if hasattr(value, "getPtr") else value


class Buffer(Partial):
    def __init__(self, size: int = 0, address: int | None = None):
        self.size, self._own = size, address is None
        self.handle = Device.memory.allocate(size) if address is None else int(address)
        self.device_id, self.is_device_accessible, self.is_host_accessible = 0, True, False

    @classmethod
    def from_handle(cls, ptr, size: int, mr=None) -> "Buffer":
        return cls(size, int(ptr))

    def close(self, stream=None) -> None:
        if self._own:
            Device.memory.release(self.handle)
            self._own = False

    __del__ = close

    def copy_to(self, target=None, *, stream=None) -> "Buffer":
        target = Buffer(self.size) if target is None else target
        Device.memory.view(target.handle, self.size)[:] = Device.memory.view(self.handle, self.size)
        return target

    def copy_from(self, source: "Buffer", *, stream=None) -> None:
        source.copy_to(self)


class DeviceMemoryResource(Partial):
    """Where buffers come from."""

    is_device_accessible, is_host_accessible, device_id = True, False, 0

    def __init__(self, *args, **kwargs):
        pass

    def allocate(self, size: int, *, stream=None) -> Buffer:
        return Buffer(size)

    def deallocate(self, ptr, size: int, *, stream=None) -> None:
        Device.memory.release(int(ptr))


class Properties(Partial, types.SimpleNamespace):
    pass


class StridedMemoryView:
    """An array anywhere: where it begins and how it is laid out. Strides are in elements."""

    def __init__(self, ptr: int, shape, dtype, strides=None, owner=None):
        self.ptr, self.exporting_obj = ptr, owner
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.size, size = int(np.prod(self.shape)), self.dtype.itemsize
        laid = np.lib.stride_tricks.as_strided(
            np.empty(0, self.dtype), self.shape, strides and tuple(s * size for s in strides)
        )
        flags = (np.empty(self.shape, np.void(size).dtype) if strides is None else laid).flags
        self._layout = types.SimpleNamespace(
            strides_in_bytes=tuple(s * size for s in strides) if strides else None, itemsize=size,
            is_contiguous_c=flags.c_contiguous, is_contiguous_f=flags.f_contiguous, is_contiguous_any=flags.forc,
        )  # fmt: skip
        self.strides, self.device_id, self.readonly = strides, 0, False

    @classmethod
    def from_array_interface(cls, array, stream_ptr=None) -> "StridedMemoryView":
        array = np.asarray(array)
        size = array.dtype.itemsize
        dense = array.flags.c_contiguous or not size
        strides = None if dense else tuple(s // size for s in array.strides)
        return cls(array.ctypes.data, array.shape, array.dtype, strides, array)

    @classmethod
    def from_cuda_array_interface(cls, array, stream_ptr=None) -> "StridedMemoryView":
        shown = array.__cuda_array_interface__
        dtype = np.dtype(shown.get("descr") or shown["typestr"])
        strides = shown.get("strides") and tuple(s // dtype.itemsize for s in shown["strides"])
        return cls(shown["data"][0], shown["shape"], dtype, strides, array)

    @classmethod
    def from_any_interface(cls, array, stream_ptr=None) -> "StridedMemoryView":
        known = hasattr(array, "__cuda_array_interface__")
        return (cls.from_cuda_array_interface if known else cls.from_array_interface)(array)

    @classmethod
    def from_dlpack(cls, array, stream_ptr=None) -> "StridedMemoryView":
        if not hasattr(array, "__cuda_array_interface__"):
            Device.refuse(f"DLPack of {type(array).__name__}")
        return cls.from_cuda_array_interface(array)

    @classmethod
    def from_buffer(
        cls, buffer, shape, strides=None, *, dtype=None, itemsize=None
    ) -> "StridedMemoryView":
        return cls(int(buffer.handle or 0), shape, dtype, strides, buffer)


class GpuDevice(Scope):
    def __init__(self, device=0):
        from cuda.bindings import driver

        super().__init__()
        if device not in (None, 0):
            Device.refuse("a second GPU")
        self.device_id, self.name, self.uuid = 0, "emulated GPU", "emulated"
        self.arch, self.default_stream = "".join(map(str, CAPABILITY)), Stream()
        self.compute_capability = Capability(CAPABILITY)
        self.context = types.SimpleNamespace(handle=driver.CUcontext(1))
        self.properties = Properties(
            multiprocessor_count=MULTIPROCESSORS, warp_size=32, max_threads_per_block=1024,
            compute_capability_major=CAPABILITY[0], compute_capability_minor=CAPABILITY[1],
        )  # fmt: skip

    memory_resource = DeviceMemoryResource()

    def set_current(self, context=None) -> None:
        pass

    sync = set_current

    def create_stream(self, *args, **kwargs) -> Stream:
        return Stream()

    def create_event(self, *args, **kwargs) -> Event:
        return Event()

    def allocate(self, size: int, stream=None) -> Buffer:
        return Buffer(size)


class Capability(tuple):
    major, minor = property(lambda self: self[0]), property(lambda self: self[1])


root = Part(
    "cuda.core", __version__="1.2.2", Device=GpuDevice, Stream=Stream, Event=Event, Buffer=Buffer, ObjectCode=ObjectCode,
    Kernel=Kernel, Program=Program, ProgramOptions=ProgramOptions, Linker=Linker, LinkerOptions=Options,
    LaunchConfig=LaunchConfig, launch=launch, StreamOptions=Options, EventOptions=Options,
    DeviceMemoryResource=DeviceMemoryResource,
    utils=Part("cuda.core.utils", StridedMemoryView=StridedMemoryView),
    graph=Part("cuda.core.graph", GraphBuilder=type("GraphBuilder", (), {})),
)  # fmt: skip
root.experimental = root
root.tree()
