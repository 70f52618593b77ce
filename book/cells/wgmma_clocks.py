"""How long wgmma takes on an H200, beside what it reads from shared memory: recorded (`results/accesses`)."""

import json
from functools import cache
from pathlib import Path

from book.cells import columns

DATA = Path(__file__).resolve().parents[2] / "results" / "accesses" / "h200_wgmma_clocks.json"


@cache
def _file() -> dict:
    return json.loads(DATA.read_text(encoding="utf-8"))


def clocks(n: int, a: str = "shared", kind: str = "f16") -> float:
    """Clocks between wgmmas of m64nN and 32 bytes of k, both operands K-major and swizzled, two warpgroups per SM."""
    wanted = {"n": n, "type": kind, "d": "f32", "a": a, "a_swizzle": 128, "b_swizzle": 128}
    wanted |= {"a_major": "k", "b_major": "k"}
    (row,) = (row for row in _file()["rows"] if wanted.items() <= row.items())
    return row["clocks_2_all"]


@cache
def wavefronts(n: int) -> int:
    """That Nsight Compute counted for one instruction whose operands both lie in shared memory."""
    rows = json.loads((DATA.parent / "h200_hopper_accesses.json").read_text(encoding="utf-8"))[
        "rows"
    ]
    name = f"wgmma_n{n}_f32_f16_a128k_b128k"
    (row,) = (row for row in rows if row["kernel"] == name)
    return row["counts"]["shared_wavefronts"]


def show(*widths: int) -> None:
    """Shows clocks and wavefronts of m64nNk16 for these N."""
    rows = [
        [
            f"m64n{n}k16",
            f"{clocks(n):.0f}",
            f"{2 * 64 * n * 16 / clocks(n):,.0f}",
            f"{clocks(n, 'registers'):.0f}",
            wavefronts(n),
        ]
        for n in widths
    ]
    columns.show(
        {
            "": "",
            "clocks": "clocks of the SM from one such instruction to the next, two warpgroups issuing them in turn",
            "operations per clock": "multiplications and additions per clock and SM",
            "clocks, A in registers": "the same where A comes from registers, and only B from shared memory",
            "wavefronts": "passes through shared memory that the instruction takes to read A and B, 128 bytes each",
        },
        rows,
        caption=f"Measured on {_file()['measured_on']}.",
    )
