"""Where a layer's products stand on the roofline, what a fused epilogue saves, and what was recorded."""

from __future__ import annotations

from collections.abc import Iterable

import figures
from book.cells import columns
from kernels import linear as fused
from kernels.gpus import peak
from kernels.rungs import find
from measure.provenance import recording

GPU = "NVIDIA H200"
WIDTH, INNER = 2048, 8192  # of the model that the page supposes
BYTES = 2  # of a float16


def intensity(M: int, N: int, K: int) -> float:
    """Operations per byte of a product whose matrices are each moved once."""
    return 2 * M * N * K / (BYTES * (M * K + K * N + M * N))


def attainable(M: int, N: int, K: int) -> float:
    """TFLOP/s that the data sheet's arithmetic and bandwidth allow."""
    sheet = peak(GPU)
    return min(sheet.fp16, intensity(M, N, K) * sheet.bandwidth / 1000)


def least_us(M: int, N: int, K: int) -> float:
    """Microseconds that this product takes at least."""
    return 2e-6 * M * N * K / attainable(M, N, K)


def layers(tokens: int) -> dict[str, tuple[int, int, int]]:
    """{name: (M, N, K)} of the products of one layer for so many tokens at a time."""
    return {
        "queries, keys, values": (tokens, 3 * WIDTH, WIDTH),
        "attention's output": (tokens, WIDTH, WIDTH),
        "up": (tokens, INNER, WIDTH),
        "down": (tokens, WIDTH, INNER),
    }


def table(counts: Iterable[int]):
    """The least time of each product of a layer, for several numbers of tokens."""
    rows = [
        [
            tokens,
            name,
            f"{M} x {N} x {K}",
            intensity(M, N, K),
            attainable(M, N, K),
            least_us(M, N, K),
        ]
        for tokens in counts
        for name, (M, N, K) in layers(tokens).items()
    ]
    return figures.table(
        {
            "tokens": "rows of the activations: tokens that are worked on at a time",
            "product": "which matrix of the layer",
            "M x N x K": "its size",
            "operations per byte": "of matrices that are each moved once",
            "TFLOP/s": f"at most, on {GPU}, by its data sheet",
            "µs": "at least, by the same",
        },
        rows,
        title="A layer of a small language model",
    )


def roofline(counts: Iterable[int]):
    """The product `up` for several numbers of tokens, under the roofs of the data sheet."""
    sheet = peak(GPU)
    sizes = {f"{tokens} token{'s' * (tokens > 1)}": layers(tokens)["up"] for tokens in counts}
    return figures.roofline(
        {name: (intensity(*size), attainable(*size)) for name, size in sizes.items()},
        bandwidth=sheet.bandwidth / 1000,
        peaks={"FP16": sheet.fp16},
        kinds=dict.fromkeys(sizes, "float16"),
        title="Few tokens wait for the weights, many for the arithmetic",
        caption=f"Where the product lies for so many tokens at a time, and the most that {GPU} allows there, "
        "by its data sheet. Not a measurement.",
    )


def change():
    """The rung's epilogue and the fused one."""
    return figures.diff_source(
        find(fused.RUNG).path.read_text(encoding="utf-8"),
        fused.source(),
        names=(fused.RUNG, "linear_bias_gelu"),
        context=0,
        title="What changes in the kernel: its arguments, its pitches, and how it stores",
    )


def epilogue():
    """The function that stores."""
    text = (find(fused.RUNG).path.parent / "bias_gelu.cuh").read_text(encoding="utf-8")
    return figures.cuda(text[text.index("__device__ __forceinline__ float gelu(") :])


def speeds():
    """What was recorded of the fused layer."""
    stored = recording("linear")
    return figures.table(
        {
            "M x N x K": "tokens, outputs, inputs",
            "kernel": "ours with and without gelu; PyTorch's product and gelu as two kernels, compiled by it, "
            "and its product alone",
            "µs": "median time",
        },
        [
            [f"{row['m']} x {row['n']} x {row['k']}", row["kernel"], 1000 * row["ms_median"]]
            for row in stored["rows"]
        ],
        title="gelu(x w + b), timed in one run",
        caption=stored["label"],
    )


def when():
    """What to do about a product, in the order in which to ask."""
    return columns.written(
        "When to write a kernel",
        {
            "if": "what you find",
            "then": "what to do",
        },
    )
