"""The static twins: each exercise has a question whose stored answer is what its kernel counts."""

import pytest

from book.cells import questions
from book.exercises import EXERCISES, twins


@pytest.mark.parametrize("name", [exercise.name for exercise in EXERCISES])
def test_the_page_and_the_kernel_agree(name):
    question = questions.find(f"ex-{name.replace('_', '-')}")
    assert question.answer == twins.counted(name)
    assert question.why and question.wrong
