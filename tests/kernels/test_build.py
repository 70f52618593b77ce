"""From source to PTX, cubin and report; errors against their line; the cache."""

import gzip
import json
import multiprocessing
import os
from dataclasses import replace
from pathlib import Path

import pytest

import kernels
from kernels import BuildError, build
from kernels.headers import include_folders
from kernels.rereads import rereads

module = __import__("sys").modules["kernels.build"]

SCALE = """
extern "C" __global__ void scale(float* x, float factor) {
    x[threadIdx.x] *= factor;
}
"""


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gemm-ladder" / "builds"


def test_one_compile_gives_ptx_cubin_and_report():
    built = build("tiled", {"BLOCK": 16}, arch=80)
    assert ".target sm_80" in built.ptx
    assert built.cubin.startswith(b"\x7fELF")
    assert built.entry == "gemm_tiled"
    assert built.report.shared_bytes == 2 * 16 * 16 * 4
    assert built.report.barriers == 1
    assert 8 < built.report.registers < 256
    assert built.spills == 0


def test_a_compiler_that_is_asked_last_makes_what_is_not_shipped(empty_cache, monkeypatch):
    made = []

    def compiled(nvrtc, text, name, *more):
        made.append(name)
        return compile_it(nvrtc, text, name, *more)

    compile_it = module._compiled
    monkeypatch.setattr(module, "_compiled", compiled)
    monkeypatch.setenv("GEMM_COMPILER", "last")
    shipped = build("tiled", arch=80)
    build(SCALE, arch=80, name="scale.cu")
    assert made == ["scale.cu"]
    monkeypatch.delenv("GEMM_COMPILER")
    assert build("tiled", arch=80).ptx == shipped.ptx
    assert made == ["scale.cu", "03_tiled.cu"]


def test_macros_reach_the_kernel():
    sizes = {
        block: build("tiled", {"BLOCK": block}, 80).report.shared_bytes for block in (8, 16, 32)
    }
    assert sizes == {8: 512, 16: 2048, 32: 8192}


@pytest.mark.parametrize("arch", [75, "90", "sm_120"])
def test_the_architecture_is_the_one_asked_for(arch):
    built = build("naive", arch=arch)
    assert built.arch == str(arch).removeprefix("sm_")
    assert f".target sm_{built.arch}" in built.ptx


def test_line_information_names_files_without_their_place():
    text = build("mma_swizzled", arch=80).ptx
    files = [line for line in text.splitlines() if line.lstrip().startswith(".file")]
    assert any('"18_mma_swizzled.cu"' in line for line in files)
    assert any('"ptx.cuh"' in line for line in files)
    assert not [line for line in files if '"/' in line]
    assert str(Path(kernels.__file__).parent) not in text


def test_an_error_stands_under_its_source_line():
    source = 'extern "C" __global__ void f(float* a) {\n    a[0] = colum + 1;\n}\n'
    with pytest.raises(BuildError) as caught:
        build(source, name="mine.cu")
    (only,) = caught.value.diagnostics
    assert (only.file, only.line) == ("mine.cu", 2)
    assert "colum" in only.message
    marked, caret = str(caught.value).splitlines()[-2:]
    assert marked[caret.index("^") :].startswith("colum")


def test_every_error_of_a_source_is_reported():
    source = "__global__ void f(int* a) {\n    a[0] = one;\n    a[1] = two;\n}\n"
    with pytest.raises(BuildError) as caught:
        build(source)
    assert [(d.line, d.severity) for d in caught.value.diagnostics] == [(2, "error"), (3, "error")]


def test_what_only_ptxas_refuses_is_a_build_error_too():
    source = """extern "C" __global__ void f(float* a) {
        __shared__ float tile[20000];
        tile[threadIdx.x] = a[threadIdx.x];
        __syncthreads();
        a[threadIdx.x] = tile[99 - threadIdx.x];
    }"""
    with pytest.raises(BuildError, match="too much shared data"):
        build(source, arch=80)


def test_warnings_are_kept_with_their_line():
    (warning,) = build("__global__ void f(float* a) {\n    int unused = 3;\n}\n").warnings
    assert "kernel.cu:2" in warning and "unused" in warning


def test_spills_are_seen():
    loads = "\n".join(f"float v{i} = a[threadIdx.x + {i} * n];" for i in range(120))
    stores = "\n".join(f"a[threadIdx.x + {i} * n] = v{i} * v{119 - i};" for i in range(120))
    source = f"""extern "C" __global__ void __launch_bounds__(1024) f(float* a, int n) {{
        {loads}
        __syncthreads();
        {stores}
    }}"""
    report = build(source, arch=80).report
    assert report.spill_stores > 0 and report.spill_loads > 0 and report.stack > 0


def test_each_kernel_of_a_file_has_its_report():
    built = build(SCALE + SCALE.replace("scale", "again").replace("*=", "+="))
    assert built.entries == ("scale", "again")
    with pytest.raises(ValueError, match="2 kernels: scale, again"):
        _ = built.entry


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"source": "nave"}, "no rung 'nave'"),
        ({"source": "naive", "macros": {"BM": 3}}, "naive has no macro BM; it has BLOCK"),
        ({"source": "naive", "arch": 30}, "no architecture sm_30"),
        ({"source": "cpu"}, "not a CUDA file"),
    ],
)
def test_what_cannot_be_built_is_a_value_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        build(**arguments)


TWICE = """
    ld.shared.v4.f32 \t{%f1, %f2, %f3, %f4}, [%r1+16];
    ld.shared.v2.f32 \t{%f5, %f6}, [%r1+24];
"""
HARMLESS = """
    ld.shared.v4.f32 \t{%f1, %f2, %f3, %f4}, [%r1+16];
    ld.shared.v2.f32 \t{%f5, %f6}, [%r2+24];
    ld.shared.f32 \t%f7, [%r1+28];
    ld.shared.v4.f32 \t{%f1, %f2, %f3, %f4}, [%r1+16];
    st.shared.f32 \t[%r3], %f1;
    ld.shared.v2.f32 \t{%f5, %f6}, [%r1+24];
"""


def test_numbers_loaded_twice_are_seen():
    assert rereads(TWICE) == 1
    assert rereads(HARMLESS) == 0
    assert rereads(TWICE.replace("shared", "global.nc").replace("%r1", "%rd1")) == 1


@pytest.mark.parametrize(
    ("bad", "compiles", "kept"),
    [({1, 2}, 3, False), ({1, 2, 3, 4, 5}, 3, True), (set(), 1, False)],
)
def test_a_compile_that_loads_twice_is_made_again_until_that_is_no_accident(
    empty_cache, monkeypatch, bad, compiles, kept
):
    real, made = module.compiler().compile, []

    def compile(self, *arguments):
        done = real(*arguments)
        made.append(done)
        twice = done.ptx.replace("ret;", TWICE + "ret;")
        return replace(done, ptx=twice) if len(made) in bad else done

    monkeypatch.setattr(type(module.compiler()), "compile", compile)
    assert ("%f5, %f6" in build(SCALE, arch=80).ptx) == kept
    assert len(made) == compiles


def test_a_second_build_comes_from_the_cache(empty_cache):
    first, second = build(SCALE, arch=80), build(SCALE, arch=80)
    assert not first.cached and second.cached
    assert (first.ptx, first.cubin, first.reports) == (second.ptx, second.cubin, second.reports)
    assert not build(SCALE, arch=90).cached
    named = SCALE.replace("factor;", "factor * USED;")
    assert not build(named, {"USED": 1}, arch=80).cached
    assert not build(named, {"USED": 2}, arch=80).cached
    again = build(SCALE, {"UNUSED": 1}, arch=80)  # no other kernel, so no other build
    assert again.cached and again.macros == {"UNUSED": 1}
    assert not build(SCALE + " ", arch=80).cached


def test_a_changed_header_is_compiled_again(empty_cache, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    source = '#include "outer.cuh"\nextern "C" __global__ void f(int* a) { a[0] = VALUE; }\n'
    (tmp_path / "outer.cuh").write_text('#include "inner.cuh"\n')
    (tmp_path / "inner.cuh").write_text("#define VALUE 41\n")
    assert "41" in build(source).ptx
    (tmp_path / "inner.cuh").write_text("#define VALUE 97\n")
    again = build(source)
    assert not again.cached and "97" in again.ptx


def test_a_damaged_cache_entry_is_built_again(empty_cache):
    build(SCALE, arch=80)
    (path,) = empty_cache.glob("*.json.gz")
    whole = path.read_bytes()
    stored = json.loads(gzip.decompress(whole))
    damaged = [
        {"ptx": "x"},
        {**stored, "ptx": ""},
        {**stored, "cubin": ""},
        {**stored, "reports": {}},
    ]
    for damage in (b"", whole[:99], *(gzip.compress(json.dumps(d).encode()) for d in damaged)):
        path.write_bytes(damage)
        again = build(SCALE, arch=80)
        assert not again.cached and again.ptx == stored["ptx"] and again.report.registers > 0


def test_neither_time_nor_place_of_the_headers_is_part_of_the_key(
    empty_cache, tmp_path, monkeypatch
):
    first = build(SCALE, arch=80)
    folders = include_folders((module.compiler().major, module.compiler().minor))
    moved = tuple(tmp_path / f"copy{i}" for i in range(len(folders)))
    for link, folder in zip(moved, folders, strict=True):
        link.symlink_to(folder)
    monkeypatch.setattr(module, "include_folders", lambda version: moved)
    assert build(SCALE, arch=80).cached
    monkeypatch.setattr(module, "version_of", lambda folders: (12, 0))
    assert not build(SCALE, arch=80).cached and first.ptx


def test_builds_carried_from_another_machine_need_no_compiler(empty_cache, tmp_path, monkeypatch):
    monkeypatch.setenv("GEMM_BUILDS", str(tmp_path / "carried"))
    made = build("tiled", {"BLOCK": 16}, arch=80)

    def none():
        raise ImportError("no NVRTC")

    monkeypatch.setattr(module, "compiler", none)
    carried = build("tiled", {"BLOCK": 16}, arch=80)
    assert carried.cached and carried.cubin == made.cubin
    with pytest.raises(ImportError):
        build("tiled", {"BLOCK": 8}, arch=86)


def test_a_full_disk_leaves_nothing_behind(empty_cache, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "replace", full)
    assert build(SCALE, arch=80).ptx
    assert list(empty_cache.iterdir()) == []


def test_the_oldest_builds_are_forgotten(tmp_path):
    for age in range(9):
        (tmp_path / f"{age}.json").write_text("{}")
        os.utime(tmp_path / f"{age}.json", (1000 - age, 1000 - age))
    module._prune(tmp_path, keep=4)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{age}.json" for age in range(4)]


def _registers(_):
    return build(SCALE, arch=80).report.registers


def test_processes_that_build_the_same_kernel_do_not_meet(empty_cache):
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert len(set(pool.map(_registers, range(6)))) == 1
    assert len(list(empty_cache.glob("*.json.gz"))) == 1
    assert not list(empty_cache.glob("*.part"))
