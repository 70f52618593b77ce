"""A rung that leaves with a main of its own: launched as its row says, on numbers that are what they are stored as."""

import re

import numpy as np
import pytest

import kernels
from kernels import RUNGS, accuracy, alone, blocks, configuration, formats
from kernels.rung import FOLDER, Types
from kernels.source import parts

MAIN = (FOLDER / "alone.cu").read_text(encoding="utf-8")
CUDA = [rung for rung in RUNGS.values() if rung.path is not None]
FORMATS = ("float32", "tf32", "float16", "bfloat16", "float8_e4m3fn", "int8", "mxfp8", "nvfp4")
SIZES = (1, 1, 1), (4096, 4096, 4096), (1000, 17, 3), (64, 2048, 16384)
HEAD = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda_fp8.h>\n"


def settings(rung) -> list[dict[str, int]]:
    """The row's, those of its variants, those that `check` runs, and one with each macro at another value of its space."""
    found = [*rung.configurations(), *rung.checked]
    found += [{name: value} for name, values in rung.space.items() for value in values]
    return [macros for each in found if rung.valid(**(macros := rung.resolve(each)))]


def test_every_rung_is_launched_as_its_row_says():
    cases = [(rung, macros, size) for rung in CUDA for macros in settings(rung) for size in SIZES]
    size = ("whole[0]", "whole[1]", "whole[2]", "block.x", "block.y", "grid.x", "grid.y", "shared")
    fields = ("inputs", "A", "B", *size, "a_box", "b_box", "early")
    text = ['#include "alone_rows.cuh"\n#define LAUNCH_OF(kernel, ...) __VA_ARGS__']
    text.append("#define APPLY(f, ...) f(__VA_ARGS__)\nnamespace alone {")
    for at, (rung, macros, (M, N, K)) in enumerate(cases):
        macros = {"M": M, "N": N, "K": K, **macros}
        text += [f"#define {name} {value}" for name, value in macros.items()]
        text.append(
            f"constexpr Launch l{at} = {{APPLY(LAUNCH_OF, ROW_{rung.number:02d}_{rung.name})}};"
        )
        text += [f"#undef {name}" for name in macros]
    numbers = ", ".join(f"int(l{at}.{name})" for at in range(len(cases)) for name in fields)
    text.append(f"__device__ const int table[] = {{{numbers}}};\n}}")
    text.append('extern "C" __global__ void rows(int* out) {')
    text.append("const int at = blockIdx.x * 1024 + threadIdx.x;")
    text.append(f"if (at < {len(cases) * len(fields)}) out[at] = alone::table[at]; }}")
    built = kernels.build("\n".join(text), arch=90, name="rows.cu")
    found = np.zeros((len(cases), len(fields)), np.int32)
    kernels.launch(built, "rows", -(-found.size // 1024), 1024, [found], machine="emulator")
    for (rung, macros, size), row in zip(cases, found.tolist(), strict=True):
        grid, block, shared = rung.geometry(macros, *size)
        boxes = rung.boxes(**macros) if rung.boxes else {"A": (0, 0), "B": (0, 0)}
        assert row == [
            FORMATS.index(rung.types(macros).inputs), rung.a_major == "M", rung.b_major == "K",
            *rung.padding(macros), *block[:2], *grid[:2], shared, boxes["A"][0], boxes["B"][0], rung.early,
        ], (rung.name, macros, size)  # fmt: skip


def test_boxes_are_rows_of_128_bytes_and_the_kernels_are_the_rungs():
    text = (FOLDER / "alone_rows.cuh").read_text(encoding="utf-8")
    rows = dict(re.findall(r"#define ROW_(\w+)\s+(\w+)", text))
    assert rows == {rung.path.stem: rung.entry for rung in CUDA}
    bits = {"nvfp4": 4, "mxfp8": 8, "float8_e4m3fn": 8, "int8": 8, "bfloat16": 16, "float16": 16}
    for rung in CUDA:
        for macros in map(rung.resolve, rung.configurations() if rung.boxes else ()):
            types, boxes = rung.types(macros), rung.boxes(**macros)
            assert {boxes[name][1] * bits.get(types.inputs, 32) for name in "AB"} == {1024}
            if "C" in boxes:
                assert (boxes["C"][0], boxes["C"][1] * bits.get(types.output, 32)) == (16, 1024)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("by_row", [True, False])
def test_numbers_are_what_they_are_stored_as(name, by_row):
    lines, k, real_lines, real_k = 40, 64, 37, 50
    shape = (
        (lines, k) if by_row else (k, lines)
    )  # of a matrix like A, or of one like B whose columns lie in one piece
    scaled = name in blocks.FORMATS
    code = (
        device_code("numbers")
        + f"""
extern "C" __global__ void numbers(float* values, unsigned char* stored) {{
    fill(Matrix{{Format({FORMATS.index(name)}), {"BY_ROW" if by_row else "BY_COLUMN"}, {shape[0]}, {shape[1]},
        {real_lines if by_row else real_k}, {real_k if by_row else real_lines}, {int(by_row)}, 1, values, stored}});
}}
extern "C" __global__ void scales(unsigned char* scales) {{ fill_scales(scales, 128, 16, {int(name == "mxfp8")}, 1); }}"""
    )
    built = kernels.build(code, arch=90, name="numbers.cu")
    values, stored = np.full(shape, np.nan, np.float32), np.zeros(4 * lines * k, np.uint8)
    kernels.launch(built, "numbers", lines * k // 256, 256, [values, stored], machine="emulator")
    values = values if by_row else values.T
    if scaled:
        form, tiles = blocks.FORMATS[name], np.zeros(128 * 16, np.uint8)
        kernels.launch(built, "scales", 8, 256, [tiles], machine="emulator")
        rows = np.arange(lines)[:, None], np.arange(k // form.block)[None]
        places = rows[1] // 4 * 512 + rows[0] % 32 * 16 + rows[0] // 32 * 4 + rows[1] % 4
        codes = stored[: lines * k * form.bits // 8].reshape(lines, -1)
        expected = blocks.values_of(blocks.Quantised(name, k, codes, tiles[places], 1.0))
    else:
        dtype = np.dtype(formats.stored(name))
        expected = formats.decode(stored.view(dtype)[: lines * k].reshape(lines, k), name)
    np.testing.assert_array_equal(values, expected)
    assert not values[real_lines:].any() and not values[:, real_k:].any()
    real = values[:real_lines, :real_k] / (42 if name == "int8" else 1)
    assert abs(real.mean()) < 0.1 and (1.0 if not scaled else 1.2) == pytest.approx(
        real.std(), abs=0.3
    )


@pytest.mark.parametrize("output", ["float32", "float16"])
def test_the_check_is_that_of_the_book(output):
    M, N, K, Np, Kp, alpha, beta = 20, 18, 70, 24, 72, 1.5, -0.5
    out = {"float32": "float", "float16": "half"}[output]
    u = {"float32": "0x1p-24, 0x1p-149", "float16": "0x1p-11, 0x1p-24"}[output]
    code = (
        device_code("numbers", "check")
        + f"""
extern "C" __global__ void judged(float* A, float* B, {out}* plain, {out}* mixed, {out}* old, Verdict* verdict) {{
    check(A, B, plain, mixed, old, {M}, {N}, {K}, {Np}, {Kp}, {alpha}f, {beta}f, Rounding{{0, 0x1p-22, {u}}}, verdict);
}}"""
    )
    built = kernels.build(code, arch=90, name="judged.cu")
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(M, Kp)).astype("f4"), rng.normal(size=(Kp, Np)).astype("f4")
    old = rng.normal(size=(M, Np)).astype(output)
    product = A[:, :K].astype(float) @ B[:K]
    for planted, error in enumerate((0.0, 0.1, np.nan)):
        plain, mixed = product.astype(output), (alpha * product + beta * old).astype(output)
        mixed[7, 5] += error
        verdict = np.zeros(1, [("wrong", "u8"), ("worst", "f4"), ("rest", "f4")])
        args = [A, B, plain, mixed, old, verdict.view(np.uint8)]
        kernels.launch(built, "judged", (2, 2), (16, 16), args, machine="emulator")
        mine = [
            accuracy(C[:, :N], A[:, :K], B[:K, :N], old[:, :N], *factors, Types("float16", output=output))
            for C, factors in ((plain, (1.0, 0.0)), (mixed, (alpha, beta)))
        ]  # fmt: skip
        assert verdict["wrong"] == sum(one.wrong for one in mine) == (planted > 0)
        assert verdict["worst"][0] == pytest.approx(max(one.of_bound for one in mine), rel=1e-3)


def device_code(*names: str) -> str:
    """Parts of alone.cu whose kernels are functions, so that a kernel with plain arguments may call them."""
    text = "\n".join(parts(MAIN)[name] for name in names).replace(
        "__global__ void", "__device__ void"
    )
    return f'{HEAD}#include "alone_rows.cuh"\nusing namespace alone;\n#define INFINITY __int_as_float(0x7f800000)\n{text}'


@pytest.mark.skipif(not alone.compiler(), reason="nvcc is not here: `make alone` fetches it")
@pytest.mark.parametrize("name", ["tiled", "mma_tf32", "tma_mma", "wgmma_split", "tcgen05_nvfp4"])
def test_nvcc_builds_a_rung_that_leaves(name, tmp_path):
    assert alone.compiled(name, tmp_path, 80).stat().st_size > 0


def test_the_line_names_the_rung_and_what_the_book_times_it_with():
    main = "kernels/alone.cu -o gemm && ./gemm"
    assert alone.line("naive") == f"nvcc -arch=native -DRUNG=02_naive {main}"
    split = configuration("wgmma_split", (4096, 4096, 4096), 90).macros["SPLIT"]
    assert split != RUNGS["wgmma_split"].macros["SPLIT"]
    words = alone.line("wgmma_split").split()
    assert words[:4] == [
        "nvcc",
        "-gencode",
        "arch=compute_90a,code=sm_90a",
        "-DRUNG=26_wgmma_split",
    ]
    assert f"-DSPLIT={split}" in words and not [word for word in words if "CLUSTER_M" in word]
