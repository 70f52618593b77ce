"""One configuration per generation and class of sizes, and words for where it comes from."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kernels import RUNGS, build, configuration, find, gemm, plan, random_inputs, settings
from kernels.gemm import plan as plan_of

FOUND = settings.Setting(
    rung="coarsened_1d", types="float32->float32", generation=80, size_class="1024",
    macros={"BM": 64, "BN": 32, "BK": 16, "TM": 4}, gpu="NVIDIA A100", sms=108, recorded="2026-02-03T04",
    commit="abc", size=(1024, 1024, 1024), tried=21, ms=0.5, tflops=4.3,
)  # fmt: skip


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A function that makes these the only settings there are."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(settings, "FILE", tmp_path / "settings.json")
    return lambda *found: settings.remember(found, tmp_path / "settings.json")


def here(monkeypatch, arch, name="some GPU", sms=60):
    a_gpu = SimpleNamespace(name=name, arch=arch, sms=sms)
    monkeypatch.setattr(settings, "gpu", lambda: a_gpu)


@pytest.mark.parametrize(
    ("arch", "first"),
    [(75, 75), (80, 80), (86, 86), (89, 86), (90, 90), ("90a", 90), (100, 100), (120, 100)],
)
def test_an_architecture_has_a_generation(arch, first):
    assert settings.generation(arch) == first


@pytest.mark.parametrize(
    ("size", "name"),
    [
        (4096, "4096"), ((4000, 4200, 4100), "4096"), (256, "1024"), (16384, "8192"),
        ((1024, 1024, 4096), "2048"), ((16, 8192, 8192), "16x8192x8192"), ((24, 8192, 8192), "8192 skinny"),
        ((8192, 128, 4096), "8192 skinny"),
        ((256, 264, 65536), "8192 skinny"), ((512, 512, 2048), "1024"),
    ],
)  # fmt: skip
def test_a_size_has_a_class(size, name):
    assert settings.size_class(size) == name


@pytest.mark.parametrize(
    "name", [f"{n}{shape}" for n in settings.CLASSES for shape in ("", " skinny")]
)
def test_a_class_is_searched_at_a_size_of_its_own(name):
    assert settings.size_class(settings.representative(name)) == name


def test_what_a_search_found_is_what_runs(stored):
    stored(FOUND)
    A, B, _ = random_inputs(find("coarsened_1d").types(), 70, 50, 40)
    result = gemm("coarsened_1d", A, B, machine="emulator", arch=80)
    assert result.plan.macros == FOUND.macros == result.plan.configuration.macros
    assert result.plan.block == (64 * 32 // 4, 1, 1)
    assert result.build.ptx == build("coarsened_1d", FOUND.macros, 80).ptx
    assert "NVIDIA A100, 2026-02-03" in str(result.plan.configuration)


def test_given_macros_and_defaults_override_it(stored):
    stored(FOUND)
    rung = find("coarsened_1d")
    assert plan("coarsened_1d", 99, 99, 99, {"BN": 64}, 80).macros == {**rung.macros, "BN": 64}
    assert plan("coarsened_1d", 99, 99, 99, arch=80, defaults=True).macros == rung.macros
    assert "default" in configuration(rung, 99, 80, defaults=True).source


def test_a_generation_that_nobody_searched_takes_the_nearest_older_one_s_and_says_so(stored):
    older = replace(FOUND, generation=75, macros={"BM": 64, "BN": 64, "BK": 16, "TM": 4})
    stored(FOUND, older)
    said = configuration("coarsened_1d", 1000, 90)
    assert said.macros == FOUND.macros and "nobody has searched on sm_90" in said.source
    assert configuration("coarsened_1d", 1000, 75).macros == older.macros
    stored(FOUND)
    assert "nobody" not in configuration("coarsened_1d", 1000, 80).source


def test_nothing_of_a_newer_generation_is_taken(stored):
    stored(FOUND)
    said = configuration("coarsened_1d", 1000, 75)
    assert said.macros == find("coarsened_1d").macros and "default" in said.source


def test_the_nearest_class_of_the_same_shape_serves(stored):
    big = replace(FOUND, size_class="8192", macros={**FOUND.macros, "BM": 128})
    skinny = replace(FOUND, size_class="2048 skinny", macros={**FOUND.macros, "BK": 8})
    stored(FOUND, big, skinny)
    assert configuration("coarsened_1d", 4096, 80).macros == big.macros
    assert "nearest to 4096" in configuration("coarsened_1d", 4096, 80).source
    assert configuration("coarsened_1d", (8, 8192, 8192), 80).macros == skinny.macros


def test_number_formats_have_settings_of_their_own(stored):
    row = find("mma_multistage")
    half = replace(
        FOUND, rung="mma_multistage", types="float16->float16", sms=100,
        macros=row.resolve({"HALF_OUTPUT": 1, "BM": 256, "BN": 128, "BLOCKS": 200, "STAGES": 3, "BK": 32}),
    )  # fmt: skip
    stored(half)
    assert configuration(row, 1024, 80, {"HALF_OUTPUT": 1}).macros == half.macros
    assert configuration(row, 1024, 80).macros == row.resolve(arch=80)


def test_blocks_are_those_of_the_multiprocessors_here(stored, monkeypatch):
    row = find("mma_multistage")
    stored(
        replace(
            FOUND,
            rung=row.name,
            types="float16->float32",
            sms=100,
            macros=row.resolve({"BLOCKS": 200, "STAGES": 3}),
        )
    )
    here(monkeypatch, 80)
    assert configuration(row, 1024).macros["BLOCKS"] == 120
    assert configuration(row, 1024, defaults=True).macros["BLOCKS"] == 60
    assert configuration(row, 1024, macros={"BLOCKS": 7}).macros["BLOCKS"] == 7


def test_a_setting_that_does_not_fit_is_passed_over(stored):
    row = find("mma_multistage")
    stored(replace(FOUND, rung=row.name, types="float16->float32", macros=dict(row.macros)))
    assert configuration(row, 1024, 80).macros["STAGES"] == row.resolve(arch=80)["STAGES"] == 3
    assert configuration(row, 1024, 90).macros == row.macros


def test_this_machine_s_own_search_comes_first(stored, monkeypatch):
    stored(FOUND)
    own = replace(FOUND, gpu="some GPU", macros={**FOUND.macros, "TM": 8})
    settings.remember([own])
    assert configuration("coarsened_1d", 1024, 80).macros == FOUND.macros  # no such GPU here
    here(monkeypatch, 80)
    assert configuration("coarsened_1d", 1024, 80).macros == own.macros


def test_a_new_search_replaces_the_old_of_the_same_key_only(stored):
    file = stored(FOUND, replace(FOUND, size_class="2048"))
    stored(replace(FOUND, ms=0.25))
    rows = json.loads(file.read_text(encoding="utf-8"))["settings"]
    assert [(row["size_class"], row["ms"]) for row in rows] == [("1024", 0.25), ("2048", 0.5)]


def test_a_damaged_file_is_named(stored):
    file = stored(FOUND)
    file.write_text('{"settings": [{"rung": "naive"}]}')
    with pytest.raises(ValueError, match=r"settings\.json is no file of settings"):
        configuration("naive", 512, 80)


@pytest.mark.parametrize("one", settings.settings(), ids=lambda one: "-".join(map(str, one.key)))
def test_what_is_stored_fits_its_row(one):
    rung = RUNGS[one.rung]
    assert set(one.macros) == set(rung.macros), "the row has other macros now: search again"
    assert str(rung.types(one.macros)) == one.types
    rung.check_needs(rung.resolve(one.macros))
    assert rung.valid(**rung.resolve(one.macros))
    assert settings.size_class(one.size) == one.size_class
    how = plan_of(rung, *one.size, {**one.macros}, built=object())
    assert how.grid and one.ms > 0 and one.gpu and one.recorded and one.commit
