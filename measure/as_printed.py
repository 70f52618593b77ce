"""Kernels as a page prints them: compiled, run and timed from the page's own text, which is never stored.

A blog post shows kernels between paragraphs, with the host's lines below each. `read` finds the kernels in such a text
(saved as plain text), with the `#define`s above them and the block and grid of their launches.
`python -m measure as-printed FILE` compiles each, and runs it on the emulator beside NumPy; on a GPU it checks and times each
at 4096 instead, with device events, and `--store` writes `results/as-printed-<gpu>.json`, numbers only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import kernels
from emulator import EmulatorError
from kernels.build import Build
from kernels.errors import BuildError
from kernels.gpus import gpu
from kernels.occupancy import occupancy
from kernels.table import table

from .callables import time
from .provenance import store

PRELUDE = """#include <cuda_fp16.h>
#include <mma.h>
#include <cooperative_groups.h>
#include <cuda/pipeline>
using namespace nvcuda;
using uint32_t = unsigned;
using uint8_t = unsigned char;
"""
SIZE = 4096
ARRAYS = {"float": np.float32, "half": np.float16}
KERNEL = re.compile(r"__global__\s+void\s+(\w+)\s*\(([^)]*)\)")
METHOD = "text of the page compiled as it stands; device events by measure.time, three sets of matrices in turn"


@dataclass(frozen=True)
class Printed:
    """One kernel of a text: the heading above it, its source with the macros that it needs, and how it is launched.

    block: threads, or None where the text shows no launch. grid: three expressions of m, n, k and the macros.
    """

    heading: str
    entry: str
    source: str
    parameters: tuple[tuple[str, bool, str], ...]  # type, is a pointer, name
    macros: Mapping[str, str]
    block: tuple[int, ...] | None = None
    grid: tuple[str, ...] = ()

    def build(self, arch: int | str) -> Build:
        return kernels.build(PRELUDE + self.source, arch=arch, name=self.entry, cache=False)

    def blocks(self, m: int, n: int, k: int) -> tuple[int, ...]:
        """The grid for C of m x n."""
        sizes = {"m": m, "n": n, "k": k}
        for name, value in self.macros.items():
            sizes[name] = eval(value, {"__builtins__": {}}, dict(sizes))
        return tuple(
            int(eval(word.replace("/", "//"), {"__builtins__": {}}, sizes)) for word in self.grid
        )

    def arguments(self, A, B, C) -> list:
        """For alpha = 1, beta = 0, in the order of the parameters: pointers are A, B, C, integers m, n, k."""
        arrays, floats = iter((A, B, C)), iter((1.0, 0.0))
        integers = iter((A.shape[0], B.shape[1], A.shape[1]))
        found = []
        for kind, pointer, _ in self.parameters:
            if pointer:
                found.append(next(arrays))
            elif kind == "float":
                found.append(np.float32(next(floats)))
            else:
                found.append(np.int32(next(integers)))
        return found

    @property
    def inputs(self):
        """The NumPy type of A and B."""
        return ARRAYS[self.parameters[0][0]]


def _function(text: str, start: int) -> str:
    """The function that begins here, to its closing brace."""
    depth = 0
    for place in range(text.index("{", start), len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start : place + 1]
    raise ValueError(f"a function without an end: {text[start : start + 60]!r}")


def _parameters(words: str) -> tuple[tuple[str, bool, str], ...]:
    found = []
    for word in words.split(","):
        match = re.fullmatch(r"\s*(?:const\s+)?(\w+)\s*(\*?)\s*(?:__restrict__\s*)?(\w+)\s*", word)
        if match is None or match[1] not in ("float", "half", "int"):
            raise ValueError(f"a parameter that is no matrix, factor or size: {word.strip()!r}")
        found.append((match[1], bool(match[2]), match[3]))
    return tuple(found)


def read(text: str, given: Mapping[str, str] = {}) -> list[Printed]:
    """The kernels of a page, in its order. given: macros that the page uses and does not define.

    A kernel sees the `#define`s and `__device__` functions that stand above it. ValueError where there is no kernel, or
    one with parameters other than matrices of float or half, float factors and int sizes.
    """
    found: list[Printed] = []
    macros, helpers = dict(given), []
    heading = ""
    lines = [(match.start(), match.group()) for match in re.finditer(r"(?m)^.*$", text)]
    for start, line in lines:
        if define := re.match(r"#define\s+(\w+)\s+(\S.*)$", line):
            if "(" not in define[1]:
                macros[define[1]] = define[2].strip()
        elif line.startswith("Kernel "):
            heading = line.strip()
        elif line.startswith("__device__"):
            helpers.append(_function(text, start))
        elif line.startswith("__global__"):
            match = KERNEL.match(text, start)
            if match is None:
                raise ValueError(f"a kernel that cannot be read: {text[start : start + 80]!r}")
            body = f'extern "C" {_function(text, start)}'
            used = {
                name: value
                for name, value in macros.items()
                if re.search(rf"\b{name}\b", body + " ".join(helpers)) or name in given
            }
            defines = "".join(f"#define {name} {value}\n" for name, value in used.items())
            found.append(
                Printed(
                    heading, match[1], "\n".join((defines, *helpers, body)),
                    _parameters(match[2]), dict(macros), *_launch(text, match[1]),
                )
            )  # fmt: skip
    if not found:
        raise ValueError("no __global__ function stands at the beginning of a line of this text")
    return found


def _launch(text: str, entry: str) -> tuple[tuple[int, ...] | None, tuple[str, ...]]:
    call = re.search(rf"\b{entry}<<<(\w+),\s*(\w+)>>>", text)
    if call is None:
        return None, ()
    dims = [re.search(rf"dim3 {name}\((.*)\);", text) for name in call.groups()]
    if None in dims:
        return None, ()
    grid, block = ([word.strip() for word in dim[1].rsplit(",", 2)] for dim in dims)
    return tuple(int(word) for word in block), tuple(grid)


def compiled(printed: Printed, arch: int | str) -> dict:
    """Registers per thread, bytes of stack, spills and static shared memory, blocks per SM; or "refused"."""
    row = {"kernel": printed.entry, "heading": printed.heading, "arch": str(arch)}
    try:
        report = printed.build(arch).report
    except BuildError as error:
        return {**row, "refused": str(error).splitlines()[1]}
    row |= {"registers": report.registers, "stack": report.stack}
    row |= {"spills": report.spill_stores, "shared_bytes": report.shared_bytes}
    if printed.block:
        threads = int(np.prod(printed.block))
        fits = occupancy(arch, threads, report.registers, report.shared_bytes)
        row |= {"threads": threads, "blocks_per_sm": fits.blocks}
    return row


def matrices(printed: Printed, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and C, seeded by the size. C is zero, since a page's kernel may add beta times what stands there."""
    rng = np.random.default_rng(size)
    A, B = (rng.standard_normal((size, size)).astype(printed.inputs) for _ in "AB")
    return A, B, np.zeros((size, size), ARRAYS[printed.parameters[2][0]])


def emulated(printed: Printed, arch: int | str, size: int) -> dict:
    """One launch on the emulator: the largest error over the largest element, and what the sanitizer says."""
    A, B, C = matrices(printed, size)
    trace = kernels.launch(
        printed.build(arch), printed.entry, printed.blocks(size, size, size), printed.block,
        printed.arguments(A, B, C), machine="emulator",
    )  # fmt: skip
    right = A.astype(np.float64) @ B.astype(np.float64)
    error = np.abs(C.astype(np.float64) - right).max() / np.abs(right).max()
    return {"size": size, "error": float(error), "hazards": sorted({h.kind for h in trace.hazards})}


def timed(printed: Printed, size: int = SIZE) -> dict:
    """Median, least and largest ms on this machine's GPU, after checking the result."""
    import cupy

    A, B, C = (cupy.asarray(one) for one in matrices(printed, size))
    build, grid = printed.build(gpu().arch), printed.blocks(size, size, size)

    def run(A, B, C):
        kernels.launch(build, printed.entry, grid, printed.block, printed.arguments(A, B, C))

    run(A, B, C)
    right = A.astype(cupy.float32) @ B.astype(cupy.float32)
    error = float(cupy.abs(C.astype(cupy.float32) - right).max() / cupy.abs(right).max())
    sets = [tuple(one.copy() for one in (A, B, C)) for _ in range(3)]
    found = time({"kernel": run}, sets)["kernel"]
    return {
        "size": size,
        "error": error,
        "ms_median": found.median,
        "ms_min": min(found.samples),
        "ms_max": max(found.samples),
    }


def rows(text: str, given: Mapping[str, str], arch: int | str, size: int) -> Iterator[dict]:
    """What is known of each kernel: compiled, and run on the emulator, or checked and timed where there is a GPU."""
    for printed in read(text, given):
        row = compiled(printed, arch)
        if "refused" not in row and printed.block:
            try:
                if gpu() is not None:
                    row["timed"] = timed(printed)
                else:
                    row["emulated"] = emulated(printed, arch, size)
            except EmulatorError as stopped:
                row["stopped"] = str(stopped).splitlines()[0]
        yield row


def report(path: Path, given: Mapping[str, str], arch: int | str, size: int, keep: bool) -> None:
    """Prints a table of the kernels in this file; keep stores the rows, on a GPU."""
    found = list(rows(path.read_text(encoding="utf-8"), given, arch, size))
    heads = ["kernel", "registers", "stack", "shared", "blocks per SM", "error", "hazards", "ms"]
    lines = []
    for row in found:
        if "refused" in row:
            lines.append([row["kernel"], row["refused"], *[""] * 6])
            continue
        ran, clock = row.get("emulated", {}), row.get("timed", {})
        seen = ran or clock
        error = f"{seen['error']:.0e}" if seen else row.get("stopped", "no launch shown")
        lines.append(
            [
                *(row["kernel"], row["registers"], row["stack"], row["shared_bytes"]),
                *(row.get("blocks_per_sm", ""), error, ", ".join(ran.get("hazards", ()))),
                f"{clock['ms_median']:.2f}" if clock else "",
            ]
        )
    print(table(heads, lines))
    if keep:
        if gpu() is None:
            raise ValueError("--store keeps times, and there is no GPU here")
        here = gpu().name.lower().replace(" ", "-")
        store(f"as-printed-{here}", METHOD, rows=found)
