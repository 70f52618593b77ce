"""The reader's numbers are judged fairly, and a wrong answer does not learn the right one."""

import pytest

from book.cells import answers


def test_prediction_stands_beside_the_result(capsys):
    answers.compare({"sectors": 128, "time": None}, {"sectors": 1024, "time": 2.5})
    head, sectors, time = capsys.readouterr().out.splitlines()
    assert head.split() == ["you", "say", "it", "is"]
    assert sectors.split() == ["sectors", "128", "1,024", "8x", "too", "few"]
    assert time.split() == ["time", "-", "2.5", "no", "prediction", "yet"]


@pytest.mark.parametrize(("said", "verdict"), [(100, "right"), (104, "right"), (107, "too many")])
def test_predictions_are_right_within_five_percent(said, verdict, capsys):
    answers.compare({"n": said}, {"n": 100})
    assert capsys.readouterr().out.rstrip().endswith(verdict)


def test_a_place_is_right_or_wrong_but_never_too_many(capsys):
    answers.compare({"row": 5, "column": 3}, {"row": 1, "column": 3}, places=True)
    assert capsys.readouterr().out.splitlines()[1].endswith("not so")
    answers.compare({"row": 99}, {"row": 100}, places=True)
    assert capsys.readouterr().out.rstrip().endswith("not so")


def test_a_prediction_without_a_result_is_an_error():
    with pytest.raises(KeyError):
        answers.compare({"a": 1}, {"b": 1})


@pytest.mark.parametrize(
    ("answer", "words"),
    [(17, "right"), (18, "too large"), (16, "too small"), (None, "No answer yet")],
)
def test_answers(answer, words, capsys):
    answers.check(answer, 17)
    said = capsys.readouterr().out
    assert words in said
    if answer != 17:
        assert "17" not in said
        assert "right" not in said


@pytest.mark.parametrize(("answer", "right"), [(0.334, True), (0.35, False)])
def test_answers_within_a_tolerance(answer, right, capsys):
    answers.check(answer, 1 / 3, within=0.01)
    assert ("right" in capsys.readouterr().out) == right
