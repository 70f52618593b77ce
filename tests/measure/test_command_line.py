"""`python -m measure`: what is recorded is shown, and what is typed wrongly ends in one clear line."""

import sys

import pytest

from kernels import gpu
from measure.__main__ import main

no_gpu = pytest.mark.skipif(gpu() is not None, reason="a GPU is here")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("bench naive --size 4095", "4096"),
        ("bench naive --samples 0", "samples"),
        ("bench naive --json /", "no file"),
        ("tune naive", "declares no space"),
        ("tune warp_tiled --jobs -1", "jobs -1"),
        ("tune warp_tiled --size 64 128", "one size"),
        ("compare naive --size 16 32", "one size"),
        ("compare cpu", "not a CUDA kernel"),
        ("limits nave", "no rung"),
        ("limits cpu", "nothing was recorded of cpu"),
    ],
)
def test_typing_mistakes_end_in_one_line(words, said, capsys, monkeypatch):
    monkeypatch.setenv("GEMM_TIMES", "recorded")
    assert main(words.split()) == 1
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


@pytest.mark.parametrize("words", ["sanitize naive", "bench --size 4x4", "check naive"])
def test_typing_mistakes_that_the_parser_sees(words, capsys):
    with pytest.raises(SystemExit) as left:
        main(words.split())
    assert left.value.code == 2


@no_gpu
@pytest.mark.parametrize(
    "command",
    ["torch", "triton", "cute --time", "linear", "shared-clocks", "small-tiles", "record"],
)
def test_what_needs_a_gpu_says_so(command, capsys):
    assert main(command.split()) == 1
    assert "GPU" in capsys.readouterr().err


@no_gpu
@pytest.mark.parametrize("command", ["bench", "limits", "sanitize", "first-call"])
def test_without_a_gpu_what_was_recorded_is_shown(command, capsys):
    assert main([command]) == 0
    assert "H200" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "package"), [("cute", "nvidia-cutlass-dsl"), ("triton --ptx", "triton")]
)
def test_a_compiler_that_is_missing_is_named(command, package, capsys, monkeypatch):
    for module in ("cutlass", "triton"):
        monkeypatch.setitem(sys.modules, module, None)
    assert main(command.split()) == 1
    assert f"pip install {package}" in capsys.readouterr().err


def test_what_has_no_configuration_names_none(capsys, monkeypatch):
    monkeypatch.setenv("GEMM_TIMES", "recorded")
    assert main(["bench", "cublas"]) == 0
    assert ": from the library's own choice" in capsys.readouterr().out
