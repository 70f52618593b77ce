"""What a chapter shows of time: rungs side by side, live on a GPU, recorded and labelled without."""

import contextlib
import datetime
import io
from collections.abc import Mapping, Sequence

import figures
from figures.measurements import plain
from kernels import RUNGS
from kernels.gpus import live
from measure.bench import bench
from measure.results import recorded, recordings

PATIENCE_S = 1.0  # for the samples of one row, while somebody waits for the figure
KINDS = (
    "float32",
    "tf32",
    "float16",
)  # inputs whose peak the data sheets in `kernels.gpus.PEAKS` give


def compare(
    rungs: Sequence[str],
    size: int = 4096,
    title: str | None = None,
    inputs: str | None = None,
):
    """The rows of `measure.bench` for these rungs and cuBLAS, as a drawing.

    inputs: "float32", to leave out what a rung does with others. cuBLAS has a row for each pair of
    input and output types that one of the rungs has. Returns None, after saying why, when there is
    neither a GPU nor a recording of one.
    """
    rows = _rows([*rungs, "cublas"], size)
    rows = [row for row in rows if inputs in (None, row["inputs"])]
    types = {(row["inputs"], row["output"]) for row in rows if row["rung"] != "cublas"}
    rows = [row for row in rows if (row["inputs"], row["output"]) in types]
    return _drawing(rows, title or _finding(rows))


def ladder(size: int = 4096, title: str | None = None, only: Sequence[str] | None = None):
    """Every rung at this size, by number, as a drawing; where several GPUs were recorded, the
    reader chooses between them. None when nothing was recorded.

    only: these rungs, on the book's GPU.
    """
    if only is None and live() is None and len(found := recordings()) > 1:
        first = recorded()
        pages = {
            one.gpu: _drawing(rows := _fastest(one.select(size=size)), title or _span(rows), one)
            for one in sorted(found.values(), key=lambda one: one is not first and one != first)
        }
        return figures.Choice(
            pages, name="GPU", title="The ladder on each GPU that was recorded", slider=False
        )
    rows = _fastest(_rows(only, size))
    return _drawing(rows, title or _span(rows))


def _span(rows: Sequence[dict]) -> str | None:
    """A title: where the ladder begins and how far it gets; the CPU is no rung of it."""
    reached = [row["tflops"] for row in rows if row["rung"] != "cpu"]
    if not reached:
        return None
    return f"{len(reached)} rungs, from {plain(min(reached))} to {plain(max(reached))} TFLOP/s"


def _fastest(rows: Sequence[dict]) -> list[dict]:
    """One row per rung, of the rung's own number formats, without cuBLAS's own."""
    shown = []
    for row in rows:
        own = RUNGS[row["rung"]].types() if row["rung"] in RUNGS else None
        if row["rung"] != "cublas" and (row["inputs"], row["output"]) == (own.inputs, own.output):
            shown.append(row)
    return shown


def _rows(rungs: Sequence[str] | None, size: int) -> list[dict]:
    """Rows of `measure.bench`, without its progress bar: a page would keep that for good.

    A rung that this GPU is too old or too slow for has the recorded row in its place, and a line says so.
    """
    left_out: dict[str, str] = {}
    with contextlib.redirect_stderr(io.StringIO()):
        rows = bench(rungs, (size,), show=False, patience_s=PATIENCE_S, left_out=left_out)
    if live() is None:
        return rows
    order = list(rungs or RUNGS)
    return sorted([*rows, *_left_out(left_out, size)], key=lambda r: order.index(r["rung"]))


def _left_out(left_out: Mapping[str, str], size: int) -> list[dict]:
    """The recorded rows of the rungs that `bench` could not time; says so, once for each."""
    rows = []
    for name, why in left_out.items():
        try:
            recording = recorded()
            there = [dict(row) for row in recording.select(name, m=size, n=size, k=size)]
        except (FileNotFoundError, ValueError):
            there = []
        shown = (
            f"its recorded time on {recording.gpu} is shown" if there else "no time was recorded"
        )
        print(f"{name} was not timed here: {why}; {shown}.")
        rows += [{**row, "recorded_on": recording.gpu} for row in there]
    return rows


def _drawing(rows: Sequence[dict], title: str | None, recording=None):
    here = live() if recording is None else None
    title = title or _finding(rows[-1:])
    if not rows:
        print("No GPU here, and no measurement has been recorded yet.")
        return None
    if here:
        gpu, peak, date = here.name, here.peak, datetime.date.today().isoformat()
    else:
        recording = recording or recorded()
        gpu, peak, date = recording.gpu, recording.peak, recording.dates(rows)
    types = {row["inputs"] for row in rows}
    limits = {kind: peak.tflops(kind) for kind in types if kind in KINDS} if peak else {}
    limits = {kind: limit for kind, limit in limits.items() if limit}
    named = [{**row, "rung": _name(row, rows)} for row in rows]
    return figures.ladder(named, limits=limits, machine=gpu, recorded=date, title=title)


def _finding(rows: Sequence[dict]) -> str | None:
    """A title: how the last rung does against the one before, and against cuBLAS."""
    here = [row for row in rows if row["rung"] != "cublas" and "recorded_on" not in row]
    first = {row["rung"]: row for row in reversed(here)}
    rungs = list(reversed(first.values()))
    if not rungs:
        return None
    last, before = rungs[-1], rungs[-2] if len(rungs) > 1 else None
    speed = f"{last['rung']} reaches {plain(last['tflops'])} TFLOP/s"
    if before and before["inputs"] == last["inputs"]:
        ratio = before["ms_median"] / last["ms_median"]
        speed = f"{last['rung']} runs at {ratio:.2g} times the speed of {before['rung']}"
    share = last["ratio_to_cublas"]
    return speed + (f", {share:.0%} of cuBLAS" if share else "")


def _name(row: dict, rows: Sequence[dict]) -> str:
    """The rung's name, with its types where it has several rows."""
    where = f", recorded on {row['recorded_on']}" if "recorded_on" in row else ""
    same = [other for other in rows if other["rung"] == row["rung"]]
    if len(same) == 1:
        return row["rung"] + where
    short = {"float32": "fp32", "float16": "fp16", "tf32": "tf32", "bfloat16": "bf16"}
    short |= {"float8_e4m3fn": "fp8", "int8": "int8"}
    words = short[row["inputs"]]
    if len({other["output"] for other in same if other["inputs"] == row["inputs"]}) > 1:
        words += f" to {short[row['output']]}"
    return f"{row['rung']} {words}{where}"
