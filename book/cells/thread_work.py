"""What a rung's machine code loads and reads per multiply-add, and what its thread tile costs in registers."""

import math
from collections.abc import Mapping

from book.cells import columns, setting
from measure.machine_code import shared_loads
from measure.results import recorded


def loads(rung: str, steps: int, wide: int) -> tuple[dict[int, int], float]:
    """({bytes per lane: loads from shared memory in the unrolled loop}, wavefronts of them per multiply-add).

    steps: how many steps of k are unrolled. wide: wavefronts that a load of 16 bytes per lane takes, on average.
    """
    found, m = shared_loads(setting.build(rung)), setting.timed(rung)
    work = steps * m.get("TM", 1) * m.get("TN", 1)
    return found, (found[4] + wide * found[16]) / work


def show_loads(rungs: Mapping[str, tuple[int, int]], title: str) -> None:
    """Shows `loads` of {rung: (steps, wide)}."""
    rows = []
    for name, (unrolled, wide) in rungs.items():
        found, each = loads(name, unrolled, wide)
        m = setting.timed(name)
        work = unrolled * m.get("TM", 1) * m.get("TN", 1)
        loads_each = sum(found.values()) / work
        rows.append([name, work, found[4], found[16], f"{loads_each:.4f}", f"{each:.4f}"])
    heads = {
        "": "",
        "multiply-adds": "multiply-adds in the unrolled loop",
        "4-byte loads": "loads of 4 bytes per lane from shared memory in this loop",
        "16-byte loads": "loads of 16 bytes per lane",
        "loads each": "loads per multiply-add",
        "wavefronts each": "wavefronts of these loads per multiply-add",
    }
    columns.show(heads, rows, title, "Machine code for sm_90, at the settings that were timed.")


def show_tiles(*tiles: tuple[int, int]) -> None:
    """Shows what thread tiles cost in `coarsened_2d`, at the block tile that was timed."""
    macros, rows = setting.timed("coarsened_2d"), []
    for TM, TN in tiles:
        one = setting.held("coarsened_2d", {**macros, "TM": TM, "TN": TN})
        held = [one.report.registers, one.threads, one.resident.blocks, one.warps]
        rows.append([f"{TM} x {TN}", TM * TN, *held])
    columns.show(
        {
            "thread tile": "outputs per thread",
            "sums": "registers that hold sums",
            "registers": "",
            "threads": "threads per block",
            "blocks per SM": "",
            "warps per SM": "",
        },
        rows,
        "Larger thread tiles need more registers, so fewer warps fit, or as many as before",
        "coarsened_2d for sm_90, with a block tile of {BM} x {BN} x {BK}.".format(**macros),
    )


def show_blocks(rungs: tuple[str, ...], sizes: tuple[int, ...], title: str) -> None:
    """Shows how many blocks a launch has, and how many that is per SM of the recorded GPU."""
    sms = recorded().machine["sms"]
    rows = []
    for name in rungs:
        for size in sizes:
            blocks, threads = setting.grid(name, size)
            rows.append([name, size, blocks, threads, f"{blocks / sms:.2f}"])
    columns.show(
        {
            "": "",
            "matrices": "rows and columns of all three",
            "blocks": "blocks of the launch",
            "threads": "threads per block",
            "per SM": f"blocks per SM, of which the recorded GPU has {sms}",
        },
        rows,
        title,
        columns.sentence(recorded().label),
    )


def show_waves(rung: str, *sizes: int) -> None:
    """Shows the recorded speed of a rung at several sizes, beside the waves that its blocks make."""
    sms, rows = recorded().machine["sms"], []
    for size in sizes:
        row, (blocks, _) = recorded().select(rung, size)[0], setting.grid(rung, size)
        held = setting.held(rung, setting.timed(rung, size), size=size)
        at_once = held.resident.blocks * sms
        waves = blocks / at_once
        speeds = [f"{row['tflops']:.1f}", f"{row['ratio_to_cublas']:.1%}"]
        rows.append(
            [size, *speeds, blocks, at_once, f"{waves:.2f}", f"{waves / math.ceil(waves):.0%}"]
        )
    columns.show(
        {
            "size": "rows and columns of all three matrices",
            "TFLOP/s": "",
            "of cuBLAS": "",
            "blocks": "blocks of the launch",
            "at a time": "blocks that all SMs hold at a time, at this size's setting",
            "waves": "blocks of the launch divided by that number",
            "places used": "share of the places for blocks that are used, if every wave took as long as a full one",
        },
        rows,
        caption=columns.sentence(recorded().label),
    )
