"""Command line: `python -m emulator run file.ptx ...` and `python -m emulator bench`."""

from __future__ import annotations

import argparse
import re
import sys

import numpy as np

from . import bench
from .errors import EmulatorError
from .module import Module
from .trace import COLUMNS, Trace

DTYPES = {
    **{f"{kind}{bits}": f"{'iu'[kind == 'u']}{bits // 8}" for kind in "us" for bits in (8, 16, 32, 64)},
    "f16": "f2", "f32": "f4", "f64": "f8",
}  # fmt: skip
ARGUMENT = """an argument, one for each parameter, in order:
  i.e. s32=5, f32=1.5 (by value), f32[256,64]=random (an array; also zeros, ones, arange, random:SEED, or a .npy file)"""


def extents(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.split("[x,]", text))


def argument(text: str):
    """`TYPE=VALUE` or `TYPE[SHAPE]=WHAT` as a NumPy scalar or array. Raises ValueError."""
    match = re.fullmatch(r"(\w+)(?:\[([\d,x]+)\])?(?:=(.+))?", text)
    if not match or match[1] not in DTYPES:
        raise ValueError(
            f"--arg {text}: expected TYPE=VALUE or TYPE[SHAPE]=WHAT, TYPE one of {', '.join(DTYPES)}"
        )
    dtype, shape, what = np.dtype(DTYPES[match[1]]), match[2], match[3]
    if shape is None:
        if what is None:
            raise ValueError(f"--arg {text}: a scalar needs a value")
        return dtype.type(float(what) if dtype.kind == "f" else int(what, 0))
    shape = extents(shape)
    if what is None or what == "zeros":
        return np.zeros(shape, dtype)
    if what == "ones":
        return np.ones(shape, dtype)
    if what == "arange":
        return np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    if what.split(":")[0] == "random":
        rng = np.random.default_rng(int(what.partition(":")[2] or 0))
        if dtype.kind == "f":
            return rng.standard_normal(shape).astype(dtype)
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    loaded = np.ascontiguousarray(np.load(what))
    if loaded.dtype != dtype or loaded.size != np.prod(shape):
        raise ValueError(f"--arg {text}: {what} holds {loaded.dtype} {loaded.shape}")
    return loaded


def report(trace: Trace, by_instruction: bool) -> str:
    """The trace as a table: by source line, or by PTX instruction."""
    lines = trace.by_line()
    if by_instruction or not lines:
        rows = [(f"{row.ptx_line}: {row.text}", {name: getattr(row, name) for name in COLUMNS})
                for row in trace.instructions]  # fmt: skip
    else:
        rows = [(f"line {line}", sums) for line, sums in lines.items()]
    head = [("where", dict(zip(COLUMNS, COLUMNS, strict=True)))]
    total = [("total", {name: trace.total(name) for name in COLUMNS})]
    wide = min(60, max(len(name) for name, _ in [*rows, *total]))
    widths = {name: max(len(name), len(str(total[0][1][name]))) for name in COLUMNS}
    return "\n".join(
        f"{name[:wide]:{wide}} "
        + " ".join(f"{sums[column]!s:>{widths[column]}}" for column in COLUMNS)
        for name, sums in [*head, *rows, *total]
    )


def run(options: argparse.Namespace) -> int:
    with open(options.file) as file:
        module = Module(file.read())
    entry = options.entry or (module.entries[0] if len(module.entries) == 1 else None)
    if entry is None:
        raise ValueError(f"--entry: one of {', '.join(module.entries) or '(none)'}")
    args = [argument(text) for text in options.arg]
    blocks = [extents(text) for text in options.only] or None
    trace = module.launch(
        entry,
        options.grid,
        options.block,
        args,
        options.shared,
        blocks=blocks,
        count=not options.no_count,
    )
    print(trace)
    print(report(trace, options.instructions))
    for hazard in trace.hazards:
        print(f"hazard: {hazard}")
    for text in options.save:
        number, _, path = text.partition("=")
        np.save(path, args[int(number)])
    for text in options.show:
        print(f"argument {text}:\n{args[int(text)]}")
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
    options = parser.parse_args(words)
    try:
        return options.do(options)
    except (EmulatorError, ValueError, TypeError, OSError) as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
