"""What `%%kernel` says of a cell before anything is tried: headers that are not there, names that nearly are."""

import pytest

from book.exercises import cell

KERNEL = 'extern "C" __global__ void mine(float *a) { a[threadIdx.x] = 1; }\n'


@pytest.fixture(autouse=True)
def no_kernels_of_others(monkeypatch):
    monkeypatch.setattr(cell, "_SOURCES", {})


def said(name, text, capsys):
    cell.kernel(name, text)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    ['#include "nope.h"', "#include <nope.h>", '#  include "ptx.cu"  // close', "#include <cudafp16.h>"],
)  # fmt: skip
def test_a_header_that_is_not_there_is_refused_with_its_line(line, capsys):
    told = said("mine", f"// first\n{line}\n{KERNEL}", capsys)
    assert told.startswith("✗ mine does not compile\nmine.cu:3: error: there is no header ")
    assert '"ptx.cuh"' in told and "<mma.h>" in told and line in told
    assert "mine" not in cell._SOURCES


@pytest.mark.parametrize(
    "line",
    [
        '#include "ptx.cuh"', "#include <mma.h>", "#include <cuda_bf16.h>", "#include <cuda/pipeline>",
        "#include <cstdio>", "#include <stdio.h>", "#include <cublas_v2.h>", '// #include "nope.h"',
        '/*\n#include "nope.h" */',
    ],
)  # fmt: skip
def test_headers_of_kernels_and_of_the_host_are_taken(line, capsys):
    assert said("mine", f"{line}\n{KERNEL}", capsys) == "✓ mine compiles\n"


def test_the_types_of_a_device_header_are_there(capsys):
    text = '#include <cuda_bf16.h>\nextern "C" __global__ void mine(__nv_bfloat16 *a) { a[0] = a[1]; }\n'
    assert "compiles" in said("mine", text, capsys)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("place_barrier", "place_barriers"), ("Coalesce", "coalesce"), ("vectorise", "vectorize")],
)
def test_a_name_that_is_nearly_an_exercise_s(name, meant, capsys):
    told = said(name, KERNEL, capsys)
    assert told == f"✓ {name} compiles\n  no exercise is called {name}; did you mean {meant}?\n"


@pytest.mark.parametrize("name", ["place_barriers", "lab3", "tile", "mine", "my_kernel", "saxpy"])
def test_other_names_are_the_reader_s_own(name, capsys):
    assert said(name, KERNEL, capsys) == f"✓ {name} compiles\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nonsense", "no exercise is called nonsense; there are first_guard, coalesce"),
        ("coalesc", "no exercise is called coalesc; did you mean coalesce?"),
        ("lab3", "run its %%kernel cell first"),
        ("lab", "did you mean lab3?"),
        (None, "in quotes"),
        (["coalesce"], "in quotes"),
    ],
)
def test_whatever_is_checked_is_answered_in_a_line(name, words, capsys):
    cell.check(name)
    told = capsys.readouterr().out
    assert told.startswith("✗ ") and words in told and told.count("\n") == 1


def test_a_check_after_a_failed_compile_says_so_and_the_older_kernel_is_gone(capsys):
    text = 'extern "C" __global__ void rasterise(int* order, int m, int n) { order[0] = 0; }\n'
    assert "✓" in said("rasterise", text, capsys)
    assert "expected a" in said("rasterise", text.replace("0; }", "0 }"), capsys)
    cell.check("rasterise")
    assert "does not compile; mend it" in capsys.readouterr().out


def test_warnings_of_the_compiler_are_shown_with_their_line(capsys):
    told = said("mine", KERNEL.replace("= 1;", "= 1; __syncthreads;"), capsys)
    assert told.startswith("✓ mine compiles\nmine.cu:2: warning: ")
    assert "no effect" in told
