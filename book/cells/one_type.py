"""Rungs side by side in one pair of number formats, also for products that are not square."""

from __future__ import annotations

from collections.abc import Sequence

from book.cells import columns, timing
from measure.results import recorded

Size = int | tuple[int, int, int]


def compare(
    rungs: Sequence[str],
    size: Size = 4096,
    inputs: str = "float16",
    output: str = "float32",
    title: str | None = None,
):
    """`timing.compare` with one pair of types, and a bar of cuBLAS: that of the last rung's tick.

    None, after a line that says so, where nothing was recorded.
    """
    rows = timing._rows(rungs, size)
    rows = [row for row in rows if (row["inputs"], row["output"]) == (inputs, output)]
    if not rows:
        print(f"No time of {', '.join(rungs)} has been recorded yet at {size}.")
        return None
    last = rows[-1]
    if share := last["ratio_to_cublas"]:
        tflops = last["tflops"] / share
        rows.append({**last, "rung": "cublas", "tflops": tflops, "ratio_to_cublas": 1.0})
    return timing._drawing(rows, title or timing._finding(rows))


def shapes(sizes: Sequence[tuple[int, int, int]], rungs: Sequence[str]) -> None:
    """Shows microseconds of some rungs and of cuBLAS at several (M, N, K), float16 in and out, as recorded."""
    recording, rows, shown = recorded(), [], []
    for m, n, k in sizes:
        at = {"m": m, "n": n, "k": k, **dict.fromkeys(("inputs", "output"), "float16")}
        found = {name: recording.select(name, **at)[:1] for name in rungs}
        timed = [row for one in found.values() for row in one]
        fastest = min(timed, key=lambda row: row["ms_median"], default=None)
        if fastest and fastest["cublas_ms"]:
            shown += timed
            each = [f"{1e3 * row[0]['ms_median']:.1f}" if row else "" for row in found.values()]
            name = "\u00a0x\u00a0".join(map(str, (m, n, k)))  # one line on a phone
            library = f"{1e3 * fastest['cublas_ms']:.1f}"
            rows.append([name, *each, library, f"{fastest['ratio_to_cublas']:.1%}"])
    if not rows:
        print("No time of these shapes has been recorded yet.")
        return
    columns.show(
        {
            "M x N x K": "sizes of the product",
            **{name: f"microseconds by {name}, median" for name in rungs},
            "cuBLAS": "microseconds by the library in the run of the fastest rung",
            "of cuBLAS": "speed of the fastest rung, as a share of cuBLAS's",
        },
        rows,
        caption=f"Microseconds, float16 in and float16 out, {recording.label_of(shown)}.",
    )
