"""What a rung is: its source, its macros, and what a launcher must know of it. `rungs` has them all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral
from pathlib import Path

from . import formats
from .occupancy import LIMITS
from .shapes import STATIC_RESERVE, tile_grid

FOLDER = Path(__file__).resolve().parent
POSITIVE, NATURAL = range(1, 1 << 31), range(1 << 31)  # what a macro of type int may be

Macros = Mapping[str, int]
Extent = Callable[..., int]


@dataclass(frozen=True)
class Types:
    """The number formats of one configuration of a rung. `inputs` "tf32" is stored as float32."""

    inputs: str = "float32"
    accumulator: str = "float32"
    output: str = "float32"

    @property
    def input_dtype(self) -> str:
        """NumPy dtype name of A and B. What NumPy lacks is stored as its bits (`kernels.formats`)."""
        return formats.stored(self.inputs)

    @property
    def output_dtype(self) -> str:
        """NumPy dtype name of C."""
        return formats.stored(self.output)

    def __str__(self) -> str:
        return f"{self.inputs}->{self.output}"


FORMATS = frozenset(one.name for one in fields(Types))


@dataclass(frozen=True)
class Promise:
    """What a rung promises of the instructions that `opcode` (a pattern, matched at the beginning)
    names, on average over a launch on whole tiles: at most so many wavefronts of shared memory per
    execution by a warp, and so many 32-byte sectors per request to global memory. None: no promise.
    """

    opcode: str
    wavefronts: float | None = None
    sectors: float | None = None


@dataclass(frozen=True)
class Rung:
    """One rung of the ladder.

    `threads` gives the block (an int, or (x, y)), `shared` the bytes of dynamic shared memory and
    `grid` the blocks, all from the macros as keyword arguments. `tile` names the macros (or gives
    the numbers) that M, N and K are padded to, None when the kernel guards its own edges.
    `variants` maps a macro setting to the fields of `Types` and the macro defaults it changes.
    `domains` names the values of macros that are not any positive integer; those of a macro by which variants choose
    number formats follow from `variants`.
    `fallbacks` are smaller settings for GPUs with less shared memory than the defaults need.
    `space` lists what the autotuner may try (of BLOCKS, how many per multiprocessor); those of
    `late` order the work without changing the tiles, and are tried on the best tiles only. `valid`
    drops the combinations that make no sense.
    `needs` says in words what settings must fulfil where the source itself does not refuse them.
    `min_arch` and `max_arch` are the oldest and the newest architecture that it runs on (wgmma is sm_90's alone).
    `counted_on` is the oldest architecture whose instructions it is about: on an older one it runs by other means
    (sm_75 has no cp.async), and the emulator's counts would be of those. `boxes` gives, for a kernel that copies by
    TMA, the tile (rows, columns) of one copy of A and B, and of C where it stores by TMA: such a kernel takes
    tensor maps (`tensor_map`), 128-byte swizzled, for A and B, and one for C before C itself. `early` is for a
    kernel that waits itself for the one before it in the stream (griddepcontrol): its launch may begin sooner.
    `together` says of which macros the blocks wait for one another, so that all have to run at the same time.
    `before` is the rung that it changes, of the same number formats, which its speed is compared with.
    `timed`: False for a rung that nobody has timed here, which tables of times and drawings of the ladder leave out.
    `promises` is what `check` holds its accesses to, besides no spills; `checked` are settings that it runs besides the
    row's and those that searches found: code that no other setting reaches.
    """

    name: str
    number: int | None
    idea: str
    inputs: str = "float32"
    accumulator: str = "float32"
    output: str = "float32"
    macros: Macros = field(default_factory=dict)
    threads: Callable[..., int | tuple[int, int]] | None = None
    shared: Extent = lambda **_: 0
    grid: Callable[..., tuple[int, int, int]] = tile_grid
    tile: tuple[str | int, str | int, str | int] | None = None
    min_arch: int = 75
    max_arch: int | None = None
    counted_on: int = 75
    alignment: int = 1
    a_major: str = "K"
    b_major: str = "N"
    variants: tuple[tuple[Macros, Mapping], ...] = ()
    domains: Mapping[str, Sequence[int]] = field(default_factory=dict)
    space: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    late: tuple[str, ...] = ()
    valid: Callable[..., bool] = lambda **_: True
    needs: Mapping[str, Callable[..., bool]] = field(default_factory=dict)
    fallbacks: tuple[Macros, ...] = ()
    boxes: Callable[..., Mapping[str, tuple[int, int]]] | None = None
    early: bool = False
    together: Callable[..., bool] = lambda **_: False
    machine: str = "any"
    before: str | None = None
    timed: bool = True
    promises: Callable[..., tuple[Promise, ...]] = lambda **_: ()
    checked: tuple[Macros, ...] = ()

    @property
    def file(self) -> str | None:
        """File name in `kernels/`, None for a rung written in Python."""
        return None if self.number is None else f"{self.number:02d}_{self.name}.cu"

    @property
    def path(self) -> Path | None:
        """Where the CUDA source is, None for a rung written in Python."""
        return None if self.file is None else FOLDER / self.file

    @property
    def entry(self) -> str:
        """Name of the `extern "C"` entry point."""
        return f"gemm_{self.name}"

    def runs_on(self, arch: int | str) -> bool:
        """Whether an architecture, 90 or "90a", has the instructions that this rung needs."""
        number = int(str(arch).removeprefix("sm_").rstrip("af"))
        return self.min_arch <= number <= (self.max_arch or number)

    def target(self, arch: str) -> str:
        """What to compile for on `arch`: sm_90a and sm_100a, which wgmma and tcgen05 need, for a kernel that copies by TMA."""
        return f"{arch}a" if self.boxes and arch in ("90", "100") else arch

    def resolve(
        self, macros: Macros | None = None, arch: int | str | None = None
    ) -> dict[str, int]:
        """All macros: the given ones over the variant's over the defaults.

        With `arch`, the defaults are the first of `macros` and `fallbacks` whose shared memory fits
        that architecture. ValueError for a name the rung lacks.
        """
        given = dict(macros or {})
        unknown = sorted(set(given) - set(self.macros))
        if unknown:
            known = ", ".join(self.macros) or "none"
            raise ValueError(f"{self.name} has no macro {', '.join(unknown)}; it has {known}")
        for name, value in given.items():
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise ValueError(f"{self.name}: {name} is an integer, not {value!r}")
            if value not in (domain := self.domain(name)):
                raise ValueError(f"{self.name}: {name} is {_in_words(domain)}, not {value}")
        choices = [self._filled(given, fallback) for fallback in ({}, *self.fallbacks)]
        if arch is not None and self.threads is not None:
            number = int(str(arch).rstrip("af"))
            choices = [c for c in choices if self.fits(c, number)] or choices[-1:]
        return choices[0]

    def fits(self, values: Macros, arch: int) -> bool:
        """Whether an architecture, or sm_75 for one unknown, has the shared memory for all these macros."""
        limits = LIMITS.get(arch, LIMITS[75])
        return self.shared(**values) <= limits.shared_per_block - STATIC_RESERVE

    def domain(self, macro: str) -> Sequence[int]:
        """The values that a macro may have."""
        if macro in self.domains:
            return self.domains[macro]
        chosen = [s[macro] for s, changes in self.variants if macro in s and FORMATS & set(changes)]
        return tuple(sorted({self.macros[macro], *chosen})) if chosen else POSITIVE

    def check_needs(self, macros: Macros) -> None:
        """ValueError, which says what would be right, for settings that would give wrong answers."""
        for words, holds in self.needs.items():
            if not holds(**macros):
                given = ", ".join(f"{name}={value}" for name, value in macros.items())
                raise ValueError(f"{self.name} needs {words}; these are {given}")

    def types(self, macros: Macros | None = None) -> Types:
        """Number formats under these macros."""
        formats = {"inputs": self.inputs, "accumulator": self.accumulator, "output": self.output}
        for _, changes in self._chosen({**self.macros, **(macros or {})}):
            formats |= {k: v for k, v in changes.items() if k != "macros"}
        return Types(**formats)

    def padding(self, macros: Macros | None = None) -> tuple[int, int, int]:
        """Multiples that the launcher pads M, N and K to."""
        values = self.resolve(macros)
        m, n, k = (values.get(t, t) for t in self.tile or (1, self.alignment, self.alignment))
        return m, n, k

    def geometry(self, macros: Macros | None, M: int, N: int, K: int):
        """`(grid, block, shared_bytes)` of a launch that computes an `(M, N)` output."""
        values = self.resolve(macros)
        if self.grid is tile_grid and not {"BM", "BN"} <= values.keys():
            raise ValueError(f"{self.name} has no macros BM and BN: its row has to give a grid")
        threads = self.threads(**values)
        block = (threads, 1, 1) if isinstance(threads, int) else (*threads, 1)
        return self.grid(M, N, K=K, **values), block, self.shared(**values)

    def configurations(self) -> list[dict[str, int]]:
        """The settings worth checking: the default, then each variant."""
        return [{}, *(dict(setting) for setting, _ in self.variants)]

    def _filled(self, given: Macros, fallback: Macros) -> dict[str, int]:
        resolved = {**self.macros, **fallback}
        for setting, changes in self._chosen({**resolved, **given}):
            resolved |= {**setting, **changes.get("macros", {})}
        return resolved | given

    def _chosen(self, values: Macros) -> list[tuple[Macros, Mapping]]:
        return [
            (setting, changes)
            for setting, changes in self.variants
            if all(values.get(name) == value for name, value in setting.items())
        ]


def _in_words(domain: Sequence[int]) -> str:
    """ "0 or 1", "1, 2 or 4", "at least 0"."""
    if isinstance(domain, range):
        return f"at least {domain[0]}, at most {domain[-1]}"
    *most, last = map(str, domain)
    return f"{', '.join(most)} or {last}"
