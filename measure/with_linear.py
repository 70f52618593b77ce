"""gelu(x @ w + bias) in one kernel beside PyTorch's three: `python -m measure linear`.

On a GPU with PyTorch it compares forward and backward with PyTorch's own, on batches and views too, then times
the fused kernel beside the plain rung, PyTorch's layer and the same compiled by PyTorch, and stores
`results/linear-<gpu>.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernels.errors import UnsupportedGPU
from kernels.gpus import gpu

from .provenance import label_here, store
from .timing import METHOD, Launch, measure
from .with_torch import available

# (M, N, K): what a layer of a small language model has for 2,048 tokens at a time, for 256, and for 16.
SHAPES = ((2048, 8192, 2048), (256, 8192, 2048), (16, 8192, 2048), (4096, 4096, 4096))
CHECKED = (((256, 512), (512, 1024)), ((3, 100, 256), (256, 264)), ((2, 64, 512), (2, 512, 128)))
RELATIVE = 1e-2  # of the largest value: a float16 result, and a gradient that went through one


def check() -> dict[str, float]:
    """{what: relative error} of forward and backward against PyTorch in float32. RuntimeError where one is too large."""
    import torch

    from kernels.torch_linear import linear_gelu

    errors: dict[str, float] = {}
    torch.manual_seed(0)

    def compare(name: str, ours, theirs) -> None:
        error = float((ours.float() - theirs).abs().max() / theirs.abs().max())
        errors[name] = error
        if not error < RELATIVE:
            raise RuntimeError(f"{name}: relative error {error:.1e}")

    for x_shape, w_shape in CHECKED:
        shapes = (x_shape, w_shape, (w_shape[-1],))
        given = [torch.randn(s, device="cuda").half().requires_grad_() for s in shapes]
        twins = [t.detach().float().requires_grad_() for t in given]
        out = linear_gelu(*given)
        reference = torch.nn.functional.gelu(twins[0] @ twins[1] + twins[2])
        weights = torch.randn_like(reference)
        (out.float() * weights).sum().backward()
        (reference * weights).sum().backward()
        compare(f"forward {x_shape}", out, reference)
        for what, one, other in zip(("x", "weight", "bias"), given, twins, strict=True):
            compare(f"gradient of {what} {x_shape}", one.grad, other.grad)
    big = torch.randn(300, 1024, device="cuda").half()
    w, b = torch.randn(256, 512, device="cuda").half(), torch.randn(512, device="cuda").half()
    view = big[8:264, 64:320]
    reference = torch.nn.functional.gelu(view.float() @ w.float() + b.float())
    compare("a view", linear_gelu(view, w, b), reference)
    compare("a transposed view", linear_gelu(big[:256, :256].T, w, b),
            torch.nn.functional.gelu(big[:256, :256].T.float() @ w.float() + b.float()))  # fmt: skip
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        late = linear_gelu(view, w, b)
    stream.synchronize()
    compare("another stream", late, reference)
    return errors


def _competitors(sets: Sequence[tuple]) -> Mapping[str, list[Launch]]:
    """Launches on each set (x, w, bias) of CuPy arrays."""
    import torch

    from kernels.linear import prepared

    tensors = [tuple(map(torch.from_dlpack, one)) for one in sets]

    def separate(x, w, b):
        return torch.nn.functional.gelu(torch.addmm(b, x, w))

    compiled = torch.compile(separate)
    return {
        "fused": [prepared(*one) for one in sets],
        "no gelu": [prepared(*one, gelu=False) for one in sets],
        "torch": [lambda t=t: separate(*t) for t in tensors],
        "torch.compile": [lambda t=t: compiled(*t) for t in tensors],
        "torch.addmm": [lambda t=t: torch.addmm(t[2], t[0], t[1]) for t in tensors],
    }


def record(shapes: Sequence[tuple[int, int, int]] = SHAPES) -> Path:
    """Check, time and store. UnsupportedGPU without a GPU or without PyTorch."""
    if not available():
        raise UnsupportedGPU("this needs a GPU and a PyTorch that can use it")
    import cupy
    import torch

    errors = check()
    rng, rows = cupy.random.default_rng(0), []
    for M, N, K in shapes:
        bytes_of_set = 2 * (M * K + K * N + M * N)
        count = max(2, min(16, 2 * gpu().l2_bytes // bytes_of_set + 1))
        sets = [
            tuple(
                rng.standard_normal(shape, dtype=cupy.float32).astype(cupy.float16)
                for shape in ((M, K), (K, N), (N,))
            )
            for _ in range(count)
        ]
        competitors = dict(_competitors(sets))
        try:
            competitors["torch.compile"][0]()
        except Exception as problem:  # it needs a compiler on this machine, and Triton
            print(f"torch.compile: {type(problem).__name__}: {str(problem).splitlines()[0]}")
            del competitors["torch.compile"]
        for name, timing in measure(competitors).items():
            rows.append({"kernel": name, "m": M, "n": N, "k": K, "ms_median": timing.median,
                         "tflops": timing.tflops(M, N, K)})  # fmt: skip
            print(f"{M} x {N} x {K} {name}: {timing.median * 1e3:.1f} us")
    return store(
        f"linear-{gpu().slug}",
        METHOD,
        label=label_here(f"PyTorch {torch.__version__}"),
        errors=errors,
        rows=rows,
    )
