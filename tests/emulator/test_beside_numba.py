"""Six kernels beside Numba's simulator: right on both, and a rate for each."""

import numpy as np
import pytest
from cuda_source import compile_ptx

import emulator
from emulator import beside_numba

SIX = {"saxpy", "transpose", "sums", "histogram", "stencil", "tiled"}


@pytest.mark.parametrize("compiled", [False, True])
def test_each_of_the_six_is_right_on_the_emulator(compiled, monkeypatch, tmp_path):
    if compiled:  # the source that the sample was made of
        source = beside_numba.PTX.with_suffix(".cu").read_text(encoding="utf-8")
        monkeypatch.setattr(beside_numba, "PTX", tmp_path / "six.ptx")
        beside_numba.PTX.write_text(compile_ptx(source), encoding="utf-8")
    rates = beside_numba.emulated(32)
    assert set(rates) == SIX and min(rates.values()) > 0


def test_a_wrong_result_is_no_rate():
    text = beside_numba.PTX.read_text(encoding="utf-8")
    case, name = beside_numba.cases(32)["stencil"], "stencil"
    assert "0f3F000000" in text  # the half in the middle
    args = case.fresh()
    emulator.Module(text.replace("0f3F000000", "0f3F000001")).launch(
        name, case.grid, case.block, args
    )
    case.check(args)  # the last digit
    args = case.fresh()
    emulator.Module(text.replace("0f3F000000", "0f3E000000")).launch(
        name, case.grid, case.block, args
    )
    with pytest.raises(AssertionError):
        case.check(args)


def test_the_table_says_where_the_simulator_is_missing(monkeypatch):
    monkeypatch.setattr(beside_numba, "emulated", lambda: dict.fromkeys(SIX, 2e6))
    for there, said in ((None, "not installed"), (dict.fromkeys(SIX, 4e3), "500x")):
        monkeypatch.setattr(beside_numba, "simulated", lambda there=there: there)
        assert beside_numba.table().count(said) == 6


def test_numba_s_simulator_agrees():
    pytest.importorskip("numba")
    rates = beside_numba.simulated()
    assert set(rates) == SIX and np.isfinite(list(rates.values())).all()
