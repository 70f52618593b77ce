"""Tables of the appendices."""

import re

import pytest

from book.cells import faithful, grids
from emulator.bench import Measurement
from measure import emulator_speed
from measure.compare import recorded_comparison


def cells(table, tag="td"):
    return re.findall(rf'<{tag} style="text-align:(\w+)">(.*?)</{tag}>', table.data)


def test_a_grid_is_a_table_with_numbers_to_the_right():
    table = grids.grid(["GPU", "SMs", "note"], [["T4", 40, "a"], ["big", 1320, "b"]])
    assert cells(table, "th") == [("left", "GPU"), ("right", "SMs"), ("left", "note")]
    assert cells(table)[3:] == [("left", "big"), ("right", "1,320"), ("left", "b")]


def test_what_is_missing_is_a_dash_and_words_are_escaped():
    values = [text for _, text in cells(grids.grid(["a", "b"], [["`x<y>`", None], ["y", 0.5]]))]
    assert values == ["<code>x&lt;y&gt;</code>", "-", "y", "0.5"]


def test_numbers_in_a_row_are_a_range():
    assert grids.runs([7, 2, 1, 3, 11, 10]) == "1-3, 7, 10, 11"
    assert grids.runs([]) == ""


def test_the_page_has_the_readme_s_families_and_the_emulator_s_shapes():
    table = faithful.executes()
    families = [text for side, text in cells(table)]
    assert len(families) % len(cells(table, "th")) == 0
    assert "atomics" in families
    assert any("ldmatrix" in text for text in families)
    row = cells(faithful.shapes())[:4]
    assert [text for _, text in row[:2]] == ["f16", "f16, f32"]
    assert "<code>m8n8k4</code>" in row[2][1]
    assert "<code>m32n8k16</code>" in row[3][1]


def test_the_comparison_counts_what_agrees(tables):
    _, rows = recorded_comparison()
    faithful.counted()
    equal = sum(row["emulator"] == row["gpu"] for row in rows)
    assert tables[0].rows[-1] == ("all", str(len(rows)), str(equal))
    faithful.differences()
    assert len(tables[1].rows) == len(rows) - equal


def test_no_rung_is_faulted(tables):
    faithful.rungs_found_clean()
    assert [row[-2:] for row in tables[0].rows] == [("0", "0")] * 3


def test_what_escapes_is_told_with_its_reason(tables, capsys):
    faithful.seeded_mistakes()
    rows = {row[0]: row for row in tables[0].rows}
    assert "racecheck" in rows
    _, mistakes, caught, named, line, _, alarms, *_ = rows["emulator"]
    assert int(mistakes) >= 150 and int(caught) >= 0.97 * int(mistakes) and alarms == "0"
    assert int(line) >= 0.9 * int(mistakes) and int(line) <= int(named) <= int(caught)
    said = capsys.readouterr().out
    assert said.count("Reason: ") == int(mistakes) - int(caught)


def test_copies_with_and_without_data_add_up(tables):
    _, rows = recorded_comparison()
    faithful.empty_copies("mma_tf32")
    full, empty, price, left = (float(n.replace(",", "")) for n in tables[0].rows[0][1:])
    gpu = {r["counter"]: r["gpu"] for r in rows if r["rung"] == "mma_tf32"}
    assert full + empty == gpu["global requests, cp.async"]
    shown = full * price + empty * left  # the prices are printed with six digits
    assert abs(shown / gpu["shared wavefronts, cp.async"] - 1) < 1e-4


def test_the_speed_is_told_as_a_ratio_of_what_was_recorded(tables):
    faithful.speed()
    rows = tables[0].rows
    *ours, numba = [(float(row[-2]), float(row[-1].rstrip("x"))) for row in rows]
    assert numba[1] == 1
    assert all(abs(ratio / (rate / numba[0]) - 1) < 0.05 for rate, ratio in ours)


def test_the_speed_that_is_stored_is_the_speed_that_is_told(monkeypatch, tmp_path, tables):
    monkeypatch.setattr(emulator_speed, "SPEED", tmp_path / "speed.json")
    monkeypatch.setattr(emulator_speed.bench, "numba_rate", lambda: 2e5)
    monkeypatch.setattr(
        emulator_speed.bench, "measure", lambda size: [Measurement("naive", 0.5, 3e8)]
    )
    monkeypatch.setattr(emulator_speed, "version", lambda name: "1.2")
    emulator_speed.record(128)
    faithful.speed()
    assert "numba 1.2" in tables[0].caption
    assert tables[0].rows[0] == ("naive", "128^3", "0.50", "300.0", "1500x")


def test_without_numba_there_is_no_ratio_to_store(monkeypatch):
    monkeypatch.setattr(emulator_speed.bench, "numba_rate", lambda: None)
    with pytest.raises(ModuleNotFoundError, match="pip install numba"):
        emulator_speed.record()
