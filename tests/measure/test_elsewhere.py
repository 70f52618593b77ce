"""Blackwell kernels of others: what the command says of right, wrong and refused ones."""

from types import SimpleNamespace

import numpy as np
import pytest

import emulator
from measure import elsewhere


def _run(error):
    wanted = np.array([1.0, -4.0])
    return lambda: (wanted + np.array([0, error]), wanted, SimpleNamespace(hazards=[]))


def test_an_outcome_says_right_wrong_and_what_was_missing(capsys):
    def refused():
        raise emulator.Unsupported("tcgen05.mma.ws is not supported", 7, "tcgen05.mma.ws")

    runs = {"a": _run(0.001), "b": _run(1.0), "c": refused}
    found = [elsewhere._outcome("some", name, run) for name, run in runs.items()]
    assert [one.said for one in found] == ["right", "wrong", "refused"]
    assert found[1].error == 0.25
    assert elsewhere.show(found) == 2
    assert "tcgen05.mma.ws is not supported" in capsys.readouterr().out


def test_a_path_without_the_kernels_is_named(tmp_path):
    with pytest.raises(ValueError, match="02e_matmul_sm100"):
        list(elsewhere.learn_cuda(tmp_path))


def test_every_version_has_its_own_case():
    cases = elsewhere._learn_cuda_cases()
    assert len({case.name for case in cases}) == len(cases) == 13
    assert all(case.shared <= 227 * 1024 for case in cases)


def test_what_triton_makes_is_right():
    pytest.importorskip("triton")
    found = list(elsewhere.by_triton())
    assert len(found) == 14 and all(one.said == "right" for one in found)
