"""A descriptor of wgmma, and the core matrices that it walks through shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from figures import style
from figures.drawing import WIDTH, Canvas, Drawing, number, plural
from figures.tensor_box import CHUNK, LINE, SWIZZLES
from figures.widgets import Explorer

__all__ = [
    *("CoreMatrixExplorer", "core_matrices", "descriptor_bits", "descriptor_chunks"),
    "descriptor_fields",
]

ROWS = 32  # of a K-major operand that are drawn, of 64 or more
COLUMNS = 128  # of an N-major operand that are drawn
# From the highest bit to the lowest: a name ("" for bits that are 0 here), how many bits, a colour.
FIELDS = (
    ("swizzle", 2, style.PURPLE), ("", 10, None), ("base offset", 3, style.tint(style.GREY, 0.6)), ("", 3, None),
    ("stride offset", 14, style.ORANGE), ("", 2, None), ("leading offset", 14, style.SKY), ("", 2, None),
    ("start", 14, style.GREEN),
)  # fmt: skip
CODES = {0: 0, 128: 1, 64: 2, 32: 3}
STARTS = (0, 32, 64, 96, 128, 1024, 2048, 4096)
STRIDES = (128, 256, 512, 1024, 2048)
LEADINGS = (16, 128, 1024, 4096, 8192)


@dataclass(frozen=True)
class Piece:
    """A 16-byte chunk of an operand: the number of its core matrix, its row in that, its byte in shared memory."""

    matrix: int
    row: int
    byte: int


def descriptor_bits(start: int, leading: int, stride: int, swizzle: int) -> int:
    """The 64 bits of a matrix descriptor, from bytes. PTX ISA 9.7.15.5.1.2.2."""
    return CODES[swizzle] << 62 | stride >> 4 << 32 | leading >> 4 << 16 | (start & 0x3FFFF) >> 4


def descriptor_chunks(
    start: int = 0, leading: int = 16, stride: int = 1024, swizzle: int = 128, n_major: bool = False
) -> list[Piece]:
    """The chunks of an operand with 16 elements of 16 bits along k: 32 rows of A, or 128 columns of an N-major B.

    All in bytes. A core matrix is 8 rows of 16 bytes. Of a K-major operand, `stride` is how far the next eight rows
    are, and `leading` how far the next 16 bytes of k where nothing is swizzled. Of an N-major one that is swizzled, `stride`
    is how far the next eight rows of k are, and `leading` how far the next panel.
    """
    span = swizzle or CHUNK
    pieces = []
    if n_major:
        per_panel = span // CHUNK
        for q in range(COLUMNS // 8):
            for k in range(16):
                if swizzle:
                    byte = q % per_panel * CHUNK + q // per_panel * leading + k // 8 * stride
                else:
                    byte = q * stride + k // 8 * leading
                pieces.append(Piece(2 * q + k // 8, k % 8, byte + k % 8 * span))
    else:
        for row in range(ROWS):
            for c in range(2):
                byte = row % 8 * span + row // 8 * stride + c * (CHUNK if swizzle else leading)
                pieces.append(Piece(2 * (row // 8) + c, row % 8, byte))
    mask = max(swizzle // CHUNK, 1)
    return [
        Piece(one.matrix, one.row, place ^ (place // LINE % mask * CHUNK))
        for one in pieces
        for place in (one.byte + start,)
    ]


def core_matrices(operands: Mapping[str, Mapping]) -> Drawing:
    """Where the core matrices of descriptors stand, one picture for each: {name: arguments of `descriptor_chunks`}.

    Drawn are the first 16 lines of 128 bytes that any of them touches. `facts` holds {name: [bytes of its first core matrix]}.
    """
    if not operands:
        raise ValueError("no descriptor was given: there is nothing to draw")
    found = {name: descriptor_chunks(**given) for name, given in operands.items()}
    shown = sorted({one.byte // LINE for pieces in found.values() for one in pieces})[:16]
    facts = {
        name: [one.byte for one in sorted(pieces, key=lambda p: p.row) if one.matrix == 0]
        for name, pieces in found.items()
    }
    said = [
        f"{name}: its first core matrix is at bytes {', '.join(map(str, facts[name]))}"
        for name in found
    ]
    return Drawing(
        title=f"{plural(len(found), 'descriptor')}, and the core matrices that they walk",
        alt=f"The chunks of operands in shared memory, eight to a line. {'. '.join(said)}.",
        caption="A number is a row within a core matrix of 8 rows of 16 bytes; a colour is a core matrix. Left: byte addresses.",
        facts=facts,
        figure=_drawn(found, shown, WIDTH, True),
        narrow=_drawn(found, shown, 330.0, False),
        min_width=560,
    )


def _drawn(found, shown: Sequence[int], width: float, beside: bool):
    tall, head = 18.0, 24.0
    across = len(found) if beside else 1
    room = width / across
    cell = min(38.0, (room - 62) / 8)
    deep = head + len(shown) * tall + 14
    canvas = Canvas(width, deep * (1 if beside else len(found)))
    for index, (name, pieces) in enumerate(found.items()):
        left, top = (index * room, 0.0) if beside else (0.0, index * deep)
        canvas.text(left + 44, top + 10, name, size=12, bold=True)
        at = {one.byte: one for one in pieces}
        for row, line in enumerate(shown):
            y = top + head + row * tall
            words = number(line * LINE)
            canvas.label(left + 40, y + tall / 2, words, size=10, ha="right")
            for place in range(8):
                x, one = left + 44 + place * cell, at.get(line * LINE + place * CHUNK)
                color = style.SOFT if one is None else style.wavefront_color(one.matrix % 8)
                canvas.cell(x, y, cell, tall, color, "" if one is None else one.row, size=10)
    return canvas


def descriptor_fields(start: int, leading: int, stride: int, swizzle: int) -> Drawing:
    """The 64 bits of a descriptor (arguments of `descriptor_bits`), the highest on the left. `facts` holds {field: value}."""
    bits = descriptor_bits(start, leading, stride, swizzle)
    found, at = [], 64
    for name, wide, color in FIELDS:
        at -= wide
        found.append((name, wide, color, at, bits >> at & (1 << wide) - 1))
    values = {name: value for name, _, _, _, value in found if name}
    said = ", ".join(
        f"bits {at} to {at + wide - 1}: {name} {value}"
        for name, wide, _, at, value in found
        if name
    )
    return Drawing(
        title=f"A descriptor, bit by bit: {bits:#018x}",
        alt=f"A row of 64 bits, the highest on the left. {said}.",
        caption="A number is what stands in the field. Offsets and start are bytes divided by 16.",
        legend=tuple((color, name) for name, _, color in FIELDS if name),
        facts=values,
        figure=_bits_drawn(found, bits, WIDTH, 64),
        narrow=_bits_drawn(found, bits, 330.0, 32),
        min_width=480,
    )


def _bits_drawn(found, bits: int, width: float, per_line: int):
    cell, tall, deep = (width - 2) / per_line, 20.0, 62.0
    canvas = Canvas(width, deep * (64 // per_line))
    for _, wide, color, at, value in found:
        places = [divmod(63 - bit, per_line) for bit in range(at + wide - 1, at - 1, -1)]
        for bit, (line, column) in zip(range(at + wide - 1, at - 1, -1), places, strict=True):
            x, y = 1 + column * cell, line * deep + 18
            place, ink = (x + 0.5, y, cell - 1, tall), None if color else style.MUTED
            canvas.cell(*place, color or style.SOFT, bits >> bit & 1, inset=0, color=ink, size=9)
        if color:
            for end in (0, -1):
                line, column = places[end]
                place = (1 + (column + 0.5) * cell, line * deep + 10)
                words = at + wide - 1 if end == 0 else at
                canvas.label(*place, words, size=9, ha="center")
            (line, first), (below, last) = places[0], places[-1]
            middle = (first + last + 1) / 2 if line == below else first + 1
            canvas.text(1 + middle * cell, line * deep + 50, value, size=12, ha="center", bold=True)
    return canvas


class CoreMatrixExplorer(Explorer):
    """A wgmma descriptor: start, offsets and swizzle against the chunks that it walks."""

    kind = "core_matrices"
    asks = "Change the descriptor: which bytes does wgmma read?"
    says = (
        "An explorer of wgmma's descriptors, starting with a {major}-major operand at byte {start}, stride {stride}, "
        "leading {leading}, swizzle {swizzle}."
    )
    takes = (
        ("major", "K", ("K", "N")),
        ("start", 0, STARTS),
        ("stride", 1024, STRIDES),
        ("leading", 16, LEADINGS),
        ("swizzle", 128, SWIZZLES),
    )
