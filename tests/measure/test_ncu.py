"""How Nsight Compute is called, and what is read from its output."""

import sys

import pytest

from kernels import UnsupportedGPU
from measure import ncu

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
OUTPUT = f"""==PROF== Connected to process 321
"ID","Process ID","Kernel Name","{SECTORS}","smsp__none.sum"
"","","","sector",""
"0","321","gemm_naive","1,310,720","n/a"
==PROF== Disconnected
"""


def install(folder, monkeypatch, script):
    """An `ncu` that stands first on the PATH."""
    program = folder / "ncu"
    program.write_text(f"#!{sys.executable}\n{script}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_launch_asked_for_is_the_one_that_is_counted(tmp_path, monkeypatch):
    install(
        tmp_path,
        monkeypatch,
        f"import sys, pathlib; pathlib.Path({str(tmp_path / 'said')!r}).write_text(' '.join(sys.argv))\n"
        f"print({OUTPUT!r})",
    )
    assert ncu.available()
    found = ncu.count("gemm_naive", [SECTORS, "smsp__none.sum"], ["measure.limits", "x"], launch=1)
    assert found == {SECTORS: 1310720.0}
    said = (tmp_path / "said").read_text(encoding="utf-8")
    assert "--kernel-name regex:^gemm_naive$ --launch-skip 1 --launch-count 1" in said
    assert f"--metrics {SECTORS},smsp__none.sum {sys.executable} -m measure.limits x" in said


def test_what_ncu_says_is_passed_on_when_it_counts_nothing(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "print('==ERROR== no permission')")
    with pytest.raises(UnsupportedGPU, match="counted nothing: ==ERROR== no permission"):
        ncu.count("gemm_naive", [SECTORS], ["measure.limits"])


def test_without_ncu_it_is_asked_for_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not ncu.available()
    with pytest.raises(UnsupportedGPU, match="ncu is not on the PATH"):
        ncu.count("gemm_naive", [SECTORS], ["measure.limits"])


def test_the_first_kernel_is_read_and_words_are_left_out():
    assert ncu.parse(OUTPUT) == {SECTORS: 1310720.0}
    assert ncu.parse("==ERROR== no permission\n") == {}
