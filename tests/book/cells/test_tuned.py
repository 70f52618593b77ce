"""The best recorded setting for each value of a macro."""

import json

import pytest

from book.cells import tuned
from measure import provenance


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    def row(stages, tflops, rung="pipe"):
        macros = {"STAGES": stages, "BM": 64, "BN": 32, "BK": 8}
        more = {"threads": 1024, "registers": 32, "shared_bytes": 4096}
        return {"rung": rung, "macros": macros, "tflops": tflops, **more}

    rows = [row(3, 5.0), row(2, 7.0), row(3, 9.0), row(3, None), row(4, 99.0, "other")]
    (tmp_path / "tune-some-gpu.json").write_text(
        json.dumps(
            {"machine": {"arch": 90, "gpu": "Some GPU"}, "recorded": "2026-01-02", "rows": rows}
        )
    )
    monkeypatch.setattr(provenance, "FOLDER", tmp_path)


def test_each_value_has_its_fastest_row(recorded, tables):
    found = tuned.best_by("pipe", "STAGES")
    assert {stages: row["tflops"] for stages, row in found.items()} == {2: 7.0, 3: 9.0}
    tuned.show("pipe", "STAGES")
    assert tables[0].rows[1] == ("3", "64x32x8", "32", "4,096", "2", "9.0")


def test_the_fastest_row_with_these_macros(recorded):
    assert tuned.at("pipe", STAGES=3, BM=64)["tflops"] == 9.0
    assert tuned.at("pipe")["tflops"] == 9.0
    with pytest.raises(KeyError, match="other"):
        tuned.at("other", STAGES=3)


def test_what_was_not_recorded_is_named(recorded, tmp_path):
    with pytest.raises(KeyError, match="DEPTH"):
        tuned.best_by("pipe", "DEPTH")
    (tmp_path / "tune-some-gpu.json").unlink()
    with pytest.raises(FileNotFoundError, match="tune"):
        tuned.best_by("pipe", "STAGES")
