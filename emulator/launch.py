"""One launch: its arguments checked and bound, its blocks run chunk by chunk, a Trace out."""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from emulator.counts.trace import Row, Trace, UnevenBarrier
from emulator.errors import ExecutionError
from emulator.machine import boxes, schedule
from emulator.machine.binder import PARAM_ADDRESS
from emulator.machine.boxes import Mapped
from emulator.machine.chunk import Chunk
from emulator.machine.cluster import MAX_BLOCKS
from emulator.machine.cluster import coordinates as cluster_order
from emulator.machine.code import Code
from emulator.machine.limits import NEVER, Limits, used_by
from emulator.machine.memory import GAP, SHARED_LIMIT, AddressSpace, Buffer
from emulator.machine.residency import (
    MOST_BLOCKS,
    MULTIPROCESSORS,
    Grid,
    chunk_blocks,
    resident_blocks,
)
from emulator.machine.tensor_map import TensorMap
from emulator.sanitizer import DeviceMemory, Report, watch_device
from emulator.text.program import WIDTHS

MAX_THREADS = 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
_KINDS = {"f": "a float", "s": "a signed integer", "u": "an unsigned integer", "b": "any type"}


def triple(extents, what: str) -> tuple[int, int, int]:
    """Up to three extents, x first, as three. ValueError where `what` is not that."""
    values = _whole_numbers(extents)
    if values is None or not 1 <= len(values) <= 3 or min(values) < 1:
        raise ValueError(f"{what} is one to three positive integers, not {extents!r}")
    return (*values, 1, 1)[:3]


def _whole_numbers(values) -> tuple[int, ...] | None:
    """An integer, or several, as a tuple of integers; None where there is anything else."""
    try:
        values = np.atleast_1d(np.asarray(values)).tolist()
    except ValueError:  # rows of different lengths
        return None
    fine = all(isinstance(v, int) or (isinstance(v, float) and v.is_integer()) for v in values)
    return tuple(int(v) for v in values) if fine else None


def _check_array(array: np.ndarray, where: str) -> None:
    """TypeError or ValueError for an array whose bytes are not what a kernel would take them for."""
    dtype = array.dtype
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{where}: a kernel cannot see a mask; pass array.filled(...)")
    if dtype.hasobject or dtype.kind in "UmM":
        raise TypeError(f"{where}: an array of {dtype} has no meaning for a kernel; pass numbers")
    if not dtype.isnative:
        raise ValueError(
            f"{where}: {dtype} has its bytes in the other order; "
            "pass array.astype(array.dtype.newbyteorder('='))"
        )


def _float(number, size: int, where: str) -> bytes:
    """A Python number as a float of `size` bytes. ValueError for a finite one that would be infinite."""
    kind = np.dtype(f"f{size}")
    try:
        with np.errstate(over="ignore"):
            value = kind.type(float(number))
    except OverflowError:
        value = kind.type(np.inf)
    if np.isinf(value) and number not in (np.inf, -np.inf):
        raise ValueError(
            f"{where}: {float(number) if number < 1e300 else 'this'} does not fit {kind}"
        )
    return value.tobytes()


@contextmanager
def without_collections() -> Iterator[None]:
    """For what makes many objects and no garbage: Python would search all that live for it, again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Launch:
    """One kernel launch; what its chunks share."""

    def __init__(
        self, module, code: Code, grid, block, cluster, args, shared_bytes, count, sanitize, record,
        cooperative=False, limits=None, merged=None, memory=None,
    ):  # fmt: skip
        self.module, self.code, self.grid, self.block = module, code, grid, block
        self.cluster = self._check_cluster(cluster)
        self.tensor_maps: list[Mapped] = []
        self.changed_maps: dict[bytes, Mapped | None] = {}  # those that the kernel makes
        self.counting, self.cooperative = count, bool(cooperative)
        self.limits = limits or Limits()
        for what, number in (("shared_bytes", shared_bytes), ("record", record)):
            if not isinstance(number, int | np.integer):
                raise TypeError(f"{what} is an integer, not {number!r}")
        if record < 0:
            raise ValueError(f"record is how many warp executions to keep: 0 or more, not {record}")
        self._check_shape(shared_bytes)
        self.dynamic_bytes = int(shared_bytes)
        self.shared_bytes = code.shared_static + self.dynamic_bytes
        self.space = AddressSpace()
        for buffer in module._memory.buffers:
            self.space.buffers.append(buffer)
            self.space.starts.append(buffer.start)
        self.space.free = module._memory.free
        self.allocations: list[Buffer] = []
        for start, held in sorted((memory or {}).items()):
            self.allocations.append(Buffer(f"the allocation at {start:#x}", start, held))
            self.space.buffers.append(self.allocations[-1])
            self.space.starts.append(start)
            self.space.free = start + len(held) + GAP
        self.params = self._bind(args)
        parameters = Buffer(
            "the parameters", PARAM_ADDRESS, np.frombuffer(bytearray(self.params), np.uint8)
        )
        self.space.buffers.insert(0, parameters)
        self.space.starts.insert(0, parameters.start)
        self.rows = {}
        for index, ins in sorted(code.instructions.items()):
            frames = ins.location.frames() if ins.location else ()
            self.rows[index] = Row(
                ins.opcode, ins.line, ins.text, frames[0] if frames else None, frames, room=record,
                machine_size=merged.get(ins.line) if merged else None,
            )  # fmt: skip
        self.workspace = 0
        if self.cooperative:
            self.workspace = self.space.add("the grid's workspace", np.zeros(16, np.uint8)).start
        self.report = Report() if sanitize else None
        self.uneven: list[UnevenBarrier] = []
        self.device: DeviceMemory | None = None  # watches global memory

    def _check_cluster(self, given) -> tuple[int, int, int]:
        """The extents of a cluster in blocks. ValueError for one that cannot be launched."""
        function = self.code.function
        compiled = function.cluster
        if compiled and given and given != compiled:
            raise ValueError(
                f"{function.name} was compiled for clusters of {compiled}, not {given}"
            )
        if function.explicit_cluster and not (compiled or given):
            raise ValueError(f"{function.name} needs cluster=: it is launched in clusters")
        self.explicit_cluster = bool(compiled or given)
        cluster = given or compiled or (1, 1, 1)
        blocks, most = math.prod(cluster), function.max_cluster_rank or MAX_BLOCKS
        if blocks > most:
            raise ValueError(f"cluster {cluster} has {blocks} blocks; the most is {most}")
        if any(g % c for g, c in zip(self.grid, cluster, strict=True)):
            raise ValueError(f"grid {self.grid} is not whole clusters of {cluster} blocks")
        return cluster

    def _check_shape(self, shared_bytes) -> None:
        function, threads = self.code.function, int(np.prod(self.block))
        if threads > MAX_THREADS:
            raise ValueError(f"block {self.block} has {threads} threads; the most is {MAX_THREADS}")
        if self.block[2] > 64:
            raise ValueError(f"block {self.block}: the z extent is at most 64")
        for axis, extent, most in zip("xyz", self.grid, MAX_GRID, strict=True):
            if extent > most:
                raise ValueError(f"grid {self.grid}: the {axis} extent is at most {most}")
        if function.reqntid and function.reqntid != self.block:
            raise ValueError(f"{function.name} requires block {function.reqntid}, not {self.block}")
        if function.maxntid and threads > int(np.prod(function.maxntid)):
            raise ValueError(
                f"{function.name} was compiled for at most {int(np.prod(function.maxntid))} threads a block "
                f"(__launch_bounds__); block {self.block} has {threads}"
            )
        total = self.code.shared_static + int(shared_bytes)
        if shared_bytes < 0 or total > SHARED_LIMIT:
            raise ValueError(
                f"{function.name} would use {total} bytes of shared memory per block "
                f"({self.code.shared_static} static, {shared_bytes} dynamic); the most is {SHARED_LIMIT}"
            )

    def _bind(self, args) -> bytes:
        """The parameter bytes; maps every array."""
        params = self.code.params
        if not isinstance(args, Sequence) or isinstance(args, str | bytes):
            raise TypeError(f"args is a list, one for each parameter, not {type(args).__name__}")
        if len(args) != len(params):
            raise TypeError(
                f"{self.code.function.name} takes {len(params)} arguments, not {len(args)}"
            )
        data = bytearray(max((offset + size for _, offset, size, _ in params), default=0))
        mapped: list[tuple[np.ndarray, Buffer]] = []
        self.arrays: dict[int, list[Buffer]] = {}  # parameter -> the arrays that were given for it
        self.maps: set[int] = set()  # the parameters that hold tensor maps
        for number, (arg, (name, offset, size, kind)) in enumerate(zip(args, params, strict=True)):
            data[offset : offset + size] = self._argument(number, arg, name, size, kind, mapped)
        return bytes(data)

    def _argument(self, number: int, arg, name: str, size: int, kind: str, mapped) -> bytes:
        where = f"argument {number} ({name}, .{kind}{f'[{size}]' if size != WIDTHS[kind] else ''})"
        if isinstance(arg, tuple):
            data = self._struct(number, arg, where, mapped)
            if size == 8 and len(data) > 8:
                return self._behind_pointer(number, data)
            if len(data) > size:
                raise TypeError(f"{where} takes {size} bytes; these members take {len(data)}")
            return data.ljust(size, b"\0")
        if isinstance(arg, TensorMap):
            handle = self._tensor_map(number, arg, where, mapped)
            if size == 8:
                return self._behind_pointer(number, handle)
            if size != boxes.BYTES:
                raise TypeError(
                    f"{where} is {size} bytes; a tensor map is {boxes.BYTES}, by value, or a pointer to one; for a struct "
                    "that holds one pass a tuple of its members"
                )
            return handle
        if isinstance(arg, np.ndarray) and arg.ndim == 0 and arg.dtype.names:
            arg = arg[()]
        if isinstance(arg, np.ndarray):
            if size != 8:
                which = "; for a tensor map pass a TensorMap of it" if size == boxes.BYTES else ""
                raise TypeError(f"{where} is {size} bytes, by value; an array is a pointer{which}")
            _check_array(arg, where)
            if not arg.flags.c_contiguous:
                raise ValueError(
                    f"{where}: arrays must be C-contiguous; pass np.ascontiguousarray(...)"
                )
            if not arg.flags.writeable:
                raise ValueError(f"{where}: this array is read-only; pass a copy")
            buffer = self._buffer(number, arg, mapped)
            self.arrays.setdefault(number, []).append(buffer)
            return buffer.start.to_bytes(8, "little")
        if arg is None:
            arg = np.uint64(0)
        if isinstance(arg, bytes | bytearray | np.generic):
            raw = arg.tobytes() if isinstance(arg, np.generic) else bytes(arg)
            if len(raw) != size:
                raise TypeError(f"{where} takes {size} bytes; {type(arg).__name__} has {len(raw)}")
            if pointed := size == 8 and self.space.find(int.from_bytes(raw, "little")):
                self.arrays.setdefault(number, []).append(pointed)
                if pointed.name.startswith("the allocation"):
                    pointed.name = f"argument {number}"
            if (isinstance(arg, np.floating) and kind[0] in "us") or (
                isinstance(arg, np.integer) and kind[0] == "f"
            ):
                raise TypeError(f"{where} takes {_KINDS[kind[0]]}, not {type(arg).__name__}")
            return raw
        if isinstance(arg, bool | int | float) and size == WIDTHS[kind]:
            if kind[0] == "f":
                return _float(arg, size, where)
            if isinstance(arg, float):
                raise TypeError(
                    f"{where} takes {_KINDS[kind[0]]}; pass np.float32(...), not a Python float"
                )
            if not -(1 << 8 * size - 1) <= arg < 1 << 8 * size:
                raise ValueError(f"{where}: {arg} does not fit")
            return (int(arg) & (1 << 8 * size) - 1).to_bytes(size, "little")
        raise TypeError(
            f"{where}: pass a NumPy array, a NumPy scalar or bytes, not {type(arg).__name__}"
        )

    def _struct(self, number: int, members: tuple, where: str, mapped) -> bytes:
        """A struct's bytes: its members each at a multiple of its own size (a map of 64)."""
        data = b""
        for at, member in enumerate(members):
            if isinstance(member, TensorMap):
                wide, kind, align = boxes.BYTES, "b8", 64
            elif isinstance(member, np.ndarray):
                wide, kind, align = 8, "b64", 8
            elif isinstance(member, np.generic | bytes):
                member = member if isinstance(member, bytes) else member.tobytes()
                wide, kind, align = len(member), "b8", getattr(members[at], "itemsize", 1)
            else:
                text = "NumPy arrays and scalars, tensor maps and bytes"
                raise TypeError(f"{where}, member {at}: {text}, not {type(member).__name__}")
            data += bytes(-len(data) % align)
            data += self._argument(number, member, f"member {at}", wide, kind, mapped)
        return data

    def _buffer(self, number: int, array: np.ndarray, mapped) -> Buffer:
        """The buffer of a contiguous array: one for each array, however often it is passed."""
        for known, buffer in mapped:
            if known is array:
                return buffer
        plain = np.asarray(array)  # a matrix stays a matrix when it is reshaped
        flat = plain.reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8)
        buffer = self.space.add(f"argument {number}", flat)
        mapped.append((array, buffer))
        return buffer

    def _behind_pointer(self, number: int, data: bytes) -> bytes:
        held = np.frombuffer(bytearray(data), np.uint8)
        buffer = self.space.add(f"what argument {number} points to", held)
        self.arrays.setdefault(number, []).append(buffer)
        return buffer.start.to_bytes(8, "little")

    def _tensor_map(self, number: int, given: TensorMap, where: str, mapped) -> bytes:
        """A tensor map's 128 bytes; its array has an address too, the same as where it is passed itself."""
        array = given.array
        whole = array
        while isinstance(whole, np.ndarray) and not any(whole is known for known, _ in mapped):
            if not isinstance(whole.base, np.ndarray):
                break
            whole = whole.base
        start = 0
        if (held := self._allocation_of(array)) is not None:
            self.arrays.setdefault(number, []).append(held)
            self.maps.add(number)
            start = held.start + array.ctypes.data - held.bytes.ctypes.data
        elif isinstance(whole, np.ndarray) and whole.flags.c_contiguous:
            inside = array.ctypes.data - whole.ctypes.data
            buffer = self._buffer(number, whole, mapped)
            self.arrays.setdefault(number, []).append(buffer)
            self.maps.add(number)
            start = buffer.start + inside
        try:
            found = boxes.in_launch(given, start, f"argument {number}")
        except (TypeError, ValueError) as problem:
            raise type(problem)(f"{where}: {problem}") from None
        self.tensor_maps.append(found)
        return found.handle(len(self.tensor_maps) - 1)

    def _allocation_of(self, array) -> Buffer | None:
        """The allocation, of those that a launch was given as `memory`, in which an array lies."""
        if isinstance(array, np.ndarray):
            for buffer in self.allocations:
                if 0 <= array.ctypes.data - buffer.bytes.ctypes.data < len(buffer.bytes):
                    return buffer
        return None

    def run(self, blocks, progress) -> Trace:
        started = time.perf_counter()
        coordinates = self._coordinates(blocks)
        self.device = self._watch(coordinates) if self.report is not None else None
        size = self._chunk_blocks(len(coordinates))
        show = sys.stderr.isatty() if progress is None else progress
        shown = False
        self.coordinates, self.begun = (
            coordinates,
            0,
        )  # blocks of them that have begun, or that others took over
        while self.begun < len(coordinates):
            start, self.begun = self.begun, min(self.begun + size, len(coordinates))
            chunk = Chunk(self, self.code, coordinates[start : self.begun], start)
            try:
                with np.errstate(all="ignore"), without_collections():
                    schedule.run(chunk)
                chunk.finish()
                if chunk.next_look < NEVER:
                    self.limits.look(chunk)
                    self.limits.spent += used_by(chunk)
            except ExecutionError as problem:
                problem.hazards = self.report.hazards if self.report else []
                for hazard in problem.hazards[:3]:
                    problem.add_note(f"before that: {hazard}")
                raise
            finally:
                chunk.release()
            if show and time.perf_counter() - started > 2:
                done = min(start + size, len(coordinates))
                share = done / len(coordinates)
                seconds = time.perf_counter() - started
                print(
                    f"\r{self.code.function.name}: {done} of {len(coordinates)} blocks ({share:.0%}), "
                    f"{seconds:.0f} s, about {seconds / share - seconds:.0f} s to go   ",
                    end="", file=sys.stderr, flush=True,
                )  # fmt: skip
                shown = True
        if shown:
            print(file=sys.stderr)
        rows = [row for row in self.rows.values() if row.warps]
        return Trace(
            self.code.function.name, self.grid, self.block, rows,
            self.report.hazards if self.report else None, self.counting, len(coordinates),
            time.perf_counter() - started,
            [(buffer.start, buffer.end, buffer.name) for buffer in self.space.buffers],
            self.uneven,
        )  # fmt: skip

    def _watch(self, coordinates) -> DeviceMemory | None:
        """The shadow of the buffers that the kernel may write, if it may write any."""
        return watch_device(
            self.code, self.space, self.arrays, self.maps, self.tensor_maps, self.report,
            coordinates, self.block,
        )  # fmt: skip

    def _chunk_blocks(self, blocks: int) -> int:
        """How many blocks run together."""
        threads = int(np.prod(self.block))
        self.block_count, self.together = blocks, self.cooperative or self.code.pointers.waits
        most = resident_blocks(threads, self.shared_bytes)
        if self.cooperative and blocks > most:
            raise ValueError(
                f"a cooperative launch needs all blocks resident at once: {blocks} blocks of {threads} threads and "
                f"{self.shared_bytes} bytes of shared memory are more than the {most} that a GPU of "
                f"{MULTIPROCESSORS} multiprocessors holds"
            )
        size = chunk_blocks(threads, self.shared_bytes, self.code.local_bytes, self.together)
        cluster = math.prod(self.cluster)
        if any(row.opcode.startswith("clusterlaunchcontrol") for row in self.rows.values()):
            size, self.together = (
                min(size, -(-blocks // 3)),
                False,
            )  # some have not begun, and may be taken over
        return min(max(size // cluster, 1) * cluster, blocks)

    def cancel_cluster(self) -> np.ndarray | None:
        """(x, y, z) of the first block of a cluster that has not begun, and will not; None where all have begun."""
        if self.begun >= len(self.coordinates):
            return None
        first = self.coordinates[self.begun]
        self.begun += math.prod(self.cluster)
        return first

    def _coordinates(self, blocks) -> np.ndarray | Grid:
        if blocks is None:
            grid = Grid(self.grid)
            if np.prod([float(extent) for extent in self.grid]) > MOST_BLOCKS:
                raise ValueError(
                    f"grid {self.grid} has more than {MOST_BLOCKS} blocks, which would take years here; "
                    "name a few of them with blocks="
                )
            return grid if math.prod(self.cluster) == 1 else cluster_order(self.grid, self.cluster)
        if isinstance(blocks, str) or not isinstance(blocks, Iterable):
            raise TypeError(f"blocks is a list of blocks, [(x, y, z), ...], not {blocks!r}")
        chosen = np.array([_coordinate(block) for block in blocks], np.int64).reshape(-1, 3)
        if len(chosen) == 0:
            raise ValueError("blocks: none were chosen")
        if (chosen < 0).any() or (chosen >= self.grid).any():
            raise ValueError(f"blocks: {chosen.tolist()} are not all inside grid {self.grid}")
        if len(np.unique(chosen, axis=0)) < len(chosen):
            raise ValueError(f"blocks: {chosen.tolist()} name a block twice; a block runs once")
        together = math.prod(self.cluster)
        if together == 1:
            return chosen
        wanted = {tuple(block) for block in chosen.tolist()}
        clusters = cluster_order(self.grid, self.cluster).reshape(-1, together, 3).tolist()
        picked = [c for c in clusters if wanted.intersection(map(tuple, c))]
        if len(picked) * together != len(chosen):
            raise ValueError(f"blocks: {chosen.tolist()} are not whole clusters of {self.cluster}")
        return np.array(picked, np.int64).reshape(-1, 3)


def _coordinate(block) -> tuple[int, int, int]:
    values = _whole_numbers(block)
    if values is None or not 1 <= len(values) <= 3:
        raise ValueError(f"blocks: a block is one to three integers, (x, y, z), not {block!r}")
    return (*values, 0, 0)[:3]
