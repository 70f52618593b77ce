"""Answers of the wrong kind are told so; an integer that is written as something else is not called wrong or right."""

import pytest

from book.exercises import cell


def said(name, answer):
    return " ".join(cell.judge_answer(name, answer).lines)


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("count_wavefronts", None, "dictionary of counts"),
        ("count_wavefronts", {"s[lane]": "1"}, "is an integer, not '1'"),
        ("count_wavefronts", {"s[lanes]": 1}, "no such access"),
        ("lane_map", (0, 0), "function itself"),
        ("lane_map", lambda lane, half: (lane / 4, 0), "// an integer"),
        ("lane_map", lambda lane, half: None, "two integers, not None"),
        ("swizzle_parameters", None, "three integers"),
        ("swizzle_parameters", (2, 3), "three integers"),
        ("swizzle_parameters", (2.0, 3, 3), "three integers"),
        ("swizzle_parameters", (70, 3, 80), "10 bits"),
    ],
)
def test_what_is_no_answer(name, answer, words):
    assert words in said(name, answer)


@pytest.mark.parametrize("text", ["5", "[[1]]", "{", "null"])
def test_a_damaged_progress_file_is_no_progress(text, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cell, "_progress_file", lambda: tmp_path / "exercises.json")
    (tmp_path / "exercises.json").write_text(text)
    cell.progress()
    assert capsys.readouterr().out.startswith("0 of ")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder for the progress file, and for what is saved."""
    monkeypatch.setattr(cell, "_progress_file", lambda: tmp_path / "exercises.json")
    return tmp_path


def test_progress_is_saved_and_loaded_and_nothing_is_lost(home, capsys):
    for name in ("coalesce", "lab3"):
        cell._remember(name)
    cell.save_progress(home / "mine.json")
    (home / "exercises.json").unlink()
    cell._remember("rasterise")
    cell.load_progress(home / "mine.json")
    assert cell._passed() == {"coalesce", "lab3", "rasterise"}
    assert "2 passed in" in capsys.readouterr().out
    cell.progress()
    told = capsys.readouterr().out
    assert told.startswith(f"3 of {len(cell.EXERCISES) + 1} exercises passed")
    assert "✓ Parts A and B" in told and "✓ Coalesce a kernel" in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no"),
        ("{", "is no file that save_progress has written"),
        ('["coalesce"]', "is no file that save_progress has written"),
        ('{"passed": [1]}', "is no file that save_progress has written"),
        ('{"passed": ["coalesce", "colaesce"]}', "no exercise is called colaesce: left out"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_said_to_be_so(text, words, home, capsys):
    if text is not None:
        (home / "mine.json").write_text(text)
    cell.load_progress(home / "mine.json")
    assert words in capsys.readouterr().out


def test_a_place_that_cannot_be_written_is_said_to_be_so(home, capsys):
    cell.save_progress(home / "no" / "such" / "folder.json")
    assert "nothing saved" in capsys.readouterr().out


def test_the_lab_is_checked_by_its_name_and_counts_as_progress(home, monkeypatch, capsys):
    from book.exercises.exercise import Exercise

    lab3 = Exercise("lab3", "", "", 0, "", ("", ""), "", cases=tuple)
    monkeypatch.setattr(cell, "_SOURCES", {"lab3": lab3.skeleton})
    monkeypatch.setattr(cell.lab, "EMULATOR_SIZE", 64)
    cell.check("lab3")
    assert "✗ gemm_wmma_smem" in capsys.readouterr().out and "lab3" not in cell._passed()
    cell._SOURCES["lab3"] = lab3.solution
    cell.check("lab3")
    assert "✓ gemm_wmma_async: right" in capsys.readouterr().out and "lab3" in cell._passed()
