"""What ptxas refuses is refused, with a reason and a line; what it takes is taken."""

import json
import shutil

import operand_types
import pytest

import emulator

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %d<4>;"


def refused(text: str) -> str:
    """The message of the PtxError with a line that this module gets, or "" where it is taken."""
    try:
        module = emulator.Module(text)
        for entry in module.entries:
            module.entry(entry)
    except emulator.PtxError as error:
        assert error.line, error
        return str(error)
    return ""


@pytest.fixture(scope="module")
def recorded():
    return json.loads(operand_types.RECORDED.read_text(encoding="utf-8"))


def test_operands_are_taken_and_refused_as_by_ptxas(recorded):
    refuses = set(recorded["refused"])
    every = list(dict.fromkeys(operand_types.instructions()))
    assert 500 < len(refuses) < len(every) - 500
    wrong = [
        line for line in every if bool(refused(operand_types.module([line]))) != (line in refuses)
    ]
    assert not wrong, wrong[:20]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
def test_the_record_is_what_ptxas_says(recorded):
    every = list(dict.fromkeys(operand_types.instructions()))
    assert operand_types.refused_by_ptxas(every) == recorded["refused"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("@p1 mov.u32 %r0, 1;", "did you mean %p1"),
        ("@%p9 mov.u32 %r0, 1;", "undeclared predicate %p9"),
        ("@%r1 mov.u32 %r0, 1;", "no predicate but .b32"),
        ("bar.sync 17;", "0 to 15"),
        ("bar.sync 1, 33;", "multiple of 32"),
        ("add.s32 %r0, %f1, %r2;", "operand 2 is of type .s32, and its register of type .f32"),
        ("add.f32 %f0, %f1, 1;", "not an integer constant"),
        ("ld.global.u32 %r0, [%p1];", "not in one of type .pred"),
        ("ld.global.u32 %r0, [%f1];", "not in one of type .f32"),
        ("vote.sync.any.b32 %r0, %p1, -1;", ".any gives a .pred"),
        ("atom.global.add.b32 %r0, [%d0], 1;", ".add is of type"),
        ("atom.global.cas.u32 %r0, [%d0], 1, 2;", ".cas is of type .b32"),
        ("cvt.s32.f32 %r0, %f1;", "needs a rounding"),
        ("cvt.rn.s32.s32 %r0, %r1;", "no rounding"),
        ("elect.sync %r0, -1;", "two results"),
        ("A: mov.u32 %r0, 1; A: bra A;", "label A stands twice"),
        (".reg .b32 %again; .reg .b32 %again;", "declared twice"),
        (".reg .b32 %many<4000000000>;", "more than"),
        (".reg .b32 %many<x>;", "is a number, not 'x'"),
        (".reg .b32 %many<-3>;", "is a number, not '-'"),
        (".reg .v4 .b64 %v;", "128 bits at most"),
        (".shared .b8 s[-4];", "cannot have -4"),
        (".shared .align 3 .b8 s[4];", "power of two"),
    ],
)
def test_messages_name_the_reason(code, words):
    assert words in refused(f"{HEAD}.visible .entry k()\n{{\n{REGISTERS}\n{code}\nret;\n}}\n")


def test_parameters_of_functions_in_vector_registers_are_refused_by_name():
    assert "vector registers" in refused(f"{HEAD}.func f(.reg .v4 .f32 a) {{ ret; }}\n")


def test_what_compilers_write_is_taken():
    code = "mov.b32 %r0, 0f3F800000; mov.f32 %f0, %r0; ld.global.b32 %f1, [%d0]; st.global.u8 [%d0], %r1; "
    code += (
        "cvt.u32.u16 %r1, %h1; ld.global.s8 %r2, [%d0]; mov.b64 %d1, {%r1, %f1}; bar.sync 1, 64;"
    )
    assert not refused(f"{HEAD}.visible .entry k()\n{{\n{REGISTERS}\n{code}\nret;\n}}\n")
