"""Experiments of *Fewer bits*: numbers in 8 bits, and what their sums lose, on the emulator and as measured."""

from __future__ import annotations

from functools import cache

import numpy as np

from book.cells import columns, trials
from kernels import formats
from kernels.gemm import gemm

SMALL = {
    "BN": 64,
    "CLUSTER": 1,
    "BLOCKS": 1,
    "FLOAT_OUTPUT": 1,
}  # a tile that the emulator computes soon
FP8 = "float8_e4m3fn"


def e4m3(values) -> np.ndarray:
    """The nearest numbers of e4m3, as their 8 bits."""
    return formats.encode(np.asarray(values, np.float32), FP8)


def value(bits) -> np.ndarray:
    """What 8 bits are worth."""
    return formats.decode(np.asarray(bits, np.uint8), FP8)


def multiply(A, B, **macros: int) -> np.ndarray:
    """`wgmma_fp8` on the emulator, for operands as 8 bits; float32 out."""
    return gemm("wgmma_fp8", A, B, macros={**SMALL, **macros}, machine="emulator").C


def spell(*numbers: float) -> None:
    """Shows numbers as e4m3 has them: sign, exponent and mantissa, and what becomes of them."""
    rows = []
    for number in numbers:
        bits = int(e4m3([number])[0])
        text = f"{bits:08b}"
        exponent, mantissa = bits >> 3 & 15, bits & 7
        power = (
            f"2^{exponent - 7} x {1 + mantissa / 8:g}" if exponent else f"2^-6 x {mantissa / 8:g}"
        )
        stored = float(value(bits))
        error = abs(stored - number) / number
        rows.append([f"{number:g}", f"{text[0]} {text[1:5]} {text[5:]}", power, f"{stored:g}", f"{error:.1%}"])  # fmt: skip
    columns.show(
        {
            "number": "what is to be stored",
            "bits": "a sign, four bits of exponent, three of mantissa",
            "means": "the exponent less 7 as a power of two, times 1 and the mantissa in eighths; with exponent bits 0000, "
            "2^-6 times the mantissa in eighths alone",
            "stored": "the value that the bits have",
            "off by": "the distance from the number, as a share of it",
        },
        rows,
    )


def types() -> None:
    """Shows what each type makes of a k-step."""
    rows = [
        ["e4m3", 1, 128, "8,192", "float, cut off at 13 bits below the largest"],
        ["int8", 1, 128, "8,192", "exact, in 32-bit integers"],
        ["float16, bfloat16", 2, 64, "4,096", "float32, cut off at 25 bits below the largest"],
        ["tf32", 4, 32, "2,048", "float32, cut off at 25 bits below the largest"],
    ]
    columns.show(
        {
            "": "",
            "bytes": "per number in memory",
            "k per k-step": "numbers in a row of 128 bytes",
            "operations per clock": "of one multiprocessor, by wgmma",
            "sums": "how the tensor core adds",
        },
        rows,
    )


@cache
def error(K: int, mean: float, promote: int, M: int = 32, N: int = 32) -> float:
    """Frobenius error of a product of random e4m3 numbers with this mean, as a share of float64's product."""
    rng = np.random.default_rng(1)
    A, B = e4m3(rng.standard_normal((M, K)) + mean), e4m3(rng.standard_normal((K, N)) + mean)
    right = value(A).astype(float) @ value(B).astype(float)
    return float(np.linalg.norm(multiply(A, B, PROMOTE=promote) - right) / np.linalg.norm(right))


def errors(mean: float, *depths: int) -> None:
    """Shows the error by K without promotion and with it."""
    rows = [[K, *(f"{error(K, mean, every):.1e}" for every in (0, 512, 128))] for K in depths]
    columns.show(
        {
            "K": "depth of the product",
            "no promotion": "error of C, as a share of it",
            "every 512": "sums moved to float32 every 512 of k",
            "every 128": "sums moved to float32 every 128 of k",
        },
        rows,
        caption=f"32 x 32 x K, random e4m3 numbers with mean {mean:g}, on the emulator.",
    )


def measured_errors() -> None:
    """Shows what the GPU and cuBLASLt had."""
    keys = ("none", "every 512", "every 128", "cuBLASLt fast", "cuBLASLt precise")
    rows = [
        [row["k"], f"{row['mean']:g}", *(f"{row[key]:.1e}" for key in keys)]
        for row in trials.stored()["errors"]
    ]
    columns.show(
        {
            "K": "depth of the product",
            "mean": "of the random numbers, whose spread is 1",
            "no promotion": "wgmma_fp8, sums left in the tensor core",
            "every 512": "wgmma_fp8, sums moved every 512 of k",
            "every 128": "wgmma_fp8, sums moved every 128 of k",
            "library, fast": "cuBLASLt with fast accumulation",
            "library, precise": "cuBLASLt without fast accumulation",
        },
        rows,
        caption=f"512 x 512 x K, error of C as a share of it. {trials.label()}",
    )
