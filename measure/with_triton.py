"""The product in Triton beside ours and cuBLAS: `python -m measure triton`.

On a GPU with PyTorch and Triton it searches a few settings of each of Triton's kernels, checks their
results, and times the best of each in the same run as our rungs and cuBLAS; `results/triton-<gpu>.json`
keeps it. `compiled` gives the PTX that Triton makes, which needs Triton but no GPU, and
`python -m measure triton --ptx` stores it in `measure/ptx/`, where `stored_ptx` finds it without Triton.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from kernels.errors import UnsupportedGPU
from kernels.gemm import plan
from kernels.gpus import gpu
from kernels.rungs import find

from . import foreign, with_torch
from .foreign import Compiled, tidy
from .progress import progress
from .provenance import label_here, store
from .timing import METHOD, Launch, cublas_launches, matrices, measure, rung_launches

SIZES = (4096, 8192)  # a launch from Triton's Python takes as long as a whole product of 1024
RUNGS = ("mma_multistage", "wgmma_pipelined", "wgmma_persistent")
SETTING = {"HALF_OUTPUT": 1}  # float16 in, float16 out, as Triton's kernels and torch.mm
RELATIVE_ERROR = 2e-2  # of a float16 result against cuBLAS's; a wrong tile is off by 1
TILED = tuple(
    {"BM": bm, "BN": bn, "BK": bk, "num_warps": warps, "num_stages": stages}
    for bm, bn, bk, warps, stages in (
        (128, 128, 32, 4, 3), (128, 128, 64, 4, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 4),
        (128, 256, 64, 8, 3), (256, 128, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 4), (64, 256, 64, 4, 4),
    )
)  # fmt: skip
PERSISTENT = tuple(
    {"BM": bm, "BN": bn, "BK": 64, "GROUP": group, "num_warps": warps, "num_stages": stages}
    for bm, bn, warps in ((128, 128, 4), (128, 128, 8), (128, 256, 8), (256, 128, 8))
    for stages in (3, 4)
    for group in (4, 8, 16)
)
FOR_COMPILER = ("num_warps", "num_stages")
SOURCE = Path(__file__).parent / "triton_kernels.py"
ARCHITECTURES = (80, 90)  # what is stored: `tiled` in its first setting


available = partial(with_torch.available, "triton")


def compiled(arch: int = 80, **setting: int) -> Compiled:
    """The kernel `tiled` for float16 inputs and a float32 result. ImportError without Triton; no GPU is needed.

    M, N and K count as multiples of 16, as they do when Triton is called with such numbers.
    """
    try:
        import triton
    except ModuleNotFoundError as missing:
        raise foreign.needs("triton") from missing
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from .triton_kernels import tiled

    setting = {**TILED[0], **setting}
    tile = {name: value for name, value in setting.items() if name not in FOR_COMPILER}
    signature = {"A": "*fp16", "B": "*fp16", "C": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
    divisible = {(at,): [["tt.divisibility", 16]] for at in range(len(signature))}
    source = ASTSource(
        fn=tiled,
        signature={**signature, **dict.fromkeys(tile, "constexpr")},
        constexprs=tile,
        attrs=divisible,
    )
    options = {name: setting[name] for name in FOR_COMPILER}
    made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    meta = made.metadata
    return Compiled(
        tidy(made.asm["ptx"]),
        meta.name,
        meta.shared,
        32 * setting["num_warps"],
        triton.__version__,
        setting,
    )


def write_ptx() -> list[Path]:
    """Compile with the Triton that is here and store the PTX. ImportError without Triton."""
    written = []
    for arch in ARCHITECTURES:
        made = compiled(arch)
        what = f"tiled of measure/triton_kernels.py, for sm_{arch}"
        command = f"Triton {made.version}: python -m measure triton --ptx"
        written.append(foreign.write(f"triton_tiled_sm{arch}", what, command, SOURCE, made))
    return written


def stored_ptx(arch: int = 80) -> Compiled:
    """What `write_ptx` stored; needs no Triton."""
    return foreign.read(f"triton_tiled_sm{arch}")


def _tiled_launches(sets: Sequence[tuple], setting: Mapping[str, int]) -> list[Launch]:
    from .triton_kernels import tiled

    def call(a, b, c):
        (M, K), N = a.shape, b.shape[1]
        grid = (-(-N // setting["BN"]), -(-M // setting["BM"]))
        return lambda: tiled[grid](a, b, c, M, N, K, **setting)

    return [call(*map(_tensor, one)) for one in sets]


def _persistent_launches(sets: Sequence[tuple], setting: Mapping[str, int]) -> list[Launch]:
    from triton.tools.tensor_descriptor import TensorDescriptor

    from .triton_kernels import persistent

    bm, bn, bk = setting["BM"], setting["BN"], setting["BK"]

    def call(a, b, c):
        (M, K), N = a.shape, b.shape[1]
        boxes = zip((a, b, c), ([bm, bk], [bk, bn], [bm, bn]), strict=True)
        maps = [TensorDescriptor.from_tensor(tensor, box) for tensor, box in boxes]
        tiles = -(-M // bm) * -(-N // bn)
        blocks = min(gpu().sms, tiles)
        return lambda: persistent[(blocks,)](*maps, M, N, K, BLOCKS=blocks, **setting)

    return [call(*map(_tensor, one)) for one in sets]


KERNELS: Mapping[str, tuple[Callable, Sequence[Mapping[str, int]]]] = {
    "triton tiled": (_tiled_launches, TILED),
    "triton persistent": (_persistent_launches, PERSISTENT),
}


def _tensor(matrix):
    """PyTorch's view of a matrix; 16-bit integers are the bits of bfloat16 (`kernels.formats`)."""
    import torch

    tensor = torch.from_dlpack(matrix)
    return tensor.view(torch.bfloat16) if tensor.dtype == torch.uint16 else tensor


def _search(
    name: str, sets: Sequence[tuple], until: float
) -> tuple[Mapping[str, int], list[dict], float]:
    """The setting that was fastest, all that were tried, and the error of its result."""
    import cupy

    launches_of, settings = KERNELS[name]
    A, B, C = sets[0]
    expected = A.astype(cupy.float32) @ B.astype(cupy.float32)
    scale = float(cupy.abs(expected).max())
    tried, best = [], None
    for setting in settings:
        if tried and time.monotonic() > until:
            break
        row: dict = {"kernel": name, "size": len(A), "setting": dict(setting)}
        try:
            launches = launches_of(sets, setting)
            C.fill(float("nan"))
            made = launches[0]()
            cupy.cuda.get_current_stream().synchronize()
            error = float(cupy.abs(C.astype(cupy.float32) - expected).max()) / scale
            row |= {
                "registers": getattr(made, "n_regs", None),
                "spills": getattr(made, "n_spills", None),
            }
            if not error < RELATIVE_ERROR:
                tried.append(row | {"wrong": error})
                continue
            timing = measure({name: launches}, samples=7, pause_s=0.03, warm_up_ms=3.0)[name]
        except (
            Exception
        ) as problem:  # out of resources, mostly: what Triton raises differs by version
            tried.append(
                row | {"refused": f"{type(problem).__name__}: {str(problem).splitlines()[0][:120]}"}
            )
            continue
        row |= {"ms": round(timing.median, 5), "error": error}
        tried.append(row)
        if best is None or row["ms"] < best["ms"]:
            best = row
    if best is None:
        said = "; ".join(str(row.get("refused", row.get("wrong"))) for row in tried)
        raise UnsupportedGPU(f"{name}: no setting ran: {said}")
    return best["setting"], tried, best["error"]


def record(sizes: Sequence[int] = SIZES, seconds: float = 240.0) -> Path:
    """Search, check, time and store. UnsupportedGPU where there is no GPU, PyTorch or Triton."""
    if not available():
        raise UnsupportedGPU("this needs a GPU, and a PyTorch and a Triton that can use it")
    import torch
    import triton

    until = time.monotonic() + seconds
    rows, tried = [], []
    path = None
    for number, size in enumerate(sizes):
        progress(number, len(sizes), f"Triton at {size}")
        plans = {
            name: plan(name, size, size, size, SETTING)
            for name in RUNGS
            if find(name).runs_on(gpu().arch)
        }
        types = plans[RUNGS[0]].types
        sets = matrices(types, ((size, size),) * 3)
        chosen, errors = {}, {}
        for name in KERNELS:
            try:
                chosen[name], seen, errors[name] = _search(name, sets, until)
                tried += seen
            except UnsupportedGPU as refusal:
                print(refusal)
        competitors = {name: KERNELS[name][0](sets, setting) for name, setting in chosen.items()}
        competitors |= {name: rung_launches(how, sets) for name, how in plans.items()}
        competitors["cublas"] = cublas_launches(sets, types)
        settings = {name: how.macros for name, how in plans.items()} | chosen
        for row in foreign.timed(competitors, size, settings):
            name = row["kernel"]
            rows.append(row | ({"error": errors[name]} if name in errors else {}))
            print(f"{size} {name}: {row['tflops']:.1f} TFLOP/s {row['setting']}")
        path = store(
            f"triton-{gpu().slug}",
            METHOD,
            label=label_here(f"Triton {triton.__version__}", f"PyTorch {torch.__version__}"),
            types="float16 inputs, float32 sums, float16 result",
            rows=rows,
            tried=tried,
        )
    progress(len(sizes), len(sizes))
    return path
