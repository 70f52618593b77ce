"""A recording goes on where it stopped, keeps what it has, and ends with its time."""

import json
from types import SimpleNamespace

import pytest

from kernels import settings
from kernels.errors import UnsupportedGPU
from kernels.rungs import find

module = __import__("importlib").import_module("measure.record")


class Gpu:
    """A GPU on which a row takes a second of a clock of its own."""

    def __init__(self, monkeypatch, tmp_path):
        self.now, self.timed = 0.0, []
        here = SimpleNamespace(name="some GPU", slug="some-gpu", arch=80, sms=108)
        monkeypatch.setattr(module, "needed", lambda what: here)
        monkeypatch.setattr(settings, "gpu", lambda: here)
        monkeypatch.setattr(module, "describe", lambda: {"gpu": here.name})
        monkeypatch.setattr(module, "clocks", dict)
        monkeypatch.setattr(module, "release", lambda: None)
        monkeypatch.setattr(module, "time_rung", self.row)
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(settings, "FILE", tmp_path / "settings.json")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def row(self, rung, M, N, K, choice, samples, limit_s, sustained_s, library):
        self.now += 1
        if (rung.name, M) == ("naive", 8192):
            raise TimeoutError("too slow")
        self.timed.append((rung.name, M, sustained_s))
        formats = rung.types(choice)
        config = dict(settings.configuration(rung, (M, N, K), macros=choice).macros)
        return {
            "rung": rung.name, "m": M, "n": N, "k": K, "inputs": formats.inputs, "output": formats.output,
            "ms_median": 1.0, "config": config, "clock_ghz": 1.9,
        }  # fmt: skip


def rows(path):
    return [(row["rung"], row["m"]) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]


def test_a_recording_goes_on_where_its_time_ended(tmp_path, monkeypatch, capsys):
    gpu = Gpu(monkeypatch, tmp_path)
    path = tmp_path / "out.json"
    module.record(["uncoalesced", "naive", "tiled"], (4096, 1024), path, seconds=2.5)
    assert rows(path) == [("uncoalesced", 4096), ("naive", 4096), ("tiled", 4096)]
    assert "5 rows not timed, from tiled" in capsys.readouterr().out
    before = len(gpu.timed)
    module.record(["uncoalesced", "naive", "tiled"], (4096, 1024), path)
    assert len(gpu.timed) - before == 5, "what was there was not timed again"
    assert [n for _, n in rows(path)] == [1024] * 4 + [4096] * 4
    module.record(["naive"], (4096,), path, again=True)
    assert gpu.timed[-1][:2] == ("naive", 4096)


def test_only_the_size_that_pages_show_gets_a_long_run(tmp_path, monkeypatch):
    gpu = Gpu(monkeypatch, tmp_path)
    module.record(["naive"], (4096, 1024), tmp_path / "out.json")
    assert gpu.timed == [("naive", 4096, 2.0), ("naive", 1024, 0.0)]


def test_a_row_at_another_configuration_is_timed_again(tmp_path, monkeypatch):
    gpu = Gpu(monkeypatch, tmp_path)
    path = tmp_path / "out.json"
    module.record(["coarsened_1d"], (4096,), path)
    rung = find("coarsened_1d")
    found = settings.Setting(
        "coarsened_1d", "float32->float32", 80, "4096", rung.resolve({"TM": 4}), "some GPU", 108,
        "2026-01-02", "abc", (4096,) * 3, 9, 1.0, 1.0,
    )  # fmt: skip
    settings.remember([found], settings.FILE)
    module.record(["coarsened_1d"], (4096,), path)
    assert (
        len(gpu.timed) == 2
        and json.loads(path.read_text(encoding="utf-8"))["rows"][0]["config"]["TM"] == 4
    )


def test_a_rung_that_is_too_slow_or_cannot_run_is_named(tmp_path, monkeypatch, capsys):
    Gpu(monkeypatch, tmp_path)
    path = tmp_path / "out.json"
    module.record(["naive", "uncoalesced", "wgmma"], (8192,), path)
    assert rows(path) == [("uncoalesced", 8192)]
    assert "naive (8192, 8192, 8192): skipped, too slow" in capsys.readouterr().err


def test_a_part_that_fails_does_not_end_the_others(monkeypatch, capsys):
    def fails(options):
        raise UnsupportedGPU("no ncu")

    parts = {"one": fails, "two": lambda options: "two.json"}
    monkeypatch.setattr(module, "PARTS", parts)
    options = SimpleNamespace(part=None, seconds=60.0)
    assert module.run_parts(options) == ["one"]
    said = capsys.readouterr()
    assert "two: two.json" in said.out and "one: no ncu" in said.err
    assert module.run_parts(SimpleNamespace(part=["two"], seconds=0.0)) == ["two"]


def test_everything_is_compiled_beforehand(monkeypatch):
    asked = []
    monkeypatch.setattr(module, "compiled", lambda wanted, *_: asked.extend(wanted))
    monkeypatch.setattr("measure.machine.programs", lambda arch: [])
    module.compile_all(["coarsened_1d", "mma_multistage"], 90)
    names = {rung.name for rung, _ in asked}
    assert names == {"coarsened_1d", "mma_multistage"}
    assert len(asked) > 100 and {m.get("HALF_OUTPUT") for _, m in asked} == {None, 0, 1}
    asked.clear()
    module.compile_all(["mma_multistage"], 90, space=False)
    assert 2 <= len(asked) <= 2 * 8 < 100  # one per class of sizes and type


@pytest.mark.parametrize("arch", [80, 90])
def test_the_machine_s_programs_are_there(arch):
    from measure.machine import programs

    found = programs(arch)
    assert all(path.exists() for path, *_ in found)
    assert any("wgmma" in path.name for path, *_ in found) == (arch == 90)
