"""The program that a reader of "One thread, one output" compiles alone."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import kernels
from book import chapters

PROGRAM = chapters.ROOT / "book/samples/first_program.cu"
TEXT = PROGRAM.read_text(encoding="utf-8")


def test_its_kernel_multiplies():
    kernel = 'extern "C" ' + TEXT[TEXT.index("__global__") : TEXT.index("int main")]
    M, N, K = 33, 40, 17
    A, B = np.random.default_rng(1).random((2, 40, 40), np.float32)
    A, B, C = A[:M, :K].copy(), B[:K, :N].copy(), np.full((M, N), np.nan, np.float32)
    args = [A, B, C, np.int32(M), np.int32(N), np.int32(K)]
    built = kernels.build(kernel, arch=80, name="naive")
    run = kernels.launch(built, "naive", (2, 2), (32, 32), args, machine="emulator")
    np.testing.assert_allclose(C, A @ B, rtol=1e-5)
    assert not run.hazards


def test_every_call_of_the_runtime_is_checked():
    calls = re.findall(r".*\bcuda(?:Malloc|Memcpy|Event[A-Z]\w+|GetLastError)\(.*", TEXT)
    assert len(calls) == 13
    assert [line for line in calls if "CHECK(cuda" not in line] == []


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not here")
def test_it_compiles(tmp_path):
    subprocess.run(["nvcc", "-c", str(PROGRAM), "-o", str(tmp_path / "a.o")], check=True)
