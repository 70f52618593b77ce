"""The envelope of a results file, and how one is found again."""

import json

import pytest

from measure import provenance


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "FOLDER", tmp_path)
    monkeypatch.setattr(provenance, "describe", lambda: {"gpu": "Some GPU", "sms": 7})
    monkeypatch.setenv("GEMM_COMMIT", "abc123")
    return tmp_path


def test_what_is_stored_is_found_again_with_its_envelope(folder):
    path = provenance.store("limits-some-gpu", "with a stopwatch", rows=[{"ms": 1.5}])
    assert path == folder / "limits-some-gpu.json"
    found = provenance.load("limits")
    assert found == json.loads(path.read_text(encoding="utf-8"))
    assert list(found) == ["machine", "recorded", "commit", "method", "rows"]
    assert found["machine"]["sms"] == 7 and found["commit"] == "abc123"
    assert found["rows"] == [{"ms": 1.5}] and found["method"] == "with a stopwatch"
    assert provenance.label(found) == f"recorded on Some GPU, {found['recorded'][:10]}"


def test_a_label_names_every_day_of_the_rows_that_are_shown():
    stored = {"machine": {"gpu": "G"}, "recorded": "2026-01-03T04:05", "rows": [{"ms": 1}]}
    again = {"ms": 2, "recorded": "2026-01-02T03:04"}
    stored["rows"].append(again)
    assert provenance.label(stored) == "recorded on G, 2026-01-02 and 2026-01-03"
    assert provenance.label(stored, stored["rows"][:1]) == "recorded on G, 2026-01-03"
    assert provenance.label(stored, [again]) == "recorded on G, 2026-01-02"
    assert provenance.label({**stored, "rows": []}) == "recorded on G, 2026-01-03"


def test_a_machine_and_a_path_may_be_given(folder, tmp_path):
    path = provenance.store(tmp_path / "new" / "x.json", "by hand", {"cpu": "c"}, indent=None, a=1)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1
    assert json.loads(path.read_text(encoding="utf-8"))["machine"] == {"cpu": "c"}


def test_what_was_not_recorded_is_named(folder):
    with pytest.raises(FileNotFoundError, match=r"no results/tune-\*.json"):
        provenance.load("tune")
