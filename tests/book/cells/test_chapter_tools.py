"""What chapters call to show a trace, a report or a changed kernel."""

import numpy as np
import pytest

import kernels
from book.cells import memory, reports, variants
from kernels.check import Checked
from kernels.gemm import gemm
from kernels.settings import Configuration

naive = kernels.find("naive")


@pytest.fixture(scope="module")
def runs():
    A, B = np.random.default_rng(5).random((2, 64, 64), np.float32)
    return {name: gemm(name, A, B, machine="emulator") for name in ("uncoalesced", "tiled")}


def test_traffic_is_told_apart_by_matrix(runs):
    found = memory.traffic(runs["uncoalesced"].trace)
    assert {name: row.sectors_per_request for name, row in found.items()} == {
        "load A": 32,
        "load B": 1,
        "store C": 32,
    }
    assert found["store C"].instructions == 64 * 64 / 32


def test_shared_traffic_is_counted_in_wavefronts(runs):
    found = memory.traffic(runs["tiled"].trace)
    assert found["load shared"].wavefronts_per_request == 1
    assert found["load A"].wavefronts == 0
    assert found["load A"].sectors == 2 * 2 * 2 * 32 * 4


def test_the_table_shows_what_there_is(runs, tables):
    memory.show(plain=runs["uncoalesced"].trace)
    memory.show(tiled=runs["tiled"].trace)
    heads = [dict(table.columns) for table in tables]
    assert "wavefronts" not in heads[0] and "wavefronts per request" in heads[1]
    assert len(tables[1].rows) == 5
    assert tables[0].rows[0] == ("plain", "load B", "8,192", "8,192", "1")


def test_a_first_access_has_the_addresses_of_its_lanes(runs):
    access = memory.first(runs["uncoalesced"].trace, "load A")
    assert np.diff(access.addresses).tolist() == [64 * 4] * 31
    with pytest.raises(KeyError, match="store C"):
        memory.first(runs["uncoalesced"].trace, "load shared")


def test_every_recorded_access_of_a_kind(runs):
    found = memory.every(runs["uncoalesced"].trace, "load A")
    assert len(found) > 32
    assert {len(access.sectors) for access in found} == {32}


def test_a_variant_is_the_rung_with_its_words_changed():
    A, B = np.random.default_rng(6).random((2, 40, 40), np.float32)
    built = variants.build("naive", "doubled", ("alpha * sum", "2.0f * alpha * sum"))
    got = gemm("naive", A, B, machine="emulator", built=built).C
    np.testing.assert_allclose(got, 2 * (A @ B), rtol=1e-5)


def test_a_change_that_changes_nothing_is_an_error():
    with pytest.raises(ValueError, match="does not contain"):
        variants.source("naive", ("no such words", ""))


def test_one_of_several_statements_is_taken_out():
    assert variants.without("a;b;a;c", "a;", 0) == ("a;b;a;c", "b;a;c")
    assert variants.without("a;b;a;c", "a;", -1) == ("a;b;a;c", "a;b;c")
    with pytest.raises(ValueError, match="does not contain"):
        variants.without("a;b;", "c;", 0)
    with pytest.raises(IndexError):
        variants.without("a;b;", "a;", 1)


def test_the_compiler_table_has_a_line_for_each_rung(capsys):
    reports.compiled("naive", "tiled")
    head, naive, tiled = capsys.readouterr().out.splitlines()
    assert head.startswith("sm_80")
    assert naive.split()[0] == "naive"
    assert tiled.split()[2] == "8,192"


def test_the_checker_table_tells_the_verdict(capsys):
    reports.checked("naive", sizes=[(5, 7, 3)])
    head, naive = capsys.readouterr().out.splitlines()
    assert head.split()[-1] == "verdict"
    assert naive.split()[0] == "naive"
    assert naive.split()[-1] == "ok"
    assert len(naive) <= 88


def test_what_is_checked_is_the_setting_that_pages_time(monkeypatch, capsys):
    timed = naive.resolve({"BLOCK": 8})

    def wrong(rung, macros, machine, sizes, arch):
        assert (macros, sizes, arch) == (timed, [(5, 7, 3)], 90)
        return Checked(rung.name, macros, machine, str(rung.types(macros)), 1, problem="planted")

    chosen = Configuration("naive", timed, "searched")
    monkeypatch.setattr(reports, "check_setting", wrong)
    monkeypatch.setattr(kernels, "configuration", lambda *case: chosen)
    reports.right("naive", sizes=[(5, 7, 3)])
    assert "planted" in capsys.readouterr().out
