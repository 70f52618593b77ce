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


def test_build_fails_where_an_architecture_lacks_the_shared_memory(capsys):
    words = "build mma_multistage -D BM=128 -D BN=256 -D BK=64 -D STAGES=4 --arch"
    assert main([*words.split(), "75"]) == 1
    printed = capsys.readouterr().out
    assert "196608 bytes of shared memory, a block of sm_75 has 65536" in printed
    assert main([*words.split(), "90"]) == 0


def test_build_and_check_take_the_searched_configurations_or_the_defaults(capsys):
    assert main(["build", "coarsened_1d", "--arch", "90"]) == 0
    assert "TM=16" in capsys.readouterr().out
    assert main(["build", "coarsened_1d", "--arch", "90", "--defaults"]) == 0
    assert "TM=16" not in capsys.readouterr().out


def test_an_interrupt_ends_in_one_line(monkeypatch, capsys):
    module = __import__("sys").modules["kernels.__main__"]

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "build", interrupted)
    assert main(["build", "naive", "--arch", "80"]) == 130
    assert capsys.readouterr().err == "kernels build: stopped\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["build", "nave"], "no rung 'nave'"),
        (["build", "naive", "-D", "BM=4"], "naive has no macro BM"),
        (["build", "naive", "--arch", "31"], "no architecture sm_31"),
        (["check", "naive", "--arch", "10"], "no architecture"),
    ],
)
def test_errors_are_one_clear_line(words, message, capsys):
    assert main(words) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


@pytest.mark.parametrize(
    "words",
    [
        "check --size 4x4",
        "check naive --size 0",
        "check --size -5",
        "build --arch x",
        "build -D =3",
    ],
)
def test_typing_mistakes_that_the_parser_sees(words, capsys):
    with pytest.raises(SystemExit) as left:
        main(words.split())
    assert left.value.code == 2
    assert "lambda" not in capsys.readouterr().err


def test_source_prints_a_rung_or_its_part(capsys):
    assert main(["source", "naive"]) == 0
    assert 'extern "C" __global__' in capsys.readouterr().out
    assert main(["source", "tiled", "load"]) == 0
    assert "__syncthreads();" in capsys.readouterr().out
    assert main(["source", "tiled", "loaded"]) == 1
    assert "has no part 'loaded'; it has" in capsys.readouterr().err


def test_check_exits_1_when_a_rung_is_wrong(monkeypatch, capsys):
    module = __import__("sys").modules["kernels.check"]
    assert main(["check", "cpu"]) == 0
    monkeypatch.setattr(module.cpu, "blas", lambda A, B, C, alpha, beta: A @ B)
    assert main(["check", "cpu"]) == 1
    assert "WRONG" in capsys.readouterr().out
