"""The autotuner's space, what it drops, and what it remembers."""

import json
from types import SimpleNamespace

import pytest

from kernels import RUNGS, find, gpu
from kernels.build import Report
from measure import tune

module = __import__("sys").modules["measure.tune"]
TUNABLE = ("coarsened_1d", "warp_tiled", "mma_tf32", "mma_multistage")


@pytest.mark.parametrize("name", TUNABLE)
def test_the_space_holds_the_default_and_nothing_invalid(name):
    rung = find(name)
    found = module.settings(rung)
    assert len(found) == len({tuple(s.items()) for s in found}) > 1
    assert all(rung.valid(**s) for s in found)
    chosen = {macro: rung.macros[macro] for macro in rung.space}
    assert any(all(s[k] == v for k, v in chosen.items()) for s in found), "default not in space"


def test_a_fixed_macro_stays():
    found = module.settings("coarsened_1d", {"BM": 64})
    assert found and {s["BM"] for s in found} == {64}


@pytest.mark.parametrize("rung", [r for r in RUNGS.values() if r.path])
def test_every_setting_that_the_tuner_tries_fulfils_the_needs(rung):
    for macros in [rung.resolve(s) for s in rung.configurations()] + module.settings(rung):
        if all(macros[x] >= macros[y] for x, y in (("BM", "WM"), ("BN", "WN")) if y in macros):
            rung.check_needs(macros)


def judged(report=None, macros=None, arch="80", rung="coarsened_1d"):
    rung = find(rung)
    build = SimpleNamespace(
        reports={rung.entry: report}, spills=report.spill_stores + report.spill_loads
    )
    return module._judge(rung, rung.resolve(macros), build, arch)


def test_what_cannot_run_well_is_dropped_with_the_reason():
    assert judged(Report(registers=40)).dropped == ""
    assert "spills 24 bytes" in judged(Report(40, 4096, 16, 8)).dropped
    assert "200000 bytes of shared memory" in judged(Report(40, 200000)).dropped
    assert "no block fits: registers" in judged(Report(255)).dropped
    assert "4096 threads" in judged(Report(40), {"BM": 128, "BN": 128, "TM": 4}).dropped
    rung = find("coarsened_1d")
    assert "does not compile: boo" in module._judge(rung, rung.resolve(), "boo\nhoo", "80").dropped


@pytest.mark.skipif(gpu() is not None, reason="a GPU is here")
def test_without_a_gpu_the_space_is_compiled_and_reported(capsys):
    found = tune("coarsened_1d", arch=80, fixed={"BM": 64, "BN": 64, "BK": 8}, jobs=1)
    kept = [c for c in found if not c.dropped]
    assert kept and all(c.ms is None and c.occupancy.blocks >= 1 for c in kept)
    occupancies = [c.occupancy.fraction for c in kept]
    assert occupancies == sorted(occupancies, reverse=True)
    printed = capsys.readouterr().out
    assert "not timed" in printed and "registers" in printed


def test_a_rung_without_a_space_says_so():
    with pytest.raises(ValueError, match="naive declares no space"):
        tune("naive")


def test_sizes_of_a_class_share_a_setting():
    assert module.size_class((4096, 4096, 4096)) == "4096"
    assert module.size_class((4000, 4200, 4100)) == "4096"
    assert module.size_class((1024, 1024, 8192)) == "2048"


def test_the_best_is_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "gpu", lambda: SimpleNamespace(slug="some-gpu"))
    rung = find("coarsened_1d")
    slow, fast = (
        module.Candidate(rung.resolve({"TM": tm}), ms=ms, tflops=1.0)
        for tm, ms in ((4, 2.0), (8, 1.0))
    )
    assert module.best(rung, 4096) is None
    module._remember(rung, [slow, fast], (4096, 4096, 4096))
    assert module.best(rung, 4000)["TM"] == 8
    assert module.best(rung, 512)["TM"] == 8  # the nearest class that was tuned


def test_what_was_recorded_serves_until_this_machine_has_tuned(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    monkeypatch.setattr(module, "gpu", lambda: SimpleNamespace(slug="some-gpu"))
    rung = find("coarsened_1d")
    rows = [
        {"rung": name, "macros": {**{m: rung.macros[m] for m in rung.space}, "TM": tm}, "ms": ms}
        for name, tm, ms in (
            ("coarsened_1d", 4, 2.0),
            ("coarsened_1d", 8, 1.0),
            ("coarsened_1d", 16, None),
            ("coarsened_2d", 2, 0.5),
        )
    ]
    (tmp_path / "tune-some-gpu.json").write_text(json.dumps({"size": 4096, "rows": rows}))
    assert module.best(rung, 4096)["TM"] == 8
    module._remember(
        rung, [module.Candidate(rung.resolve({"TM": 4}), ms=1.0, tflops=1.0)], (4096,) * 3
    )
    assert module.best(rung, 4096)["TM"] == 4
