"""The sheet's rules and bits are those that the emulator applies."""

import re

import numpy as np
import pytest

from book import chapters
from emulator.machine.boxes import swizzled
from emulator.numbers import tcgen05, warpgroup

TEXT = re.sub(r"<!--.*?-->", "", (chapters.ROOT / "book/sheet.md").read_text(encoding="utf-8"))


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its own."""
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def bits(words: str) -> range:
    first, *last = map(int, re.findall(r"\d+", words.split(":")[0]))
    return range(first, (last or [first])[0] + 1)


@pytest.mark.parametrize("row", rows("Swizzles"))
def test_a_swizzle(row):
    width, mask, changed, by, repeats, cute = row
    x = np.arange(8192)
    place = swizzled(x, int(width))
    np.testing.assert_array_equal(place, x ^ (x >> 3 & int(mask.strip("`"), 16)))
    assert sum(1 << bit for bit in bits(changed)) == int(np.bitwise_or.reduce(place ^ x))
    assert [bit - 3 for bit in bits(by)] == [*bits(changed)]
    period = int(repeats.replace(",", ""))
    moves = (place ^ x).reshape(-1, period)
    assert (moves == moves[0]).all() and (moves[:, : period // 2] != moves[:, period // 2 :]).any()
    assert cute == f"`Swizzle<{len(bits(changed))},4,3>`"


def test_the_descriptors():
    for column, read, constant in ((1, warpgroup.descriptor, 0), (2, tcgen05.descriptor, 1 << 46)):
        table = {row[0].split(",")[0]: row[column] for row in rows("Descriptors of operands")}
        for name, field in (
            ("start address / 16", "start"),
            ("leading distance / 16", "leading"),
            ("stride / 16", "stride"),
        ):
            where = bits(table[name])
            found = read(constant | sum(1 << bit for bit in where))
            assert getattr(found, field) == ((1 << len(where)) - 1) * 16
            others = {"start", "leading", "stride"} - {field}
            assert not any(getattr(found, other) for other in others)
        place = bits(table["swizzle"])
        for code, width in re.findall(r"(\d) (none|\d+)", table["swizzle"].split(":")[1]):
            assert read(constant | int(code) << place.start).swizzle == int(
                width.replace("none", "0")
            )
    assert bits(table["constant 1"]) == range(46, 49)


def test_the_instruction_descriptor():
    fields = {
        words: where
        for row in rows("Instruction descriptor of tcgen05 (32 bits)")
        for where, words in (row[:2], row[2:])
    }
    at = {words.split(":")[0]: bits(where).start for words, where in fields.items()}
    word = 1 << at["D"] | 256 // 8 << at["N / 8"] | 128 // 16 << at["M / 16"]
    plain = tcgen05.shape_of(word, "f16", False)
    assert (plain.m, plain.n, plain.a_type, plain.b_type, plain.d_type) == (
        128,
        256,
        "f16",
        "f16",
        "f32",
    )
    mixed = tcgen05.shape_of(
        word | 1 << at["format of A"] | 1 << at["format of B"] | 1 << 16, "f16", False
    )
    assert (mixed.a_type, mixed.b_type) == ("bf16", "bf16") and mixed != plain


def test_the_arithmetic_of_tiles():
    found = {row[0]: row[2] for row in rows("Tile arithmetic")}
    BM, BN, BK, size = 128, 256, 64, 2
    number = {
        name: int(words.split()[0].replace(",", "").strip("%;"))
        for name, words in found.items()
        if words[0].isdigit()
    }
    assert number["operations per tile and step of BK"] == 2 * BM * BN * BK
    assert number["bytes loaded for it"] == size * BK * (BM + BN)
    assert number["operations per byte from L2"] == round(2 * BM * BN / (size * (BM + BN)))
    assert number["shared memory of S stages"] == 4 * size * BK * (BM + BN)
    assert number["sums per thread"] == BM * BN // 256
    tiles = -(-4096 // BM) * -(-4096 // BN)
    assert number["tiles; rounds on P multiprocessors"] == tiles and -(-tiles // 132) == 4
    assert number["share of the rounds that is used"] == round(100 * tiles / (4 * 132))
