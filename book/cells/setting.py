"""The configuration that the book's pages time, for a chapter that dissects the same kernel.

A cell says `macros = setting.used("warp_tiled", 4096)` and passes `macros` to `kernels.gemm`,
`kernels.build` and `measure.bench` alike; the line that it prints tells the reader which it is.
"""

import textwrap

import kernels
from kernels.settings import BOOK_ARCH
from measure.results import recorded

WIDTH = 88


def used(rung: str, size=4096, show: bool = True, **formats: int) -> dict[str, int]:
    """All macros of a rung as it was timed at this size on the GPU that the pages show.

    formats: macros that choose number formats, such as HALF_OUTPUT=1. They come from the recorded row
    of that size; where none was recorded, from `kernels.settings` for that GPU's generation.
    """
    found = kernels.find(rung)
    types = found.types(formats)
    macros, source = _recorded(rung, size, types)
    if macros is None:
        chosen = kernels.configuration(rung, size, BOOK_ARCH, formats)
        macros, source = dict(chosen.macros), chosen.source
    if show:
        values = " ".join(f"{name}={value}" for name, value in macros.items()) or "no macros"
        print(textwrap.fill(f"{rung} as timed at {_size(size)}: {values} ({source})", WIDTH))
    return macros


def _recorded(rung: str, size, types) -> tuple[dict[str, int] | None, str]:
    M, N, K = (size, size, size) if isinstance(size, int) else size
    try:
        recording = recorded()
    except FileNotFoundError:
        return None, ""
    rows = recording.select(rung, m=M, n=N, k=K, inputs=types.inputs, output=types.output)
    known = set(kernels.find(rung).macros)
    if not rows or set(rows[0]["config"]) - known:
        return None, ""
    return kernels.find(rung).resolve(rows[0]["config"]), recording.label


def _size(size) -> str:
    return str(size) if isinstance(size, int) else "x".join(map(str, size))
