"""Sums of tensor cores: bit for bit what an H200 returned, and the documented rules elsewhere."""

from pathlib import Path

import numpy as np
import pytest
from probed import load

from emulator.numbers import tensor_sums

DATA = Path(__file__).parents[2] / "data"
numerics = load("numerics")
RECORDED = np.load(DATA / "tensor_sums_h200.npz")


@pytest.mark.parametrize("entry", numerics.recorded(), ids=lambda e: e.name)
def test_every_bit_is_the_gpus(entry):
    operands = numerics.cases(entry, numerics.tiles_of(entry), 7)
    assert numerics.checksum(operands) == RECORDED[entry.name + ".crc"], "other operands were made"
    d, expected = numerics.picked(numerics.model(entry, *operands)), RECORDED[entry.name]
    wrong = np.argwhere(numerics.differing(entry, d, expected))
    assert not len(wrong), f"{len(wrong)} of {d.size} differ, first in class {wrong[0][0] % 12}"


def sums(a, b, c, arch=90, types=("f16", "f16", "f32", "f32"), kind="mma", k=16):
    """D's first element as float, of one m16n8 product with the first row, column and C given."""
    storage = {"f16": np.float16, "f32": np.float32}
    left, right = np.zeros((1, 16, k)), np.zeros((1, k, 8))
    left[0, 0, : len(a)], right[0, : len(b), 0] = a, b
    left, right = (
        x.astype(storage[t]).view(np.uint16) for x, t in ((left, types[0]), (right, types[1]))
    )
    add = np.zeros((1, 16, 8), storage[types[2]])
    add[0, 0, 0] = c
    add = add.view(f"u{add.itemsize}")
    d = tensor_sums.product(left, right, add, *types, kind, arch)
    return float(d.view(storage[types[3]])[0, 0, 0])


def test_a_sum_is_truncated_where_rounding_would_go_up():
    assert sums([1, 1], [1, 1], -(2.0**25)) == -(2.0**25) + 2
    assert sums([1], [1], -(2.0**25)) == -(2.0**25) + 2  # 25 bits below 2**25: 1 is still seen
    assert sums([0.75], [1], 2.0**24) == 2.0**24
    assert np.float32(2.0**24 + 2 * 0.75) == 2.0**24 + 2
    assert sums([0.75, 0.75], [1, 1], 2.0**24) == 2.0**24  # each term is cut off on its own


@pytest.mark.parametrize(
    ("arch", "kept"),
    [(70, 23), (75, 24), (80, 24), (86, 24), (89, 24), (90, 25), (100, 25), (120, 25)],
)
def test_each_architecture_keeps_its_bits_below_the_largest_term(arch, kept):
    """1 - 1 + 2**-n: the last term is seen while n is at most the bits kept."""
    k = 8
    for n in (22, 23, 24, 25, 26):
        found = sums([1, 1, 2.0**-12], [1, -1, 2.0 ** (12 - n)], 0, arch, k=k)
        assert found == (2.0**-n if n <= kept else 0), n


def test_a_chunk_ends_where_the_architecture_says():
    """A large pair that cancels within a chunk takes the small term with it; across, it does not."""
    a = [0] * 7 + [2.0**12, 2.0**12, *[0] * 6, 2.0**-14]
    b = [0] * 7 + [2.0**12, -(2.0**12), *[0] * 6, 1]
    assert sums(a, b, 0, arch=90) == 0
    assert sums(a, b, 0, arch=80) == 0  # the second chunk of 8 holds -2**24 and the small one
    a[7], a[6], b[6] = 0, 2.0**12, 2.0**12
    a[8], a[5], b[5] = 0, 2.0**12, -(2.0**12)
    assert sums(a, b, 0, arch=80) == 2.0**-14
    assert sums(a, b, 0, arch=90) == 0


def test_fp8_sums_of_wgmma_keep_fourteen_bits():
    one, small = 0x38, 0x08  # 1 and 2**-6 in e4m3
    a, b = np.zeros((1, 64, 32), np.uint8), np.zeros((1, 32, 8), np.uint8)
    a[0, 0, :2], b[0, :2, 0] = (one, small), (one, small)
    c = np.zeros((1, 64, 8), np.uint32)
    kinds = {"wgmma": 1 + 2.0**-12, "mma": 1 + 2.0**-12}
    for kind, expected in kinds.items():
        shape = (slice(None), slice(0, 16 if kind == "mma" else 64))
        d = tensor_sums.product(a[shape], b, c[shape], "e4m3", "e4m3", "f32", "f32", kind)
        assert d.view(np.float32)[0, 0, 0] == expected
    c[0, 0, 0] = np.float32(2.0**-14).view(np.uint32)
    for kind, expected in (("wgmma", 1 + 2.0**-12), ("mma", 1 + 2.0**-12 + 2.0**-14)):
        shape = (slice(None), slice(0, 16 if kind == "mma" else 64))
        d = tensor_sums.product(a[shape], b, c[shape], "e4m3", "e4m3", "f32", "f32", kind)
        assert d.view(np.float32)[0, 0, 0] == expected


@pytest.mark.parametrize("tiles", [1, 3, 40])
@pytest.mark.parametrize(
    "types", [("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("e4m3", "f32")]
)
def test_the_short_way_for_integers_gives_the_same_bits(tiles, types, monkeypatch):
    operand, result = types
    rng = np.random.default_rng(3)
    a = rng.integers(-7, 8, (tiles, 16, 16)).astype(np.float32)
    b = rng.integers(-7, 8, (tiles, 16, 8)).astype(np.float32)
    c = rng.integers(-99, 99, (tiles, 16, 8))
    if operand == "e4m3":
        table = tensor_sums._FP8_VALUES["e4m3"]
        a, b = (np.argmax(table[:, None] == x.reshape(1, -1), 0).reshape(x.shape) for x in (a, b))
        a, b = a.astype(np.uint8), b.astype(np.uint8)
    elif operand == "bf16":
        a, b = ((x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b))
    else:
        a, b = (x.astype(np.float16).view(np.uint16) for x in (a, b))
    c = (
        c.astype(np.float16).view(np.uint16)
        if result == "f16"
        else c.astype(np.float32).view(np.uint32)
    )
    short = tensor_sums.product(a, b, c, operand, operand, result, result)
    monkeypatch.setattr(tensor_sums, "_small_integers", lambda *_: False)
    assert (short == tensor_sums.product(a, b, c, operand, operand, result, result)).all()


def test_the_layout_of_the_arrays_does_not_matter():
    """One tile at a time, or all: the same bits."""
    entry = next(e for e in numerics.recorded() if e.name == "mma_m16n8k16_f32_f16_f16_f32")
    a, b, c = numerics.cases(entry, 60, 11)
    together = numerics.model(entry, a, b, c)
    for t in range(60):
        assert (
            numerics.model(entry, a[t : t + 1], b[t : t + 1], c[t : t + 1]) == together[t]
        ).all()


def test_unknown_architectures_and_types_are_named():
    with pytest.raises(ValueError, match="sm_61"):
        tensor_sums.rule("mma", 16, "f16", "f32", 61)
    with pytest.raises(ValueError, match="f32 operands"):
        tensor_sums.rule("mma", 16, "f32", "f32")
