"""Which loads from shared memory ptxas made one of, read from the PTX and the cubin.

PTX may load the four neighbours [%r8], [%r8+4], [%r8+8] and [%r8+12]; ptxas may know that the first is aligned to 16 bytes,
and then writes one load of 16 bytes. Such a load costs fewer wavefronts, so a count of the PTX differs from that of the GPU.

PTX's loads with one address register (in straight code that does not change it) touch certain bytes, counted from the first
of them; so do the machine code's with one address register. Groups that touch the same bytes are set beside each other, and every
group has to find its like. Where one does not (ptxas unrolled a loop, left a load out, or used a register for two addresses),
nothing is said.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from emulator.machine.unwritten import registers
from emulator.ops.table import OPCODES
from emulator.text import flow
from emulator.text.parser import parse
from emulator.text.program import WIDTHS, Address, Instruction, Reg, Vector
from kernels.build import Build

from . import machine_code


@dataclass(frozen=True)
class Load:
    """offset, size: bytes. line: of the PTX, 0 in machine code. guarded: only some lanes may take part."""

    offset: int
    size: int
    line: int = 0
    guarded: bool = False


Group = tuple[Load, ...]  # the loads of one address register, by offset


def merged_loads(build: Build, entry: str | None = None) -> dict[int, int] | None:
    """{PTX line: bytes} of the loads that were merged, as `Module.launch(merged=...)` takes it; None where it is not certain.

    The load at the lowest address stands for the merged one and has its bytes; the others have 0.
    """
    entry = entry or build.entry
    written, made = _in_ptx(build.ptx, entry), _in_machine_code(build, entry)
    if _sizes(written) == _sizes(made):
        return {}  # as many of each size: none was merged
    by_bytes: dict[tuple, tuple[list[Group], list[Group]]] = defaultdict(lambda: ([], []))
    for place, groups in enumerate((written, made)):
        for group in groups:
            if (touched := _touched(group)) is None:
                return None
            by_bytes[touched][place].append(group)
    found: dict[int, int] = {}
    for ours, machine in by_bytes.values():
        if len(ours) != len(machine) or len({_pieces(group) for group in machine}) != 1:
            return None
        for group in ours:
            lines = _assigned(group, _pieces(machine[0]))
            if lines is None:
                return None
            found |= lines
    return found


def stores_are_as_written(build: Build, entry: str | None = None) -> bool:
    """Whether the machine code has as many stores to shared memory of each size as the PTX: none was merged."""
    entry = entry or build.entry
    written = Counter(
        _size(ins, ins.operands[1])
        for block in _blocks(build.ptx, entry)
        for ins in block.code
        if _is_shared(ins, "st")
    )
    return written == machine_code.shared_stores(build, entry)


def _sizes(groups: Iterable[Group]) -> Counter:
    return Counter(load.size for group in groups for load in group)


def _pieces(group: Group) -> tuple[tuple[int, int], ...]:
    """(start, end) of each load, in bytes after the first."""
    first = group[0].offset
    return tuple((load.offset - first, load.offset - first + load.size) for load in group)


def _touched(group: Group) -> tuple[tuple[int, int], ...] | None:
    """The bytes touched, as stretches after the first of them; None where loads overlap."""
    stretches: list[tuple[int, int]] = []
    for start, end in _pieces(group):
        if stretches and start < stretches[-1][1]:
            return None
        if stretches and start == stretches[-1][1]:
            start = stretches.pop()[0]
        stretches.append((start, end))
    return tuple(stretches)


def _assigned(group: Group, machine: tuple[tuple[int, int], ...]) -> dict[int, int] | None:
    """What `merged_loads` says of one group; None where the machine's loads are no whole ones of PTX."""
    found: dict[int, int] = {}
    loads = list(zip(group, _pieces(group), strict=True))
    for start, end in machine:
        inside = [load for load, (low, high) in loads if start <= low and high <= end]
        if sum(load.size for load in inside) != end - start:
            return None
        if len(inside) > 1:
            if any(load.guarded for load in inside):
                return None
            found |= {load.line: 0 for load in inside} | {inside[0].line: end - start}
    return found


def _in_ptx(ptx: str, entry: str) -> list[Group]:
    """The loads from shared memory by block of code and address register, which no instruction between them writes."""
    groups: dict[tuple, list[Load]] = defaultdict(list)
    for number, block in enumerate(_blocks(ptx, entry)):
        written: Counter = Counter()  # how often each register has been, in this block
        for ins in block.code:
            if _is_shared(ins, "ld"):
                address = ins.operands[1]
                base = address.base.name if address.base is not None else ""
                groups[number, base, written[base]].append(_load(ins, address))
            for register in registers(ins.operands[0]) if ins.operands else ():
                written[register.name] += 1
    return [tuple(sorted(group, key=lambda load: load.offset)) for group in groups.values()]


def _blocks(ptx: str, entry: str) -> list:
    program = parse(ptx)
    return flow.build(program, program.functions[entry], OPCODES).blocks


def _is_shared(ins: Instruction, root: str) -> bool:
    return ins.parts[0] == root and any(word.split("::")[0] == "shared" for word in ins.parts)


def _size(ins: Instruction, moved) -> int:
    """Bytes a lane of a load or store."""
    return WIDTHS[ins.parts[-1]] * (len(moved.items) if isinstance(moved, Vector) else 1)


def _load(ins: Instruction, address: Address) -> Load:
    symbol = address.base is not None and not isinstance(address.base, Reg)
    offset = address.offset + (address.base.offset if symbol else 0)
    return Load(offset, _size(ins, ins.operands[0]), ins.line, bool(ins.guard))


def _in_machine_code(build: Build, entry: str) -> list[Group]:
    """The loads from shared memory by address register; `ldmatrix` is none of them."""
    groups: dict[tuple, list[Load]] = defaultdict(list)
    for load in machine_code.shared_accesses(build, entry):
        groups[load.registers].append(Load(load.offset, load.size))
    return [tuple(sorted(group, key=lambda load: load.offset)) for group in groups.values()]
