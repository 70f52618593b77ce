"""The product in CuTe's Python language: its PTX, which needs `nvidia-cutlass-dsl` but no GPU, and its times, which need
a GPU but no package.

`python -m measure cute` compiles `measure/cute_kernels.py` and stores the PTX in `measure/ptx/`, where
`stored_ptx` finds it. `python -m measure cute --time` runs what is stored beside our rungs and cuBLAS, and writes
`results/cute-<gpu>.json`.
"""

from __future__ import annotations

import os
import re
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from kernels.errors import UnsupportedGPU
from kernels.gemm import plan
from kernels.gpus import gpu

from . import foreign
from .foreign import Compiled, tidy
from .provenance import label_here, store
from .timing import METHOD, Launch, cublas_launches, matrices, rung_launches

SOURCE = Path(__file__).parent / "cute_kernels.py"
ARCHITECTURES = (80, 90)
TILE = {"BM": 128, "BN": 128, "BK": 32}
THREADS = 128
SAME_TILE = {"BM": 128, "BN": 128, "WM": 64, "WN": 64}  # for the rung that has one
SIZES = (4096, 8192)
RELATIVE_ERROR = 1e-3
SHARED_BYTES = 2 * (TILE["BM"] + TILE["BN"]) * TILE["BK"]


def compiled(arch: int = 80) -> Compiled:
    """The kernel `tiled` for float16 inputs and a float32 result. ImportError without the package; no GPU is needed."""
    with tempfile.TemporaryDirectory() as folder:
        # The package reads these when it is imported, so the import stands here.
        asked = {"ARCH": f"sm_{arch}", "KEEP": "ptx", "DUMP_DIR": folder, "LINEINFO": "1"}
        os.environ |= {f"CUTE_DSL_{name}": value for name, value in asked.items()}
        try:
            import cutlass
        except ModuleNotFoundError as missing:
            raise foreign.needs("nvidia-cutlass-dsl") from missing
        from cutlass import cute
        from cutlass.cute.runtime import make_ptr

        from .cute_kernels import launch

        half, single = (
            make_ptr(kind, 16, cute.AddressSpace.gmem, assumed_align=16)
            for kind in (cutlass.Float16, cutlass.Float32)
        )
        cute.compile(launch, half, half, single, *map(cutlass.Int32, (128, 128, 32)))
        (made,) = Path(folder).glob(f"*sm_{arch}*.ptx")
        text = made.read_text(encoding="utf-8")
    entry = re.search(r"\.entry\s+(\w+)", text)[1]
    text = tidy(text.replace(entry, "tiled"))  # the name that it gets spells out all types
    return Compiled(text, "tiled", SHARED_BYTES, THREADS, version("nvidia-cutlass-dsl"), TILE)


def write_ptx(arch: int) -> Path:
    """Compile with the package that is here and store the PTX. ImportError without it."""
    made = compiled(arch)
    what = f"tiled of measure/cute_kernels.py, for sm_{arch}"
    command = f"nvidia-cutlass-dsl {made.version}: python -m measure cute --arch {arch}"
    return foreign.write(f"cute_tiled_sm{arch}", what, command, SOURCE, made)


def stored_ptx(arch: int = 80) -> Compiled:
    """What `write_ptx` stored; needs no package."""
    return foreign.read(f"cute_tiled_sm{arch}")


def _launches(sets, size: int) -> tuple[list[Launch], int]:
    """The stored kernel on each set of matrices, and its registers; the driver compiles the PTX."""
    import cupy

    made = stored_ptx(90 if gpu().arch >= 90 else 80)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cute.ptx"
        path.write_text(made.ptx, encoding="utf-8")
        function = cupy.RawModule(path=str(path)).get_function(made.entry)
        registers = function.num_regs
    grid, n = (size // TILE["BN"], size // TILE["BM"], 1), np.int32(size)

    def call(a, b, c):
        given = (a, b, c, n, n, n)
        return lambda: function(grid, (THREADS, 1, 1), given, shared_mem=SHARED_BYTES)

    return [call(*one) for one in sets], registers


def record() -> Path:
    """Check and time the stored kernel beside two rungs and cuBLAS. UnsupportedGPU where there is no GPU for it."""
    if gpu() is None or gpu().arch < 80:
        raise UnsupportedGPU("this needs a GPU from sm_80 on")
    rows = []
    for size in SIZES:
        plans = {
            "mma_swizzled": plan("mma_swizzled", size, size, size, SAME_TILE),
            "mma_multistage": plan("mma_multistage", size, size, size),
        }
        types = plans["mma_swizzled"].types
        sets = matrices(types, ((size, size),) * 3)
        launches, registers = _launches(sets, size)
        error = foreign.error_of(launches[0], *sets[0], RELATIVE_ERROR)
        competitors = {"cute tiled": launches}
        competitors |= {name: rung_launches(how, sets) for name, how in plans.items()}
        competitors["cublas"] = cublas_launches(sets, types)
        settings = {name: how.macros for name, how in plans.items()} | {"cute tiled": TILE}
        for row in foreign.timed(competitors, size, settings):
            ours = row["kernel"] == "cute tiled"
            rows.append(row | ({"error": error, "registers": registers} if ours else {}))
    return store(
        f"cute-{gpu().slug}",
        METHOD,
        label=label_here(f"nvidia-cutlass-dsl {stored_ptx().version}"),
        types="float16 inputs, float32 sums, float32 result",
        rows=rows,
    )
