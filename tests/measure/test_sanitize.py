"""The mistakes that compute-sanitizer is shown: each still changes its source, and the emulator finds each."""

import pytest

from measure.sanitize import MISTAKES, emulated, parse, recorded_findings


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.label)
def test_the_emulator_finds_the_mistake(mistake):
    said = emulated(mistake.label)
    recorded = next(f for f in recorded_findings()[1] if f.kernel == mistake.label)
    assert said.split(":")[0].split(";")[0] == recorded.emulator_says.split(":")[0].split(";")[0]


def test_a_rung_as_it_is_has_nothing_to_be_found():
    assert emulated("tiled") == ""


def test_a_mistake_whose_source_has_changed_is_told(monkeypatch, tmp_path):
    mistake = MISTAKES[0]
    monkeypatch.setattr("kernels.rung.FOLDER", tmp_path)
    (tmp_path / "03_tiled.cu").write_text("// another kernel\n")
    with pytest.raises(ValueError, match="no longer contains"):
        emulated(mistake.label)


def test_what_compute_sanitizer_prints_is_counted_by_kernel():
    output = """=== tiled
========= Error: Race reported between Write access and Read access
=========     in tiled
========= Error: Race reported between Read access and Write access
=== naive
========= ERROR SUMMARY: 0 errors
=== end
"""
    found = parse(output)
    assert found["naive"] == (0, "") and set(found) == {"tiled", "naive"}
    assert found["tiled"] == (2, "Error: Race reported between Write access and Read access")
