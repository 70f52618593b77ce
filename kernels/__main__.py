"""`python -m kernels check|build|alone|source`."""

import argparse
import sys
from pathlib import Path

from .arguments import architectures, macro, run, size
from .build import build, check_arch
from .errors import BuildError
from .occupancy import LIMITS
from .rung import Rung
from .rungs import ARCHITECTURES, RUNGS, find
from .settings import configuration, format_macros, generation, settings
from .source import source
from .table import table


def run_check(options) -> int:
    from .check import check

    machines = None if options.machine == "auto" else (options.machine,)
    rows = check(
        options.rungs or None, options.size or None, machines, options.arch,
        defaults=options.defaults, large=options.large,
    )  # fmt: skip
    wrong = [row for row in rows if not row.ok]
    print(f"{len(rows) - len(wrong)} of {len(rows)} right or skipped")
    return 1 if wrong else 0


def run_build(options) -> int:
    names = options.rungs or [name for name, rung in RUNGS.items() if rung.path]
    for arch in options.arch:
        check_arch(arch)
    rows, bad = [], 0
    for name in names:
        rung = find(name)
        if rung.path is None:
            print(f"{name}: skipped, is written in Python", file=sys.stderr)
            continue
        for arch in options.arch:
            if not rung.runs_on(arch):
                continue
            for setting in settings_to_build(rung, arch, dict(options.define), options.defaults):
                row, fine = _build_row(rung, setting, arch)
                rows.append(row)
                bad += not fine
    header = ["rung", "setting", "arch", "registers", "shared", "dynamic", "spills", "warnings", ""]
    print(table(header, rows, left=2))
    return 1 if bad else 0


def settings_to_build(
    rung: Rung, arch: int, given: dict[str, int], defaults: bool
) -> list[dict[str, int]]:
    """What is built of a rung: its row's configurations with the given macros; and, unless macros are
    given or `defaults` is, those that searches have found for this generation.
    """
    found = [{**setting, **given} for setting in rung.configurations()]
    if not given and not defaults:
        for one in settings():
            if one.rung == rung.name and one.generation == generation(arch):
                types = {name: one.macros[name] for name in format_macros(rung)}
                found.append(configuration(rung, one.size, arch, types).macros)
    return [setting for n, setting in enumerate(found) if setting not in found[:n]]


def _build_row(rung: Rung, setting, arch: int) -> tuple[list, bool]:
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
    there = LIMITS[arch].shared_per_block if arch in LIMITS else None
    total = report.shared_bytes + dynamic
    problem = ""
    if there is not None and total > there:
        problem = f" {total} bytes of shared memory, a block of sm_{arch} has {there}"
    fine = not (built.spills or built.warnings or problem)
    return [*row, built.spills, len(built.warnings), problem], fine


def run_source(options) -> int:
    print(source(options.rung, options.part), end="")
    return 0


def run_alone(options) -> int:
    from .alone import line, run_all

    if options.line:
        names = options.rungs or [name for name, rung in RUNGS.items() if rung.path]
        print("\n".join(map(line, names)))
        return 0
    size = options.size or ()
    wrong = run_all(options.rungs, options.folder, options.arch, size, options.compile_only)
    return 1 if wrong else 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kernels",
        description="Checks, builds and shows the kernels; python -m measure times and profiles them.",
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, run, text):
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    checking = command(
        "check", run_check, "right on the emulator, and on a GPU where there is one?"
    )
    checking.add_argument("--size", nargs="+", type=size, metavar="N|MxNxK")
    checking.add_argument("--machine", choices=("auto", "emulator", "gpu"), default="auto")
    checking.add_argument("--arch", type=int, help="compile for this architecture (emulator)")
    checking.add_argument(
        "--large", action="store_true", help="matrices of nearly 2^31 elements too (GPU, 60 GiB)"
    )

    building = command(
        "build", run_build, "registers, shared memory, spills, warnings; no GPU needed"
    )
    building.add_argument(
        "--arch", type=architectures, default=list(ARCHITECTURES), metavar="75,80,..."
    )
    building.add_argument(
        "-D", dest="define", action="append", default=[], type=macro, metavar="NAME=N"
    )

    for both in (checking, building):
        both.add_argument("rungs", nargs="*", metavar="RUNG", help="all of them unless named")
        words = "the rows' own configurations, not the searched ones"
        both.add_argument("--defaults", action="store_true", help=words)

    leaving = command(
        "alone",
        run_alone,
        "builds rungs with nvcc and a main of their own, and runs them; all of this GPU's unless named",
    )
    leaving.add_argument("rungs", nargs="*", metavar="RUNG")
    leaving.add_argument("--size", type=size, metavar="N|MxNxK", help="4096 unless given")
    leaving.add_argument("--arch", type=int, help="compile for this architecture")
    leaving.add_argument(
        "--folder", type=Path, default=Path("build/alone"), help="where the programs are kept"
    )
    leaving.add_argument("--compile-only", action="store_true")
    leaving.add_argument("--line", action="store_true", help="print what a reader types, no more")

    showing = command("source", run_source, "a rung's CUDA source, or one part of it")
    showing.add_argument("rung", metavar="RUNG")
    showing.add_argument("part", nargs="?", metavar="PART", help="as marked: // [PART]")
    return parser


def main(words: list[str] | None = None) -> int:
    return run(arguments(), words)


if __name__ == "__main__":
    sys.exit(main())
