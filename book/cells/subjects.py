"""What a reader may change in `live.kernel`: a rung of the ladder, or a kernel that stands for a published one.

Both give the same four things: their macros, their source, one run on the emulator, and launches on a GPU to be timed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import kernels
from book.cells import variants
from kernels.accuracy import Accuracy
from kernels.gemm import arch_on_emulator, gemm, plan
from kernels.rung import Rung
from kernels.source import changed, unmarked
from measure import published
from measure.timing import cublas_launches, matrices, rung_launches

Changes = Sequence[tuple[str, str]]
DEFAULT = re.compile(r"^#ifndef \w+[^\n]*\n#define (\w+) (-?\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """What a run gave: how right it is, its trace, and what a block takes: threads, bytes of shared memory, registers."""

    accuracy: Accuracy
    trace: object
    threads: int
    shared_bytes: int
    registers: int


@dataclass(frozen=True)
class OfTheLadder:
    """A rung, with the shapes that its launcher pads to."""

    rung: Rung

    @property
    def name(self) -> str:
        return self.rung.name

    @property
    def words(self) -> str:
        """The kernel in a sentence."""
        return self.name

    @property
    def text(self) -> str:
        return variants.source(self.name)

    @property
    def space(self) -> Mapping[str, Sequence[int]]:
        return self.rung.space

    def macros(self, start: Mapping[str, int] | None) -> dict[str, int]:
        """All macros, defaults included. ValueError for one that the rung does not have."""
        return self.rung.resolve(start)

    def sizes(self, M: int) -> list[int]:
        """Sizes of M to choose from, where a page shows this one: the launcher pads."""
        return sorted({64, M, 128, 256})

    def listing(self, changes: Changes = ()) -> str:
        """The source whose lines a trace names."""
        if changes:
            return variants.source(self.name, *changes)
        return self.rung.path.read_text(encoding="utf-8")

    def run(self, macros: Mapping[str, int], shape: Sequence[int], changes: Changes = ()) -> Run:
        """One run on the emulator; raises what compiling or running raises."""
        types = self.rung.types(macros)
        A, B = kernels.random_inputs(types, *shape)[:2]
        arch = self.rung.target(str(arch_on_emulator(self.rung)))
        built = self._built(macros, changes, arch) if changes else None
        done = gemm(self.name, A, B, macros=dict(macros), machine="emulator", built=built)
        report = done.plan.build.reports[self.rung.entry]
        return Run(
            kernels.accuracy(done.C, A, B, np.zeros_like(done.C), 1.0, 0.0, types),
            done.trace,
            int(np.prod(done.plan.block)),
            done.plan.shared_bytes + report.shared_bytes,
            report.registers,
        )

    def launches(self, macros: Mapping[str, int], size: int, changes: Changes = ()) -> dict:
        """{name: launches} on this machine's GPU, cuBLAS's beside them where it gets the same matrices."""
        built = self._built(macros, changes, None) if changes else None
        how = plan(self.rung, size, size, size, macros, built=built)
        sets = matrices(how.types, how.shapes())
        against = {"this setting": rung_launches(how, sets)}
        if how.padded == how.size:
            majors = self.rung.a_major, self.rung.b_major
            against["cuBLAS"] = cublas_launches(sets, how.types, *majors)
        return against

    def _built(self, macros, changes: Changes, arch):
        return variants.build(self.name, f"{self.name}_yours", *changes, arch=arch, macros=macros)


@dataclass(frozen=True)
class OfOthers:
    """A kernel of `measure.published`: whole tiles only, row-major matrices."""

    case: published.Case

    @property
    def name(self) -> str:
        return self.case.name

    @property
    def words(self) -> str:
        """The kernel in a sentence."""
        return f'the kernel "{self.name}"'

    @property
    def text(self) -> str:
        return unmarked(self._file())

    @property
    def space(self) -> Mapping[str, Sequence[int]]:
        return {}

    def macros(self, start: Mapping[str, int] | None) -> dict[str, int]:
        """All macros, defaults included. ValueError for one that the source does not have."""
        defaults = {name: int(value) for name, value in DEFAULT.findall(self.text)}
        given = dict(self.case.macros) | dict(start or {})
        if unknown := sorted(set(given) - set(defaults)):
            raise ValueError(f"{self.name} has no macro {unknown[0]}: it has {', '.join(defaults)}")
        return defaults | given

    def sizes(self, M: int) -> list[int]:
        """Sizes of M to choose from, where a page shows this one: whole tiles."""
        return [M, 2 * M, 4 * M]

    def listing(self, changes: Changes = ()) -> str:
        """The source whose lines a trace names. ValueError where it lacks what a change would replace."""
        return changed(self.text, self.name, changes) if changes else self._file()

    def run(self, macros: Mapping[str, int], shape: Sequence[int], changes: Changes = ()) -> Run:
        """One run on the emulator; raises what compiling or running raises."""
        M, N, K = shape
        case = self._at(macros, N, K)
        A, B = kernels.random_inputs(case.types, M, N, K)[:2]
        built = self._built(case, changes, published.COUNTED_ON)
        C, trace = published.run(case, A, B, built)
        report = built.reports[case.entry]
        return Run(
            kernels.accuracy(C, A, B, np.zeros_like(C), 1.0, 0.0, case.types),
            trace, case.threads, case.shared + report.shared_bytes, report.registers,
        )  # fmt: skip

    def launches(self, macros: Mapping[str, int], size: int, changes: Changes = ()) -> dict:
        """{name: launches} on this machine's GPU, cuBLAS's beside them."""
        case = self._at(macros, size, size)
        built = self._built(case, changes, kernels.gpu().arch)
        sets = matrices(case.types, ((size, size),) * 3)
        return {
            "this setting": published.launches(case, built, sets, size),
            "cuBLAS": cublas_launches(sets, case.types),
        }

    def _file(self) -> str:
        return self.case.source.read_text(encoding="utf-8")

    def _at(self, macros: Mapping[str, int], N: int, K: int) -> published.Case:
        """The case with these macros, and with the sizes of a product where the source has them as macros."""
        sizes = {"SIZE": N, "DEPTH": K}
        return published.changed(
            self.name, **{name: sizes.get(name, macros[name]) for name in macros}
        )

    def _built(self, case: published.Case, changes: Changes, arch):
        if not changes:
            return case.build(arch)
        name = f"{case.source.stem}_yours"
        arch = "90a" if case.a_suffix else arch
        return kernels.build(self.listing(changes), case.macros, arch=arch, name=name)


def subject(name: str | Rung) -> OfTheLadder | OfOthers:
    """The rung of this name, or the kernel of `measure.published`. ValueError where there is neither."""
    if isinstance(name, str) and name in published.NAMED:
        return OfOthers(published.NAMED[name])
    return OfTheLadder(kernels.find(name))
