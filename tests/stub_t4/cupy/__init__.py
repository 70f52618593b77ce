"""Stands for CuPy on Colab's T4, for `make colab-check`: every branch of the book for a GPU is walked where there is none.

Arrays lie in the host's memory. A small launch runs on the emulator, a large one only takes its time, which is that of the
recorded rung, scaled by the two GPUs' peaks. What a T4 would refuse (64 KiB of shared memory, sm_75) the book itself has to
refuse: nothing here does it. Only what the book calls is here.
"""

import importlib
import sys

import numpy as np

float16, float32, float64, uint64, int64, nan = (
    np.float16, np.float32, np.float64, np.uint64, np.int64, np.nan,
)  # fmt: skip
LARGE = (
    1 << 20
)  # elements; larger arrays are zeros whatever is done with them: nobody looks at them
EMULATED = 1 << 22  # multiplications, and
THREADS = 1 << 16  # threads that the emulator is given at most


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    """Like CuPy's: no NumPy array, and NumPy gets its values by `get` alone."""

    __array_priority__ = 100

    def __init__(self, shape, dtype=np.float32, memptr=None, array=None):
        self._host = np.empty(shape, dtype) if array is None else array

    @property
    def data(self):
        return _Memory(self._host.ctypes.data)

    @property
    def __cuda_array_interface__(self):
        return {**self._host.__array_interface__, "version": 3}

    def get(self):
        return self._host.copy()

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()`.")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if any(isinstance(one, np.ndarray) and one.ndim for one in inputs):
            raise TypeError(f"Unsupported type {np.ndarray}")  # as CuPy has it
        kwargs = {name: _host(one) for name, one in kwargs.items()}
        if method == "__call__" and ufunc is not np.matmul and not kwargs:
            hosts = [np.asarray(_host(one)) for one in inputs]
            shape = np.broadcast_shapes(*(one.shape for one in hosts))
            if np.prod(shape) > LARGE:
                return _device(np.zeros(shape, ufunc(*(one.flat[0] for one in hosts)).dtype))
        return _device(getattr(ufunc, method)(*map(_host, inputs), **kwargs))

    def __array_function__(self, function, types, args, kwargs):
        return _device(function(*_host(args), **_host(kwargs)))

    def astype(self, dtype):
        large = self._host.size > LARGE
        return _device(np.zeros(self.shape, dtype) if large else self._host.astype(dtype))

    def fill(self, value):
        if self._host.size <= LARGE:
            self._host.fill(value)

    def __getattr__(self, name):
        value = getattr(self._host, name)
        return _wrapped(value) if callable(value) else _device(value)

    def __getitem__(self, index):
        return _device(self._host[_host(index)])

    def __setitem__(self, index, value):
        self._host[_host(index)] = _host(value)

    def __len__(self):
        return len(self._host)

    def __float__(self):
        return float(self._host)

    def __int__(self):
        return int(self._host)

    __index__ = __int__

    def __bool__(self):
        return bool(self._host)


class _Memory:
    def __init__(self, ptr):
        self.ptr = ptr


def _host(value):
    """What NumPy works on: arrays of the GPU, in tuples and lists too, as arrays of the host."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, tuple | list):
        return type(value)(map(_host, value))
    return {k: _host(v) for k, v in value.items()} if isinstance(value, dict) else value


def _device(value):
    """Results of NumPy as arrays of the GPU; CuPy gives an array of no dimensions for a number, too."""
    if isinstance(value, np.ndarray | np.generic):
        return ndarray(None, array=np.asarray(value))
    if isinstance(value, tuple):
        return tuple(map(_device, value))
    return value


def _wrapped(function):
    def call(*args, **kwargs):
        return _device(function(*_host(args), **_host(kwargs)))

    return call


def array(value, dtype=None, order=None, copy=True):
    return _device(np.array(_host(value), dtype=dtype, order=order or "K", copy=copy))


def asarray(value, dtype=None):
    return value if isinstance(value, ndarray) and dtype is None else array(value, dtype)


def __getattr__(name):
    value = getattr(np, name)
    return _wrapped(value) if callable(value) and not isinstance(value, type) else value


class RawModule:
    """A loaded cubin. The emulator runs PTX, which the launcher has beside it."""

    def __init__(self, path):
        frame = sys._getframe(1)
        while "build" not in frame.f_locals:
            frame = frame.f_back
        self._build = frame.f_locals["build"]

    def get_function(self, entry):
        return _Function(self._build, entry)


class _Function:
    max_dynamic_shared_size_bytes = 48 << 10

    def __init__(self, build, entry):
        self._build, self._entry = build, entry
        self._module = None

    def __call__(self, grid, block, args, shared_mem=0):
        host = [_host(one) for one in args]
        numbers = [int(one) for one in host if isinstance(one, np.int32)][:3]
        work = int(np.prod(numbers, dtype=np.int64)) if len(numbers) == 3 else 0
        threads = int(np.prod(grid) * np.prod(block))
        cuda.takes(cuda.milliseconds(self._entry, numbers, threads))
        if (
            self._entry == "hold_back"
        ):  # it polls a clock that the emulator, alone with it, does not move
            cuda.takes(host[0] / 1e6)
        elif work <= EMULATED and threads <= THREADS:
            emulator = importlib.import_module("emulator")
            self._module = self._module or emulator.Module(self._build.ptx)
            self._module.launch(
                self._entry, grid=grid, block=block, args=host, shared_bytes=shared_mem
            )


class _Pool:
    def free_all_blocks(self):
        pass


def get_default_memory_pool():
    return _Pool()


cuda = importlib.import_module("cupy.cuda")
random = importlib.import_module("cupy.random")  # not NumPy's, which `__getattr__` would give
