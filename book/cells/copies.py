"""Tables of the chapters on asynchronous copies: what a transposed A costs, equal tiles, the sanitizers, barriers."""

from book.cells import columns, tuned
from measure.provenance import load
from measure.results import recorded
from measure.sanitize import recorded_findings

SIZE = 4096


def show_transposes(*rungs: str, size: int = SIZE) -> None:
    """Shows ms without and with the transposed copy that the launcher makes of A, as far as recorded."""
    rows = []
    for rung in rungs:
        found = recorded().select(rung, size)[0]
        with_it = found.get("ms_with_transpose")
        inside = rung == "warp_tiled"
        rows.append(
            [
                rung,
                f"{found['ms_median']:.3f}",
                "in the kernel" if inside else f"{with_it:.3f}" if with_it else "not recorded",
            ]
        )
    columns.show(
        {
            "": "",
            "ms": "the median time of a launch, as the bars show it",
            "with the transpose": "the same and a kernel before it that transposes A; warp_tiled does it by itself",
        },
        rows,
        title="Milliseconds without and with the transposition of A",
        caption=f"At {size} x {size} x {size}; {recorded().label}.",
    )


def show_equal_tiles() -> None:
    """Shows warp_tiled as timed, warp_tiled at async_copy's tiles if a search tried them, and async_copy."""
    timed, copied = (recorded().select(rung, SIZE)[0] for rung in ("warp_tiled", "async_copy"))
    alike = {name: copied["config"][name] for name in ("BM", "BN", "BK", "WM", "WN", "TM", "TN")}
    rows = [["warp_tiled as timed", *_tiles(timed["config"]), f"{timed['tflops']:.1f}"]]
    try:
        same = tuned.at("warp_tiled", **alike) if _one_gpu() else None
    except (KeyError, FileNotFoundError):
        same = None
    speed = f"{same['tflops']:.1f}" if same else "not measured"
    rows.append(["warp_tiled with the tiles of async_copy", *_tiles(alike), speed])
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


def _one_gpu() -> bool:
    """Whether the search was made on the GPU whose times the pages show."""
    return load("tune")["machine"]["gpu"] == recorded().gpu


def _tiles(macros) -> list[str]:
    return [f"{macros['BM']}x{macros['BN']}x{macros['BK']}", f"{macros['TM']} x {macros['TN']}"]


def show_sanitizers(prefix: str) -> None:
    """Shows, for the mistakes made on purpose in this rung, what a GPU's tool and the emulator say."""
    label, findings = recorded_findings()
    rows = []
    for found in findings:
        if found.kernel.startswith(prefix) and found.gpu_errors:
            said = found.emulator_says.split(" in block")[0].split("; ")[-1]
            rows.append(
                [
                    found.kernel.removeprefix(prefix).strip(" ,"),
                    found.tool,
                    found.gpu_says.split(" at ")[0],
                    said,
                ]
            )
    columns.show(
        {
            "mistake": "what was changed in the kernel",
            "tool": "which of the tools of compute-sanitizer was run",
            "GPU": "the first line of what it reported",
            "emulator": "what the emulator reported: the kind of hazard, or its error",
        },
        rows,
        title="The emulator and NVIDIA's tool name the same mistakes",
        caption=columns.sentence(label),
    )
