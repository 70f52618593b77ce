"""`python -m measure bench|tune|record|compare|limits|sanitize|...`."""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from pathlib import Path

from kernels.arguments import macro, one, run, size
from kernels.errors import UnsupportedGPU
from kernels.gpus import gpu
from kernels.rungs import RUNGS, find
from kernels.table import table

from .record import PARTS, part


def seconds(text: str) -> float:
    """A time budget."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text}: a number of seconds above 0")
    return value


def run_bench(options) -> int:
    from .bench import SIZES, bench

    size = options.size or SIZES
    bench(options.rungs, size, options.samples, options.defaults, file=options.json)
    return 0


def run_tune(options) -> int:
    from .tune import tune

    for name in options.rungs:
        tune(
            name,
            one(options.size, size("4096")),
            options.arch,
            dict(options.define),
            options.jobs,
            seconds=options.seconds / len(options.rungs),
        )
    return 0


def run_compare(options) -> int:
    from .compare import SIZE, compare, run_once

    if options.once:
        run_once(options.once)
        return 0
    names = options.rungs or [name for name, rung in RUNGS.items() if rung.path]
    compare(names, one(options.size, SIZE), dict(options.define) or None, options.store)
    return 0


def run_limits(options) -> int:
    from .limits import METRICS, analysis, record_limits, recorded_limits
    from .provenance import label

    for name in options.rungs:
        find(name)
    if gpu() is not None:
        print(record_limits(options.rungs))
    stored = recorded_limits()
    rows = [row for row in stored["rows"] if not options.rungs or row["rung"] in options.rungs]
    if missing := sorted(set(options.rungs) - {row["rung"] for row in rows}):
        print(f"nothing was recorded of {', '.join(missing)}", file=sys.stderr)
    print(label(stored, rows))
    cells = [
        [row["rung"], *("" if row.get(m) is None else f"{row[m]:.4g}" for m in METRICS)]
        for row in rows
    ]
    print(table(["rung", *METRICS], cells))
    for row in rows:
        print(analysis(row))
    return 1 if missing else 0


def run_sanitize(options) -> int:
    from .sanitize import format_findings, record_findings, recorded_findings

    if gpu() is not None:
        print(record_findings())
    label, findings = recorded_findings()
    print(label)
    print(format_findings(findings))
    wrong = [f for f in findings if f.kernel in RUNGS and (f.gpu_errors != 0 or f.emulator_says)]
    return 1 if wrong else 0


def run_record(options) -> int:
    from .record import compile_all, run_parts

    if options.compile_only:
        count = compile_all(
            options.rungs, options.arch, options.jobs, not options.no_space, options.seconds
        )
        print(f"{count} builds are in the cache, or do not compile")
        return 0
    if gpu() is None:
        raise UnsupportedGPU("recording needs an NVIDIA GPU and CuPy; --compile-only needs none")
    return 1 if run_parts(options) else 0


def run_recording(module: str, does: str = "record", *named: str):
    """Of a part that only records: see `record.part`."""

    def run(options) -> int:
        print(part(module, does, *named)(options))
        return 0

    return run


def run_by(module: str):
    """Of a part that does what the options say: its `run`, imported when it is asked for."""
    return lambda options: importlib.import_module(f".{module}", __package__).run(options)


def run_first_call(options) -> int:
    from .first_call import record, recorded

    if gpu() is not None:
        print(record())
    print(recorded())
    return 0


def run_triton(options) -> int:
    from .with_triton import record, write_ptx

    if options.ptx:
        print(*write_ptx(), sep="\n")
        return 0
    print(record(seconds=min(options.seconds, 1e6)))
    return 0


def run_cute(options) -> int:
    from .with_cute import record, write_ptx

    print(record() if options.time else write_ptx(options.arch))
    return 0


def run_machine(options) -> int:
    from .machine import record, recorded

    if gpu() is not None:
        print(record())
    stored = recorded()
    if stored is None:
        raise UnsupportedGPU("no machine was measured yet, and there is no GPU here to measure")
    print(stored.label)
    cells = []
    for row in stored.rows.values():
        clock = "" if row.clock_ghz is None else f"{row.clock_ghz:.3f}"
        cells.append([row.kind, row.name, f"{row.value:g}", row.unit, clock])
    print(table(["kind", "what", "value", "unit", "GHz"], cells))
    return 0


def run_ablation(options) -> int:
    from .ablation import counts, record, stored, variants

    if gpu() is not None:
        print(record())
    timed = {row["variant"]: row["tflops"] for row in (stored() or {"rows": []})["rows"]}
    cells = []
    for name, ideas in variants():
        found = counts(ideas)
        speed = f"{timed[name]:.1f}" if name in timed else "not timed"
        waves = [f"{found.loads:.3f}", f"{found.barriers:g}", f"{found.register_reads:.2f}"]
        cells.append([name, *waves, str(found.registers), speed])
    heads = ["ideas", "load wavefronts", "barriers per tile", "register reads", "registers"]
    print(table([*heads, "TFLOP/s"], cells))
    return 0


def run_as_printed(options) -> int:
    from .as_printed import report

    given = {name: str(value) for name, value in options.define}
    report(options.file, given, options.arch, options.size, options.store)
    return 0


def run_elsewhere(options) -> int:
    from . import elsewhere

    names = ("cutlass", "deep_gemm", "thunder_kittens", "learn_cuda", "b200_sums")
    paths = {name: getattr(options, name) for name in names}
    found = elsewhere.show(elsewhere.asked(options.triton, **paths))
    if options.store:
        print(elsewhere.record(found, options.triton, **paths))
    return int(any(one.said != "right" for one in found))


def run_published(options) -> int:
    from .published import compile_all, record

    if options.compile_only:
        print(f"{compile_all(options.arch or 90)} builds are in the cache")
    else:
        print(record())
    return 0


# Commands without options: what their help says, and what runs them where it is not a module's `record`.
BARE = {
    "sanitize": "compute-sanitizer beside the emulator; recorded without a GPU",
    "first-call": "what cuBLAS's first call costs; recorded without a GPU",
    "announced": "a wrong number of announced bytes: where a phase ends nevertheless; needs sm_90",
    "linear": "a fused layer beside PyTorch's: checks and times, needs both",
    "cublaslt": "cuBLASLt's best algorithm and layout beside gemmEx and the fastest rung",
    "torch": "PyTorch's product beside cuBLAS and a rung: needs both",
    "machine": "arithmetic, bytes and latencies of the machine; recorded without a GPU",
    "shared-clocks": "the clocks that a wavefront of shared memory takes",
    "small-tiles": "a kernel of small tiles with and without its swizzle",
    "variants": "settings that a page argues about, in turn in one run",
    "ablation": "warp_tiled with each of its ideas taken out",
    "readme": "write kernels/README.md, the ladder at a glance",
    "emulator-speed": "the emulator beside Numba's simulator, on a CPU",
}
RUNS = {
    "sanitize": run_sanitize,
    "first-call": run_first_call,
    "machine": run_machine,
    "ablation": run_ablation,
    "readme": run_recording("readme", "write"),
}
MODULES = {"linear": "with_linear", "cublaslt": "with_cublaslt", "torch": "with_torch"}


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m measure", description="Times, tunes and profiles the kernels."
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, run, text, rungs=None):
        added = commands.add_parser(name, help=text, description=text)
        if rungs:
            added.add_argument(
                "rungs", nargs=rungs, metavar="RUNG", help="all of them unless named"
            )
        added.set_defaults(run=run)
        return added

    def sizes(added):
        added.add_argument("--size", nargs="+", type=size, metavar="N|MxNxK")

    def flag(added, name, text):
        added.add_argument(name, action="store_true", help=text)

    def defines(added):
        added.add_argument(
            "-D", dest="define", action="append", default=[], type=macro, metavar="NAME=N"
        )

    benching = command(
        "bench", run_bench, "time against cuBLAS; recorded rows without a GPU", rungs="*"
    )
    sizes(benching)
    benching.add_argument("--samples", type=int, default=25)
    flag(benching, "--defaults", "the rows' own configurations, not the searched ones")
    benching.add_argument("--json", type=Path, metavar="FILE")

    tuning = command("tune", run_tune, "search a rung's tiles, warps and stages", rungs="+")
    sizes(tuning)
    defines(tuning)
    tuning.add_argument("--arch", type=int)
    tuning.add_argument("--jobs", type=int)

    tuning.add_argument("--seconds", type=seconds, default=math.inf, help="of timing, in all")

    recording = command(
        "record", run_record, "measure here and write what results/ holds of a GPU", rungs="*"
    )
    sizes(recording)
    recording.add_argument(
        "--part",
        action="append",
        choices=PARTS,
        help="one part (several: in this order); all without",
    )
    recording.add_argument(
        "--seconds", type=seconds, default=math.inf, help="for all parts together"
    )
    flag(recording, "--again", "measure what is recorded already too")
    recording.add_argument("--json", type=Path, metavar="FILE", help="where the rows of bench go")
    recording.add_argument("--jobs", type=int, help="processes that compile")
    flag(recording, "--compile-only", "fill the cache; needs no GPU")
    flag(recording, "--no-space", "compile what is timed, not what is searched")
    recording.add_argument("--arch", type=int, help="compile for this architecture")

    comparing = command(
        "compare", run_compare, "the emulator's counts beside Nsight Compute's", rungs="*"
    )
    sizes(comparing)
    defines(comparing)
    flag(comparing, "--store", "write results/compare-<gpu>.json")
    comparing.add_argument("--once", metavar="JSON", help=argparse.SUPPRESS)

    elsewhere = command(
        "elsewhere", run_elsewhere, "others' Blackwell kernels on the emulator; needs no GPU"
    )
    clone = "what `git clone --depth 1 https://github.com/{}` leaves"
    for option, repository, more in (
        ("--learn-cuda", "gau-nernst/learn-cuda", ""),
        ("--cutlass", "NVIDIA/cutlass", ""),
        ("--deep-gemm", "deepseek-ai/DeepGEMM", "; needs --cutlass"),
        ("--thunder-kittens", "HazyResearch/ThunderKittens", ""),
        ("--b200-sums", "north-numerical-computing/MATLAB-tensor-core", ": sums of a B200"),
    ):
        elsewhere.add_argument(option, metavar="PATH", help=clone.format(repository) + more)
    flag(elsewhere, "--triton", "products that Triton compiles (pip install triton)")
    flag(elsewhere, "--store", "write results/elsewhere.json")
    published = command("published", run_published, "minimal kernels of published patterns")
    flag(published, "--compile-only", "fill the cache; needs no GPU")
    published.add_argument("--arch", type=int, help="compile for this architecture")
    from emulator.arguments import WAYS, extents

    looking = command(
        "inspect", run_by("inspection"), "run somebody's kernel on the emulator, and annotate it"
    )
    looking.add_argument("file", metavar="FILE.cu|FILE.ptx")
    looking.add_argument("--entry", help="the kernel, or an instance of a template: 'reduce<256>'")
    looking.add_argument("--grid", type=extents, default=(1,), help="blocks, as in 4x4")
    looking.add_argument("--block", type=extents, default=(32,), help="threads of a block: 16x16")
    looking.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="ARG",
        help="one for each parameter, in order: s32=5, f32=1.5, or an array f32[64,64]=HOW, "
        f"HOW one of {WAYS}, FILE.npy; or a tensor map of one (a CUtensorMap), map:64x32:f32[256,128]=HOW, with its "
        "box, and behind that its swizzle if it has one, map:64x32:128:f32[256,128]=HOW",
    )
    looking.add_argument("--shared", type=int, default=0, help="bytes of dynamic shared memory")
    looking.add_argument("--cluster", type=extents, help="blocks of a cluster")
    flag(looking, "--cooperative", "as grid.sync() needs")
    looking.add_argument("--arch", default="80", help="compile for sm_80, or 90a, ...")
    defines(looking)
    looking.add_argument("--show", action="append", default=[], type=int, metavar="N")
    looking.add_argument("--html", type=Path, metavar="REPORT.html", help="write a report, too")
    looking.add_argument(
        "--seconds", type=seconds, default=120.0, help="stop a kernel that runs for longer"
    )

    tritons = command(
        "triton", run_triton, "the product in Triton beside ours and cuBLAS: needs both"
    )
    flag(tritons, "--ptx", "store its PTX; needs Triton, no GPU")
    tritons.add_argument("--seconds", type=seconds, default=240.0, help="for the searches")

    cutes = command(
        "cute", run_cute, "the product in CuTe's Python: its PTX, without a GPU, or its times"
    )
    flag(cutes, "--time", "time what is stored; needs a GPU only")
    cutes.add_argument("--arch", type=int, default=80, choices=(80, 90), help="for sm_80 or sm_90")

    tilus = command(
        "tilus",
        run_recording("with_tilus", "record", "file"),
        "Tilus's published matmul_v3 beside a rung: needs both",
    )
    tilus.add_argument("file", metavar="FILE", help="matmul_v3.py of Tilus's tutorial")

    printed = command(
        "as-printed", run_as_printed, "kernels from the text of a page: compiled, run, timed"
    )  # fmt: skip
    printed.add_argument("file", type=Path, metavar="FILE", help="the page, saved as plain text")
    printed.add_argument("--arch", default="90", help="for this compute capability (90)")
    printed.add_argument("--size", type=int, default=256, help="on the emulator (256)")
    defines(printed)
    flag(printed, "--store", "write results/as-printed-<gpu>.json")

    beside = command(
        "peers", run_by("peers"), "fast.cu, CUTLASS, DeepGEMM and Triton beside the fastest rung and cuBLASLt"
    )  # fmt: skip
    beside.add_argument("folder", type=Path, metavar="FOLDER", help="of the compiled libraries")
    beside.add_argument("--compile", type=Path, metavar="SOURCES", help="of these checkouts first")

    compilers = command(
        "compilers",
        run_recording("compilers", "record", "old", "new", "rungs"),
        "two recordings, by two versions of NVRTC, row by row",
    )
    compilers.add_argument("old", type=Path, metavar="OLD.json")
    compilers.add_argument("new", type=Path, metavar="NEW.json")
    compilers.add_argument("rungs", nargs="*", metavar="RUNG", help="all of them unless named")

    command(
        "limits",
        run_limits,
        "what ncu says holds each kernel back; recorded without a GPU",
        rungs="*",
    )
    for name, text in BARE.items():
        module = name.replace("-", "_")
        command(name, RUNS.get(name) or run_recording(MODULES.get(name, module)), text)
    from . import mistakes_table

    text = (
        "seeded mistakes: what the emulator, compute-sanitizer and a test of the result say of each"
    )
    mistakes_table.add_options(command("mistakes", mistakes_table.run, text, rungs="*"))
    added = command(
        "model",
        run_by("model.show"),
        "what limits each rung: least times of each resource, bound, prediction",
        rungs="*",
    )
    for name, words in (
        ("check", "fail where the model does not hold, and print where"),
        ("count", "count the recorded configurations that results/model lacks"),
        ("predict", "write what the model gives for comparisons that nobody has timed"),
    ):
        flag(added, f"--{name}", words)
    return parser


def main(words: list[str] | None = None) -> int:
    return run(arguments(), words)


if __name__ == "__main__":
    sys.exit(main())
