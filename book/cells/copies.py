"""What a transposed A costs `async_copy`: equal tiles side by side."""

from book.cells import columns, tuned
from measure.results import recorded

SIZE = 4096


def show_equal_tiles() -> None:
    """Shows warp_tiled as timed, warp_tiled at async_copy's tiles as a search timed it, and async_copy."""
    timed, copied = (recorded().select(rung, SIZE)[0] for rung in ("warp_tiled", "async_copy"))
    alike = {name: copied["config"][name] for name in ("BM", "BN", "BK", "WM", "WN", "TM", "TN")}
    rows = [["warp_tiled as timed", *_tiles(timed["config"]), f"{timed['tflops']:.1f}"]]
    speed = tuned.at("warp_tiled", **alike)["tflops"]
    rows.append(["warp_tiled with the tiles of async_copy", *_tiles(alike), f"{speed:.1f}"])
    rows.append(["async_copy", *_tiles(copied["config"]), f"{copied['tflops']:.1f}"])
    columns.show(
        {
            "": "",
            "block": "",
            "outputs per thread": "TM x TN",
            "TFLOP/s": "",
        },
        rows,
        title="The same kernel at two sets of tiles, and async_copy at the second",
        caption=columns.sentence(recorded().label),
    )


def _tiles(macros) -> list[str]:
    return [f"{macros['BM']}x{macros['BN']}x{macros['BK']}", f"{macros['TM']} x {macros['TN']}"]
