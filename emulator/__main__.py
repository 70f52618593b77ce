"""Command line: `python -m emulator run file.ptx ...`, `bench` and `opcodes`."""

from __future__ import annotations

import argparse
import math
import re
import sys
from pathlib import Path

import numpy as np

from emulator import bench
from emulator.counts.trace import Trace
from emulator.errors import EmulatorError
from emulator.module import Module
from emulator.ops.table import coverage

DTYPES = {
    **{f"{kind}{bits}": f"{'iu'[kind == 'u']}{bits // 8}" for kind in "us" for bits in (8, 16, 32, 64)},
    "f16": "f2", "f32": "f4", "f64": "f8",
}  # fmt: skip
ARGUMENT = """an argument, one for each parameter, in order:
  i.e. s32=5, f32=1.5 (by value), f32[256,64]=random (an array; also zeros, ones, arange, random:SEED, or a .npy file)"""


def extents(text: str) -> tuple[int, ...]:
    """ "16x16" or "16,16"."""
    if not re.fullmatch(r"\d+([x,]\d+){0,2}", text):
        raise argparse.ArgumentTypeError(f"{text}: one to three numbers, as in 4 or 16x16")
    return tuple(int(part) for part in re.split("[x,]", text))


def argument(text: str):
    """`TYPE=VALUE` or `TYPE[SHAPE]=WHAT` as a NumPy scalar or array. Raises ValueError."""
    match = re.fullmatch(r"(\w+)(?:\[(\d+(?:[,x]\d+)*)\])?(?:=(.+))?", text)
    if not match or match[1] not in DTYPES:
        raise ValueError(
            f"--arg {text}: expected TYPE=VALUE or TYPE[SHAPE]=WHAT, TYPE one of {', '.join(DTYPES)}"
        )
    dtype, shape, what = np.dtype(DTYPES[match[1]]), match[2], match[3]
    if shape is None:
        if what is None:
            raise ValueError(f"--arg {text}: a scalar needs a value")
        return scalar(text, dtype, what)
    try:
        return array(text, dtype, tuple(int(part) for part in re.split("[x,]", shape)), what)
    except MemoryError as problem:
        raise ValueError(f"--arg {text}: {problem}") from None


def scalar(text: str, dtype: np.dtype, what: str):
    """A NumPy scalar. ValueError for what is no number, or does not fit."""
    try:
        number = float(what) if dtype.kind == "f" else int(what, 0)
    except ValueError:
        kind = "a number" if dtype.kind == "f" else "an integer"
        raise ValueError(f"--arg {text}: {what} is not {kind}") from None
    try:
        with np.errstate(over="raise"):
            return dtype.type(number)
    except (OverflowError, FloatingPointError):
        raise ValueError(f"--arg {text}: {what} does not fit {dtype}") from None


def array(text: str, dtype: np.dtype, shape: tuple[int, ...], what: str | None) -> np.ndarray:
    """An array filled with `what`, or loaded. ValueError where it cannot be."""
    if what is None or what == "zeros":
        return np.zeros(shape, dtype)
    if what == "ones":
        return np.ones(shape, dtype)
    if what == "arange":
        held = np.arange(math.prod(shape)).reshape(shape)
        largest = float((np.finfo if dtype.kind == "f" else np.iinfo)(dtype).max)
        if held.size - 1 > largest:
            raise ValueError(f"--arg {text}: {held.size - 1} does not fit {dtype}")
        return held.astype(dtype)
    if random := re.fullmatch(r"random(?::(\d+))?", what):
        rng = np.random.default_rng(int(random[1] or 0))
        if dtype.kind == "f":
            return rng.standard_normal(shape).astype(dtype)
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    try:
        loaded = np.load(what)
    except FileNotFoundError:
        raise ValueError(
            f"--arg {text}: {what} is neither zeros, ones, arange, random[:SEED] nor a file"
        ) from None
    except (OSError, ValueError, EOFError):
        raise ValueError(f"--arg {text}: {what} is not a .npy file") from None
    if not isinstance(loaded, np.ndarray):
        raise ValueError(f"--arg {text}: {what} holds several arrays; save one with np.save")
    if loaded.dtype != dtype or loaded.size != math.prod(shape):
        raise ValueError(f"--arg {text}: {what} holds {loaded.dtype} {loaded.shape}")
    return np.ascontiguousarray(loaded)


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
        print(f"hazard: {hazard}")
    for number, path in saved:
        np.save(path, args[number])
    for number in shown:
        print(f"argument {number}:\n{args[number]}")
    return 1 if trace.hazards else 0


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

    def do_bench(options: argparse.Namespace) -> int:
        print(bench.table(options.size))
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
