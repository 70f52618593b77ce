"""The one emulated GPU of a test run: its memory, its launches, and what happened on it during a test."""

import ctypes
import re
import time
import weakref
from bisect import bisect_right, insort
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

from emulator.errors import EmulatorError, LimitExceeded, PtxError, Trap
from emulator.machine.memory import GAP
from emulator.machine.tensor_map import TensorMap
from emulator.module import Module

ARCH = "90a"  # sums as an H200's, bit for bit; the newest instructions that were measured
CAPABILITY = (9, 0)
MULTIPROCESSORS = 132
FIRST = 1 << 50  # above the host's addresses, which pinned and managed memory keep


class GpuError(AssertionError):
    """A hazard, or what a GPU would fault on."""


@dataclass
class Record:
    """What a test did. As a dict it travels from pytest-xdist's workers."""

    launches: int = 0
    seconds: float = 0.0
    kernels: set = field(default_factory=set)
    opcodes: Counter = field(default_factory=Counter)
    wrong: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    refused: list = field(default_factory=list)

    def plain(self) -> dict:
        return vars(self) | {"kernels": sorted(self.kernels), "opcodes": dict(self.opcodes)}


class Memory:
    """Device memory: every allocation is a NumPy array on the host, with an address of its own and a wide gap behind it."""

    def __init__(self):
        self.starts: list[int] = []
        self.held: dict[int, tuple] = {}  # start -> (a function that gives the array, bytes)
        self.known: dict[int, int] = {}  # id of an array that owns its memory -> start
        self.free = FIRST

    def allocate(self, size: int) -> int:
        """An allocation that stays until `release`. Its bytes are not zero: no program may rely on them."""
        data = np.full(max(size, 1), 0xA5, np.uint8)
        return self._place(lambda: data, size)

    def host(self, size: int) -> int:
        """Pinned or managed memory: its address is the host's."""
        data = np.full(max(size, 1), 0xA5, np.uint8)
        return self._place(lambda: data, size, data.ctypes.data)

    def adopt(self, address: int, size: int) -> None:
        """Makes memory of the host's device memory at the same address."""
        if address not in self.held:
            data = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
            self._place(lambda: data, size, address)

    def _place(self, get, size: int, start: int | None = None) -> int:
        if start is None:
            start = self.free
            self.free += (size + 255) // 256 * 256 + GAP
        self.held[start] = (get, size)
        insort(self.starts, start)
        return start

    def release(self, start: int) -> None:
        if self.held.pop(start, None):
            self.starts.remove(start)

    def address_of(self, array: np.ndarray) -> int:
        """The address of a host array's first element. Its owner gets one when it is first asked for."""
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        start = self.known.get(id(owner))
        if start is None:
            if not (owner.flags.c_contiguous or owner.flags.f_contiguous):
                Device.refuse("an array whose memory has gaps, and which no other array owns")
            reference = weakref.ref(owner)
            start = self._place(lambda: _bytes(reference()), owner.nbytes)
            self.known[id(owner)] = start
            weakref.finalize(owner, self._forget, id(owner), start)
        return start + array.ctypes.data - owner.ctypes.data

    def _forget(self, key: int, start: int) -> None:
        self.known.pop(key, None)
        self.release(start)

    def view(self, address: int, size: int) -> np.ndarray:
        """So many bytes from an address on. GpuError where they are not all in one allocation."""
        start, held = self.extent(address)
        if address + size > start + held:
            raise GpuError(
                f"{size} bytes at {address:#x} are not all in its allocation of {held} bytes"
            )
        return self.held[start][0]()[address - start : address - start + size]

    def extent(self, address: int) -> tuple[int, int]:
        """(start, bytes) of the allocation that an address is in."""
        at = bisect_right(self.starts, address) - 1
        start = self.starts[at] if at >= 0 else 0
        size = self.held.get(start, (None, 0))[1]
        if not start <= address <= start + size:
            raise GpuError(f"{address:#x} is in no allocation")
        return start, size

    def has(self, address: int) -> bool:
        at = bisect_right(self.starts, address) - 1
        return at >= 0 and address <= self.starts[at] + self.held[self.starts[at]][1]

    def mapped(self) -> dict[int, np.ndarray]:
        """{start: bytes} of all that is allocated."""
        return {start: get()[:size] for start, (get, size) in self.held.items()}


def _bytes(array: np.ndarray) -> np.ndarray:
    """An array's memory as flat bytes."""
    flat = array if array.flags.c_contiguous else array.T
    return flat.reshape(-1).view(np.uint8)


class Device:
    """The state that the stand-ins share."""

    memory = Memory()
    record = Record()
    seconds = 60.0  # of one launch, at most

    @classmethod
    def begin(cls) -> None:
        cls.record = Record()

    @classmethod
    def refuse(cls, what: str):
        """Ends the test: skipped, with the reason. What pytest raises for it, no `except Exception` can hide."""
        __tracebackhide__ = True
        cls.record.refused.append(what)
        raise pytest.skip.Exception(
            f"not emulated: {what}", allow_module_level=True, _use_item_location=True
        )

    @classmethod
    def load(cls, ptx: str | bytes) -> Module:
        if ptx[:4] == b"\x7fELF":
            cls.refuse("machine code (a cubin); the emulator runs PTX")
        try:
            return Module(ptx)
        except PtxError as problem:
            cls.refuse(str(problem).splitlines()[0])

    @classmethod
    def code(cls, module: Module, entry: str):
        """A kernel's decoded code. The test is skipped where the emulator lacks some of it."""
        try:
            return module.entry(entry)
        except PtxError as problem:
            cls.refuse(str(problem).splitlines()[0])

    @classmethod
    def launch(
        cls,
        module: Module,
        entry: str,
        grid,
        block,
        args,
        shared=0,
        cluster=None,
        cooperative=False,
    ) -> None:
        """Runs a kernel. GpuError for a hazard or a fault; a skipped test for what the emulator does not have.

        args: for each parameter an integer (an address, too), a NumPy scalar or bytes.
        """
        __tracebackhide__ = True
        record, started = cls.record, time.process_time()
        try:
            code = module.entry(entry)
            given = [packed(one, *p) for one, p in zip(args, code.params, strict=True)]
            record.launches += 1
            record.kernels.add(entry)
            trace = module.launch(
                entry, grid, block, given, int(shared), cluster=cluster, cooperative=cooperative,
                count=False, record=0, progress=False, max_seconds=cls.seconds, memory=cls.memory.mapped(),
            )  # fmt: skip
        except LimitExceeded:
            where = f"{readable(entry)} at grid {grid}, block {block}"
            cls.refuse(f"{where} takes more than {cls.seconds:g} s")
        except PtxError as problem:
            cls.refuse(str(problem).splitlines()[0])
        except Trap:
            raise  # an assertion of the kernel's own, which a test may expect
        except EmulatorError as problem:
            record.wrong.append(str(problem))
            raise GpuError(f"{type(problem).__name__} in {readable(entry)}: {problem}") from None
        finally:
            record.seconds += time.process_time() - started
        for row in trace.instructions:
            record.opcodes[row.opcode] += row.warps
        wrong = [str(hazard) for hazard in trace.hazards or () if not hazard.note]
        record.notes += [str(hazard) for hazard in trace.hazards or () if hazard.note]
        if wrong:
            record.wrong += wrong
            head = f"{readable(entry)}, launched with grid {grid}, block {block}:"
            raise GpuError("\n".join([head, *wrong]))


def readable(entry: str) -> str:
    """The names in a mangled one: `_ZN6module6kernelB2v1...` is `module.kernel`."""
    found, at = [], re.match(r"_ZN?", entry)
    rest = entry[at.end() :] if at else ""
    while size := re.match(r"\d+", rest):
        found.append(rest[size.end() : size.end() + int(size[0])])
        rest = rest[size.end() + int(size[0]) :]
    return ".".join(found) or entry


def packed(value, name: str, offset: int, size: int, kind: str):
    """An argument as the bytes that its parameter takes; a tensor map as it is. An integer may be wider than its parameter,
    as CUDA's launch allows.

    ValueError where the parameter would read beyond the argument, or read something else.
    """
    if isinstance(value, TensorMap):
        return value
    if isinstance(value, bool | np.bool_):
        return np.uint8(value).tobytes().ljust(size, b"\0")
    if isinstance(value, int | np.integer):
        wide = value.nbytes if isinstance(value, np.integer) else 8
        if wide < size:
            raise GpuError(f"{name} is {size} bytes; an argument of {wide} bytes was passed")
        raw = (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")
        return np.frombuffer(raw, np.uint64)[0] if size == 8 else raw
    raw = np.asarray(value) if isinstance(value, float | complex) else value
    raw = raw if isinstance(raw, bytes) else raw.tobytes()
    if len(raw) != size:
        raise GpuError(f"{name} is {size} bytes; {type(value).__name__} has {len(raw)}")
    return raw
