"""Numba: its own compiler makes the PTX, `cuda_core` loads and launches it. Here is what it calls of the driver."""

import ctypes
import itertools
import time

from ..machine.residency import resident_blocks
from .cuda_core import KERNELS, LOADED
from .device import CAPABILITY, MULTIPROCESSORS, Device

ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": MULTIPROCESSORS, "WARP_SIZE": 32, "MAX_THREADS_PER_BLOCK": 1024, "MAX_BLOCK_DIM_X": 1024,
    "MAX_BLOCK_DIM_Y": 1024, "MAX_BLOCK_DIM_Z": 64, "MAX_GRID_DIM_X": 2**31 - 1, "MAX_GRID_DIM_Y": 65535, "MAX_GRID_DIM_Z": 65535,
    "MAX_SHARED_MEMORY_PER_BLOCK": 49152, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448, "COMPUTE_CAPABILITY_MAJOR": CAPABILITY[0],
    "COMPUTE_CAPABILITY_MINOR": CAPABILITY[1], "UNIFIED_ADDRESSING": 1, "CAN_MAP_HOST_MEMORY": 1, "MANAGED_MEMORY": 1,
    "CONCURRENT_MANAGED_ACCESS": 1, "COOPERATIVE_LAUNCH": 1, "PCI_DOMAIN_ID": 0, "PCI_BUS_ID": 1, "PCI_DEVICE_ID": 0,
    "MAX_REGISTERS_PER_BLOCK": 65536, "TOTAL_CONSTANT_MEMORY": 65536, "CLOCK_RATE": 1980000, "ASYNC_ENGINE_COUNT": 3,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233472, "INTEGRATED": 0,
}  # fmt: skip
ROOM = 64 << 30


class Driver:
    """Stands for `cuda.bindings.driver`: its types are the real ones, its functions these."""

    def __init__(self, real):
        self._real, self._handles, self._events = real, itertools.count(1 << 20), {}
        self._done = real.CUresult.CUDA_SUCCESS
        for name in ("cuInit", "cuCtxSynchronize", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset",
                     "cuStreamDestroy", "cuStreamSynchronize", "cuStreamWaitEvent", "cuEventDestroy", "cuEventSynchronize",
                     "cuLibraryUnload", "cuProfilerStart", "cuProfilerStop", "cuMemHostUnregister", "cuKernelSetCacheConfig",
                     "cuKernelSetAttribute", "cuEventQuery"):  # fmt: skip
            setattr(self, name, self._answers())
        for name, value in {
            "cuDriverGetVersion": 13000, "cuDeviceGetCount": 1, "cuCtxGetDevice": 0, "cuMemGetInfo": (ROOM, ROOM),
        }.items():  # fmt: skip
            setattr(self, name, self._answers(*(value if isinstance(value, tuple) else (value,))))
        for name in ("cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD"):
            setattr(self, name, self._copy)
            setattr(self, f"{name}Async", self._copy)
        self.cuMemsetD8Async, self.cuMemFreeHost = self.cuMemsetD8, self.cuMemFree
        self._contexts: list = []
        self.cuMemHostAlloc = lambda size, flags: self.cuMemAllocManaged(size, flags, int)

    def __getattr__(self, name):
        value = getattr(self._real, name)
        if name[:2] == "cu" and name[2].isupper():
            return self._refused(name)
        return value

    def _refused(self, name: str):
        def call(*args):
            Device.refuse(f"{name} of the driver")

        call.__name__ = name
        return call

    def _answers(self, *values):
        return lambda *args: (self._done, *values)

    def cuDeviceGetAttribute(self, attribute, device):
        name = attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        if name not in ATTRIBUTES:
            Device.refuse(f"the device's {name}")
        return self._done, ATTRIBUTES[name]

    def cuCtxGetCurrent(self):
        return self._done, self._contexts[-1] if self._contexts else self._real.CUcontext(0)

    def cuCtxPushCurrent(self, context):
        self._contexts.append(self._real.CUcontext(int(context)))
        return (self._done,)

    def cuCtxPopCurrent(self):
        return self._done, self._contexts.pop()

    def cuMemAlloc(self, size):
        if size > ROOM:
            return (self._real.CUresult.CUDA_ERROR_OUT_OF_MEMORY,)
        return self._done, self._real.CUdeviceptr(Device.memory.allocate(size))

    def cuMemAllocManaged(self, size, flags, kind=None):
        return self._done, (kind or self._real.CUdeviceptr)(Device.memory.host(size))

    def cuMemFree(self, address):
        Device.memory.release(int(address))
        return (self._done,)

    def cuMemHostRegister(self, address, size, flags):
        Device.memory.adopt(int(address), int(size))
        return (self._done,)

    def cuMemHostGetDevicePointer(self, address, flags):
        return self._done, self._real.CUdeviceptr(int(address))

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, kernel, threads, shared):
        found = KERNELS[int(kernel)]
        static = Device.code(found.held.module, found.name).shared_static
        return self._done, resident_blocks(threads, static + shared) // MULTIPROCESSORS

    def cuPointerGetAttribute(self, attribute, address):
        if not Device.memory.has(int(address)):
            return (self._real.CUresult.CUDA_ERROR_INVALID_VALUE, None)
        return self._done, address

    def cuMemGetAddressRange(self, address):
        start, size = Device.memory.extent(int(address))
        return self._done, self._real.CUdeviceptr(start), size

    def _copy(self, target, source, size, stream=None):
        to, start = (_on_host(one, int(size)) for one in (target, source))
        ctypes.memmove(to, start, int(size))
        return (self._done,)

    def cuMemsetD8(self, address, value, count, stream=None):
        Device.memory.view(int(address), int(count))[:] = int(value)
        return (self._done,)

    def cuStreamCreate(self, flags):
        return self._done, self._real.CUstream(next(self._handles))

    def cuEventCreate(self, flags):
        return self._done, self._real.CUevent(next(self._handles))

    def cuEventRecord(self, event, stream):
        self._events[int(event)] = time.perf_counter()
        return (self._done,)

    def cuEventElapsedTime(self, first, last):
        return self._done, (self._events[int(last)] - self._events[int(first)]) * 1e3

    def cuLibraryGetGlobal(self, library, name):
        try:
            held = LOADED[int(library)].variable(name.decode())
        except KeyError:
            return (self._real.CUresult.CUDA_ERROR_NOT_FOUND, None, None)
        return self._done, self._real.CUdeviceptr(Device.memory.address_of(held)), held.size


def _on_host(address, size: int) -> int:
    """Where the bytes behind an address lie: of device memory those of its array."""
    address = int(address) if not hasattr(address, "value") else address.value
    known = size and Device.memory.has(address)
    return Device.memory.view(address, size).ctypes.data if known else address


def change(module) -> None:
    """Called by `imports` when Numba has imported one of its modules."""
    if module.__name__ == "numba.cuda.cudadrv.driver":
        module.binding = Driver(module.binding)
        module.driver.is_initialized = False
        module.driver.initialization_error = None  # it found no library
    elif module.__name__ == "numba.cuda.codegen":
        made = module.CUDACodeLibrary.llvm_strs.fget
        flag = '!"Debug Info Version"'  # Numba and NVRTC differ in what a difference means: no link
        module.CUDACodeLibrary.llvm_strs = property(
            lambda self: [text.replace(f"i32 2, {flag}", f"i32 1, {flag}") for text in made(self)]
        )
    else:  # the dispatcher: reports name the line of the kernel
        compiled = module._Kernel.__init__

        def with_lines(self, *args, lineinfo=False, debug=False, **options):
            if not debug and not lineinfo:
                try:
                    return compiled(self, *args, lineinfo=True, debug=False, **options)
                except Exception:  # what Numba cannot describe, and every mistake of the kernel, which shows again below
                    pass
            return compiled(self, *args, lineinfo=lineinfo, debug=debug, **options)

        module._Kernel.__init__ = with_lines
