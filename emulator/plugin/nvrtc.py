"""CUDA C++ to PTX, by NVRTC from PyPI: no GPU, no driver and no CUDA installation."""

import importlib.metadata
import importlib.util
import re
import sys
from functools import lru_cache
from pathlib import Path

from .device import ARCH, Device

PACKAGES = "cuda-bindings nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-cccl nvidia-cuda-crt"
LAYOUTS = (
    "cu13/include",
    "cu13/include/cccl",
    "cuda_runtime/include",
    "cuda_cccl/include",
    "cuda_nvcc/include",
)
HEAD = re.compile(r"^\s*\.(version|target|address_size)\b.*$", re.MULTILINE)
OURS = str(Path(__file__).parent)
OWN_ARCH = re.compile(r"(--?gpu-architecture|--?arch|-gencode)(=|$)")


class CompileError(Exception):
    """NVRTC's log. `source`: what was compiled."""

    def __init__(self, log: str, source: str = "", name: str = "", options=(), *more):
        super().__init__(log)
        self.source, self.name, self.options = source, name, options


@lru_cache
def library():
    """cuda-bindings' nvrtc. The test is skipped where it is not installed."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
        return nvrtc
    except Exception as problem:  # no package, or one that does not find the library
        Device.refuse(f"CUDA C++ without a compiler ({problem}): pip install {PACKAGES}")


def version() -> tuple[int, int]:
    return tuple(library().nvrtcVersion()[1:])


@lru_cache
def include_folders() -> tuple[str, ...]:
    spec = importlib.util.find_spec("nvidia")
    roots = spec.submodule_search_locations if spec else ()
    return tuple(str(Path(r) / p) for r in roots for p in LAYOUTS if (Path(r) / p).is_dir())


def headers_of(package: str, folder: str) -> str:
    """The folder of an installed package's own headers. The test is skipped where there is none."""
    try:
        found = importlib.metadata.distribution(package)
        return str(found.locate_file(f"{package.split('-')[0]}/{folder}"))
    except importlib.metadata.PackageNotFoundError:
        Device.refuse(f"a header of {package.split('-')[0]}: pip install {package}")


OPENED: dict[str, None] = {}  # files of CUDA C++ that this process has read, the last one last
_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".cpp")
_KEPT = 32  # of them
_SHORT = 20  # characters of a line that may stand anywhere


def opened(path) -> None:
    """Some file is opened."""
    if isinstance(path, str) and path.endswith(_SUFFIXES):
        OPENED.pop(path, None)
        OPENED[path] = None
        if len(OPENED) > _KEPT:
            del OPENED[next(iter(OPENED))]


def located(source: str) -> tuple[str, str]:
    """The source and its name. Where it stands word for word in a calling file, or in one that was read (`OPENED`), its
    lines are that file's.
    """
    for file in reversed(OPENED):
        if found := _line_in(file, source):
            return f'#line {found} "{file}"\n{source}', file
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(OURS) and (found := _line_in(file, source)):
            return f'#line {found} "{file}"\n{source}', file
        frame = frame.f_back
    return source, "kernel.cu"


@lru_cache(256)
def _line_in(file: str, source: str) -> int:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return 0
    at = text.find(source)
    told = source.count("\n") > 1 or (len(source) > _SHORT and text.count(source) == 1)
    return text.count("\n", 0, at) + 1 if at >= 0 and told else 0


@lru_cache(256)
def compiled(
    source: str,
    name: str,
    options: tuple[str, ...] = (),
    expressions: tuple[str, ...] = (),
    kind="ptx",
):
    """(PTX or LTO-IR, {expression: the entry's name}, log). CompileError where NVRTC refuses."""
    n = library()
    words = [
        f"--gpu-architecture=sm_{ARCH}",
        "-dlto" if kind == "ltoir" else "-lineinfo",
        *(f"-I{f}" for f in include_folders()),
    ]
    words += [word for word in options if not OWN_ARCH.match(word)]
    program = _given(n, n.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], []))
    try:
        for expression in expressions:
            _given(n, n.nvrtcAddNameExpression(program, expression.encode()))
        status = n.nvrtcCompileProgram(program, len(words), [w.encode() for w in words])[0]
        log = _text(n, n.nvrtcGetProgramLogSize, n.nvrtcGetProgramLog, program)
        if status != n.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(log or str(status), source, name, options)
        names = {
            e: _given(n, n.nvrtcGetLoweredName(program, e.encode())).decode() for e in expressions
        }
        if kind == "ltoir":
            return bytes(_read(n, n.nvrtcGetLTOIRSize, n.nvrtcGetLTOIR, program)), names, log
        return _text(n, n.nvrtcGetPTXSize, n.nvrtcGetPTX, program), names, log
    finally:
        n.nvrtcDestroyProgram(program)


def _given(n, answer: tuple):
    status, *values = answer
    if status != n.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(status.name)
    return values[0] if values else None


def _read(n, size_of, read, program) -> bytearray:
    buffer = bytearray(_given(n, size_of(program)))
    _given(n, read(program, buffer))
    return buffer


def _text(n, *which) -> str:
    return _read(n, *which).replace(b"\0", b"").decode()


def linked(codes: list[bytes]) -> str:
    """PTX of several pieces of LTO-IR."""
    from cuda.bindings import nvjitlink as n

    options = ["-lto", "-ptx", "-lineinfo", f"-arch=sm_{ARCH}"]
    handle = n.create(len(options), options)
    try:
        for number, code in enumerate(codes):
            n.add_data(handle, n.InputType.LTOIR, code, len(code), f"part {number}")
        n.complete(handle)
        made = bytearray(n.get_linked_ptx_size(handle))
        n.get_linked_ptx(handle, made)
        return made.replace(b"\0", b"").decode()
    except n.nvJitLinkError as problem:
        log = bytearray(n.get_error_log_size(handle))
        n.get_error_log(handle, log)
        lines = log.replace(b"\0", b"").decode().split("\n")
        Device.refuse(f"linking: {next(filter(None, lines), problem)}")
    finally:
        n.destroy(handle)


def joined(texts: list[str]) -> str:
    """Several modules of PTX as one. What one declares and another has is left to the emulator to find."""
    return "\n".join([texts[0], *(HEAD.sub("", text) for text in texts[1:])])
