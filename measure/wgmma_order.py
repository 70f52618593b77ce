"""In which order a kernel's machine code starts products of a warpgroup, waits for them and converts sums to half.

Read from the cubin as `measure.machine_code` reads it; it agrees with `nvdisasm` 13.0 on the kernels that the book shows.
"""

from __future__ import annotations

from kernels.build import Build

from .machine_code import words

PRODUCT, WARPGROUP, CONVERT = 0x9F0, 0x9C5, 0x23E  # HGMMA, WARPGROUP.ARRIVE and .DEPBAR, F2FP
IS_WAIT = 1 << 47  # of WARPGROUP: .DEPBAR, not .ARRIVE


def order(build: Build) -> list[str]:
    """ "product", "fence", "wait N" (until at most N groups are unfinished) and "convert", in the order of the text."""
    found = []
    for low, high in words(build, None):
        opcode = low & 0xFFF
        if opcode == PRODUCT:
            found.append("product")
        elif opcode == CONVERT:
            found.append("convert")
        elif opcode == WARPGROUP:
            found.append(f"wait {high >> 8 & 255}" if low & IS_WAIT else "fence")
    return found


def runs(build: Build) -> list[tuple[str, int]]:
    """The same with repetitions counted."""
    found: list[tuple[str, int]] = []
    for name in order(build):
        if found and found[-1][0] == name:
            found[-1] = name, found[-1][1] + 1
        else:
            found.append((name, 1))
    return found


def early_conversions(build: Build) -> int:
    """Conversions that stand before the last wait for all groups. ValueError where there is no such wait."""
    names = order(build)
    waits = [place for place, name in enumerate(names) if name == "wait 0"]
    if not waits:
        raise ValueError("the kernel never waits for all its groups of products")
    return names[: waits[-1]].count("convert")
