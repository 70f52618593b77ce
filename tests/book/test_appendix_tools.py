"""Tables of the appendices."""

from book import faithful, grids
from kernels.compare import recorded_comparison


def test_a_grid_is_a_markdown_table():
    lines = grids.grid(
        ["GPU", "SMs", "note"], [["T4", 40, "a"], ["big", 1320, "b"]]
    ).data.splitlines()
    assert lines[1] == "| :-- | --: | :-- |"
    assert lines[3] == "| big | 1,320 | b |"


def test_what_is_missing_is_a_dash():
    assert grids.grid(["a", "b"], [["x", None], ["y", 0.5]]).data.endswith("| y | 0.5 |")
    assert "| x | - |" in grids.grid(["a", "b"], [["x", None]]).data


def test_numbers_in_a_row_are_a_range():
    assert grids.runs([7, 2, 1, 3, 11, 10]) == "1-3, 7, 10, 11"
    assert grids.runs([]) == ""


def test_the_comparison_counts_what_agrees(capsys):
    _, rows = recorded_comparison()
    faithful.counted()
    last = capsys.readouterr().out.split()[-2:]
    equal = sum(row["emulator"] == row["gpu"] for row in rows)
    assert last == [str(len(rows)), str(equal)]
    faithful.differences()
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(rows) - equal


def test_no_rung_is_faulted_and_every_mistake_is_found(capsys):
    faithful.rungs_found_clean()
    lines = capsys.readouterr().out.splitlines()[3:]
    assert len(lines) == 3
    assert all(line.split()[-2:] == ["0", "0"] for line in lines)
    faithful.mistakes_found()
    said = capsys.readouterr().out
    assert "nothing" not in said
    assert "Misaligned" in said
