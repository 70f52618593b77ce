"""The product that CuTe's Python compiled, on the emulator: its text, its run, and whose rows of C are whose."""

from __future__ import annotations

import numpy as np

import figures
from measure import with_cute
from measure.provenance import recording

from . import addresses, triton_ptx


def run(A: np.ndarray, B: np.ndarray, arch: int = 80):
    """(C, trace) of CuTe's stored PTX. A (M, K) and B (K, N) float16 in whole tiles, C float32."""
    return triton_ptx.launched(with_cute.stored_ptx(arch), A, B)


def listing():
    """The text of the kernel, without its signature, as a cell's result."""
    return triton_ptx.listing("tiled", with_cute.SOURCE, "CuTe's Python")


def places(trace, first: int, part, swizzle=None, start: int = 0, copies: int = 4):
    """(predicted, seen) byte addresses of 128 threads in the `copies` instructions from number `first` on.

    part: a partition of the dictionary. With a swizzle it is one of shared memory, from byte `start` on.
    """
    place = swizzle or (lambda at: at)
    space = "shared" if swizzle else "global"
    says = [[start + 2 * place(part(t, 0, n)) for t in range(128)] for n in range(copies)]
    found = [addresses.seen(trace, "cp.async.cg", first + n, space) for n in range(copies)]
    return np.ravel(says), np.ravel(found)


def rows_of_c(trace, width: int) -> dict[int, list[int]]:
    """Which rows of the first block's tile of C, (rows, width) float32, each warp stores."""
    owners: dict[int, set[int]] = {}
    for row in trace.rows("st.global"):
        for access in trace.accesses(row):
            stored = access.addresses[access.active] // (4 * width)
            owners.setdefault(access.warp, set()).update(stored.tolist())
    return {warp: sorted(rows) for warp, rows in sorted(owners.items())}


def speeds():
    """The recorded speeds beside ours and cuBLAS's."""
    stored = recording("cute")
    rows = sorted(stored["rows"], key=lambda row: (row["size"], row["tflops"]))
    return figures.table(
        {
            "size": "M, N and K",
            "kernel": "CuTe's, two of ours, and the library; all in one run",
            "TFLOP/s": "10^12 floating-point operations per second",
        },
        [[row["size"], row["kernel"], row["tflops"]] for row in rows],
        title="One tile in turn, two tiles, and more",
        caption=stored["label"],
    )
