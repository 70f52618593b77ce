"""Reads a cubin's machine code as far as a chapter needs it: how wide its shared-memory loads are, how many
loads from global memory it sends in a row, which registers its multiply-adds read.

NVIDIA does not document the encoding. From Volta on an instruction is 16 bytes; its low 12 bits are
the opcode, and bits 73-75 of a load give its width. What is read here agrees with `nvdisasm` 13.5 on
the ladder's kernels for sm_75 to sm_90 (see Z. Jia et al., arXiv:1804.06826, for Volta's encoding).
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass

from kernels.build import Build
from kernels.shipped import machine_code

BYTES = 16
LDS = 0x984
FFMA = 0x223
ZERO = 255  # RZ, which is no register
NEVER = 15  # @!PT, a predicate that never holds
LDG = (0x381, 0x981)
STS = (0x388, 0x988)
LDGSTS = 0xFAE
WIDTH = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}


def shared_loads(build: Build, entry: str | None = None) -> Counter:
    """{bytes per lane: shared-memory load instructions} of one kernel, `ldmatrix` left out."""
    return Counter(WIDTH[high >> 9 & 7] for low, high in words(build, entry) if low & 0xFFF == LDS)


@dataclass(frozen=True)
class SharedLoad:
    """A load from shared memory: its address registers (a plain one, a uniform one), offset and size in bytes."""

    registers: tuple[int, int]
    offset: int
    size: int


def shared_accesses(build: Build, entry: str | None = None) -> list[SharedLoad]:
    """The loads from shared memory in order, without `ldmatrix` and those whose predicate never holds.

    An offset has 24 bits, the highest of which is its sign.
    """
    return [
        SharedLoad(
            (low >> 24 & 255, low >> 32 & 255),
            ((low >> 40) ^ 1 << 23) - (1 << 23),
            WIDTH[high >> 9 & 7],
        )
        for low, high in words(build, entry)
        if low & 0xFFF == LDS and low >> 12 & 15 != NEVER
    ]


def shared_stores(build: Build, entry: str | None = None) -> Counter:
    """{bytes per lane: stores to shared memory} of one kernel, without those whose predicate never holds."""
    return Counter(
        WIDTH[high >> 9 & 7]
        for low, high in words(build, entry)
        if low & 0xFFF in STS and low >> 12 & 15 != NEVER
    )


def loads_in_a_row(build: Build, entry: str | None = None) -> list[int]:
    """How many loads from global memory stand between two stores to shared memory, for each such run, in order."""
    runs, length = [], 0
    for low, _ in words(build, entry):
        opcode = low & 0xFFF
        if opcode in LDG:
            length += 1
        elif opcode in STS and length:
            runs, length = [*runs, length], 0
    return [*runs, length] if length else runs


def fills_of_shared(build: Build) -> dict[str, int]:
    """How many instructions fill shared memory from global: {"LDGSTS": asynchronous copies, "LDG": loads, "STS": stores}."""
    kinds = {LDGSTS: "LDGSTS", **dict.fromkeys(LDG, "LDG"), **dict.fromkeys(STS, "STS")}
    found = Counter(kinds.get(low & 0xFFF) for low, _ in words(build, None))
    return {name: found[name] for name in ("LDGSTS", "LDG", "STS")}


def instructions(build: Build) -> int:
    """Machine instructions of one kernel, the padding at its end among them."""
    return len(_section(machine_code(build), f".text.{build.entry}")) // BYTES


def same_code(first: Build, second: Build) -> bool:
    """Whether the entry points of two builds have the same instructions."""
    return words(first, None) == words(second, None)


def words(build: Build, entry: str | None) -> list[tuple[int, int]]:
    """The low and the high half of every instruction."""
    code = _section(machine_code(build), f".text.{entry or build.entry}")
    return list(struct.iter_unpack("<QQ", code[: len(code) // BYTES * BYTES]))


def _section(elf: bytes, name: str) -> bytes:
    """The bytes of a section of a 64-bit ELF file. ValueError when there is none of that name."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    sections = [struct.unpack_from("<II4Q", elf, table + size * n) for n in range(count)]
    strings = sections[names][4]
    for section in sections:
        start = strings + section[0]
        if elf[start : elf.index(b"\0", start)].decode() == name:
            return elf[section[4] : section[4] + section[5]]
    raise ValueError(f"the cubin has no section {name}")


@dataclass(frozen=True)
class MultiplyAdd:
    """An FFMA of three registers. `kept`: which of them it keeps for the operand of the same place in the next instruction."""

    sources: tuple[int, int, int]
    kept: tuple[bool, bool, bool]


def multiply_adds(build: Build) -> list[list[MultiplyAdd]]:
    """Runs of FFMAs with nothing in between, in order. Sources and reuse flags as Z. Jia et al. read them."""
    runs: list[list[MultiplyAdd]] = [[]]
    for low, high in words(build, None):
        if low & 0xFFF == FFMA:
            sources = (low >> 24 & 255, low >> 32 & 255, high & 255)
            kept = tuple(bool(high >> bit & 1) for bit in (58, 59, 60))
            runs[-1].append(MultiplyAdd(sources, kept))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def register_reads(build: Build) -> float:
    """Registers that an FFMA reads from the register file, on average: 3 less those that the one before it has kept.
    ValueError when there is no FFMA.
    """
    read = []
    for run in multiply_adds(build):
        kept = (None, None, None)
        for now in run:
            sources = zip(now.sources, kept, strict=True)
            read.append(sum(register not in (same, ZERO) for register, same in sources))
            kept = tuple(r if k else None for r, k in zip(now.sources, now.kept, strict=True))
    if not read:
        raise ValueError("the kernel has no multiply-adds of three registers")
    return sum(read) / len(read)
