"""One warp, one product: a few lines of CUDA run as they are, and a wrong product told by its name."""

import textwrap

import numpy as np

import kernels
from book.exercises import diagnose
from book.exercises.exercise import Case, Product
from book.exercises.words import words


def run(cuda: str, *arrays, needs: int = 75):
    """One warp executes the only kernel in this CUDA source; arrays are changed in place.

    needs: the oldest architecture that has the kernel's instructions. A GPU here that has them runs it, else the
    emulator does; only the emulator returns a trace.
    """
    gpu = kernels.gpu()
    here = gpu is not None and gpu.arch >= needs
    built = kernels.build(cuda, arch=None if here else 80, name="one_warp")
    machine = "gpu" if here else "emulator"
    return kernels.launch(built, None, 1, 32, arrays, machine=machine)


def findings(C: np.ndarray, A: np.ndarray, B: np.ndarray) -> list[str]:
    """What is wrong with C as the product A @ B, in sentences that name the mistake; none when it is right.

    A (M, K) and B (K, N) are float16, C (M, N) float32, summed in float32.
    """
    wide = Product(A.astype(float), B.astype(float), np.zeros(C.shape))
    case = Case(
        label="",
        args=(A, B, C),
        output=2,
        expected=wide.C,
        grid=(1,),
        block=(32,),
        tolerance=2.0**-20 * A.shape[1] ** 0.5,
        scale=np.abs(wide.A) @ np.abs(wide.B),
        product=wide,
    )
    return [words(one) for one in diagnose.findings(case, C)]


def explain(C: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    """Prints `findings`, in lines that fit a page, or "right"."""
    for found in findings(C, A, B) or ["right"]:
        print(textwrap.fill(found, 84, subsequent_indent="  "))
