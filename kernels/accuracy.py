"""How far from the exact product a correct kernel may land, and how far one did.

Let u be half the spacing of the accumulator's numbers at 1. Rounding errors of a sum of K random
terms are independent and of either sign, so they grow with sqrt(K) (Higham and Mary, "A new
approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019), not with K as
the worst case does. The bound here, per element, is

    input rounding   2 u_in (|s| + L r)           s = (A B)_ij,  r = sqrt((A*A) (B*B))_ij, the spread of a random sum
    accumulation     u L sqrt(K) (|s| + r)        never more than the worst case, (K + 1) u (|A||B|)_ij
    epilogue         3 u (|alpha s| + |beta C|)   two products and a sum
    output           u_out |result|               and half a subnormal spacing

with L = 6 standard deviations. It is tight enough that one term left out of thousands, or one taken
twice, is seen.

u is 2^-24 for fp32 FMA. Tensor cores add several products to the accumulator at once after aligning
them to the largest, and cut instead of rounding (Fasi, Higham, Mikaitis, Pranesh, "Numerical
behavior of NVIDIA tensor cores", PeerJ CS 7, 2021): 2^-22 covers it. u_in is 0 where the inputs
enter as they are (fp16 products are exact in fp32), and 2^-10 for TF32, which keeps 10 bits after
the point and may cut the rest.
"""

from dataclasses import dataclass

from .blocks import numbers_of
from .formats import decode
from .rung import Types

SPREAD = 6.0
INPUT_ERROR = {"tf32": 2.0**-10}
# Of 8-bit floats Hopper's wgmma keeps 13 bits after the point of the largest product (DeepSeek-V3
# technical report, 2024, section 3.5.2); sums of int8 are exact.
ACCUMULATION_ERROR = {"float32": 2.0**-24, "float8_e4m3fn": 2.0**-13, "int8": 2.0**-24}
TENSOR_CORE_ERROR = 2.0**-22
OUTPUT_ERROR = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SMALLEST = {"float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}


@dataclass(frozen=True)
class Accuracy:
    """The worst element. `of_bound` above 1 (or nan) is wrong; `relative`: error over (|A||B|)_ij."""

    of_bound: float
    relative: float
    index: tuple[int, int]
    value: float
    expected: float
    wrong: int

    @property
    def ok(self) -> bool:
        return self.wrong == 0

    def __str__(self) -> str:
        row, col = self.index
        if self.ok:
            return f"{self.of_bound:.2f} of the error bound"
        return f"{self.wrong} elements wrong; C[{row}, {col}] is {self.value:.6g}, not {self.expected:.6g}"


def accuracy(result, A, B, C, alpha: float, beta: float, types: Types) -> Accuracy:
    """Compare every element of `result` with a float64 reference. NumPy or CuPy arrays, all of one
    kind. Inputs with block scales count as what they were rounded to (`blocks`): that error is no fault of the kernel.
    """
    if hasattr(result, "__cuda_array_interface__"):
        import cupy as xp
    else:
        import numpy as xp
    A, B = numbers_of(A, types.inputs), numbers_of(B.T, types.inputs).T
    result = decode(result, types.output)
    a, b = A.astype(xp.float64), B.astype(xp.float64)
    K = a.shape[1]
    product = a @ b
    spread = xp.sqrt(xp.abs((a * a) @ (b * b)))
    magnitude = xp.abs(a) @ xp.abs(b)
    old = beta * decode(C, types.output).astype(xp.float64) if beta != 0 else xp.zeros_like(product)
    expected = alpha * product + old

    u_in = INPUT_ERROR.get(types.inputs, 0.0)
    u = ACCUMULATION_ERROR.get(types.inputs, TENSOR_CORE_ERROR)
    rounded = xp.minimum(2 * u_in * (xp.abs(product) + SPREAD * spread), 2.01 * u_in * magnitude)
    summed = xp.minimum(u * SPREAD * K**0.5 * (xp.abs(product) + spread), (K + 1) * u * magnitude)
    bound = abs(alpha) * (rounded + summed) + 3 * u * (xp.abs(alpha * product) + xp.abs(old))
    bound += OUTPUT_ERROR[types.output] * (xp.abs(expected) + bound) + SMALLEST[types.output]

    error = xp.abs(result.astype(xp.float64) - expected)
    ratio = xp.where(xp.isfinite(error), error / bound, xp.inf)
    index = divmod(int(xp.argmax(ratio)), ratio.shape[1])
    scale = abs(alpha) * magnitude + xp.abs(old)
    return Accuracy(
        of_bound=float(ratio[index]),
        relative=float(xp.max(error / xp.maximum(scale, SMALLEST["float32"]))),
        index=index,
        value=float(result[index]),
        expected=float(expected[index]),
        wrong=int((ratio > 1).sum()),
    )
