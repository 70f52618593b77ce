"""Constant expressions: as ptxas computes them, in initial values, operands and addresses."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

import emulator

RECORDED = json.loads(
    (Path(__file__).parents[2] / "data/ptxas_constants.json").read_text(encoding="utf-8")
)["values"]
HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n.global .align 8 .b64 g[4] = {11, 22, 33, 44};\n"
REGISTERS = ".reg .b64 %o, %x; .reg .b32 %r; .reg .f32 %f; ld.param.u64 %o, [out];"


def module(text, declarations=""):
    return emulator.Module(
        f"{HEAD}{declarations}\n.visible .entry k(.param .u64 out) {{ {REGISTERS} {text} ret; }}"
    )


def run(text, declarations=""):
    """The first two words that a thread stores; and the address of g."""
    out = np.zeros(2, np.uint64)
    module(text, declarations).launch("k", 1, 1, [out])
    return out


@pytest.mark.parametrize("expression", RECORDED)
def test_an_integer_expression_is_as_ptxas_has_it(expression):
    declared = f".global .u64 h = {expression};"
    if RECORDED[expression] is None:
        with pytest.raises(emulator.PtxError):
            module("", declared)
    else:
        value = int.from_bytes(module("", declared).variable("h")[:8].tobytes(), "little")
        assert hex(value) == RECORDED[expression]


@pytest.mark.parametrize(
    ("operand", "value"),
    [
        ("WARP_SZ", 32), ("WARP_SZ-1", 31), ("WARP_SZ*2+1", 65), ("(1<<4)|3", 19), ("(5>3)?7:9", 7),
        ("4*4", 16), ("(1<<4)", 16), ("2+3*4", 14), ("-7/2", -3), ("1<<2+1", 8), ("~0", -1), ("!5", 0), ("5&3|8", 9),
        ("5^3", 6), ("1?2:3", 2), ("0?1:0?2:3", 3), ("3>2", 1), ("2>=3", 0), ("1==1&&2!=2", 0), ("(2+3)*4", 20),
        ("0xff>>4", 15), ("-1>>1", -1), ("- -3", 3), ("+3", 3), ("1U+2", 3), ("(.u64)-1 >> 60", 15), ("2*-3", -6),
        ("10-3-2", 5), ("100/5/2", 10), ("-3", -3),
    ],
)  # fmt: skip
def test_an_expression_is_stored_moved_and_added(operand, value):
    """As unsigned words: how operators bind, which the recorded ones put in parentheses."""
    value %= 2**32
    assert run(f"st.global.u32 [%o], {operand};")[0] == value
    assert run(f"mov.u32 %r, {operand}; st.global.u32 [%o], %r;")[0] == value
    assert run(f"add.u32 %r, {operand}, {operand}; st.global.u32 [%o], %r;")[0] == 2 * value % 2**32
    pair = run(f"st.global.v2.u32 [%o+4*2], {{5, {operand}}};")
    assert pair.tolist() == [0, 5 | value << 32]


@pytest.mark.parametrize(
    ("operand", "value"),
    [("1.5+2.0", 3.5), ("-1.5+2.0", 0.5), ("-(1.5)", -1.5), ("1.0/3.0*2.0", np.float32(2 / 3)), ("-0.0", -0.0)],
)  # fmt: skip
def test_an_expression_of_floats(operand, value):
    wanted = struct.pack("<f", value)
    assert run(f"st.global.f32 [%o], {operand};").tobytes()[:4] == wanted
    assert run(f"mov.f32 %f, {operand}; st.global.f32 [%o], %f;").tobytes()[:4] == wanted
    assert module("", f".global .f32 h = {operand};").variable("h").tobytes() == wanted


def test_offsets_of_addresses_are_expressions():
    at = int(run("mov.u64 %x, g; st.global.u64 [%o], %x;")[0])
    assert run("st.global.u64 [%o], g+8*2;")[0] == at + 16
    assert run("mov.u64 %x, g+4+4; st.global.u64 [%o], %x;")[0] == at + 8
    places = [
        ("g+8*2", 33),
        ("g+(8|16)", 44),
        ("g+4+4", 22),
        ("%x+ 2*8", 33),
        ("%x+20+-4", 33),
        ("g+(2+2)*2", 22),
    ]
    for address, value in places:
        assert (
            run(f"mov.u64 %x, g; ld.global.u64 %x, [{address}]; st.global.u64 [%o], %x;")[0]
            == value
        )
    assert run("st.global.u64 [g+8], %o; ld.global.u64 %x, [g+2*4]; st.global.u64 [%o], %x;")[0]


def test_a_variable_begins_as_an_address_or_as_bits_of_one():
    at = int(run("mov.u64 %x, g; st.global.u64 [%o], %x;")[0])
    held = module("", ".global .u64 h[3] = {generic(g)+2*8, g+8, WARP_SZ};").variable("h")
    assert held.view(np.uint64).tolist() == [at + 16, at + 8, 32]
    masks = ", ".join(f"{0xFF << 8 * i:#x}(g)" for i in range(8))
    assert (
        int.from_bytes(module("", f".global .u8 h[8] = {{{masks}}};").variable("h"), "little") == at
    )


def test_an_argument_of_a_function_is_an_expression():
    function = (
        ".func (.param .b32 r) f(.param .b64 a) { .reg .b64 %a; .reg .b32 %q; ld.param.b64 %a, [a]; "
        "ld.u32 %q, [%a]; st.param.b32 [r+0], %q; ret; }"
    )
    call = (
        "{{ .param .b64 p; .param .b32 q; st.param.b64 [p+0], {}; call.uni (q), f, (p); "
        "ld.param.b32 %r, [q+0]; st.global.u32 [%o], %r; }}"
    )
    assert [run(call.format(x), function)[0] for x in ("g+16", "g+4*2")] == [33, 22]


@pytest.mark.parametrize(
    ("declaration", "words"),
    [
        (".global .u32 h = 1.5+2.0;", r"a \.u32 cannot begin as 3.5"),
        (".global .u32 h = 1/0;", "divides by zero"),
        (".global .u64 h = 1.5+2;", "of integers and floats"),
        (".global .u64 h = ~1.5;", "an integer constant is expected"),
        (".global .u64 h = nowhere;", "h begins as the address of nowhere"),
        (".global .u8 h = 0x0F0F(g);", "8 bits that stand together"),
        (".global .u64 h = generic(g;", r"expected '\)'"),
    ],
)  # fmt: skip
def test_what_is_no_initial_value_is_told(declaration, words):
    with pytest.raises(emulator.PtxError, match=words):
        module("", declaration)


def test_generic_is_for_initial_values_alone():
    with pytest.raises(emulator.PtxError):
        run("mov.u64 %x, generic(g)+8; st.global.u64 [%o], %x;")
