"""A `.cu` file as others write it, made into what NVRTC compiles: device code alone, line for line.

Host functions and headers of the host are blanked, not cut, so that a line keeps its number. A template that
host code launches, or that the caller names, is instantiated at the end of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Headers that device code does not need, or that NVRTC has built in.
HOST_HEADERS = {
    "algorithm", "array", "chrono", "cmath", "cstdio", "cstdlib", "cstring", "ctime", "fstream", "functional",
    "iomanip", "iostream", "memory", "numeric", "random", "stdexcept", "string", "utility", "vector",
    "math.h", "stdio.h", "stdlib.h", "string.h", "time.h", "sys/time.h", "unistd.h", "omp.h",
    "cuda.h", "cudaTypedefs.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "cublas_v2.h", "curand.h",
    "cuda_profiler_api.h", "helper_cuda.h", "helper_functions.h",
}  # fmt: skip
# Headers whose names device code does use: header, what stands in for it on the same line.
INTEGERS = " ".join(
    f"typedef {kind} {name}_t;"
    for name, kind in {
        "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
        "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int",
        "uint64": "unsigned long long",
    }.items()
)  # fmt: skip
STAND_INS = {
    **dict.fromkeys(("stdint.h", "cstdint"), INTEGERS),
    **dict.fromkeys(("float.h", "cfloat", "climits", "limits.h", "assert.h", "cassert"), ""),
}
# A tensor map, which a kernel takes by value: what those of the driver define of it.
MAP_HEADERS = {"cuda.h", "cudaTypedefs.h"}
TENSOR_MAP = "struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; }; typedef struct CUtensorMap_st CUtensorMap;"
# What those headers define, given to the compiler where the text names it and does not define it.
CONSTANTS = {
    "INFINITY": "__int_as_float(0x7f800000)",
    "FLT_MAX": "3.402823466e+38f",
    "FLT_MIN": "1.175494351e-38f",
    "FLT_EPSILON": "1.192092896e-07f",
    "INT_MAX": "2147483647",
    "INT_MIN": "(-2147483647-1)",
    "UINT_MAX": "4294967295u",
    "M_PI": "3.14159265358979323846",
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"].*$', re.MULTILINE)
NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
DEVICE = re.compile(
    r"\b(__global__|__device__|constexpr|struct|class|union|enum|namespace|concept)\b"
)
FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\([^{};]*\)\s*(?:const|noexcept|\s)*$")
EXTERN_C = re.compile(r"\bextern\s+$|\bnamespace\b[^;{}()]*$")
TEMPLATE = re.compile(
    r"template\s*<(?P<parameters>[^{};()]*?)>\s*(?P<head>[^{};]*?__global__[^{};]*?\b(?P<name>\w+)\s*\([^{};]*\))\s*\{"
)
LAUNCHED = re.compile(r"\b(\w+)\s*<([^<>;]*)>\s*<<<")


@dataclass(frozen=True)
class DeviceSource:
    """Text that NVRTC takes. left_out: the host functions and headers that it has no more."""

    text: str
    left_out: tuple[str, ...]
    options: tuple[str, ...]
    templates: tuple[str, ...]  # kernels that are templates, instantiated or not


def device_source(text: str, wanted: str | None = None) -> DeviceSource:
    """The device part of a CUDA file. wanted: an instance such as "reduce<256>" that somebody asks for."""
    code = _masked(text)
    spans = list(_host_functions(code))
    host = "\n".join(text[start:end] for start, end, _ in spans)
    left_out = [f"{name}()" for _, _, name in spans]
    for start, end, _ in spans:
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    dropped: list[str] = []
    shown: set[str] = set()

    def stand_in(match: re.Match) -> str:
        name = match[1]
        if name in MAP_HEADERS and "CUtensorMap" in code and not MAP_HEADERS & shown:
            shown.add(name)
            return TENSOR_MAP
        if name in STAND_INS:
            return STAND_INS[name]
        if name in HOST_HEADERS:
            dropped.append(f"<{name}>")
            return ""
        return match[0]

    text = INCLUDE.sub(stand_in, text)
    templates = {match["name"]: match for match in TEMPLATE.finditer(_masked(text))}
    asked = [(name, values) for name, values in LAUNCHED.findall(host) if name in templates]
    if wanted and (match := re.fullmatch(r"\s*(\w+)\s*<(.*)>\s*", wanted)):
        if match[1] not in templates:
            there = ", ".join(templates) or "none"
            raise ValueError(f"--entry {wanted}: no kernel template {match[1]}; there are {there}")
        asked = [(match[1], match[2])]
    instances = [_instance(templates[name], values) for name, values in dict.fromkeys(asked)]
    if instances:
        text = text.rstrip("\n") + "\n" + "\n".join(instances) + "\n"
    options = tuple(
        f"-D{name}={value}"
        for name, value in CONSTANTS.items()
        if re.search(rf"\b{name}\b", text) and not re.search(rf"#\s*define\s+{name}\b", text)
    )
    return DeviceSource(text, (*left_out, *dropped), options, tuple(templates))


def parameter_names(text: str, kernel: str) -> list[str]:
    """The names of a kernel's parameters as its author wrote them; none where they are not found."""
    found = re.search(
        rf"__global__[^{{}};]*?\b{re.escape(kernel)}\s*\(([^{{}};]*)\)\s*\{{", _masked(text)
    )
    if not found or not found[1].strip():
        return []
    names = [re.search(r"(\w+)\s*(?:\[[^\]]*\])?\s*$", part) for part in _split(found[1])]
    return [match[1] for match in names if match] if all(names) else []


def _masked(text: str) -> str:
    """The text with comments, strings and directives as blanks, so that braces are code."""

    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    return DIRECTIVE.sub(blank, NOISE.sub(blank, text))


def _host_functions(code: str):
    """(start, end, name) of every function at the outermost level that is no device code."""
    at, start = 0, 0
    while (opening := re.compile(r"[{;}]").search(code, at)) is not None:
        at = opening.end()
        if opening[0] != "{":
            start = at
            continue
        head = code[start : opening.start()]
        if EXTERN_C.search(head):  # its contents are at the outermost level too
            start = at
            continue
        end = _closing(code, opening.start())
        function = FUNCTION.search(head)
        if function and not DEVICE.search(head):
            yield start + len(head) - len(head.lstrip()), end, function[1]
            start = end
        at = end
        if function or re.match(r"\s*;", code[end:]) is None:
            start = end


def _closing(code: str, opening: int) -> int:
    """The place behind the brace that closes the one at `opening`."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(code)


def _split(words: str) -> list[str]:
    """Words between commas that no bracket holds."""
    parts, depth = [""], 0
    for letter in words:
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _instance(template: re.Match, values: str) -> str:
    """An explicit instantiation, made by putting the values in the place of the parameters' names."""
    given = _split(values)
    head, name = template["head"], template["name"]
    parameters = []
    for part in _split(template["parameters"]):
        declared, _, default = part.partition("=")
        parameters.append((declared.split()[-1].lstrip("."), default.strip()))
    given += [default for _, default in parameters[len(given) :] if default]
    if len(given) != len(parameters):
        wanted = ", ".join(parameter for parameter, _ in parameters)
        raise ValueError(
            f"{name}<{values}>: the template has {len(parameters)} parameters ({wanted})"
        )
    for (parameter, _), value in zip(parameters, given, strict=True):
        head = re.sub(rf"\b{parameter}\b", value, head)
    head = re.sub(rf"\b{name}\s*\(", f"{name}<{', '.join(given)}>(", head, count=1)
    return f"template {' '.join(head.split())};"
