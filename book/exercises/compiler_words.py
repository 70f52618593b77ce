"""What a compiler's message means to somebody who writes kernels: a sentence for the messages that students meet most."""

import re
from difflib import get_close_matches
from textwrap import fill

from .explain import QUOTED

CUDA_NAMES = (
    "__syncthreads", "__syncwarp", "__shared__", "__global__", "__device__", "__shfl_down_sync", "__shfl_xor_sync",
    "__shfl_sync", "__shfl_up_sync", "atomicAdd", "threadIdx", "blockIdx", "blockDim", "gridDim", "make_float4", "make_float2",
    "reinterpret_cast", "__float2half", "__half2float", "__halves2half2", "cp_async", "cp_async_commit", "cp_async_wait",
    "shared_address", "ldmatrix_x4", "ldmatrix_x4_trans",
    "mma_m16n8k16", "fmaf", "min", "max", "wmma", "float4", "float2", "unsigned", "constexpr",
)  # fmt: skip

WMMA = {
    "mma_sync": "mma_sync takes (accumulator, matrix_a, matrix_b, accumulator), in this order.",
    "load_matrix_sync": "load_matrix_sync takes (fragment, pointer, stride); the pointer is to the fragment's own type, and an "
    "accumulator takes a layout as well.",
    "store_matrix_sync": "store_matrix_sync takes (pointer, accumulator, stride, layout); an accumulator of float goes to an "
    "array of float.",
    "fill_fragment": "fill_fragment takes (fragment, value).",
}


def explained(diagnostic, source: str) -> str:
    """The diagnostic as it is shown: the compiler's words, the line, and what to look at where that is known."""
    hint = _hint(diagnostic, source)
    return str(diagnostic) + (
        "\n" + fill(hint, QUOTED, initial_indent="  ", subsequent_indent="  ") if hint else ""
    )


def _hint(diagnostic, source: str) -> str | None:
    message, line = diagnostic.message, diagnostic.source or ""
    if name := re.search(r'identifier "(\w+)" is undefined', message):
        known = {*CUDA_NAMES, *re.findall(r"[A-Za-z_]\w+", source)} - {name[1]}
        near = get_close_matches(name[1], known, 1, cutoff=0.8)
        return f"Did you mean {near[0]}?" if near else None
    if 'expected a ";"' in message:
        if diagnostic.column is None or line[: diagnostic.column].strip():
            return "A semicolon is missing there, or there is a bracket too many."
        return f"The statement before line {diagnostic.line} has no semicolon at its end."
    if re.search(r"incomplete type .*fragment<.*matrix_[ab].*void>", message):
        return "A fragment of matrix_a or matrix_b needs a layout as its last argument: wmma::row_major or wmma::col_major."
    call = re.search(r'function template "(\w+)" matches', message)
    if call and re.search(rf"\b{call[1]}\s*\(", line):
        return f"{call[1]} takes its number in angle brackets, where the compiler must know it: {call[1]}<0>()."
    if "no instance of overloaded function" in message:
        return next((words for name, words in WMMA.items() if f"::{name}" in message), None)
    if "matches these operands" in message and re.search(r"float[24]", message + line):
        if 'operator "="' in message:
            return "What is assigned to here is const: a pointer that is stored through must not be a pointer to const."
        return "A float4 is four numbers, x, y, z and w, and has no arithmetic of its own: compute each of the four."
    return None
