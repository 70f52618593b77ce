"""CuPy's arrays, functions and pointers, as far as tests of raw kernels use them. Arrays lie in the host's memory."""

import ctypes

import numpy as np

from .device import Device
from .streams import GpuDevice


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    """Like CuPy's: no NumPy array, and NumPy gets its values by `get` alone."""

    __array_priority__ = 100

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C", _host=None):
        if _host is None and memptr is not None:
            count = int(np.prod(shape)) * np.dtype(dtype).itemsize
            _host = memptr.bytes(count).view(dtype).reshape(shape, order=order)
        self._host = np.empty(shape, dtype, order) if _host is None else _host

    @property
    def data(self) -> "MemoryPointer":
        return MemoryPointer(Device.memory.address_of(self._host), self)

    @property
    def __cuda_array_interface__(self) -> dict:
        return {**self._host.__array_interface__, "version": 3, "data": (self.data.ptr, False)}

    @property
    def device(self):
        return GpuDevice(0)

    @property
    def flags(self):
        return self._host.flags

    def get(self, stream=None, order="C", out=None, blocking=True) -> np.ndarray:
        if out is None:
            return self._host.copy(order)
        out[...] = self._host
        return out

    def set(self, array, stream=None) -> None:
        self._host[...] = array

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()`.")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if any(isinstance(one, np.ndarray) and one.ndim for one in inputs):
            raise TypeError(f"Unsupported type {np.ndarray}")  # as CuPy has it
        return to_device(getattr(ufunc, method)(*map(to_host, inputs), **to_host(kwargs)))

    def __array_function__(self, function, types, args, kwargs):
        return to_device(function(*to_host(args), **to_host(kwargs)))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._host, name)
        return wrapped(value) if callable(value) else to_device(value)

    def __getitem__(self, index):
        return to_device(self._host[to_host(index)])

    def __setitem__(self, index, value):
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError(f"Unsupported type {np.ndarray}")
        self._host[to_host(index)] = to_host(value)

    def __iter__(self):
        return map(to_device, self._host)

    def __len__(self):
        return len(self._host)

    def __repr__(self):
        return repr(self._host)

    def __format__(self, how):
        return format(self._host, how)

    def __bool__(self):
        return bool(self._host)

    def __float__(self):
        return float(self._host)

    def __complex__(self):
        return complex(self._host)

    def __int__(self):
        return int(self._host)

    __index__, __hash__ = __int__, None


class MemoryPointer:
    """An address in device memory; `mem` keeps what it points to."""

    def __init__(self, address: int, mem=None):
        self.ptr, self.mem = address, mem

    def __int__(self):
        return self.ptr

    def __add__(self, offset: int):
        return MemoryPointer(self.ptr + offset, self.mem)

    def bytes(self, count: int) -> np.ndarray:
        found = getattr(self.mem, "_host", None)
        if found is None:
            return Device.memory.view(self.ptr, count)
        return found.reshape(-1).view(np.uint8)[:count]

    def copy_from(self, source, size: int) -> None:
        target = Device.memory.view(self.ptr, size)
        if isinstance(source, MemoryPointer):
            target[:] = Device.memory.view(source.ptr, size)
        else:
            ctypes.memmove(target.ctypes.data, getattr(source, "value", source), size)

    copy_from_device = copy_from_host = copy_from

    def copy_from_async(self, source, size: int, stream=None) -> None:
        self.copy_from(source, size)

    def memset(self, value: int, size: int) -> None:
        Device.memory.view(self.ptr, size)[:] = value


class Allocation:
    """What `cupy.cuda.alloc` gives keeps its memory until nobody points to it."""

    def __init__(self, size: int):
        self.ptr, self.size = Device.memory.allocate(size), size

    def __del__(self):
        Device.memory.release(self.ptr)


def alloc(size: int) -> MemoryPointer:
    held = Allocation(size)
    return MemoryPointer(held.ptr, held)


def to_host(value):
    """What NumPy works on: arrays of the GPU, in containers too, as arrays of the host."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, tuple | list):
        return type(value)(map(to_host, value))
    return {k: to_host(v) for k, v in value.items()} if isinstance(value, dict) else value


def to_device(value):
    """Results of NumPy as arrays of the GPU; CuPy gives an array of no dimensions for a number, too."""
    if isinstance(value, np.ndarray | np.generic):
        return ndarray(None, _host=np.asarray(value))
    return type(value)(map(to_device, value)) if type(value) in (tuple, list) else value


def wrapped(function):
    def call(*args, **kwargs):
        return to_device(function(*to_host(args), **to_host(kwargs)))

    call.__name__ = getattr(function, "__name__", "call")
    return call


def host_of(value) -> np.ndarray:
    """Any array's values on the host, also those of other packages' device arrays."""
    if isinstance(value, ndarray) or not hasattr(value, "__cuda_array_interface__"):
        return np.asarray(to_host(value))
    shown = value.__cuda_array_interface__
    dtype = np.dtype(shown["typestr"])
    held = Device.memory.view(shown["data"][0], _span(shown, dtype))
    return np.ndarray(shown["shape"], dtype, held, 0, shown.get("strides"))


def _span(shown: dict, dtype: np.dtype) -> int:
    strides = shown.get("strides")
    if strides is None:
        return int(np.prod(shown["shape"])) * dtype.itemsize
    return sum((n - 1) * s for n, s in zip(shown["shape"], strides, strict=True)) + dtype.itemsize


def array(value, dtype=None, copy=True, order="K", **kwargs) -> ndarray:
    held = host_of(value) if hasattr(value, "__cuda_array_interface__") else to_host(value)
    return to_device(np.array(held, dtype, order=order, copy=copy or None, **kwargs))


def asarray(value, dtype=None, order=None, **kwargs) -> ndarray:
    if isinstance(value, ndarray) and dtype in (None, value.dtype) and order is None:
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return to_device(np.asarray(host_of(value), dtype, order))
    return array(value, dtype, order=order or "K")


def asnumpy(value, stream=None, order="C", out=None) -> np.ndarray:
    if isinstance(value, ndarray):
        return value.get(stream, order, out)
    return np.asarray(value, order=order)
