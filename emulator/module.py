"""Modules: PTX text in, entries that can be launched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

import numpy as np

from emulator.counts.trace import Trace
from emulator.errors import PtxError
from emulator.launch import Launch, triple, without_collections
from emulator.machine.code import Code
from emulator.machine.decode import decode
from emulator.machine.limits import Limits
from emulator.machine.memory import AddressSpace, Buffer
from emulator.ops.table import OPCODES
from emulator.ops.watching import Watch
from emulator.text.parser import parse
from emulator.text.program import Function, Variable


class Module:
    """A loaded PTX module. Its `.global` and `.const` variables live as long as it does.

    ptx: the text of a module. Raises PtxError, which names the PTX line. Instructions are checked when
    an entry is first launched (or asked for with `entry`), so that an unsupported one elsewhere in
    the module does no harm.
    """

    def __init__(self, ptx: str | bytes):
        if isinstance(ptx, bytes):
            try:
                ptx = ptx.decode()
            except UnicodeDecodeError:
                raise PtxError(
                    "this is not PTX but binary data (a cubin, say); PTX is text"
                ) from None
        if not isinstance(ptx, str):
            raise TypeError(f"a module is the text of its PTX, not {type(ptx).__name__}")
        with without_collections():
            self.program = parse(ptx.rstrip("\0"))
        self._codes: dict[str, Code] = {}
        self._load()

    def _load(self) -> None:
        """Gives the variables their memory, at the same addresses each time."""
        self._memory = AddressSpace()
        self._variables: dict[str, Buffer] = {}
        for variable in [*self.program.variables.values(), *self._inside_functions()]:
            if variable.space in ("global", "const") and variable.name not in self._variables:
                data = np.zeros(max(variable.size, 1), np.uint8)
                data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
                memory = self._memory
                add = memory.add_constant if variable.space == "const" else memory.add
                self._variables[variable.name] = add(variable.name, data)
        for variable in [*self.program.variables.values(), *self._inside_functions()]:
            for offset, width, symbol, shift in variable.pointers:
                target = self._variables.get(symbol.name)
                start = target.start if target else self.program.address_of(symbol.name)
                if start is not None:  # those of functions without a body stay 0
                    address = (start + symbol.offset >> shift).to_bytes(8, "little")[:width]
                    data = self._variables[variable.name].bytes
                    data[offset : offset + width] = np.frombuffer(address, np.uint8)
                elif symbol.name not in {*self.program.declared, *self.program.functions}:
                    text = (
                        f"{variable.name} begins as the address of {symbol.name}, which is nowhere"
                    )
                    raise PtxError(text, variable.line, "")

    def fresh(self) -> Module:
        """This module with its variables as they were at first. What was parsed and decoded is shared."""
        found = copy(self)
        found._load()
        return found

    def _inside_functions(self) -> list[Variable]:
        return [
            v
            for f in self.program.functions.values()
            for v in f.variables
            if v.space in ("global", "const")
        ]

    @property
    def entries(self) -> list[str]:
        """The kernels' names."""
        return [name for name, function in self.program.functions.items() if function.is_entry]

    def variable(self, name: str) -> np.ndarray:
        """A `.global` or `.const` variable's bytes, (size,) uint8; writing them changes the variable."""
        if name not in self._variables:
            raise KeyError(
                f"no module variable {name!r}; there are {', '.join(self._variables) or 'none'}"
            )
        return self._variables[name].bytes

    def not_set_back(self, entry: str) -> list[str]:
        """The module variables that this entry updates by atomics, and that do not hold what they began with: what
        its next launch finds.
        """
        code, found = self.entry(entry), set()
        for index, sources in code.pointers.writes.items():
            if code.instructions[index].parts[0] in ("atom", "red"):
                found.update(x for x in code.pointers.of(sources) or () if isinstance(x, str))
        first = {
            name: self.program.variables[name].initial
            for name in found & self.program.variables.keys()
        }
        return sorted(
            n
            for n, x in first.items()
            if self.variable(n).tobytes() != x.ljust(self.variable(n).size, b"\0")
        )

    def entry(self, name: str) -> Code:
        """Decodes an entry. Raises Unsupported for an instruction that this machine does not have."""
        if name not in self._codes:
            self._codes[name] = self._decode(self._function(name))
        return self._codes[name]

    def _function(self, name: str) -> Function:
        function = self.program.functions.get(name)
        if function is None or not function.is_entry:
            raise ValueError(
                f"no entry {name!r}; this module has {', '.join(self.entries) or 'none'}"
            )
        return function

    def _decode(self, function: Function) -> Code:
        addresses = {name: buffer.start for name, buffer in self._variables.items()}
        with without_collections():
            return decode(self.program, function, addresses, OPCODES, Watch)

    def launch(
        self,
        entry: str,
        grid: Sequence[int] | int,
        block: Sequence[int] | int,
        args: Sequence,
        shared_bytes: int = 0,
        *,
        cluster: Sequence[int] | int | None = None,
        blocks: Iterable[Sequence[int]] | None = None,
        count: bool = True,
        sanitize: bool = True,
        record: int = 256,
        progress: bool | None = None,
        cooperative: bool = False,
        max_warp_instructions: int | None = None,
        max_seconds: float | None = None,
        merged: Mapping[int, int] | None = None,
        memory: Mapping[int, np.ndarray] | None = None,
    ) -> Trace:
        """Runs a kernel to its end.

        grid, block: up to three extents, x first. args: one for each parameter; a C-contiguous NumPy
        array is a device buffer, updated in place; a `TensorMap` goes where a parameter of 128 bytes
        stands for one, or for a pointer to one; a tuple goes where a struct does, or a pointer to one (its members: tensor
        maps, arrays, NumPy scalars, bytes); a NumPy scalar (or bytes, for a struct) goes by value and must have the
        parameter's size; a Python int or float takes the parameter's type.
        shared_bytes: dynamic shared memory. cluster: up to three extents, in blocks; what the kernel
        was compiled for (`.reqnctapercluster`), else one block, where it is left out. blocks: run only
        these blocks, [(x, y, z), ...]. count:
        False leaves out memory traffic. sanitize: look for hazards (`trace.hazards`).
        record: of how many warp executions to keep the addresses, for each
        instruction. progress: show progress on
        stderr after two seconds; None means where stderr is a terminal. cooperative: all blocks are resident
        together, as `grid.sync()` needs; ValueError where a GPU (`machine.residency`) could not hold them.
        max_warp_instructions, max_seconds: LimitExceeded beyond so many, instructions counted once for each
        warp that executes them; None is no limit. merged: {PTX line: bytes} of loads from shared memory that ptxas
        made one of (`measure.merged_loads`): rows then tell the machine's wavefronts from those of PTX. memory: {address: bytes,
        flat uint8} of allocations that are there beside the arguments, at 1 << 44 and above; an address in one is a pointer.

        Raises ValueError or TypeError for wrong arguments, before anything runs; OutOfBounds,
        Misaligned, Deadlock, BarrierDivergence, LimitExceeded and Trap from the kernel.
        """
        code = self.entry(entry)
        limits = Limits(max_warp_instructions, max_seconds)
        if cluster is not None:
            cluster = triple(cluster, "cluster")
        with without_collections():
            launch = Launch(self, code, triple(grid, "grid"), triple(block, "block"), cluster, args, shared_bytes,
                            count, sanitize, record, cooperative, limits, merged, memory)  # fmt: skip
        return launch.run(blocks, progress)
