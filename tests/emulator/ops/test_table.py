"""The table of opcodes: a row is all that an opcode needs, and what follows from it."""

from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest
from fragments_of_ptx import run

import emulator
from emulator.machine.values import UNSIGNED, Affine, Pattern, multiply
from emulator.ops import bits, fast, integer, spreads, table
from emulator.ops.elementwise import as_array, bitwise
from emulator.ops.forms import WORD
from emulator.text.modifiers import fitting
from emulator.text.program import WIDTHS
from emulator.text.rows import Row, merged, row_of

README = Path(emulator.__file__).parent / "README.md"
HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
FORMS = [(opcode, form) for opcode, forms in table.OPCODES.items() for form in forms]


def entry(line):
    text = f"{HEAD}.entry k() {{\n .reg .b32 %r<9>;\n {line};\n ret;\n}}"
    return emulator.Module(text).entry("k")


@pytest.fixture
def with_xnor(monkeypatch):
    """Adds an opcode that PTX does not have to a family's table."""
    monkeypatch.setitem(bits.OPCODES, "xnor", {f"{WORD}!": bitwise(lambda a, b: ~(a ^ b))})
    rows = merged(*(family.opcodes for family in table.FAMILIES))
    monkeypatch.setattr("emulator.module.OPCODES", rows)


def test_an_opcode_is_its_row(with_xnor):
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 2**32, 96, dtype=np.uint32) for _ in range(2))
    inputs = {"%a": ("b32", a), "%b": ("b32", b)}
    found = run("xnor.b32 %d, %a, %b;", inputs, {"%d": "b32"})
    assert (found == ~(a ^ b)).all()
    found = run("xnor.b32 %d, %a, 0x0ff00ff0;", inputs, {"%d": "b32"})
    assert (found == ~(a ^ np.uint32(0x0FF00FF0))).all()


def test_what_follows_from_the_row(with_xnor):
    with pytest.raises(emulator.Unsupported, match=r"line 6: .*xnor takes no \.b23.*mean \.b32\?"):
        entry("xnor.b23 %r1, %r2, %r3")
    with pytest.raises(emulator.PtxError, match=r"xnor\.b32 takes 3 operands, not 4"):
        entry("xnor.b32 %r1, %r2, %r3, %r4")
    assert "| bits | and or xor" in table.coverage() and "prmt xnor |" in table.coverage()


def test_its_undefined_bits_are_its_operands(with_xnor):
    """%u is never set; its upper bits are shifted out before they matter, and the lower ones are cleared."""
    text = (
        HEAD
        + """.entry k(.param .u64 out) {{ .reg .b32 %r<9>, %u; .reg .b64 %o; ld.param.u64 %o, [out];
        mov.u32 %r1, %tid.x; and.b32 %r2, %u, 0xffff0000; xnor.b32 %r3, %r1, %r2; {} st.global.u32 [%o], %r4; ret; }}"""
    )
    for line, kinds in (
        ("and.b32 %r4, %r3, 0xffff;", []),
        ("shr.u32 %r4, %r3, 15;", ["uninitialised-register"]),
    ):
        out = np.zeros(1, "u4")
        trace = emulator.Module(text.format(line)).launch("k", 1, 1, [out])
        assert [hazard.kind for hazard in trace.hazards] == kinds


def test_without_its_row_it_is_refused():
    with pytest.raises(emulator.Unsupported, match=r"xnor\.b32 is not supported"):
        entry("xnor.b32 %r1, %r2, %r3")


def test_the_readme_lists_what_the_table_has():
    part = README.read_text(encoding="utf-8").split("## What it executes\n\n")[1]
    assert part.split("\n\n")[0] == table.coverage(), "python -m emulator opcodes prints it"


def least(form):
    """The fewest words that fit a form."""
    groups = [group for group in form.split() if "!" in group]
    return tuple(group.rstrip("*!").split("|")[0] for group in groups)


@pytest.mark.parametrize(("opcode", "form"), FORMS)
def test_every_row_can_be_reached(opcode, form):
    assert fitting(tuple(table.OPCODES[opcode]), least(form)) == form


@pytest.mark.parametrize(("opcode", "form"), FORMS)
def test_every_row_says_its_types_and_how_undefined_bits_spread(opcode, form):
    row = table.OPCODES[opcode][form]
    assert row.types is not None and row.spread is not None
    words = {word.removeprefix("~") for word in row.types.split()}
    assert words <= {"own", "first", "wide", "-", "pred", *WIDTHS}
    assert " ".join(word for word in row.spread.split() if not word.isdigit()) in spreads.SPREADS
    if row.operands:
        assert len(row.types.split()) <= max(1, *row.operands)


def functions():
    """(opcode, kind, its row, what it computes of integer register values) of every row that `each` has made."""
    for opcode, form in FORMS:
        row = table.OPCODES[opcode][form]
        if getattr(row.factory, "__qualname__", "").startswith("each."):
            groups = form.split()
            for kind in groups[-1].rstrip("!").split("|"):
                if opcode == "abs" and kind[0] == "u":
                    continue  # which ptxas refuses
                yield (
                    opcode,
                    (*(g.rstrip("!").split("|")[0] for g in groups[:-1] if "!" in g), kind),
                    row,
                )


@pytest.mark.parametrize(("opcode", "words", "row"), list(functions()))
def test_a_row_says_bits_where_and_only_where_each_bit_is_for_itself(opcode, words, row):
    """Flips bits of random operands one by one: does only the same bit of the result ever change?"""
    count = row.operands[0] - 1

    name = ".".join((opcode, *words))
    ins = SimpleNamespace(parts=(opcode, *words), operands=("d", *"abcd"[:count]), opcode=name)
    run, kinds = row.factory(ins, Bind())
    rng = np.random.default_rng(crc32(name.encode()))
    for_itself = {WIDTHS[k] for k in kinds} == {WIDTHS[words[-1]]}
    for _ in range(200):
        values = [a_value(rng, kind, (1, 1)) for kind in kinds]
        place, bit = int(rng.integers(count)), 1 << int(rng.integers(8 * WIDTHS[words[-1]]))
        other = [v ^ bit if i == place else v for i, v in enumerate(values)]
        changed = (run(*values) ^ run(*other)) & ((1 << 64) - 1)
        for_itself &= changed in (0, bit)
    found = "bits" if for_itself else "any"
    assert row.spread == found or row.spread.startswith("moves"), (
        "say bitwise(...) where each bit is for itself"
    )


def test_two_tables_may_not_give_an_opcode_one_form_twice():
    with pytest.raises(ValueError, match=r"two tables have add 'cc! "):
        merged(integer.OPCODES, {"add": integer.OPCODES["add"]})


@pytest.mark.parametrize(
    ("line", "takes"),
    [
        ("add.s32 %r1, %r2", "3 operands, not 2"),
        ("add.s32 %r1, %r2, %r3, %r4", "3 operands, not 4"),
        ("fma.rn.f32 %r1, %r2, %r3", "4 operands, not 3"),
        ("min.f32 %r1, %r2, %r3, %r4, %r1", "3 or 4 operands, not 5"),
        ("shfl.sync.idx.b32 %r1, %r2, %r3, %r4", "5 operands, not 4"),
        ("bar.sync", "1 or 2 operands, not 0"),
        ("mov.u32 %r1", "2 operands, not 1"),
        ("cp.async.wait_group", "1 operand, not 0"),
        ("bra", "1 operand, not 0"),
        ("ret %r1", "0 operands, not 1"),
    ],
)
def test_a_wrong_number_of_operands_is_named(line, takes):
    with pytest.raises(emulator.PtxError, match=f"PTX line 6: .* takes {takes}") as caught:
        entry(line)
    assert caught.value.line == 6


def test_a_fault_in_a_factory_is_not_blamed_on_the_ptx(monkeypatch):
    def broken(ins, bind):
        return {}["a fault of ours"]

    monkeypatch.setitem(table.OPCODES, "broken", {"": Row(broken)})
    with pytest.raises(KeyError, match="a fault of ours") as caught:
        entry("broken %r1")
    assert caught.value.__notes__ == ["while decoding PTX line 6: broken %r1;"]


# --- The short ways of `fast` ---

SUFFIX = {"mul.wide": ("u16", "s16", "u32", "s32"), "mad.wide": ("u16", "s16", "u32", "s32"),
          **dict.fromkeys(("and", "or", "xor", "not", "shl"), ("b16", "b32", "b64"))}  # fmt: skip
CASES = [
    (name, kind)
    for name in fast.FAST
    for kind in SUFFIX.get(name, ("u16", "s16", "u32", "s32", "u64", "s64"))
]


class Bind:
    """Enough of a Binder to get at the function that a row's step would call."""

    def integer(self, operand, kind):
        return kind

    def pure(self, destination, function, *kinds):
        return function, kinds


def a_value(rng, kind, shape):
    """A register value with numbers near the ends of the type among them, and its array."""
    bits = 8 * WIDTHS[kind]
    edges = [0, 1, 2, bits - 1, bits, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1]
    array = rng.integers(0, 2**bits - 1, shape, dtype=np.uint64, endpoint=True)
    array = np.where(rng.random(shape) < 0.4, rng.choice(np.array(edges, np.uint64), shape), array)
    if shape == (1, 1):
        return int(array.item())
    held = array.astype(UNSIGNED[bits // 8]).view(f"i{bits // 8}").astype(np.int64)
    if rng.random() < 0.3:
        held &= 0xFF  # small and not negative: where ranges are known
    offset = int(rng.integers(0, 1000)) if rng.random() < 0.5 else 0
    return Affine(Pattern(held, int(held.min()), int(held.max())), offset)


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("shapes", [[(1, 1)] * 3, [(2, 64)] * 3, [(2, 64), (1, 1), (1, 64)],
                                    [(1, 1), (1, 64), (2, 64)]])  # fmt: skip
def test_the_short_way_finds_what_the_plain_way_finds(monkeypatch, name, kind, shapes):
    opcode = f"{name}.{kind}"
    count = {"not": 1, "neg": 1, "mad.lo": 3, "mad.wide": 3}.get(name, 2)

    class Ins:
        parts = tuple(opcode.split("."))
        operands = ("d", *"abc"[:count])
        line, text = 1, ""

    Ins.opcode = opcode
    row = row_of(table.OPCODES, Ins)
    short, kinds = row.factory(Ins, Bind())
    monkeypatch.setattr("emulator.ops.elementwise.FAST", {})
    plain, _ = row.factory(Ins, Bind())
    result = f"{kind[0]}{2 * int(kind[1:])}" if "wide" in name else kind
    rng = np.random.default_rng(crc32(f"{opcode} {shapes}".encode()))
    for _ in range(12):
        values = [a_value(rng, k, shape) for k, shape in zip(kinds, shapes, strict=False)]
        with np.errstate(all="ignore"):
            found = short(*values)
            mine, other = (as_array(value, result) for value in (found, plain(*values)))
        assert (np.broadcast_to(mine, (2, 64)) == np.broadcast_to(other, (2, 64))).all(), values
        if type(found) is Affine:  # what it says of its range holds
            lanes = found.pattern.array + found.offset
            assert found.lo <= lanes.min() and lanes.max() <= found.hi


@pytest.mark.parametrize("factor", [1, -1, 3, 8])
def test_bounds_hold_where_64_bits_wrap(factor):
    """A sum past 2**63 wraps, and its bounds follow: a product with 1 too."""
    array = np.array([[2**63 - 1, -(2**63), 5, -7]])
    for offset in (3, -3):
        x = Affine(Pattern(array, -(2**63), 2**63 - 1), offset)
        found = multiply(x, factor & (2**64 - 1), 8)
        lanes = found.pattern.array + found.offset
        with np.errstate(all="ignore"):
            assert (lanes == (array + offset) * factor).all()
        assert found.lo <= lanes.min() and lanes.max() <= found.hi


def test_every_short_way_belongs_to_a_row():
    for name, kind in CASES:
        assert fitting(tuple(table.OPCODES[name.split(".")[0]]), (*name.split(".")[1:], kind))
