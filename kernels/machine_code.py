"""Reads a cubin's machine code as far as a chapter needs it: how wide its shared-memory loads are.

NVIDIA does not document the encoding. From Volta on an instruction is 16 bytes; its low 12 bits are
the opcode, and bits 73-75 of a load give its width. What is read here agrees with `nvdisasm` 13.5 on
the ladder's kernels for sm_75 to sm_90 (see Z. Jia et al., arXiv:1804.06826, for Volta's encoding).
"""

from __future__ import annotations

import struct
from collections import Counter

from .build import Build

BYTES = 16
LDS = 0x984
WIDTH = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}


def shared_loads(build: Build, entry: str | None = None) -> Counter:
    """{bytes a lane: shared-memory load instructions} of one kernel, `ldmatrix` left out."""
    code = _section(build.cubin, f".text.{entry or build.entry}")
    found: Counter = Counter()
    for at in range(0, len(code) - BYTES + 1, BYTES):
        low, high = struct.unpack_from("<QQ", code, at)
        if low & 0xFFF == LDS:
            found[WIDTH[high >> 9 & 7]] += 1
    return found


def instructions(build: Build, entry: str | None = None) -> int:
    """Machine instructions of one kernel, the padding at its end among them."""
    return len(_section(build.cubin, f".text.{entry or build.entry}")) // BYTES


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
