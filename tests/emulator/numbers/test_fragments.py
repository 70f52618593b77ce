"""Fragment maps against CUTLASS's MMA traits, as tensor-layouts carries them."""

import numpy as np
import pytest
import tensor_layouts.atoms_nv as atoms

from emulator.numbers import fragments
from emulator.numbers.tensor import Product

# Atoms of every mma.sync here, by the name of their PTX instruction.
ATOMS = {
    atom.ptx.removeprefix("mma.sync.aligned."): atom
    for name, atom in vars(atoms).items()
    if name.startswith(("SM70_", "SM75_", "SM80_", "SM90_16x8"))
    and hasattr(atom, "ptx")
    and atom.ptx.startswith("mma.sync")
    and "complex" not in atom.ptx
}
WANTED = [
    (name, atom)
    for name, atom in sorted(ATOMS.items())
    if any(
        (*atom.shape_mnk, type) in fragments.SHAPES and f".{type}.{type}." in name
        for type in ("f16", "bf16", "tf32", "s8", "f64")
    )
]


def parse(name):
    shape, a_layout, b_layout, d, a, b, c = name.split(".")[:7]
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return Product(int(m), int(n), int(k), a, b, c, d, a_layout, b_layout)


def test_the_atoms_cover_every_shape():
    covered = {fragments.shape_key(p.m, p.n, p.k, p.a_type) for p in (parse(n) for n, _ in WANTED)}
    others = {
        "e4m3",
        "s4",
        "b1",
    }  # as s8; ops/test_narrow_and_sparse_products.py; not in these traits
    assert covered == {shape for shape in fragments.SHAPES if shape[3] not in others}


@pytest.mark.parametrize(("name", "atom"), WANTED, ids=[name for name, _ in WANTED])
def test_mma_fragments_are_cutlass_s(name, atom):
    product = parse(name)
    threads = 8 if atom.thr_id is not None else 32
    layouts = ((product.a, atom.a_layout, False), (product.b, atom.b_layout, True))
    for fragment, layout, turned in (*layouts, (product.c, atom.c_layout, False)):
        rows, cols = (fragment.cols, fragment.rows) if turned else (fragment.rows, fragment.cols)
        height = fragment.shape[1] if turned else fragment.shape[0]
        for thread in range(threads):
            lane = atom.thr_id(thread) if atom.thr_id is not None else thread
            for element in range(fragment.elements):
                offset = layout(thread, element)
                expected = (offset % height, offset // height)
                assert (rows[element, lane], cols[element, lane]) == expected


def test_quad_pairs_compute_four_matrices():
    fragment = fragments.mma_a(8, 4, "f16")
    assert fragment.matrices == 4
    copies = fragment.copies[0]
    assert [copies[lane] for lane in (0, 3, 4, 11, 12, 16, 19, 31)] == [0, 0, 1, 2, 3, 0, 0, 3]


def every_fragment():
    for (m, n, k, type), accumulators in fragments.SHAPES.items():
        for layout in ("row", "col") if (m, k, type) == (8, 4, "f16") else ("",):
            yield fragments.mma_a(m, k, type, layout or "row")
            yield fragments.mma_b(n, k, type, layout or "col")
        for accumulator in accumulators:
            yield fragments.mma_c(m, n, accumulator, k, type)
    for (m, n, k, type), accumulators in fragments.WMMA_SHAPES.items():
        yield fragments.wmma_a(m, n, k, type)
        yield fragments.wmma_b(m, n, k, type)
        for accumulator in accumulators:
            yield fragments.wmma_c(m, n, k, accumulator)


def test_every_element_has_an_owner_and_all_equally_many():
    for fragment in every_fragment():
        count = np.bincount(
            fragment.flat().ravel(), minlength=fragment.matrices * np.prod(fragment.shape)
        )
        assert count.min() == count.max() >= 1
        assert fragment.rows.max() < fragment.shape[0] and fragment.cols.max() < fragment.shape[1]


# PTX ISA 9.7.14.3, "Matrix fragments for WMMA": registers of A, B and C.
@pytest.mark.parametrize(
    ("shape", "type", "registers"),
    [
        ((16, 16, 16), "f16", (8, 8)),
        ((32, 8, 16), "f16", (8, 8)),
        ((8, 32, 16), "f16", (8, 8)),
        ((16, 16, 16), "bf16", (4, 4)),
        ((32, 8, 16), "bf16", (8, 2)),
        ((8, 32, 16), "bf16", (2, 8)),
        ((16, 16, 16), "s8", (2, 2)),
        ((32, 8, 16), "s8", (4, 1)),
        ((8, 32, 16), "s8", (1, 4)),
        ((16, 16, 8), "tf32", (4, 4)),
    ],
)
def test_wmma_fragments_have_the_registers_of_the_isa(shape, type, registers):
    a, b = fragments.wmma_a(*shape, type), fragments.wmma_b(*shape, type)
    assert (a.registers, b.registers) == registers
    for accumulator in fragments.WMMA_SHAPES[(*shape, type)]:
        expected = 4 if accumulator == "f16" else 8
        assert fragments.wmma_c(*shape, accumulator).registers == expected


def test_an_owner_is_found():
    a = fragments.mma_a(16, 16, "f16")
    assert a.owner(0, 0) == (0, 0, 0)
    assert a.owner(9, 3) == (5, 1, 1)  # row group 1, second register: rows 8 to 15
    assert a.owner(2, 12) == (10, 2, 0)
