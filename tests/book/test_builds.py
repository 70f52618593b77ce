"""What the book ships for machines without a compiler: `results/builds/`, one file for each page."""

import json
import lzma
import os
import subprocess
import sys

import pytest

import kernels
from book import builds, chapters
from kernels import shipped
from kernels.build import build, key
from kernels.gemm import arch_on_emulator

NO_COMPILER = os.environ | {"GEMM_COMPILER": "none", "CUDA_VISIBLE_DEVICES": ""}
MOST_BYTES = 2304 * 1024  # 2 MiB, and a quarter for the part on Blackwell


def without_compiler(code: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=chapters.ROOT,
        env=NO_COMPILER,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def there_are():
    return shipped.of_folder(shipped.BUILDS)


@pytest.mark.parametrize("page", chapters.paths(), ids=lambda page: page.stem)
def test_the_builds_of_each_page_are_of_its_code_and_of_the_kernels_as_they_are(page, there_are):
    problem = builds.problem(page, there_are)
    assert problem is None, f"{problem}: run python -m book.builds book/{page.name}"


def test_all_builds_together_are_small():
    assert sum(path.stat().st_size for path in shipped.BUILDS.glob("*.xz")) < MOST_BYTES


@pytest.mark.parametrize("name", ["tiled", "async_pipeline", "wgmma_cluster"])
def test_a_shipped_build_is_what_the_compiler_makes(name):
    """Of a rung alone, one with headers of CUDA C++, and one of Hopper: notebooks are tested with what is shipped."""
    arch = arch_on_emulator(name)
    stored = shipped.shipped()[key(name, arch=arch)]
    made = build(name, arch=arch)
    assert (stored["ptx"], stored["arch"]) == (made.ptx, made.arch)
    (report,) = stored["reports"].values()
    assert report["registers"] == made.report.registers


def test_all_builds_are_of_one_compiler_which_is_here(there_are):
    compilers = {one["compiler"] for one in there_are.values() if "refused" not in one}
    assert compilers == {build("naive", arch=80).compiler}


def test_without_a_compiler_a_rung_runs_and_what_is_not_shipped_is_said_in_one_line():
    done = without_compiler(
        """
import numpy as np, kernels
from kernels.errors import NoCompiler
A = np.ones((32, 32), np.float32)
assert (kernels.gemm("naive", A, A, machine="emulator").C == 32).all()
for attempt in (lambda: kernels.build('extern "C" __global__ void own() {}', arch=80),
                lambda: kernels.shipped.machine_code(kernels.build("naive", arch=80))):
    try:
        attempt()
        raise SystemExit("it built something")
    except NoCompiler as error:
        (line,) = error._render_traceback_()
        assert "Colab" in line and "\\n" not in line, line
"""
    )
    assert done.returncode == 0, done.stderr[-600:] + done.stdout


def test_a_changed_kernel_a_changed_cell_and_a_build_that_is_gone_are_seen(tmp_path, monkeypatch):
    page = chapters.ROOT / "book" / "03_one_thread_one_output.ipynb"
    there, every = shipped.read(builds.file_of(page)), shipped.of_folder(shipped.BUILDS)
    there = there | {"builds": {name: every[name] for name in there["needs"]}}
    monkeypatch.setattr(shipped, "BUILDS", tmp_path)
    assert builds.problem(page) == "there are none"

    def written(**changed):
        text = json.dumps(there | changed).encode()
        builds.file_of(page).write_bytes(lzma.compress(text, preset=0))
        return builds.problem(page)

    assert written() is None
    changed = "its code cells, or the settings of rungs, changed"
    assert written(code="0") == changed
    assert written(needs=["1"]) == "1 of its builds are no longer there"
    some = there["files"][0]
    other = {**there["builds"], "0" * 64: there["builds"][some]}
    assert written(builds=other, files=["0" * 64]) == f"{there['builds'][some]['name']} changed"


def test_a_setting_that_a_search_found_is_seen_and_a_new_date_is_not(tmp_path, monkeypatch):
    page = chapters.ROOT / "book" / "21_wgmma.ipynb"
    rows = json.loads(builds.FILE.read_text(encoding="utf-8"))["settings"]
    assert builds.problem(page) is None
    monkeypatch.setattr(builds, "FILE", tmp_path / "settings.json")
    for changed, seen in (({"recorded": "2027"}, False), ({"macros": {"BM": 64}}, True)):
        builds.FILE.write_text(json.dumps({"settings": [rows[0] | changed, *rows[1:]]}))
        builds._settings.cache_clear()
        assert bool(builds.problem(page)) == seen
    builds._settings.cache_clear()


def test_each_build_is_kept_once_and_again_where_its_machine_code_is_read(tmp_path, monkeypatch):
    first, second = chapters.paths()[:2]
    monkeypatch.setattr(shipped, "BUILDS", tmp_path)
    one = {"name": "a.cu", "arch": "80", "ptx": "x", "cubin": ""}
    two = {"name": "b.cu", "arch": "80", "ptx": "y", "cubin": ""}
    shipped.write(builds.file_of(first), "", "kl", "", {"k": one, "l": two})
    shipped.write(builds.file_of(second), "", "kl", "", {"l": two, "k": one | {"cubin": "AA=="}})
    builds.share()
    assert set(shipped.read(builds.file_of(second))["builds"]) == {"k"}
    every = shipped.of_folder(tmp_path)
    assert set(every) == {"k", "l"} and every["k"]["cubin"] == "AA=="
    before = builds.file_of(first).read_bytes()
    shipped.write(builds.file_of(first), "", "lk", "", {"l": two, "k": one})
    assert builds.file_of(first).read_bytes() == before  # the same builds, the same bytes


def test_a_build_that_was_read_is_noted_while_builds_are_collected(tmp_path, monkeypatch):
    monkeypatch.setenv("GEMM_BUILDS", str(tmp_path))
    made = kernels.build("naive", arch=80)
    assert builds._collected(tmp_path)[key("naive", arch=80)]["cubin"] == ""
    shipped.machine_code(made)
    assert builds._collected(tmp_path)[key("naive", arch=80)]["cubin"] != ""


def test_what_the_compiler_refused_is_shipped_too(tmp_path, monkeypatch):
    wrong = 'extern "C" __global__ void f() { int x = y; }'
    monkeypatch.setenv("GEMM_BUILDS", str(tmp_path))
    with pytest.raises(kernels.BuildError) as told:
        kernels.build(wrong, arch=80)
    stored = builds._collected(tmp_path)
    assert set(stored) == {key(wrong, arch=80)}

    def none():
        raise ImportError("no NVRTC")

    module = sys.modules["kernels.build"]
    monkeypatch.setattr(module, "compiler", none)
    monkeypatch.setattr(module, "shipped", lambda: stored)
    with pytest.raises(kernels.BuildError) as again:
        kernels.build(wrong, arch=80)
    assert str(again.value) == str(told.value)
    assert again.value.diagnostics == told.value.diagnostics
