"""`python -m book.chapters` writes nothing when a file is named wrongly, or not at all."""

import pytest

from book import chapters


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["from-markdown"], "name the drafts"),
        (["from-markdown", "book/01_start_here.ipynb"], "not a .md file"),
        (["from-markdown", "nowhere.md"], "there is no nowhere.md"),
        (["setup", "README.md"], "not a .ipynb file"),
        (["run", "nowhere.ipynb"], "there is no nowhere.ipynb"),
    ],
)
def test_files_that_are_wrong(words, said, capsys, monkeypatch):
    def never(*_):
        raise AssertionError("something was written")

    monkeypatch.setattr(chapters, "write", never)
    assert chapters.main(words) == 1
    assert said in capsys.readouterr().err
