"""Blackwell: tensor memory, the bits of tcgen05's descriptors, the places of scales, and what a pair of blocks loads."""

from __future__ import annotations

from collections.abc import Mapping

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, number, plural
from figures.widgets import Explorer, Span

__all__ = [
    "CtaPairExplorer",
    "ScaleExplorer",
    "TcgenBitsExplorer",
    "TensorMemoryExplorer",
    "cta_pair",
    "instruction_bits",
    "matrix_bits",
    "pair_loads",
    "scale_place",
    "tensor_memory",
    "tensor_reach",
]

LANES, COLUMNS = 128, 512
QUARTERS = (style.BLUE, style.SKY, style.GREEN, style.PURPLE)
SHARED = 227 * 1024  # bytes that a block may have
SWIZZLE_CODES = {0: 0, 128: 2, 64: 4, 32: 6}
NS = (8, 16, 32, 48, 64, 96, 128, 192, 256)


def tensor_reach(warp: int, columns: int, sets: int) -> dict:
    """Which lanes a warp reaches, and what `sets` accumulators of so many columns ask of tensor memory.

    {"lane": the first of 32, "taken": columns that are used, "allocated": those of the allocation, a power of two from 32 (0
    where 512 do not suffice), "addresses": of the first column of each set, as that warp writes it}.
    """
    taken, lane = columns * sets, warp % 4 * 32
    allocated = max(32, 1 << (taken - 1).bit_length())
    return {
        "lane": lane,
        "taken": taken,
        "allocated": allocated if allocated <= COLUMNS else 0,
        "addresses": [lane << 16 | columns * one for one in range(sets)],
    }


def tensor_memory(parts: Mapping[str, tuple[int, int]], title: str | None = None) -> Drawing:
    """Tensor memory as a map: 128 lanes in four quarters, one for each warp modulo 4, and named ranges of columns.

    parts: {name: (first column, columns)}. `facts` holds {"columns": taken}. ValueError for columns that do not exist.
    """
    for name, (first, wide) in parts.items():
        if first < 0 or wide < 1 or first + wide > COLUMNS:
            raise ValueError(
                f"{name}: columns {first} to {first + wide - 1}; there are 0 to {COLUMNS - 1}"
            )
    said = "; ".join(
        f"{name} has columns {first} to {first + wide - 1}" for name, (first, wide) in parts.items()
    )
    taken = sum(wide for _, wide in parts.values())
    return Drawing(
        title=title or f"Tensor memory: {number(taken)} of 512 columns are taken",
        alt=f"A map of 128 lanes and 512 columns. {said}. Warps 0, 1, 2 and 3, modulo 4, reach 32 lanes each, from the top.",
        caption="A lane is a row of the product, a column 32 bits. A warp reaches the lanes of its own colour only.",
        legend=tuple(
            (color, f"warps {i}, {i + 4} ...: lanes {32 * i} to {32 * i + 31}")
            for i, color in enumerate(QUARTERS)
        ),
        facts={"columns": taken},
        figure=_map(parts, WIDTH),
        narrow=_map(parts, 330.0),
        min_width=480,
    )


def _map(parts, width: float) -> Canvas:
    left, top, tall = 34.0, 22.0, 26.0
    scale = (width - left - 2) / COLUMNS
    canvas = Canvas(width, top + 4 * tall + 4)
    for i, color in enumerate(QUARTERS):
        y = top + i * tall
        canvas.label(left - 5, y + tall / 2, 32 * i, size=10, ha="right")
        canvas.rect(left, y + 0.5, COLUMNS * scale, tall - 1, fill=style.SOFT)
        for first, wide in parts.values():
            canvas.rect(left + first * scale, y + 0.5, wide * scale - 1, tall - 1, fill=color)
    for name, (first, wide) in parts.items():
        words = f"{name}: {first} to {first + wide - 1}" if width > 400 else name
        canvas.text(left + (first + wide / 2) * scale, 10, words, size=11, ha="center")
    return canvas


def instruction_bits(
    m: int, n: int, pair: bool = False, bf16: bool = False, half: bool = False, b_major: str = "N"
) -> int:
    """The 32 bits of an instruction descriptor of kind f16, A K-major (PTX ISA 9.7.16.4.2). ValueError for no shape of it."""
    if m not in ((128, 256) if pair else (64, 128)):
        raise ValueError(f"m = {m}: {'128 or 256 for a pair' if pair else '64 or 128 for a block'}")
    step = {64: 8, 128: 32 if pair else 16, 256: 16}[m]
    if n % step or not 8 <= n <= 256:
        raise ValueError(f"n = {n}: a multiple of {step} up to 256, for m = {m}")
    if half and bf16:
        raise ValueError("bf16 is added up in f32")
    return (
        (not half) << 4 | bf16 << 7 | bf16 << 10 | (b_major == "N") << 16 | n // 8 << 17 | m // 16 << 24
    )  # fmt: skip


def matrix_bits(start: int, leading: int, stride: int, swizzle: int) -> int:
    """The 64 bits of tcgen05's matrix descriptor, from bytes (PTX ISA 9.7.16.4.1)."""
    return (
        SWIZZLE_CODES[swizzle] << 61 | 1 << 46 | stride >> 4 << 32 | leading >> 4 << 16 | (start & 0x3FFFF) >> 4
    )  # fmt: skip


def scale_place(row: int, k: int, block: int) -> dict:
    """Where the scale of element (row, k) is, in blocks of `block` along k.

    {"scale": its number in the row, "group": of 128 rows and four scales, 512 bytes, "byte": in that group as shared
    memory holds it, "lane", "column": in tensor memory (the same in each quarter of the lanes), "part": the byte of that
    column}.
    """
    scale = k // block
    return {
        "scale": scale,
        "group": scale // 4,
        "byte": row % 32 * 16 + row // 32 * 4 + scale % 4,
        "lane": row % 32,
        "column": row // 32,
        "part": scale % 4,
    }


def pair_loads(n: int, pair: bool) -> dict:
    """What 256 x n elements of C ask of each of two blocks, per k-step of 64 float16 elements.

    {"a", "b": bytes loaded, "stages": that fit, "perByte": operations per byte loaded, "reads": wavefronts of shared
    memory that its products read, "clocks": of them at 8,192 operations per clock}.
    """
    a, b = 128 * 128, n * 128 // (1 + pair)
    return {
        "a": a,
        "b": b,
        "stages": SHARED // (a + b),
        "perByte": 2 * 128 * n * 64 / (a + b),
        "reads": (a + b) // 128,
        "clocks": 2 * 128 * n * 64 // 8192,
    }


def cta_pair(n: int = 256) -> Drawing:
    """Two blocks as a pair that computes 256 x n elements: what each loads, and which half of B both read.

    `facts` holds what each block loads per k-step of 64, in bytes: {"a", "b"}. ValueError for an n that a pair does not have.
    """
    if n % 32 or not 32 <= n <= 256:
        raise ValueError(f"n = {n}: a multiple of 32 up to 256")
    each = pair_loads(n, pair=True)
    return Drawing(
        title="Each block loads half of B, and the tensor cores of both read both halves",
        alt=(
            f"Two blocks that compute 256 x {n} elements. Block 0 holds rows 0 to 127 of A and of the sums and columns 0 to "
            f"{n // 2 - 1} of B; block 1 holds rows 128 to 255 and columns {n // 2} to {n - 1}. An arrow leads from each half of "
            "B to the sums of its columns in either block."
        ),
        caption=(
            f"Filled: what a block loads into its own shared memory, per k-step of 64: {number(each['a'] // 1024)} KiB of A and "
            f"{number(each['b'] // 1024)} of B. Pale: its sums, in its own tensor memory, coloured as their half of B."
        ),
        legend=((style.BLUE, "block 0"), (style.ORANGE, "block 1")),
        facts={"a": each["a"], "b": each["b"]},
        figure=_pair(n, WIDTH),
        narrow=_pair(n, 330.0),
        min_width=480,
    )


def _pair(n: int, width: float) -> Canvas:
    canvas, wide = Canvas(width, 214), width > 400
    gap, a_wide, tall = (width * 0.06, width * 0.1, 84.0)
    half = (width - gap) / 2
    for block, color in enumerate((style.BLUE, style.ORANGE)):
        left = block * (half + gap)
        right, top = left + half, 112.0
        sums = left + a_wide + 6
        middle = (sums + right) / 2
        canvas.text((left + right) / 2, 8, f"block {block}", size=12, ha="center", bold=True)
        canvas.rect(middle - half * 0.22, 22, half * 0.44, 36, fill=color)
        first = block * n // 2
        words = f"B, columns {first} to {first + n // 2 - 1}" if wide else "half of B"
        canvas.text(middle, 70, words, size=11, ha="center")
        canvas.rect(left, top, a_wide, tall, fill=color)
        canvas.text(left + a_wide / 2, top + tall + 10, "A", size=11, ha="center")
        for part, shade in enumerate((style.BLUE, style.ORANGE)):
            at, across = sums + part * (right - sums) / 2, (right - sums) / 2
            canvas.rect(at, top, across - 1, tall, fill=shade, alpha=0.3)
            source = middle + (half + gap) * (part - block)
            canvas.arrow(source, 80, at + across / 2, top - 2, color=style.INK)
        rows = f"rows {128 * block} to {128 * block + 127}"
        canvas.text(
            middle, top + tall + 10, f"sums of {rows}" if wide else rows, size=11, ha="center"
        )
    return canvas


class TensorMemoryExplorer(Explorer):
    """Accumulators in tensor memory, the allocation that they need, and the lanes that a warp reaches."""

    kind = "tensor_memory"
    asks = "Choose a warp: which of the sums can it read?"
    says = (
        "An explorer of tensor memory, starting with {sets} of {columns} columns and warp {warp}."
    )
    takes = (("columns", 256, NS[2:]), ("sets", 1, Span(1, 4)), ("warp", 1, Span(0, 7)))

    def begins(self, **given):
        return given, {}, {**given, "sets": plural(given["sets"], "set")}


class TcgenBitsExplorer(Explorer):
    """The bits of an instruction descriptor, or of a matrix descriptor, of tcgen05."""

    kind = "tcgen_bits"
    asks = "Change the product: which bits of the descriptor say so?"
    says = (
        "An explorer of tcgen05's descriptors, starting with the {which} descriptor of our kernel."
    )
    takes = (("which", "instruction", ("instruction", "matrix")),)

    def begins(self, which: str):
        product = {"m": 128, "n": 256, "pair": "no", "types": "f16", "major": "N"}
        matrix = {"start": 16384, "leading": 8192, "stride": 1024, "swizzle": 128}
        return {"which": which, **product, **matrix}, {}, {"which": which}


class ScaleExplorer(Explorer):
    """Which scale belongs to an element, and where it lies."""

    kind = "scales"
    asks = "Choose an element: which byte is its scale?"
    says = (
        "An explorer of scales by block, starting with blocks of {block} and element ({row}, {k})."
    )
    takes = (("block", 32, (16, 32)), ("row", 37, Span(0, 127)), ("k", 70, Span(0, 127)))


class CtaPairExplorer(Explorer):
    """Two blocks alone, or as a pair: who loads what, and what an instruction reads."""

    kind = "cta_pair"
    asks = "Join the two blocks: what does each of them load?"
    says = "An explorer of two blocks that compute 256 x {n}, starting with {pair}."
    takes = (("pair", "yes", ("no", "yes")), ("n", 256, (64, 128, 192, 256)))

    def begins(self, pair: str, n: int):
        words = {"pair": "a pair" if pair == "yes" else "each alone", "n": n}
        return {"pair": pair, "n": n}, {}, words
