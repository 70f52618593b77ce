"""The CUDA driver through ctypes: modules, memory, launches with clusters, tensor maps."""

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

TYPES = {"u8": 0, "u16": 1, "u32": 2, "s32": 3, "u64": 4, "f16": 6, "f32": 7, "bf16": 9}
SIZES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "f16": 2, "f32": 4, "bf16": 2}
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
INTERLEAVES = {0: 0, 16: 1, 32: 2}


class Attribute(ctypes.Structure):
    _fields_ = [("id", c_int), ("pad", c_int), ("value", c_uint * 16)]


class Config(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", c_uint),
    ]


class TensorMap(ctypes.Structure):
    _fields_ = [("words", c_uint64 * 16)]


class Driver:
    """A context on the first GPU."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = c_int(), c_void_p()
        self.call("cuDeviceGet", byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *args):
        """A driver call; RuntimeError with its name and code if it fails."""
        code = getattr(self.cuda, name)(*args)
        if code:
            raise RuntimeError(f"{name}: CUDA error {code}")

    def module(self, path):
        """The module in a cubin file."""
        module = c_void_p()
        self.call("cuModuleLoad", byref(module), str(path).encode())
        return module

    def function(self, module, name, shared):
        """An entry point that may use `shared` bytes."""
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, name.encode())
        self.call("cuFuncSetAttribute", function, 8, c_int(shared))
        return function

    def allocate(self, size):
        """Device memory, zeroed; the address."""
        at = c_uint64()
        self.call("cuMemAlloc_v2", byref(at), c_size_t(size))
        self.call("cuMemsetD8_v2", at, 0, c_size_t(size))
        return at

    def upload(self, at, data):
        """Host bytes to a device address."""
        self.call("cuMemcpyHtoD_v2", at, bytes(data), c_size_t(len(data)))

    def download(self, at, size):
        """Bytes at a device address."""
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, at, c_size_t(size))
        return data.raw

    def launch(self, function, args, grid=1, block=32, shared=0, cluster=1):
        """One launch, waited for. args: ctypes values."""
        pointers = (c_void_p * len(args))(*(ctypes.addressof(a) for a in args))
        attribute = Attribute(4)  # cluster dimension
        attribute.value[0], attribute.value[1], attribute.value[2] = cluster, 1, 1
        config = Config(
            (grid, 1, 1), (block, 1, 1), shared, None, ctypes.pointer(attribute), int(cluster > 1)
        )
        self.call("cuLaunchKernelEx", byref(config), function, pointers, None)
        self.call("cuCtxSynchronize")

    def tensor_map(self, at, type, sizes, strides, box, swizzle=0, interleave=0, steps=None):
        """An encoded map: sizes and box in elements, strides in bytes from dimension 1 on."""
        rank = len(sizes)
        encoded = (c_uint64 * 32)()
        start = ctypes.addressof(encoded)
        offset = -start % 64
        self.call(
            "cuTensorMapEncodeTiled",
            c_void_p(start + offset),
            c_int(TYPES[type]),
            c_uint(rank),
            at,
            (c_uint64 * rank)(*sizes),
            (c_uint64 * max(1, rank - 1))(*strides),
            (c_uint * rank)(*box),
            (c_uint * rank)(*(steps or [1] * rank)),
            c_int(INTERLEAVES[interleave]),
            c_int(SWIZZLES[swizzle]),
            c_int(0),
            c_int(0),
        )
        map = TensorMap()
        ctypes.memmove(byref(map), start + offset, 128)
        return map
