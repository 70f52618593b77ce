"""Packing Hopper's trials: what TMA cannot copy is refused here, and the bench needs no copy of this repository."""

import ast
import json
import sys
from pathlib import Path

import pytest

from kernels.rungs import find
from measure import hopper_lab, hopper_pack


@pytest.mark.parametrize(
    ("rung", "size", "words"),
    [
        ("wgmma", [64, 64, 100], "a row of A is 100 elements of 2 bytes"),
        ("wgmma", [64, 100, 64], "so N must be a multiple of 8"),
        ("wgmma_fp8", [64, 64, 40], "so K must be a multiple of 16"),
        ("wgmma_fp8", [64, 100, 64], None),  # B is K-major, so its rows are of K
        ("mma_sync", [64, 100, 100], None),  # no TMA
    ],
)
def test_rows_that_tma_cannot_copy_are_refused(rung, size, words):
    job = {"rung": rung, "time": [size]}
    if words is None:
        hopper_pack.check_rows(job, find(rung))
        return
    with pytest.raises(ValueError, match=words):
        hopper_pack.check_rows(job, find(rung))


def test_a_refused_job_is_refused_before_anything_is_compiled(tmp_path):
    jobs = tmp_path / "jobs.json"
    jobs.write_text(json.dumps([{"rung": "wgmma"}, {"rung": "wgmma", "check": [[64, 64, 1]]}]))
    with pytest.raises(ValueError, match="wgmma, 64x64x1"):
        hopper_pack.pack(tmp_path / "packed", jobs)
    assert list((tmp_path / "packed").iterdir()) == []


def test_the_bench_imports_nothing_of_this_repository():
    tree = ast.parse(Path(hopper_lab.__file__).read_text(encoding="utf-8"))
    found = {
        (node.module or "." if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }  # fmt: skip
    beside = {"torch", "cuda", "encoded_maps", "tensor_map"}  # installed there, or copied with it
    assert found - beside <= set(sys.stdlib_module_names)
    assert all(node.level == 0 for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
