"""Command line: `python -m emulator run file.ptx ...`, `bench` and `opcodes`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from emulator import bench, beside_numba
from emulator.arguments import argument, extents
from emulator.counts.trace import Trace
from emulator.errors import EmulatorError
from emulator.machine.tensor_map import TensorMap
from emulator.module import Module
from emulator.ops.table import coverage

ARGUMENT = """an argument, one for each parameter, in order:
  i.e. s32=5, f32=1.5 (by value), f32[256,64]=random (an array; also zeros, ones, arange, random:SEED,
  uniform:SEED for floats from -1 to 1, below:N:SEED for whole numbers from 0 to N - 1, or a .npy file),
  map:64x64:128:f16[256,64]=random (a tensor map of such an array: its box, its swizzle if it has one)"""


def number_of(word: str, text: str, args: list) -> int:
    """The number of an argument, as --show and --save name it. Raises ValueError."""
    if not text.isdigit() or int(text) >= len(args):
        there = f"0 to {len(args) - 1}" if args else "none"
        raise ValueError(f"{word} {text}: no such argument; there are {there}")
    return int(text)


def saving(text: str, args: list) -> tuple[int, str]:
    """`N=FILE`, checked before the launch, so that no result is lost. Raises ValueError."""
    number, _, path = text.partition("=")
    if not path:
        raise ValueError(f"--save {text}: expected N=FILE, as in 2=c.npy")
    if not Path(path).resolve().parent.is_dir() or Path(path).is_dir():
        raise ValueError(f"--save {text}: no file can be written at {path}")
    return number_of("--save", number, args), path


def array_of(arg):
    """What is shown of an argument: of a tensor map its array."""
    return arg.array if isinstance(arg, TensorMap) else arg


def report(trace: Trace, by_instruction: bool) -> str:
    """The trace as a table: by source line, or by PTX instruction."""
    lines, columns = trace.by_line(), trace.columns
    if by_instruction or not lines:
        rows = [(f"{row.ptx_line}: {row.text}", {name: getattr(row, name) for name in columns})
                for row in trace.instructions]  # fmt: skip
    else:
        rows = [(f"line {line}", sums) for line, sums in lines.items()]
    head = [("where", dict(zip(columns, columns, strict=True)))]
    total = [("total", {name: trace.total(name) for name in columns})]
    wide = min(60, max(len(name) for name, _ in [*rows, *total]))
    widths = {name: max(len(name), len(str(total[0][1][name]))) for name in columns}
    return "\n".join(
        f"{name[:wide]:{wide}} "
        + " ".join(f"{sums[column]!s:>{widths[column]}}" for column in columns)
        for name, sums in [*head, *rows, *total]
    )


def run(options: argparse.Namespace) -> int:
    module = Module(Path(options.file).read_bytes())
    entry = options.entry or (module.entries[0] if len(module.entries) == 1 else None)
    if entry is None:
        raise ValueError(f"--entry: one of {', '.join(module.entries) or '(none)'}")
    args = [argument(text) for text in options.arg]
    shown = [number_of("--show", text, args) for text in options.show]
    saved = [saving(text, args) for text in options.save]
    trace = module.launch(
        entry,
        options.grid,
        options.block,
        args,
        options.shared,
        blocks=options.only or None,
        count=not options.no_count,
    )
    print(trace)
    print(report(trace, options.instructions))
    for hazard in trace.hazards:
        print(f"{'note' if hazard.note else 'hazard'}: {hazard}")
    for number, path in saved:
        np.save(path, array_of(args[number]))
    for number in shown:
        print(f"argument {number}:\n{array_of(args[number])}")
    return 1 if any(not hazard.note for hazard in trace.hazards) else 0


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m emulator", description="Runs PTX on the CPU.")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run", help="run one kernel of a .ptx file",
                              formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    one.add_argument("file")
    one.add_argument("--entry", help="the kernel's name; not needed where the file has one")
    one.add_argument("--grid", type=extents, default=(1,), help="blocks, as in 4x4")
    one.add_argument("--block", type=extents, default=(32,), help="threads of a block, as in 16x16")
    one.add_argument("--arg", action="append", default=[], help=ARGUMENT)
    one.add_argument("--shared", type=int, default=0, help="bytes of dynamic shared memory")
    one.add_argument(
        "--only",
        type=extents,
        action="append",
        default=[],
        help="run this block only, as in 0x3; may be repeated",
    )
    one.add_argument("--no-count", action="store_true", help="do not count memory traffic")
    one.add_argument(
        "--instructions",
        action="store_true",
        help="a row for each PTX instruction, not for each line",
    )
    one.add_argument(
        "--save",
        action="append",
        default=[],
        metavar="N=FILE",
        help="save argument N as .npy afterwards",
    )
    one.add_argument(
        "--show", action="append", default=[], metavar="N", help="print argument N afterwards"
    )
    one.set_defaults(do=run)
    two = commands.add_parser("bench", help="measure the emulator's speed")
    two.add_argument("--size", type=int, default=256, help="a multiple of 128")

    two.add_argument(
        "--against", metavar="FOLDER", help="another checkout, to be set beside this one"
    )

    def do_bench(options: argparse.Namespace) -> int:
        if options.against:
            print(bench.against(options.against, options.size))
        else:
            print(bench.table(options.size), beside_numba.table(), sep="\n\n")
        return 0

    two.set_defaults(do=do_bench)
    three = commands.add_parser("opcodes", help="list what is executed, as in the README")

    def do_opcodes(options: argparse.Namespace) -> int:
        print(coverage())
        return 0

    three.set_defaults(do=do_opcodes)
    options = parser.parse_args(words)
    try:
        return options.do(options)
    except (EmulatorError, ValueError, TypeError, OSError) as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
