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
