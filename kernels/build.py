"""From CUDA source to PTX, cubin and the ptxas report, for a named architecture, in one NVRTC
compile.

Builds are cached on disk, keyed by everything that goes in: source, headers of this folder,
options, the versions of the compiler and of the CUDA headers. No time or place of a file is part of
the key, so a cache that one machine has filled serves another: `$GEMM_BUILDS` names such a folder of
builds, which is read before anything is compiled, whatever compiler this machine has.
"""

import base64
import contextlib
import gzip
import hashlib
import json
import os
import re
import tempfile
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from .compiler_log import (
    Report,
    diagnostics_of,
    relative_files,
    relative_names,
    repairs_of,
    reports_of,
)
from .errors import BuildError, Diagnostic, NoCompiler
from .headers import include_folders, version_of
from .nvrtc import compiler
from .rereads import rereads
from .rung import FOLDER, Rung
from .rungs import RUNGS, find
from .shipped import shipped

# What the emulator runs where nobody names an architecture. GEMM_ARCH=75 shows what an older GPU's kernels do;
# a rung that is about an instruction of sm_80 stays there (`Rung.counted_on`).
DEFAULT_ARCH = int(os.environ.get("GEMM_ARCH") or 80)
TRIES = 5  # compiles at most
ENOUGH = 3  # as many that load alike are right; by accident, one time in 4,000
COMPILERS: set[str] = set()  # what made the builds that this process asked for
CACHE_FORMAT = 5
CACHE_ENTRIES = 4000
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Build:
    """One compiled source. `ptx` runs on the emulator, `cubin` on a GPU of architecture `arch`."""

    name: str
    arch: str
    ptx: str = field(repr=False)
    cubin: bytes = field(repr=False)
    reports: Mapping[str, Report]
    log: str = field(repr=False)
    warnings: tuple[str, ...]
    seconds: float
    macros: Mapping[str, int]
    compiler: str
    cached: bool = False

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the kernels, in source order."""
        return tuple(self.reports)

    @property
    def entry(self) -> str:
        """Name of the only kernel. ValueError when there are several."""
        if len(self.reports) != 1:
            raise ValueError(
                f"{self.name} has {len(self.reports)} kernels: {', '.join(self.reports)}"
            )
        return next(iter(self.reports))

    @property
    def report(self) -> Report:
        """The ptxas report of the only kernel. ValueError when there are several."""
        return self.reports[self.entry]

    @property
    def repairs(self) -> tuple[str, ...]:
        """What ptxas did to wgmma instructions that the source did not ask for, in its own words."""
        return repairs_of(self.log)

    @property
    def spills(self) -> int:
        """Bytes that a thread stores because registers ran out, plus those that it loads again, over all kernels."""
        return sum(r.spill_stores + r.spill_loads for r in self.reports.values())


def build(
    source: str | Path | Rung,
    macros: Mapping[str, int | str] | None = None,
    arch: int | str | None = None,
    name: str | None = None,
    options: tuple[str, ...] = (),
    cache: bool = True,
) -> Build:
    """Compile a rung, a rung's name, a `.cu` path or CUDA source text.

    `arch` is a compute capability such as 80 or "90a"; None means this machine's GPU, or 80 without
    one. `name` is what line information calls source text. A rung gets all its macros, defaults
    included. Without a compiler, what the book ships (`kernels.shipped`); with GEMM_COMPILER=last that is
    looked at before a compiler is asked. BuildError shows each message against its source line; ValueError
    names an unknown rung, macro or architecture; NoCompiler says what was not shipped.
    """
    asked, macros = _asked(source, macros, arch, name, options)
    _, name, text, headers, flags = asked
    arch = flags[0].removeprefix("-arch=sm_")
    carried = os.environ.get("GEMM_BUILDS")
    if cache and carried and (hit := _read(Path(carried) / _file_name(asked))):
        COMPILERS.add(hit.compiler)
        return replace(hit, macros=macros)
    try:
        nvrtc = compiler()
    except ImportError:
        if hit := _shipped(asked, macros):
            return hit
        raise NoCompiler(f"{name} for sm_{arch}") from None
    check_arch(arch)
    folders = include_folders((nvrtc.major, nvrtc.minor))
    version = f"NVRTC {nvrtc.major}.{nvrtc.minor}"
    COMPILERS.add(version)
    path = cache_folder() / "builds" / _file_name([*asked, version, version_of(folders)])
    if cache and (hit := _read(path)):
        if carried:
            _write(Path(carried) / _file_name(asked), hit)
        return replace(hit, macros=macros)
    if cache and os.environ.get("GEMM_COMPILER") == "last" and (hit := _shipped(asked, macros)):
        return hit

    start = time.perf_counter()
    included = [f"-I{folder}" for folder in folders]
    done = _compiled(nvrtc, text, name, headers, [*flags, *included])
    seconds = time.perf_counter() - start
    texts = {name: text, **headers}
    log = relative_names(done.log, texts)
    diagnostics = diagnostics_of(log, texts)
    if not done.ok:
        errors = tuple(d for d in diagnostics if d.severity != "warning")
        refused = BuildError(
            f"{name} does not compile for sm_{arch}", errors or (Diagnostic("error", log),), log
        )
        if cache and carried:
            _write_refusal(Path(carried) / _file_name(asked), refused, name, arch, macros)
        raise refused
    built = Build(
        name=name,
        arch=arch,
        ptx=relative_files(done.ptx, texts, folders),
        cubin=done.cubin,
        reports=reports_of(log, done.ptx),
        log=log,
        warnings=tuple(str(d) for d in diagnostics if d.severity == "warning"),
        seconds=seconds,
        macros=macros,
        compiler=version,
    )
    if cache:
        _write(path, built)
        if carried:
            _write(Path(carried) / _file_name(asked), built)
    return built


def key(
    source: str | Path | Rung,
    macros: Mapping[str, int | str] | None = None,
    arch: int | str | None = None,
) -> str:
    """What `kernels.shipped` knows this build by: a hash of all that goes in but the compiler."""
    return _digest(_asked(source, macros, arch, None, ())[0])


def _asked(source, macros, arch, name: str | None, options: tuple[str, ...]) -> tuple[list, dict]:
    """All that goes into a build but the compiler, and the macros."""
    arch = normal_arch(arch)
    if isinstance(source, str) and source in RUNGS:
        source = RUNGS[source]
    if isinstance(source, Rung):
        arch = source.target(arch)
    text, name, macros, beside = _resolve(source, dict(macros or {}), name, arch)
    headers = local_headers(text, beside)
    # A macro that the source does not name (BLOCKS: a persistent kernel reads gridDim) changes nothing.
    words = set(WORD.findall("\n".join([text, *headers.values()])))
    flags = [
        f"-arch=sm_{arch}",
        "-std=c++17",
        "-lineinfo",
        "--ptxas-options=-v",
        *(f"-D{key}={value}" for key, value in sorted(macros.items()) if key in words),
        *options,
    ]
    return [CACHE_FORMAT, name, text, headers, flags], macros


def _shipped(asked: list, macros: Mapping) -> Build | None:
    """The build of all this that the book ships, None where it ships none; BuildError if the compiler refused it."""
    if (stored := shipped().get(_digest(asked))) is None:
        return None
    if "refused" in stored:
        found = tuple(Diagnostic(**one) for one in stored["diagnostics"])
        raise BuildError(stored["refused"], found, stored["log"]) from None
    return replace(_build(stored), macros=macros)


def _compiled(nvrtc, text: str, name: str, headers: Mapping[str, str], options: list[str]):
    """What NVRTC makes of it; where one loads something twice by accident (`kernels.rereads`), of a few compiles the
    best, so that everybody gets the same PTX. What `ENOUGH` compiles have alike is no accident.
    """
    made = [nvrtc.compile(text, name, headers, options)]
    counts = [rereads(made[0].ptx)]
    while made[-1].ok and counts[-1] and counts.count(min(counts)) < ENOUGH and len(made) < TRIES:
        made.append(nvrtc.compile(text, name, headers, options))
        counts.append(rereads(made[-1].ptx))
    return made[counts.index(min(counts))]


def normal_arch(arch: int | str | None = None) -> str:
    """ "80" for 80, "80" or "sm_80"; this machine's GPU, or 80 without one, for None."""
    if arch is None:
        from .gpus import gpu

        found = gpu()
        return str(found.arch if found else DEFAULT_ARCH)
    return str(arch).removeprefix("sm_").removeprefix("compute_")


def check_arch(arch: int | str) -> None:
    """ValueError, with the architectures there are, for one that this NVRTC does not know; nothing without an NVRTC."""
    try:
        nvrtc = compiler()
    except ImportError:
        return
    known = nvrtc.architectures()
    number = re.fullmatch(r"(\d+)[af]?", str(arch))
    if number is None or int(number[1]) not in known:
        names = ", ".join(map(str, known))
        version = f"{nvrtc.major}.{nvrtc.minor}"
        raise ValueError(f"no architecture sm_{arch}: NVRTC {version} compiles for {names}")


def cache_folder() -> Path:
    """Builds and tuning results: `$XDG_CACHE_HOME/gemm-ladder`, else `~/.cache/gemm-ladder`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "gemm-ladder"


def _resolve(source, macros: dict, name: str | None, arch: str) -> tuple[str, str, dict, Path]:
    """The text, what to call it, all its macros, and the folder whose headers it finds first."""
    if isinstance(source, Rung):
        if source.path is None:
            raise ValueError(f"{source.name} is not a CUDA file: there is nothing to build")
        text = source.path.read_text(encoding="utf-8")
        return text, source.file, source.resolve(macros, arch), FOLDER
    if isinstance(source, str) and "\n" not in source and "{" not in source:
        if not source.endswith((".cu", ".cuh")):
            find(source)  # says which there are
        source = Path(source)
    if isinstance(source, Path):
        if not source.exists() and (FOLDER / source).exists():
            source = FOLDER / source
        text = source.read_text(encoding="utf-8")
        return text, name or source.name, macros, source.resolve().parent
    return source, name or "kernel.cu", macros, FOLDER


def local_headers(text: str, beside: Path = FOLDER) -> dict[str, str]:
    """{name: text} of headers that the text includes, directly or not, `beside` it or in `kernels/`."""
    found: dict[str, str] = {}
    waiting = [text]
    while waiting:
        for name in INCLUDE.findall(waiting.pop()):
            path = next((p for p in (beside / name, FOLDER / name) if p.is_file()), None)
            if name not in found and path is not None:
                found[name] = path.read_text(encoding="utf-8")
                waiting.append(found[name])
    return found


def _digest(parts: list) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _file_name(parts: list) -> str:
    return f"{_digest(parts)}.json.gz"


def _read(path: Path) -> Build | None:
    """The stored build, None when there is none or it is damaged."""
    try:
        stored = json.loads(gzip.decompress(path.read_bytes()))
        if not stored["ptx"] or not stored["cubin"] or not stored["reports"]:
            return None  # nothing that compiles is empty
        return _build(stored)
    except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error):
        return None


def _build(stored: Mapping) -> Build:
    """A build from what is stored of it, which stays as it is."""
    return Build(
        **{
            **stored,
            "cubin": base64.b64decode(stored["cubin"]),
            "reports": {entry: Report(**r) for entry, r in stored["reports"].items()},
            "warnings": tuple(stored["warnings"]),
            "cached": True,
        }
    )


def _prune(folder: Path, keep: int = CACHE_ENTRIES) -> None:
    """Delete the oldest builds beyond `keep`; a search over a tuning space leaves thousands."""
    builds = [(entry.stat().st_mtime, entry.path) for entry in os.scandir(folder)]
    for _, path in sorted(builds)[:-keep]:
        Path(path).unlink(missing_ok=True)


def _write(path: Path, built: Build) -> None:
    _store(path, {**asdict(built), "cubin": base64.b64encode(built.cubin).decode()})


def _write_refusal(path: Path, error: BuildError, name: str, arch: str, macros: Mapping) -> None:
    """Stores what the compiler said of a source that it refused, for a machine that cannot ask it."""
    stored = {"name": name, "arch": arch, "macros": macros, "refused": str(error).splitlines()[0]}
    stored |= {"diagnostics": [asdict(one) for one in error.diagnostics], "log": error.log}
    _store(path, stored)


def _store(path: Path, stored: dict) -> None:
    """What cannot be stored, in a read-only home or on a full disk, costs time and no correctness."""
    with contextlib.suppress(OSError):
        write_whole(path, gzip.compress(json.dumps(stored).encode(), mtime=0))
        if path.name.startswith("00"):  # one write in 256
            _prune(path.parent)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, so that processes that write the same one at once do not meet.
    OSError, with nothing left behind, where it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        partial = Path(file.name)
        try:
            file.write(content)
            file.close()
            os.replace(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
