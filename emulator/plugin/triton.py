"""Triton: its own compiler makes the PTX for cuda:90, and this driver launches it. PyTorch's tensors lie on the CPU."""

import re
import types

import numpy as np

from emulator.machine.tensor_map import TensorMap

from .device import CAPABILITY, MULTIPROCESSORS, Device


class Driver:
    """Stands for Triton's CudaDriver."""

    def __init__(self):
        self.launcher_cls, self.utils = Launcher, self

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", CAPABILITY[0] * 10 + CAPABILITY[1], 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device=0) -> int:
        return 0

    def set_current_device(self, device) -> None:
        pass

    def get_device_capability(self, device=0) -> tuple[int, int]:
        return CAPABILITY

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_device_properties(self, device=0) -> dict:
        return {
            "max_shared_mem": 232448, "multiprocessor_count": MULTIPROCESSORS, "max_num_regs": 65536, "warpSize": 32,
            "sm_clock_rate": 1980000, "mem_clock_rate": 2619000, "mem_bus_width": 5120,
        }  # fmt: skip

    def load_binary(self, name, kernel, shared, device):
        """(module, function, registers, spills, threads); registers are known by ptxas alone, and here 0."""
        return None, None, 0, 0, 1024

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        why = ": nothing is timed here" if "bench" in name or "interface" in name else ""
        Device.refuse(f"{name} of Triton's driver{why}")


class Launcher:
    """A compiled kernel's launch. `compiled` is the kernel that Triton is about to load."""

    compiled = None

    def __init__(self, source, metadata):
        self.types, self.metadata = list(source.signature.values()), metadata
        self.name, self.module = metadata.name, Device.load(Launcher.compiled.asm["ptx"])

    def __call__(self, x, y, z, stream, function, packed, launched, enter, leave, *args):
        __tracebackhide__ = True
        if x * y * z == 0:
            return
        meta, held, given = self.metadata, [], []
        described = iter(getattr(meta, "tensordesc_meta", None) or ())
        for kind, value in zip(self.types, args, strict=True):
            if isinstance(kind, str) and kind.startswith("tensordesc"):
                given += _described(kind, value, next(described, None), held)
            elif kind != "constexpr":
                given.append(self._argument(kind, value, held))
        size = meta.global_scratch_size * x * y * z * meta.num_ctas
        scratch = Device.memory.allocate(size) if size else 0
        if meta.profile_scratch_size:
            Device.refuse("Triton's profiler inside of kernels")
        cluster = (meta.num_ctas, 1, 1) if meta.num_ctas > 1 else None
        try:
            Device.launch(
                self.module, self.name, (x * meta.num_ctas, y, z), 32 * meta.num_warps, [*given, scratch, 0],
                meta.shared, cluster, bool(meta.launch_cooperative_grid),
            )  # fmt: skip
        finally:
            for start in [*held, scratch]:
                Device.memory.release(start)

    def _argument(self, kind, value, held: list):
        if not isinstance(kind, str):
            Device.refuse(f"an argument of Triton's type {kind}")
        if kind[0] == "*":
            return _address(value, held)
        wide = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}.get(kind)
        if wide is None and kind[0] == "f":
            Device.refuse(f"an argument of Triton's type {kind}")
        return wide(value) if wide else int(value)


def _described(kind: str, value, how, held: list) -> list:
    """What a kernel gets of a host's TensorDescriptor: a tensor map, its shape and its strides."""
    found = re.match(r"tensordesc<(\w+)\[", kind)
    stored = _FORMATS.get(found[1]) if found else None
    if not how or how.get("fp4_padded") or how.get("is_im2col") or stored is None:
        Device.refuse(f"an argument of Triton's type {kind}")
    dtype = np.dtype(_STORED.get(stored, stored))
    start = _address(value.base, held)
    first, size = Device.memory.extent(start)
    memory = Device.memory.view(first, size)[start - first :]
    strides = tuple(int(step) * dtype.itemsize for step in value.strides)
    array = np.lib.stride_tricks.as_strided(
        memory[: len(memory) // dtype.itemsize * dtype.itemsize].view(dtype), tuple(value.shape), strides
    )  # fmt: skip
    rounds = stored == "float32" and getattr(value, "round_f32_to_tf32", False)
    one = TensorMap(
        array, tuple(how["block_size"]), "tf32" if rounds else stored, swizzle=_SWIZZLES[how["swizzle"]],
        fill="nan" if getattr(value, "padding", "zero") == "nan" else "zero",
    )  # fmt: skip
    return [one, *map(int, value.shape), *map(int, value.strides)]


_SWIZZLES = (0, 32, 64, 128)  # by Triton's number
_FORMATS = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "i16": "uint16", "u16": "uint16",
    "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64",
} | dict.fromkeys(("i8", "u8", "fp8e4nv", "fp8e5"), "uint8")  # fmt: skip
_STORED = {"bfloat16": "uint16"}  # where NumPy lacks the format


def _address(tensor, held: list) -> int:
    """Of a tensor's first element. Its whole storage is device memory for this launch, at the host's own address."""
    if tensor is None or isinstance(tensor, int):
        return tensor or 0
    tensor = getattr(tensor, "base", tensor)
    if not hasattr(tensor, "untyped_storage"):
        return tensor.data_ptr() if hasattr(tensor, "data_ptr") else tensor.data.ptr
    storage = tensor.untyped_storage()
    if storage.nbytes() and storage.data_ptr() not in Device.memory.held:
        Device.memory.adopt(storage.data_ptr(), storage.nbytes())
        held.append(storage.data_ptr())
    return tensor.data_ptr()


def on_the_cpu(torch) -> None:
    """PyTorch is told that there is a GPU; what is asked for on "cuda" is made, and computed, on the CPU."""
    from torch.overrides import TorchFunctionMode

    def moved(value):
        kind = value.type if isinstance(value, torch.device) else value
        gpu = isinstance(kind, str) and kind.split(":")[0] == "cuda"
        return torch.device("cpu") if gpu else value

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, kinds, args=(), kwargs=None):
            if function is torch.Tensor.cuda:
                return args[0]
            if function is torch.Tensor.is_cuda.__get__:
                return True
            return function(
                *map(moved, args), **{name: moved(one) for name, one in (kwargs or {}).items()}
            )

    Mode().__enter__()
    entered = torch.autocast.__enter__

    def enter(self):
        if self.device == "cuda" and self._enabled:
            Device.refuse("autocast of PyTorch's CUDA functions")
        return entered(self)

    torch.autocast.__enter__ = enter
    properties = types.SimpleNamespace(
        name="emulated GPU",
        multi_processor_count=MULTIPROCESSORS,
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
    )
    for name, value in {"is_available": True, "device_count": 1, "current_device": 0, "get_device_capability": CAPABILITY,
                        "synchronize": None, "empty_cache": None, "manual_seed": None, "manual_seed_all": None,
                        "get_device_name": "emulated GPU", "get_device_properties": properties}.items():  # fmt: skip
        setattr(torch.cuda, name, lambda *args, value=value: value)


def change(module) -> None:
    """Called by `imports` when a test has imported one of these modules."""
    if module.__name__ == "torch":
        on_the_cpu(module)
    elif module.__name__ == "triton.runtime.driver":
        module.driver.set_active(Driver())
    elif module.__name__ == "triton.runtime.autotuner":
        begun = module.Autotuner.__init__

        def with_the_first(self, *args, **kwargs):
            begun(self, *args, **kwargs)
            self.configs = self.configs[:1]  # nothing is timed here, so the first is as good as any

        module.Autotuner.__init__ = with_the_first
    else:  # the compiled kernel, whose PTX the launcher takes
        original = module.CompiledKernel._init_handles

        def with_ptx(self):
            Launcher.compiled = self
            return original(self)

        module.CompiledKernel._init_handles = with_ptx
