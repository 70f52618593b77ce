"""Runs a student's Python in a process of its own. Only plain values come back, and they are judged here."""

from __future__ import annotations

import base64
import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from emulator import TensorMap

CHILD = Path(__file__).with_name("sandbox_child.py")
ROOT = Path(__file__).resolve().parents[3]
MEMORY = 2 << 30
CLOCK = 6  # times these seconds: what one question may take on the clock, for a sleeping answer
WHOLE = 4  # times these seconds: all cells and calls together, after five for the start
MOST_SAID = 1 << 22  # bytes of one line


class Stopped(Exception):
    """The answer's process ended, or was ended."""


class Sandbox:
    """One student's process. seconds: of the processor; all cells and calls together may take `WHOLE` times as many."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.said = b""
        self.ends = time.monotonic() + WHOLE * CLOCK * seconds
        environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
        if "SYSTEMROOT" in os.environ:
            environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
        self.process = subprocess.Popen(
            [sys.executable, "-s", "-E", str(CHILD), str(ROOT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=ROOT.anchor, env=environment,
            preexec_fn=self._limits if os.name == "posix" else None,
        )  # fmt: skip

    def _limits(self) -> None:
        import resource

        whole = int(WHOLE * self.seconds) + 5
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.setsid()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *error) -> None:
        self.process.kill()
        self.process.wait()

    def answers(self, cells: list[str]) -> dict:
        """{exercise: value} that the cells gave to `check`; a function is called in its process."""
        said = self._ask({"do": "cells", "cells": cells})
        if not isinstance(said, dict):
            raise Stopped("the answers came back garbled")
        return {name: self._value(name, coded) for name, coded in said.items()}

    def _value(self, name: str, coded):
        if not (isinstance(coded, list) and coded and coded[0] == "function"):
            return decoded(coded, None)

        def proxy(*arguments):
            matrix = next((one for one in arguments if isinstance(one, np.ndarray)), None)
            sent = [_sent(one) for one in arguments]
            said = self._ask({"do": "call", "name": name, "arguments": sent})
            if isinstance(said, list) and said[0] == "raised":
                kind = ValueError if said[1] == "ValueError" else RuntimeError
                raise kind(said[2] if kind is ValueError else f"{said[1]}: {said[2]}")
            return decoded(said, matrix)

        return proxy

    def _ask(self, question: dict):
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
            line = self._line()
        except (BrokenPipeError, OSError):
            line = b""
        if not line:
            whole = f"{WHOLE * self.seconds:g} s of the processor"
            raise Stopped(f"the Python did not end within {whole}, or ended its process")
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            raise Stopped("the Python wrote where only its answers belong") from None

    def _line(self) -> bytes:
        """The next line that the process says, b"" where it ended. Half a line is waited for no longer than a whole one."""
        ends = min(self.ends, time.monotonic() + CLOCK * self.seconds)
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.said:
                if not selector.select(max(0.0, ends - time.monotonic())):
                    raise Stopped(f"the Python did not answer within {CLOCK * self.seconds:g} s")
                part = os.read(self.process.stdout.fileno(), 1 << 16)
                if not part or len(self.said) > MOST_SAID:
                    return b""
                self.said += part
        line, _, self.said = self.said.partition(b"\n")
        return line


def _sent(value):
    if isinstance(value, np.ndarray):
        whole = value if value.base is None else value.base
        told = {"dtype": str(value.dtype), "shape": list(whole.shape), "columns": value.shape[1]}
        if whole is value:  # its numbers matter; of a part of a wider array, only where it lies
            told["bytes"] = base64.b64encode(value.tobytes()).decode()
        return told
    return value.item() if isinstance(value, np.generic) else value


def decoded(coded, matrix: np.ndarray | None):
    """The value that a process sent. Nothing but numbers, words, sequences and tensor maps of `matrix` comes out."""
    if coded is None or isinstance(coded, bool | int | float | str):
        return coded
    try:
        kind, value = coded[0], coded[1]
        if kind in ("tuple", "list"):
            found = [decoded(one, matrix) for one in value]
            return tuple(found) if kind == "tuple" else found
        if kind == "dict":
            return {str(key): decoded(one, matrix) for key, one in value}
        if kind == "map":
            return _tensor_map(value, matrix)
        if kind == "other":
            return _Other(str(value))
    except Exception:  # whatever stands there, it is no answer
        pass
    raise Stopped("the answers came back garbled")


class _Other:
    """Stands for a value that is nothing an exercise asks for."""

    def __init__(self, kind: str):
        self.kind = kind

    def __repr__(self) -> str:
        return f"a {self.kind}"


def _tensor_map(value: dict, matrix: np.ndarray | None):
    """The map over the grader's own matrix that says what the process's map said over its own."""
    if matrix is None:
        return _Other("TensorMap")
    whole = matrix if matrix.base is None else matrix.base
    shape, strides = tuple(value["shape"]), tuple(value["strides"])
    last = sum((n - 1) * abs(step) for n, step in zip(shape, strides, strict=True))
    offset = value["offset"]
    if offset < 0 or min(strides) < 0 or offset + last + whole.itemsize > whole.nbytes:
        return _Other("TensorMap of another array")
    view = np.ndarray(shape, np.dtype(value["dtype"]), whole, offset, strides)
    words = ("format", "swizzle", "interleave", "fill", "promotion")
    steps = tuple(value["element_strides"])
    named = {word: value[word] for word in words}
    return TensorMap(view, box=tuple(value["box"]), element_strides=steps, **named)
