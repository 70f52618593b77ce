"""Speeds that others published for a B200, each with its author's conditions. None was measured here."""

from book.cells import columns

ROWS = (
    ("Tran, learn-cuda v7c", 4096, "bfloat16", "a rented B200; PyTorch 2.10, CUDA 13.0; runs vary, he says", "1,326", "1,359"),
    ("Tran, learn-cuda v7a", 8192, "bfloat16", "the same", "1,283", "1,414"),
    ("Tilus, tutorial V6", 8192, "float16", "B200; from Nsight Compute's duration", "1,610", "1,600"),
    ("Tilus, pull request 91", 8192, "float16", "a Blackwell GPU, not named; the project's own timer", "1,121", "1,233"),
    ("Modular, part 4", 4096, "16 bits", "B200; one size through the whole series", "1,772", "1,762"),
    ("JAX Pallas, last step", "4096 x 8192 x 4096", "float16", "not named, peak 2,250; normal random inputs; median of 100",
     "1,562", "1,426"),
)  # fmt: skip


def show() -> None:
    """Shows the table of published speeds."""
    columns.show(
        {
            "author, kernel": "who published it, and the kernel's name there",
            "size": "M = N = K, or M x N x K",
            "inputs": "number format of A and B",
            "conditions": "what the author says of the machine and the method",
            "TFLOP/s": "of the author's kernel; of Pallas, its share of 2,250",
            "cuBLAS": "of cuBLAS (or PyTorch and JAX, which call it) in the author's own run; Modular's from their 100.6%",
        },
        ROWS,
        caption="Others' times. Sources stand below the table.",
    )
