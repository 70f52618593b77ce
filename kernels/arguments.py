"""How sizes, architectures and macros are written on a command line, here and in `measure`."""

import argparse
import re
import sys

from .errors import BuildError


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


def run(parser: argparse.ArgumentParser, words: list[str] | None) -> int:
    """Run one command; the exit status says whether all is right."""
    options = parser.parse_args(words)
    said = f"{parser.prog.removeprefix('python -m ')} {options.command}"
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print(f"{said}: stopped", file=sys.stderr)
        return 130
    except (BuildError, RuntimeError, ValueError, OSError, ImportError, MemoryError) as error:
        print(f"{said}: {error}", file=sys.stderr)
        return 1
