"""A rung with a few words changed: what would happen if it were written otherwise?"""

import contextlib
import io
from collections.abc import Mapping, Sequence

import kernels
from kernels.gemm import gemm
from kernels.source import changed
from kernels.source import source as without_marks


def source(rung: str, *changes: tuple[str, str]) -> str:
    """The rung's CUDA source with every change made: see `kernels.source.changed`."""
    return changed(without_marks(rung), rung, changes)


def without(text: str, statement: str, which: int) -> tuple[str, str]:
    """The change that takes one `statement` out of `text`: which 0 is the first, -1 the last."""
    pieces = text.split(statement)
    places = range(len(pieces) - 1)
    if not places:
        raise ValueError(f"the source does not contain {statement!r}")
    at = places[which]
    return text, statement.join(pieces[: at + 1]) + statement.join(pieces[at + 1 :])


def build(
    rung: str,
    name: str,
    *changes: tuple[str, str],
    arch: int | None = 80,
    macros: Mapping[str, int] | None = None,
):
    """Compiles the changed rung, to pass to `gemm(rung, ..., built=...)`. arch None: this machine's."""
    macros = kernels.find(rung).resolve(macros)
    return kernels.build(source(rung, *changes), macros, arch=arch, name=name)


def heard(
    rung: str,
    name: str,
    changes: Sequence[tuple[str, str]],
    A,
    B,
    macros: Mapping[str, int],
    arch: int | str = 80,
) -> list[list[str]]:
    """The words of each line that the changed rung prints for `A @ B` on the emulator, in its order."""
    built = build(rung, name, *changes, arch=arch, macros=macros)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        gemm(rung, A, B, macros=macros, machine="emulator", built=built)
    return [line.split() for line in said.getvalue().splitlines()]
