"""Which headers a kernel may include, which are the host's affair, and which are not there at all."""

import re

from kernels.errors import Diagnostic
from kernels.headers import include_folders
from kernels.nvrtc import compiler
from kernels.rung import FOLDER as RUNG_FOLDER
from measure.others_source import device_source

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"]", re.MULTILINE)
_DIRECTIVE = re.compile(r"(?m)^[ \t]*(?:#|%:|\?\?=)[ \t]*(?:include|import)[^\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(\"(?:\\.|[^\"\\\n])*\")", re.DOTALL)
_FOR_KERNELS = re.compile(
    r"cuda_(?:fp|bf)\d+\.h|mma\.h|cuda/[\w/]+|cooperative_groups\S*|cuda_pipeline\S*|cuda_runtime\S*"
)
# What a file with a `main` includes and the compiler for kernels has no use for.
_OF_C = (
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdarg stdbool stddef "
    "stdint stdio stdlib string tgmath time uchar wchar wctype"
)
_OF_CPP = (
    "algorithm any array atomic barrier bit bitset charconv chrono compare complex concepts condition_variable deque "
    "exception execution filesystem format forward_list fstream functional future initializer_list iomanip ios iosfwd "
    "iostream istream iterator latch limits list locale map memory mutex new numbers numeric optional ostream print "
    "queue random ranges ratio regex semaphore set shared_mutex source_location span sstream stack stdexcept "
    "streambuf string string_view system_error thread tuple type_traits typeindex typeinfo unordered_map "
    "unordered_set utility valarray variant vector version"
)
_FOR_HOST = {
    *_OF_CPP.split(),
    *(f"{name}.h" for name in _OF_C.split()),
    *(f"c{name}" for name in _OF_C.split()),
}
_FOR_HOST_TOO = re.compile(
    r"(?:sys|bits|thrust|cub|nvtx3)/\S+|unistd\.h|getopt\.h|omp\.h|cu(?:blas|rand|sparse|fft|solver|dnn)\w*\.h"
    r"|cuda\.h|cuda_profiler_api\.h|device_launch_parameters\.h|nvToolsExt\w*\.h"
)


def for_kernels(header: str) -> bool:
    """Device headers of CUDA, and those that lie beside the ladder's kernels."""
    beside = re.fullmatch(r"\w+\.cuh?", header) and (RUNG_FOLDER / header).is_file()
    return bool(_FOR_KERNELS.fullmatch(header) or beside)


def device_code(text: str) -> str:
    """The same file with host functions and host includes blanked out: line numbers stay what they were.

    The compiler for kernels takes no host code, so `main` and its helpers must go; the kernels are left as they are.
    """
    return device_source(INCLUDE.sub(lambda m: m[0] if for_kernels(m[1]) else "", text)).text


def missing(text: str, file: str) -> tuple[Diagnostic, ...]:
    """An error for each header that is neither a kernel's nor the host's: there is no such file to include."""
    plain = _COMMENT.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), text)
    found = []
    joined = plain.replace("\\\n", "")
    for match in _DIRECTIVE.finditer(joined):
        if not INCLUDE.match(match[0]) or match[0] not in plain:
            line = joined.count("\n", 0, match.start()) + 1
            said = "a header is included by its name, in quotes or angle brackets, in one line"
            found.append(Diagnostic("error", said, file, line, None, match[0].strip()))
    for match in INCLUDE.finditer(plain):
        if not _known(match[1]):
            line = plain.count("\n", 0, match.start()) + 1
            source = text.splitlines()[line - 1]
            found.append(Diagnostic("error", _refusal(match[1]), file, line, None, source))
    return tuple(found)


def _known(header: str) -> bool:
    if re.search(r"^/|\.\.|[\\:]|\.cu$", header):
        return False  # a path leads out of the folders of headers, and a rung is no header
    if for_kernels(header) or header in _FOR_HOST or _FOR_HOST_TOO.fullmatch(header):
        return True
    try:
        nvrtc = compiler()
    except ImportError:
        return False
    folders = include_folders((nvrtc.major, nvrtc.minor))
    return any((folder / header).is_file() for folder in folders)


def _refusal(header: str) -> str:
    beside = " and ".join(f'"{path.name}"' for path in sorted(RUNG_FOLDER.glob("*.cuh")))
    return (
        f'there is no header "{header}" here; a kernel can include {beside} of kernels/, '
        "and CUDA's own, such as <cuda_fp16.h> and <mma.h>"
    )
