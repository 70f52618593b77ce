"""The product in CuTe's Python language: its PTX, which needs `nvidia-cutlass-dsl` but no GPU, and what is stored of it.

`python -m measure cute` compiles `measure/cute_kernels.py` and stores the PTX in `measure/ptx/`, where
`stored_ptx` finds it without the package.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from importlib.metadata import version
from pathlib import Path

from .with_triton import PTX, Compiled, hash_of, tidy

SOURCE = Path(__file__).parent / "cute_kernels.py"
ARCHITECTURES = (80, 90)
TILE = {"BM": 128, "BN": 128, "BK": 32}
THREADS = 128
SHARED_BYTES = 2 * (TILE["BM"] + TILE["BN"]) * TILE["BK"]


def compiled(arch: int = 80) -> Compiled:
    """The kernel `tiled` for float16 inputs and a float32 result. ImportError without the package; no GPU is needed."""
    with tempfile.TemporaryDirectory() as folder:
        # The package reads these when it is imported, so the import stands here.
        asked = {"ARCH": f"sm_{arch}", "KEEP": "ptx", "DUMP_DIR": folder, "LINEINFO": "1"}
        os.environ |= {f"CUTE_DSL_{name}": value for name, value in asked.items()}
        import cutlass
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
    head = {
        "what": f"tiled of measure/cute_kernels.py, for sm_{arch}",
        "made by": f"nvidia-cutlass-dsl {made.version}: python -m measure cute --arch {arch}",
        "source": hash_of(SOURCE),
        "version": made.version,
    }
    path = PTX / f"cute_tiled_sm{arch}.ptx"
    path.write_text(f"// {json.dumps(head)}\n{made.ptx}", encoding="utf-8")
    return path


def stored_ptx(arch: int = 80) -> Compiled:
    """What `write_ptx` stored; needs no package."""
    text = (PTX / f"cute_tiled_sm{arch}.ptx").read_text(encoding="utf-8")
    head = json.loads(text.splitlines()[0].removeprefix("// "))
    return Compiled(text, "tiled", SHARED_BYTES, THREADS, head["version"], TILE)
