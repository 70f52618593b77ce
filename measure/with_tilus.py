"""Tilus's published kernel `matmul_v3` beside a rung, PyTorch and cuBLAS, in one run.

`python -m measure tilus FILE`, on a GPU with PyTorch and the package tilus, reads the class MatmulV3
from FILE, the file `matmul_v3.py` of Tilus's tutorial (Apache-2.0), which is not part of this
repository; times each point of its search space and stores `results/tilus-<gpu>.json`. (The recording
is of tilus 0.2.0 with apache-tvm-ffi 0.1.9; with 0.1.15 what Tilus generates did not compile.)
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kernels.errors import UnsupportedGPU
from kernels.gemm import plan
from kernels.gpus import gpu

from .foreign import timed
from .provenance import label_here, store
from .timing import METHOD, cublas_launches, matrices, rung_launches
from .with_torch import available, torch_launches

SIZE = 4096
RUNG, SETTING = "mma_multistage", {"HALF_OUTPUT": 1}
# The points that the tutorial's three autotune lines span.
SPACE = [
    {"num_warps": warps, "block_m": bm, "block_n": bn, "block_k": bk}
    for warps, (bm, bn), bk in itertools.product(
        (4, 8), ((128, 128), (128, 64), (64, 128)), (16, 32)
    )
]
TUNED = re.compile(r"^@tilus\.autotune\(.*\)\n", re.MULTILINE)


@contextmanager
def published(file: str | Path) -> Iterator[type]:
    """The class MatmulV3 of the tutorial's file, without its search: a setting is given to it by hand.

    It is loaded from a copy in a temporary folder, which stays for as long as Tilus may read the source.
    FileNotFoundError, with where the file comes from, when it is not there; ValueError when it holds
    no class of that name.
    """
    path = Path(file)
    if not path.is_file():
        raise FileNotFoundError(
            f"no file {path}: matmul_v3.py is in the examples of Tilus's repository, github.com/NVIDIA/tilus"
        )
    text = path.read_text(encoding="utf-8")
    if "class MatmulV3" not in text:
        raise ValueError(f"{path} has no class MatmulV3: this measures that tutorial kernel only")
    with TemporaryDirectory() as folder:
        bare = Path(folder) / "matmul_v3_without_search.py"
        bare.write_text(TUNED.sub("", text), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(bare.stem, bare)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module.MatmulV3


def record(file: str | Path) -> Path:
    """Check and time every setting; `results/tilus-<gpu>.json`. UnsupportedGPU without a GPU and PyTorch."""
    if not available():
        raise UnsupportedGPU("this needs a GPU and a PyTorch that can use it")
    import torch

    with published(file) as kernel:
        rows = _rows(kernel, SIZE)
    return store(
        f"tilus-{gpu().slug}",
        METHOD,
        label=label_here(
            f"tilus {importlib.metadata.version('tilus')}", f"PyTorch {torch.__version__}"
        ),
        types="float16 inputs, float32 sums, float16 result",
        size=SIZE,
        rows=rows,
    )


def _rows(kernel: type, size: int) -> list[dict]:
    """The settings, the rung and the libraries, timed in turn, and after them the settings that do not compile."""
    import torch

    how = plan(RUNG, size, size, size, SETTING)
    sets = matrices(how.types, how.shapes())
    tensors = [tuple(torch.from_dlpack(matrix) for matrix in one) for one in sets]
    expected = tensors[0][0].float() @ tensors[0][1].float()

    competitors, settings, errors, refused = {}, {}, {}, []
    for number, setting in enumerate(SPACE):
        name = f"matmul_v3 {number}"
        try:
            script = kernel(**setting)
            for a, b, c in tensors:
                script(size, size, size, a, b, c)
            torch.cuda.synchronize()
        except Exception as error:  # a setting that does not compile is a row of its own
            why = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
            refused.append({"kernel": "matmul_v3", "setting": setting, "refused": why})
            continue
        result = tensors[0][2].float()
        errors[name] = float((result - expected).abs().max() / expected.abs().max())
        settings[name] = setting
        competitors[name] = [
            lambda s=script, a=a, b=b, c=c: s(size, size, size, a, b, c) for a, b, c in tensors
        ]
    competitors[RUNG] = rung_launches(how, sets)
    competitors["torch.mm"] = torch_launches(sets)
    competitors["cublas"] = cublas_launches(sets, how.types)
    rows = timed(competitors, size, settings)
    for row in rows:
        if row["kernel"] in errors:
            row["error"] = errors[row["kernel"]]
            row["kernel"] = "matmul_v3"
    return rows + refused
