"""The autotuner's space, what it drops, and what it remembers."""

import json
from itertools import product
from types import SimpleNamespace

import pytest

from kernels import RUNGS, find, gpu, settings
from kernels.build import Report
from kernels.errors import BuildError, NoCompiler
from measure import candidates, tune
from measure.timing import Timing

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
    return candidates._judge(rung, rung.resolve(macros), build, arch)


def test_what_cannot_run_well_is_dropped_with_the_reason():
    assert judged(Report(registers=40)).dropped == ""
    assert "spills 24 bytes" in judged(Report(40, 4096, 16, 8)).dropped
    assert "200000 bytes of shared memory" in judged(Report(40, 200000)).dropped
    assert "no block fits: registers" in judged(Report(255)).dropped
    assert "4096 threads" in judged(Report(40), {"BM": 128, "BN": 128, "TM": 4}).dropped
    rung = find("coarsened_1d")
    assert (
        "does not compile: boo" in candidates._judge(rung, rung.resolve(), "boo\nhoo", "80").dropped
    )


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


def test_macros_that_order_the_work_are_tried_on_the_best_tiles_only():
    rung = find("mma_multistage")
    assert {s["GROUP"] for s in module.settings(rung)} == {rung.macros["GROUP"]}
    late = module.late_settings(rung, rung.resolve({"BM": 128, "BN": 128}))
    assert {(s["GROUP"], s["BLOCKS"]) for s in late} == set(product((1, 4, 8, 16), (132, 264)))
    assert {(s["BM"], s["BN"]) for s in late} == {(128, 128)}
    assert module.late_settings("warp_tiled", find("warp_tiled").macros) == []


def test_each_choice_of_types_is_a_search_of_its_own():
    found = {(task.rung.name, task.types) for task in module.tasks(arch=90)}
    assert {("mma_multistage", "float16->float32"), ("mma_multistage", "float16->float16")} <= found
    assert ("wgmma", "bfloat16->float32") in found
    assert not {name for name, _ in found} & {"naive", "cpu", "cublas"}
    assert "mma_tf32" not in {task.rung.name for task in module.tasks(arch=75)}


class Clockwork:
    """A GPU made of arithmetic: a setting's time is known, a launch moves the clock on."""

    def __init__(self, monkeypatch, tmp_path, ms, wrong=()):
        self.now, self.launched, self.ms, self.wrong = 0.0, [], ms, wrong
        here = SimpleNamespace(name="some GPU", slug="some-gpu", arch=80, sms=132)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setattr(settings, "FILE", tmp_path / "none.json")
        for place in (module, settings):
            monkeypatch.setattr(place, "gpu", lambda: here)
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(module.Bench, "launches", lambda bench, candidate: [candidate])
        monkeypatch.setattr(module, "_one_launch", self.launch)
        monkeypatch.setattr(module, "measure", self.measure)
        monkeypatch.setattr(module, "check_one", self.check)
        monkeypatch.setattr(module, "commit", lambda: "abc")
        monkeypatch.setattr(module, "compiled", self.compiled)
        monkeypatch.setattr(module, "compiled_one", lambda rung, m, _: module.Candidate(dict(m)))

    def launch(self, candidate):
        self.launched.append(dict(candidate.macros))
        self.now += 0.001 * self.ms(candidate.macros)
        return self.ms(candidate.macros)

    def measure(self, competitors, samples, **_):
        return {
            name: Timing((min(self.launch(launches[0]) for _ in range(samples)),))
            for name, launches in competitors.items()
        }

    def check(self, rung, size, macros, *_, **__):
        return SimpleNamespace(ok=macros["TM"] not in self.wrong), []

    def compiled(self, space, arch, jobs=None, seconds=0):
        found = {rung.name: [] for rung, _ in space}
        for rung, macros in space:
            found[rung.name].append(module.Candidate(macros))
        return found


def slow_below_16(macros):
    return 1.0 + (macros["TM"] != 16) + 0.01 * (macros["BM"] + macros["BN"]) / 64


def test_the_fastest_right_setting_wins_with_few_launches(tmp_path, monkeypatch):
    machine = Clockwork(monkeypatch, tmp_path, slow_below_16)
    found = tune("coarsened_1d", 4096, show=False)
    best = settings.configuration("coarsened_1d", 4096)
    assert found[0].macros == best.macros and found[0].checked
    assert best.macros["TM"] == 16 and best.macros["BM"] + best.macros["BN"] == 64 + 32
    assert len(machine.launched) < 12 * len(module.settings("coarsened_1d"))


def test_a_wrong_setting_is_not_remembered_however_fast(tmp_path, monkeypatch):
    Clockwork(monkeypatch, tmp_path, slow_below_16, wrong=(16,))
    found = tune("coarsened_1d", 4096, show=False)
    assert settings.configuration("coarsened_1d", 4096).macros["TM"] in (4, 8)
    assert any("WRONG" in c.dropped for c in found if c.macros["TM"] == 16)


def test_a_search_ends_with_its_time_and_says_what_it_left_out(tmp_path, monkeypatch):
    machine = Clockwork(monkeypatch, tmp_path, lambda macros: 100.0)
    found = tune("coarsened_1d", 4096, show=False, seconds=2.0)
    late = [c for c in found if c.dropped == "the time was over"]
    assert 0 < len(late) < len(found) and machine.now < 8
    assert any(c.checked for c in found), "what was timed is still checked and ranked"


def test_every_class_is_searched_once_and_stored_as_it_is_found(tmp_path, monkeypatch):
    machine = Clockwork(monkeypatch, tmp_path, slow_below_16)
    kept = []
    file = module.search(
        ["coarsened_1d"], ("4096", "8192"), 60.0, keep=lambda rung, size, found: kept.append(size)
    )
    rows = json.loads(file.read_text(encoding="utf-8"))["settings"]
    assert [row["size_class"] for row in rows] == ["4096", "8192"] and len(kept) == 2
    assert all(row["tried"] > 3 and row["gpu"] == "some GPU" for row in rows)
    before = len(machine.launched)
    module.search(["coarsened_1d"], ("4096", "8192"), 60.0)
    assert len(machine.launched) == before
    module.search(["coarsened_1d"], ("4096",), 60.0, again=True)
    assert len(machine.launched) > before


@pytest.mark.parametrize(("gain", "stays"), [(0.5 * module.GAIN, True), (2 * module.GAIN, False)])
def test_what_is_stored_stays_unless_another_is_clearly_faster(tmp_path, monkeypatch, gain, stays):
    ms = {}
    Clockwork(monkeypatch, tmp_path, lambda macros: ms.get(macros["BM"], 2.0))
    ms[128] = 1.0
    module.search(["coarsened_1d"], ("4096",), 60.0)
    stored = settings.configuration("coarsened_1d", 4096)
    assert stored.macros["BM"] == 128
    ms[64] = 1.0 - gain
    module.search(["coarsened_1d"], ("4096",), 60.0, again=True)
    assert (settings.configuration("coarsened_1d", 4096).macros == stored.macros) == stays


def test_what_nobody_can_look_up_is_searched_again(tmp_path, monkeypatch):
    machine = Clockwork(monkeypatch, tmp_path, slow_below_16)
    for commit, again in (("abc+", True), ("abc", True), ("abc", False)):
        monkeypatch.setattr(module, "commit", lambda commit=commit: commit)
        before = len(machine.launched)
        module.search(["coarsened_1d"], ("4096",), 60.0)
        assert (len(machine.launched) > before) == again


def test_what_does_not_fit_in_the_time_is_named(tmp_path, monkeypatch, capsys):
    Clockwork(monkeypatch, tmp_path, lambda macros: 500.0)
    module.search(["coarsened_1d", "coarsened_2d"], ("4096", "8192"), 3.0)
    assert "searches not begun, from" in capsys.readouterr().out


def test_other_number_formats_begin_with_the_best_tiles_of_the_row_s(tmp_path, monkeypatch):
    Clockwork(monkeypatch, tmp_path, lambda m: 1 + 0.01 * abs(m["BM"] - 64) + 0.1 * m["STAGES"])
    right = SimpleNamespace(ok=True)
    monkeypatch.setattr(module, "check_one", lambda *_, **__: (right, []))
    found = module.search(["mma_multistage"], ("4096",), 600.0)
    rows = {row["types"]: row for row in json.loads(found.read_text(encoding="utf-8"))["settings"]}
    half = rows["float16->float16"]
    assert half["macros"]["HALF_OUTPUT"] == 1 and half["macros"]["BM"] == 64
    assert half["tried"] < rows["float16->float32"]["tried"] / 2


def test_a_search_in_a_browser_starts_no_processes(monkeypatch):
    def by_block(name, macros, arch):
        if macros["BLOCK"] == 32:
            raise BuildError("32 is refused")
        return SimpleNamespace(reports={"gemm_naive": Report(40, 0, 0, 0)}, spills=0)

    monkeypatch.setattr(candidates.sys, "platform", "emscripten")
    monkeypatch.setattr(candidates, "ProcessPoolExecutor", lambda *_, **__: pytest.fail("started"))
    monkeypatch.setattr(candidates, "build", by_block)
    space = [(find("naive"), find("naive").resolve({"BLOCK": size})) for size in (32, 16)]
    found = candidates.compiled(space, "90")["naive"]
    assert ["refused" in one.dropped for one in found] == [True, False]


def test_a_search_without_a_compiler_says_so_before_it_starts_processes(monkeypatch):
    def no_compiler(name, macros, arch):
        raise NoCompiler(f"{name} for sm_{arch}")

    monkeypatch.setattr(candidates, "build", no_compiler)
    monkeypatch.setattr(candidates, "ProcessPoolExecutor", lambda *_, **__: pytest.fail("started"))
    with pytest.raises(NoCompiler, match="naive for sm_90 is not among the builds"):
        candidates.compiled([(find("naive"), find("naive").macros)], "90")
