"""CUDA source to PTX with NVRTC alone, for tests that run what the compiler really emits."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import emulator


@cache
def compile_ptx(source: str, arch: int = 80) -> str:
    """PTX for compute_<arch>, with line numbers; the source is called test.cu."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    include = Path(find_spec("nvidia").submodule_search_locations[0]) / "cu13" / "include"
    options = [
        f"-arch=compute_{arch}",
        "-std=c++17",
        "-lineinfo",
        f"-I{include}",
        f"-I{include / 'cccl'}",
    ]
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"test.cu", 0, [], [])
    (result,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode())
    _, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = b" " * size
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.decode().rstrip("\0")


def launch(source, entry, grid, block, args, arch=80, **more):
    """Compiles and runs; returns the Trace."""
    return emulator.Module(compile_ptx(source, arch)).launch(entry, grid, block, args, **more)


def line_of(source: str, text: str) -> int:
    """The line of the source that contains `text`."""
    return next(i for i, line in enumerate(source.splitlines(), 1) if text in line)
