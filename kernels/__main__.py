"""`python -m kernels check|bench|build|tune|compare|limits|sanitize|record`."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from .build import build, check_arch
from .errors import BuildError, UnsupportedGPU
from .rungs import ARCHITECTURES, RUNGS, find
from .table import table


def size(text: str) -> tuple[int, int, int]:
    """ "4096" or "128x256x64"."""
    if not re.fullmatch(r"\d+(x\d+x\d+)?", text.lower()):
        raise argparse.ArgumentTypeError(f"{text}: n, or MxNxK, as in 4096 or 128x256x64")
    numbers = [int(n) for n in text.lower().split("x")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1")
    return tuple(numbers * 3 if len(numbers) == 1 else numbers)


def architectures(text: str) -> list[int]:
    """ "75,80" or "sm_90"."""
    if not re.fullmatch(r"(sm_)?\d+(,(sm_)?\d+)*", text):
        raise argparse.ArgumentTypeError(f"{text}: numbers with commas, as in 80 or 75,80,90")
    return [int(a.removeprefix("sm_")) for a in text.split(",")]


def one(sizes: list | None, default: tuple[int, int, int]) -> tuple[int, int, int]:
    """The one size of a command that takes one. ValueError for several."""
    if sizes and len(sizes) > 1:
        raise ValueError("--size: one size, not several")
    return sizes[0] if sizes else default


def macro(text: str) -> tuple[str, int]:
    """ "BM=64"."""
    name, _, value = text.partition("=")
    if not name or not re.fullmatch(r"-?\d+", value):
        raise argparse.ArgumentTypeError(f"{text}: NAME=NUMBER")
    return name, int(value)


def run_check(options) -> int:
    from .check import check

    machines = None if options.machine == "auto" else (options.machine,)
    rows = check(options.rungs or None, options.size or None, machines, options.arch)
    wrong = [row for row in rows if not row.ok]
    print(f"{len(rows) - len(wrong)} of {len(rows)} right or skipped")
    return 1 if wrong else 0


def run_bench(options) -> int:
    from .bench import SIZES, bench

    bench(
        options.rungs or None,
        options.size or SIZES,
        options.samples,
        options.tuned,
        True,
        options.json,
    )
    return 0


def run_build(options) -> int:
    names = options.rungs or [name for name, rung in RUNGS.items() if rung.path]
    for arch in options.arch:
        check_arch(arch)
    rows, bad = [], 0
    for name in names:
        rung = find(name)
        if rung.path is None or not rung.exists:
            where = (
                "is written in Python"
                if rung.path is None
                else f"is not there (kernels/{rung.file})"
            )
            print(f"{name}: skipped, {where}", file=sys.stderr)
            continue
        for setting in rung.configurations():
            for arch in options.arch:
                if arch < rung.min_arch:
                    continue
                row, fine = _build_row(rung, {**setting, **dict(options.define)}, arch)
                rows.append(row)
                bad += not fine
    header = ["rung", "setting", "arch", "registers", "shared", "dynamic", "spills", "warnings", ""]
    print(table(header, rows, left=2))
    return 1 if bad else 0


def _build_row(rung, setting, arch: int) -> tuple[list, bool]:
    shown = ",".join(f"{k}={v}" for k, v in setting.items())
    try:
        built = build(rung, setting, arch)
    except BuildError as error:
        print(error, file=sys.stderr)
        return [rung.name, shown, arch, "", "", "", "", "", " does not compile"], False
    for warning in built.warnings:
        print(warning, file=sys.stderr)
    report = built.reports[rung.entry]
    dynamic = rung.geometry(built.macros, 1, 1, 1)[2]
    row = [rung.name, shown, arch, report.registers, report.shared_bytes, dynamic]
    return [*row, built.spills, len(built.warnings), ""], not (built.spills or built.warnings)


def run_tune(options) -> int:
    from .tune import tune

    for name in options.rungs:
        tune(
            name,
            one(options.size, size("4096")),
            options.arch,
            dict(options.define),
            options.jobs,
        )
    return 0


def run_compare(options) -> int:
    from .compare import SIZE, compare, run_once

    if options.once:
        run_once(options.once)
        return 0
    names = options.rungs or [name for name, rung in RUNGS.items() if rung.path and rung.exists]
    compare(names, one(options.size, SIZE), dict(options.define) or None, options.store)
    return 0


def run_limits(options) -> int:
    from .limits import METRICS, analysis, record_limits, recorded_limits
    from .machine import gpu

    for name in options.rungs:
        find(name)
    if gpu() is not None:
        print(record_limits(options.rungs or None))
    stored = recorded_limits()
    rows = [row for row in stored["rows"] if not options.rungs or row["rung"] in options.rungs]
    if missing := sorted(set(options.rungs) - {row["rung"] for row in rows}):
        print(f"nothing was recorded of {', '.join(missing)}", file=sys.stderr)
    print(stored["label"])
    cells = [
        [row["rung"], *("" if row[m] is None else f"{row[m]:.4g}" for m in METRICS)] for row in rows
    ]
    print(table(["rung", *METRICS], cells))
    for row in rows:
        print(analysis(row))
    return 1 if missing else 0


def run_sanitize(options) -> int:
    from .machine import gpu
    from .sanitize import format_findings, record_findings, recorded_findings

    if gpu() is not None:
        print(record_findings())
    label, findings = recorded_findings()
    print(label)
    print(format_findings(findings))
    wrong = [f for f in findings if f.kernel in RUNGS and (f.gpu_errors != 0 or f.emulator_says)]
    return 1 if wrong else 0


def run_record(options) -> int:
    from .record import SIZES, record

    print(record(options.rungs or None, options.size or SIZES, options.json))
    return 0


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m kernels", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, run, text, rungs="*"):
        added = commands.add_parser(name, help=text, description=text)
        if rungs:
            added.add_argument(
                "rungs", nargs=rungs, metavar="RUNG", help="all of them unless named"
            )
        added.set_defaults(run=run)
        return added

    def sizes(added):
        added.add_argument("--size", nargs="+", type=size, metavar="N|MxNxK")

    def defines(added):
        added.add_argument(
            "-D", dest="define", action="append", default=[], type=macro, metavar="NAME=N"
        )

    checking = command(
        "check", run_check, "right on the emulator, and on a GPU where there is one?"
    )
    sizes(checking)
    checking.add_argument("--machine", choices=("auto", "emulator", "gpu"), default="auto")
    checking.add_argument("--arch", type=int, help="compile for this architecture (emulator)")

    benching = command("bench", run_bench, "time against cuBLAS; recorded rows without a GPU")
    sizes(benching)
    benching.add_argument("--samples", type=int, default=25)
    benching.add_argument("--tuned", action="store_true", help="use what tune found on this GPU")
    benching.add_argument("--json", type=Path, metavar="FILE")

    building = command(
        "build", run_build, "registers, shared memory, spills, warnings; no GPU needed"
    )
    building.add_argument(
        "--arch", type=architectures, default=list(ARCHITECTURES), metavar="75,80,..."
    )
    defines(building)

    tuning = command("tune", run_tune, "search a rung's tiles, warps and stages", rungs="+")
    sizes(tuning)
    defines(tuning)
    tuning.add_argument("--arch", type=int)
    tuning.add_argument("--jobs", type=int)

    comparing = command("compare", run_compare, "the emulator's counts beside Nsight Compute's")
    sizes(comparing)
    defines(comparing)
    comparing.add_argument("--store", action="store_true", help="write results/compare-<gpu>.json")
    comparing.add_argument("--once", metavar="JSON", help=argparse.SUPPRESS)

    command("limits", run_limits, "what ncu says holds each kernel back; recorded without a GPU")
    command(
        "sanitize",
        run_sanitize,
        "compute-sanitizer beside the emulator; recorded without a GPU",
        rungs=None,
    )

    recording = command("record", run_record, "measure here and write results/<gpu>.json")
    sizes(recording)
    recording.add_argument("--json", type=Path, metavar="FILE")
    return parser


def main(words: list[str] | None = None) -> int:
    """Run one command; the exit status says whether all is right."""
    options = arguments().parse_args(words)
    try:
        return options.run(options)
    except (BuildError, UnsupportedGPU, ValueError, OSError, ImportError) as error:
        print(f"kernels {options.command}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
