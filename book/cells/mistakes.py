"""A rung with a mistake in it: is its result right, and what does the emulator say of it?"""

import textwrap
from collections.abc import Mapping

import numpy as np

import emulator
import kernels
from book.cells import variants
from kernels import blocks
from kernels.gemm import gemm

WIDTH = 84


def tell(
    rung: str,
    *changes: tuple[str, str],
    size: tuple[int, int, int] = (128, 128, 256),
    macros: Mapping[str, int] | None = None,
    most: int = 2,
) -> list[str]:
    """Runs a changed rung of Hopper's or Blackwell's on the emulator; prints whether it is right, and what was found.

    size: M, N, K. most: how many hazards are printed. Returns the kinds of all, "deadlock" and "error" among them.
    """
    M, N, K = size
    rng = np.random.default_rng(M + N + K)
    inputs = kernels.find(rung).inputs
    dtype = np.float32 if inputs in blocks.FORMATS else np.float16
    A = rng.standard_normal((M, K)).astype(dtype)
    B = rng.standard_normal((K, N)).astype(dtype)
    arch = "100a" if kernels.find(rung).min_arch == 100 else "90a"
    built = variants.build(rung, "changed", *changes, arch=arch, macros=macros)
    lines = variants.source(rung, *changes).splitlines()
    try:
        run = gemm(rung, A, B, macros=macros or {}, built=built, machine="emulator")
    except emulator.ExecutionError as error:
        return _stopped(error, lines, most)
    if inputs in blocks.FORMATS:  # what the numbers were rounded to
        A, B = blocks.numbers_of(A, inputs), blocks.numbers_of(B.T, inputs).T
    right = np.allclose(run.C.astype(float), A.astype(float) @ B.astype(float), rtol=0, atol=0.1)
    print(f"The result is {'right' if right else 'wrong'}.")
    kinds = _hazards(run.trace.hazards, lines, most)
    for said in built.repairs:
        print()
        print(_wrapped(f"The compiler, of the machine code: {said}."))
    return kinds


def _hazards(found, lines: list[str], most: int) -> list[str]:
    for hazard in found[:most]:
        print()
        print(_wrapped(hazard.message))
        for at in dict.fromkeys((hazard.other_source, hazard.source)):
            if at is not None:
                print(f"  line {at[1]}: {lines[at[1] - 1].strip()}")
    if len(found) > most:
        print(f"\n... and {len(found) - most} more.")
    return [hazard.kind for hazard in found]


def _stopped(error, lines: list[str], most: int) -> list[str]:
    """What an error says: of a deadlock, the barriers that somebody waits for."""
    deadlock = isinstance(error, emulator.Deadlock)
    said = [line.strip() for line in str(error).splitlines()]
    if deadlock:
        print(_wrapped(f"Deadlock: {said[0]}"))
        said = [line for line in said if "the mbarrier at" in line]
    for line in said[:most]:
        print(_wrapped(line))
    found = getattr(error, "hazards", None) or []
    kinds = _hazards(found, lines, most) if found else []
    return ["deadlock" if deadlock else "error", *kinds]


def _wrapped(words: str) -> str:
    return textwrap.fill(words, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
