"""The explorers of tensor memory, tcgen05's descriptors, scales and pairs: in the browser as here, here as on the emulator."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import figures
from emulator.numbers import tcgen05
from figures.blackwell import NS, SWIZZLE_CODES
from kernels.rungs import find
from tests.figures.test_widgets import models

MS = (64, 128, 256)
STARTS, OFFSETS = (0, 32, 64, 96, 2048, 16384), (16, 128, 1024, 8192, 16384)
INSTRUCTIONS = [
    {"which": "instruction", "m": m, "n": n, "pair": pair, "types": types, "major": major}
    for m, n, pair, types, major in itertools.product(
        MS, NS, ("no", "yes"), ("f16", "f16 to f16", "bf16"), "NK"
    )
]
MATRICES = [
    {"which": "matrix", "start": start, "leading": leading, "stride": stride, "swizzle": swizzle}
    for start, leading, stride, swizzle in itertools.product(
        STARTS, OFFSETS, OFFSETS, SWIZZLE_CODES
    )
]


def bits_of(case):
    return figures.instruction_bits(
        case["m"], case["n"], case["pair"] == "yes", case["types"] == "bf16",
        case["types"] == "f16 to f16", case["major"],
    )  # fmt: skip


def test_an_instruction_s_bits_mean_to_the_emulator_what_they_say():
    known = 0
    for case in INSTRUCTIONS:
        try:
            bits = bits_of(case)
        except ValueError as error:
            with pytest.raises(ValueError, match=f"^{str(error)[0]} is {case[str(error)[0]]}"):
                low = figures.instruction_bits(128, 128) & 0x1FFFF
                shape = low | case["n"] // 8 << 17 | case["m"] // 16 << 24
                tcgen05.shape_of(shape, "f16", case["pair"] == "yes")
            continue
        shape = tcgen05.shape_of(bits, "f16", case["pair"] == "yes")
        assert (shape.m, shape.n, shape.b_mn_major) == (case["m"], case["n"], case["major"] == "N")
        assert (shape.a_type, shape.d_type) == (
            "bf16" if case["types"] == "bf16" else "f16", "f16" if case["types"] == "f16 to f16" else "f32",
        )  # fmt: skip
        known += 1
    assert 100 < known < len(INSTRUCTIONS)


def test_a_matrix_descriptor_means_to_the_emulator_what_it_says():
    for case in MATRICES:
        given = {name: value for name, value in case.items() if name != "which"}
        found = tcgen05.descriptor(figures.matrix_bits(**given))
        assert vars(found) == given | {"base_offset": 0}


@pytest.mark.node
def test_the_bits_are_the_same_in_the_browser():
    cases = INSTRUCTIONS + MATRICES
    for case, model in zip(cases, models(figures.TcgenBitsExplorer(), cases), strict=True):
        if case["which"] == "matrix":
            given = {name: value for name, value in case.items() if name != "which"}
            assert int(model["bits"], 16) == figures.matrix_bits(**given)
        elif "error" in model:
            with pytest.raises(ValueError) as refused:
                bits_of(case)
            assert str(refused.value) == model["error"]
        else:
            assert int(model["bits"], 16) == bits_of(case)


@pytest.mark.node
def test_tensor_memory_scales_and_pairs_are_the_same_in_the_browser():
    reaches = [
        {"columns": columns, "sets": sets, "warp": warp}
        for columns, sets, warp in itertools.product(NS[2:], range(1, 5), range(8))
    ]
    for case, model in zip(reaches, models(figures.TensorMemoryExplorer(), reaches), strict=True):
        assert model == figures.tensor_reach(case["warp"], case["columns"], case["sets"])
    places = [
        {"block": block, "row": row, "k": k}
        for block, row, k in itertools.product((16, 32), range(0, 128, 5), range(0, 128, 7))
    ]
    for case, model in zip(places, models(figures.ScaleExplorer(), places), strict=True):
        assert model == figures.scale_place(**case)
    pairs = [{"pair": pair, "n": n} for pair in ("no", "yes") for n in (64, 128, 192, 256)]
    for case, model in zip(pairs, models(figures.CtaPairExplorer(), pairs), strict=True):
        assert model == pytest.approx(figures.pair_loads(case["n"], case["pair"] == "yes"))


def test_the_allocation_is_what_the_kernels_ask_for():
    single, double = figures.tensor_reach(0, 256, 1), figures.tensor_reach(5, 256, 2)
    assert (single["allocated"], double["allocated"], double["lane"]) == (256, 512, 32)
    assert figures.tensor_reach(0, 96, 1)["allocated"] == 128
    assert figures.tensor_reach(0, 256, 3)["allocated"] == 0


def test_scales_stand_where_the_products_of_the_emulator_look():
    cells = np.arange(4 * 32 * 4, dtype=np.uint32).reshape(1, 128, 4)[0]
    words = np.concatenate([cells[:32]] * 4)  # each quarter holds all of them
    shape = replace(tcgen05.shape_of(0x8A00090, "mxf8f6f4", False), a_byte=0)
    from emulator.ops.tcgen05_mma import _Product

    product = object.__new__(_Product)
    product.scales, product.shape = 1, shape
    for row, k in itertools.product(range(0, 128, 9), range(0, 128, 32)):
        place = figures.scale_place(row, k, 32)
        found = product._scales_of(words, "A", 0, 128, place["part"])[row, 0]
        word = int(words[place["lane"], place["column"]])
        assert found == word >> 8 * place["part"] & 255
        image = np.ascontiguousarray(words[:32]).view(np.uint8).reshape(-1)
        assert found == image[place["byte"]]


def test_a_pair_loads_and_holds_what_the_rung_does():
    alone, pair = figures.pair_loads(256, False), figures.pair_loads(256, True)
    assert (alone["a"] + alone["b"], pair["a"] + pair["b"]) == (
        find("tcgen05_pipelined").shared(BM=128, BN=256, STAGES=1),
        find("tcgen05_pair").shared(BM=128, BN=256, STAGES=1),
    )
    assert find("tcgen05_pipelined").macros["STAGES"] <= alone["stages"] == 4
    assert find("tcgen05_pair").macros["STAGES"] <= pair["stages"] == 7


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: figures.tensor_memory({"sums": (384, 256)}), "columns 384 to 639"),
        (lambda: figures.instruction_bits(96, 64), "m = 96"),
        (lambda: figures.instruction_bits(128, 24), "n = 24: a multiple of 16"),
        (lambda: figures.instruction_bits(128, 64, bf16=True, half=True), "added up in f32"),
        (lambda: figures.TensorMemoryExplorer(warp=8), "warp = 8"),
        (lambda: figures.ScaleExplorer(block=8), "block = 8"),
        (lambda: figures.CtaPairExplorer(n=100), "n = 100"),
        (lambda: figures.TcgenBitsExplorer("both"), "which = 'both'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
