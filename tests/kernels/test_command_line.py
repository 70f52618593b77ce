"""`python -m kernels`: tables, exit status, clear errors."""

import dataclasses

import pytest

from kernels.__main__ import main


def test_build_prints_a_row_per_architecture(capsys):
    assert main(["build", "naive", "tiled", "--arch", "75,90"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["rung", "setting", "arch", "registers"]
    assert len(lines) == 2 + 2 + 2 * 2  # header; naive; tiled with both inputs


def test_build_fails_on_a_spill(monkeypatch, capsys):
    module = __import__("sys").modules["kernels.__main__"]
    whole = module.build

    def starved(rung, macros, arch):
        built = whole(rung, macros, arch)
        spilling = dataclasses.replace(built.report, spill_stores=8)
        return dataclasses.replace(built, reports={built.entry: spilling})

    monkeypatch.setattr(module, "build", starved)
    assert main(["build", "coarsened_2d", "--arch", "80"]) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["build", "nave"], "no rung 'nave'"),
        (["build", "naive", "-D", "BM=4"], "naive has no macro BM"),
        (["build", "naive", "--arch", "31"], "no architecture sm_31"),
        (["tune", "naive"], "declares no space"),
    ],
)
def test_errors_are_one_clear_line(words, message, capsys):
    assert main(words) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_wrong_size_is_a_usage_error(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--size", "4x4"])


def test_check_exits_1_when_a_rung_is_wrong(monkeypatch, capsys):
    module = __import__("sys").modules["kernels.check"]
    assert main(["check", "cpu"]) == 0
    monkeypatch.setattr(module.cpu, "blas", lambda A, B, C, alpha, beta: A @ B)
    assert main(["check", "cpu"]) == 1
    assert "WRONG" in capsys.readouterr().out
