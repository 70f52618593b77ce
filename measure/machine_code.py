"""Reads a cubin's machine code as far as a chapter needs it: how wide its shared-memory loads are, how many
loads from global memory it sends in a row.

NVIDIA does not document the encoding. From Volta on an instruction is 16 bytes; its low 12 bits are
the opcode, and bits 73-75 of a load give its width. What is read here agrees with `nvdisasm` 13.5 on
the ladder's kernels for sm_75 to sm_90 (see Z. Jia et al., arXiv:1804.06826, for Volta's encoding).
"""

from __future__ import annotations

import struct
from collections import Counter

from kernels.build import Build

BYTES = 16
LDS = 0x984
LDG = (0x381, 0x981)
STS = (0x388, 0x988)
WIDTH = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}


def shared_loads(build: Build, entry: str | None = None) -> Counter:
    """{bytes a lane: shared-memory load instructions} of one kernel, `ldmatrix` left out."""
    return Counter(WIDTH[high >> 9 & 7] for low, high in _words(build, entry) if low & 0xFFF == LDS)


def loads_in_a_row(build: Build, entry: str | None = None) -> list[int]:
    """How many loads from global memory stand between two stores to shared memory, for each such run, in order."""
    runs, length = [], 0
    for low, _ in _words(build, entry):
        opcode = low & 0xFFF
        if opcode in LDG:
            length += 1
        elif opcode in STS and length:
            runs, length = [*runs, length], 0
    return [*runs, length] if length else runs


def instructions(build: Build, entry: str | None = None) -> int:
    """Machine instructions of one kernel, the padding at its end among them."""
    return len(_section(build.cubin, f".text.{entry or build.entry}")) // BYTES


def _words(build: Build, entry: str | None) -> list[tuple[int, int]]:
    """The low and the high half of every instruction."""
    code = _section(build.cubin, f".text.{entry or build.entry}")
    return list(struct.iter_unpack("<QQ", code[: len(code) // BYTES * BYTES]))


def _section(elf: bytes, name: str) -> bytes:
    """The bytes of a section of a 64-bit ELF file. ValueError when there is none of that name."""
    table, size, count, names = _header(elf)
    sections = [struct.unpack_from("<II4Q", elf, table + size * n) for n in range(count)]
    strings = sections[names][4]
    for section in sections:
        start = strings + section[0]
        if elf[start : elf.index(b"\0", start)].decode() == name:
            return elf[section[4] : section[4] + section[5]]
    raise ValueError(f"the cubin has no section {name}")


def _header(elf: bytes) -> tuple[int, int, int, int]:
    """Offset, entry size and number of the section headers, and which of them holds the names."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    return (table, *struct.unpack_from("<HHH", elf, 58))
