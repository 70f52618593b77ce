"""Which configuration of a rung runs: one per GPU generation and class of sizes, found by a search.

`python -m measure tune` searches and `results/settings.json` keeps what it found, one row per rung,
types, generation and class of sizes, each with its provenance. Everything takes its configuration
from here: `gemm`, `check`, `python -m measure bench`, `python -m kernels build` and a chapter's
cells. So what is timed, dissected, checked, built and printed is one configuration.

Whoever gives macros of their own gets those over the row's defaults, and nothing of a search; macros
that only choose number formats (HALF_OUTPUT, say) leave the search's choice in place.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from .build import cache_folder, normal_arch, write_whole
from .gpus import gpu
from .rung import FOLDER, FORMATS, Rung, Types
from .rungs import RUNGS, find

FILE = FOLDER.parent / "results" / "settings.json"
GENERATIONS = (75, 80, 86, 90, 100)  # the first architecture of each; 89 is of 86, 120 of 100
CLASSES = (1024, 2048, 4096, 8192)
# Shapes that fill no GPU, and that a class would not speak for: each is a class of its own.
SHAPES = ("16x8192x8192", "64x8192x8192", "128x8192x8192", "256x256x65536", "4096x4096x128")
SKINNY = 8  # C is skinny when one of its sides is this many times less than the greatest of M, N, K
BOOK_ARCH = 90  # of the GPU that the book's pages show

Size = int | tuple[int, int, int]


@dataclass(frozen=True)
class Setting:
    """What a search found best. `gpu` to `size` say where it was timed; `ms` and `tflops` are of one
    launch there, `tried` counts the settings that it was chosen from.
    """

    rung: str
    types: str
    generation: int
    size_class: str
    macros: Mapping[str, int]
    gpu: str
    sms: int
    recorded: str
    commit: str
    size: tuple[int, int, int]
    tried: int
    ms: float
    tflops: float

    @property
    def key(self) -> tuple:
        """What there is one setting of."""
        return self.rung, self.types, self.generation, self.size_class


@dataclass(frozen=True)
class Configuration:
    """All macros of a rung, and in words where they come from."""

    rung: str
    macros: Mapping[str, int]
    source: str

    def __str__(self) -> str:
        values = " ".join(f"{name}={value}" for name, value in self.macros.items()) or "no macros"
        return f"{self.rung}: {values} ({self.source})"


def generation(arch: int | str) -> int:
    """The generation of an architecture: 75, 80, 86 (with 89), 90, or 100 and whatever is newer."""
    number = int(str(arch).removeprefix("sm_").rstrip("af"))
    return max((first for first in GENERATIONS if first <= number), default=GENERATIONS[0])


def size_class(size: Size) -> str:
    """The class of an M x N x K product: "4096", or "4096 skinny", or one of `SHAPES`.

    Of a square-like product it is the class nearest to the geometric mean of M, N and K; of a skinny
    one, whose C has few tiles for its work, the nearest to the greatest of them.
    """
    size = _triple(size)
    exactly = "x".join(map(str, size))
    return exactly if exactly in SHAPES else _like(*size)


def _like(M: int, N: int, K: int) -> str:
    longest = max(M, N, K)
    skinny = min(M, N) * SKINNY <= longest
    extent = math.log2(longest) if skinny else math.log2(M * N * K) / 3
    nearest = min(CLASSES, key=lambda known: abs(math.log2(known) - extent))
    return f"{nearest} skinny" if skinny else str(nearest)


def representative(name: str) -> tuple[int, int, int]:
    """The size (M, N, K) that stands for a class where it is searched and timed."""
    if name in SHAPES:
        return _triple(tuple(map(int, name.split("x"))))
    number, _, shape = name.partition(" ")
    n = int(number)
    return (n // 32, n, n) if shape else (n, n, n)


def configuration(
    rung: str | Rung,
    size: Size | None = None,
    arch: int | str | None = None,
    macros: Mapping[str, int] | None = None,
    defaults: bool = False,
) -> Configuration:
    """The configuration that runs: the given macros; else what a search found for this generation and
    class of sizes; else the nearest older generation's; else the row's defaults (with `defaults`,
    these at once). A setting whose shared memory this architecture lacks is passed over.

    `arch` None is this machine's GPU, or 80. ValueError for a macro that the rung lacks.
    """
    rung = find(rung)
    here = gpu()
    arch = int(normal_arch(arch).rstrip("af"))
    given = dict(macros or {})
    plain = rung.resolve(given, arch)
    if set(given) - format_macros(rung):
        return Configuration(rung.name, plain, "given")
    if here and "BLOCKS" in plain:
        plain["BLOCKS"] = here.sms  # a persistent kernel: one block per multiprocessor
    if defaults or size is None or not rung.macros:
        return Configuration(rung.name, plain, "the row's default")
    types, wanted = str(rung.types(given)), size_class(size)
    fits = [
        one
        for one in settings()
        if (one.rung, one.types) == (rung.name, types)
        and (one.size_class == wanted or one.size_class not in SHAPES)
        and one.generation <= generation(arch)
        and _runs(rung, one, arch)
    ]
    if not fits:
        return Configuration(rung.name, plain, "the row's default; no search for this generation")
    newest = max(one.generation for one in fits)
    fits = [one for one in fits if one.generation == newest]
    exact = [one for one in fits if one.size_class == wanted]
    like = _like(*_triple(size))
    best = exact[0] if exact else min(fits, key=lambda one: _distance(one.size_class, like))
    values = rung.resolve(best.macros)
    if here and "BLOCKS" in values:
        values["BLOCKS"] = max(1, values["BLOCKS"] * here.sms // best.sms)
    words = f"searched on {best.gpu}, {best.recorded[:10]}, for {best.size_class}"
    if best.size_class != wanted:
        words += f", the class nearest to {wanted}"
    if best.generation != generation(arch):
        words += f"; nobody has searched on sm_{generation(arch)}"
    return Configuration(rung.name, values, words)


def searched(
    rung: str | Rung, arch: int | str | None = None
) -> list[tuple[dict[str, int], int | str]]:
    """Every different setting that a search has found for a rung, with the architecture to compile it
    for: `arch`, of whose generation they are then, or the first of each setting's generation.
    """
    rung = find(rung)
    found: list[tuple[dict[str, int], int | str]] = []
    for one in settings():
        if one.rung != rung.name or (arch and one.generation != generation(arch)):
            continue
        target = arch or one.generation
        if _runs(rung, one, int(str(target).rstrip("af"))):
            case = rung.resolve(one.macros), target
            if case not in found:
                found.append(case)
    return found


def format_macros(rung: Rung) -> set[str]:
    """The macros of a rung that choose number formats, and no tiles."""
    chosen = (setting for setting, changes in rung.variants if FORMATS & set(changes))
    return {name for setting in chosen for name in setting}


def settings() -> tuple[Setting, ...]:
    """What this machine's own searches found, then what `results/settings.json` holds."""
    here = gpu()
    own = [one for one in _load(local_file()) if here and one.gpu == here.name]
    return (*own, *_load(FILE))


def local_file() -> Path:
    """Where searches of this machine's user are kept."""
    return cache_folder() / "settings.json"


def remember(found: Iterable[Setting], file: Path | None = None) -> Path:
    """Add settings to a file (the user's own unless given), in place of those of the same key."""
    file = file or local_file()
    kept = {one.key: one for one in _load(file)} | {one.key: one for one in found}
    places = {name: place for place, name in enumerate(RUNGS)}
    order = sorted(
        kept.values(), key=lambda one: (places.get(one.rung, len(places)), *map(str, one.key))
    )
    rows = ",\n".join(json.dumps(asdict(one)) for one in order)
    write_whole(file, f'{{"settings": [\n{rows}\n]}}\n'.encode())
    return file


def _load(file: Path) -> tuple[Setting, ...]:
    try:
        return _read(file, os.stat(file).st_mtime_ns)
    except FileNotFoundError:
        return ()


@lru_cache(maxsize=8)
def _read(file: Path, changed: int) -> tuple[Setting, ...]:
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))["settings"]
        return tuple(Setting(**{**row, "size": tuple(row["size"])}) for row in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is no file of settings ({error}): delete or restore it") from None


def _runs(rung: Rung, one: Setting, arch: int) -> bool:
    """Whether this row, as it is today, takes the setting on this architecture."""
    if not rung.runs_on(arch) or set(one.macros) - set(rung.macros):
        return False
    return rung.fits(rung.resolve(one.macros), arch)


def _distance(name: str, wanted: str) -> tuple[bool, float]:
    number, _, shape = name.partition(" ")
    other, _, other_shape = wanted.partition(" ")
    return shape != other_shape, abs(math.log2(int(number)) - math.log2(int(other)))


def _triple(size: Size) -> tuple[int, int, int]:
    return (size, size, size) if isinstance(size, int) else tuple(size)


def types_of(rung: str | Rung) -> list[tuple[dict[str, int], Types]]:
    """The number formats that a rung is timed in: macros that choose them, and the types. Float16 in
    and bfloat16 out, which no library offers, is checked but not timed.
    """
    rung = find(rung)
    choices = [{}, *(dict(setting) for setting, changes in rung.variants if FORMATS & set(changes))]
    found = [(setting, rung.types(setting)) for setting in choices]
    return [(s, t) for s, t in found if (t.inputs, t.output) != ("float16", "bfloat16")]
