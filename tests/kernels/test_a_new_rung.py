"""Adding a rung is adding its `.cu` file and its row: tried in a copy of the repository."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import limited

ROOT = Path(__file__).resolve().parents[2]
ROW = """    Rung(
        "two_rows", 99, "a thread computes two outputs, one below the other",
        macros={"BLOCK": 16},
        threads=square_block,
        grid=lambda M, N, BLOCK, **_: (ceil_div(N, BLOCK), ceil_div(M, 2 * BLOCK), 1),
        space={"BLOCK": (8, 16)},
    ),
"""
SOURCE = """// two_rows: a thread computes two outputs, one below the other.
// Changed from naive: twice the work per thread.

#ifndef BLOCK
#define BLOCK 16
#endif

extern "C" __global__ void __launch_bounds__(BLOCK * BLOCK)
    gemm_two_rows(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                  float alpha, float beta) {
    const int col = blockIdx.x * BLOCK + threadIdx.x;
    for (int half = 0; half < 2; ++half) {
        const int row = (2 * blockIdx.y + half) * BLOCK + threadIdx.y;
        if (row >= M || col >= N) continue;
        float sum = 0.0f;
        // [compute]
        for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
        // [/compute]
        C[row * N + col] = alpha * sum + (beta != 0.0f ? beta * C[row * N + col] : 0.0f);
    }
}
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A copy with the new rung in it: the two changes that CONTRIBUTING.md names, and no other."""
    root = tmp_path_factory.mktemp("copy")
    for room in ("kernels", "measure", "figures", "emulator", "results"):
        shutil.copytree(ROOT / room, root / room, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "kernels" / "99_two_rows.cu").write_text(SOURCE)
    table = root / "kernels" / "rungs.py"
    text = table.read_text(encoding="utf-8")
    last = '    Rung("cublas", None,'
    assert text.count(last) == 1
    table.write_text(text.replace(last, ROW + last))
    return root


def run(repository, *words):
    done = limited.run([sys.executable, "-m", *words], 300, cwd=repository)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("kernels check two_rows --size 40x50x30 --machine emulator", "1 of 1 right"),
        ("kernels build two_rows --arch 75,90", "two_rows"),
        ("kernels source two_rows compute", "sum += A[row * K + k]"),
        ("measure compare two_rows --size 32", "global requests, loads"),
        ("measure tune two_rows --arch 80 --jobs 1", "BLOCK"),
        ("measure readme", "README.md"),
    ],
)
def test_every_command_knows_it(repository, command, words):
    assert words in run(repository, *command.split())


def test_it_stands_in_the_ladder_s_readme(repository):
    run(repository, "measure", "readme")
    page = (repository / "kernels" / "README.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if "99_two_rows.cu" in line)
    assert "one below the other" in row and "not recorded" in row


def test_a_wrong_one_is_found(repository):
    source = repository / "kernels" / "99_two_rows.cu"
    source.write_text(SOURCE.replace("k < K; ++k", "k < K - 1; ++k"))
    done = subprocess.run(
        [sys.executable, "-m", "kernels", "check", "two_rows", "--size", "40x50x30"],
        cwd=repository, capture_output=True, text=True,
    )  # fmt: skip
    source.write_text(SOURCE)
    assert done.returncode == 1 and "WRONG" in done.stdout
