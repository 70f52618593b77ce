"""The output of a wrong kernel is told by its cause: each mistake made in NumPy, and the words that must name it."""

import numpy as np
import pytest

from book.exercises.cases import POISON_BITS, poisoned, product, unwritten
from book.exercises.diagnose import explained, findings, where


@pytest.fixture
def case():
    return product(np.random.default_rng(), (32, 48, 40), (16, 16), (32,))


def said_of(case, C):
    return " ".join(findings(case, C.astype(np.float32)))


def test_a_right_output_is_not_faulted(case):
    assert said_of(case, case.expected) == ""


def test_poison_is_a_nan_that_only_an_untouched_element_holds():
    array = poisoned((3, 4))
    array[1, 2] = np.nan
    array[0, 0] = 1
    assert np.isnan(poisoned((2,))).all() and POISON_BITS == poisoned((1,)).view(np.uint32)[0]
    assert unwritten(array).sum() == 10


@pytest.mark.parametrize(
    "change,words",
    [
        (lambda A, B: A[:, :32] @ B[:32], "last K % 16 terms"),
        (lambda A, B: A[:, 16:] @ B[16:], "first tile of K (16 terms) is missing"),
        (lambda A, B: A[:, :-1] @ B[:-1], "last term along K"),
        (lambda A, B: 2 * A @ B, "added twice"),
        (lambda A, B: (A @ B).T.reshape(32, 48), "transposed"),
        (lambda A, B: A.reshape(40, 32).T @ B, "A is read transposed"),
        (lambda A, B: (A @ B)[np.arange(32) ^ 8], "Rows 8-15"),
        (lambda A, B: (A @ B)[np.arange(32) ^ 1], "holds what belongs in row"),
        (lambda A, B: A @ B + 1, "too large by 1: does the sum begin with 0?"),
        (lambda A, B: 5 * A @ B, "Every element is 5 times what it must be"),
        (lambda A, B: np.nan * A @ B, "NaN"),
    ],
)
def test_mistakes_are_told_apart(case, change, words):
    assert words in said_of(case, change(case.product.A, case.product.B))


def test_zeros_have_no_cause(case):
    told = findings(case, np.zeros_like(case.expected, np.float32))
    assert told == ["Every element is 0: nothing was added up there."] and not explained(told)


def test_what_was_never_written_is_said_first(case):
    C = case.expected.astype(np.float32)
    C[16:] = poisoned((16, 48))
    assert findings(case, C) == ["Rows 16 and up are never written."]
    C[:16] = 2 * C[:16]
    assert findings(case, C) == ["Rows 16 and up are never written.", "Everything is added twice."]


@pytest.mark.parametrize(
    "rows,cols,words",
    [
        (slice(None), slice(None), "every element is"),
        (slice(16, None), slice(None), "rows 16 and up are"),
        (slice(4, 9), slice(None), "rows 4-8 are"),
        (slice(None), slice(3, 4), "column 3 is"),
        (slice(1, None, 2), slice(None), "rows r with r % 2 = 1 are"),
        (slice(8, 12), slice(0, 5), "rows 8-11, there columns 0-4, are"),
    ],
)
def test_places_are_put_into_words(rows, cols, words):
    mask = np.zeros((32, 48), bool)
    mask[rows, cols] = True
    assert where(mask) == words


def test_what_is_said_does_not_hang_on_the_numbers():
    said = set()
    for seed in range(5):
        case = product(np.random.default_rng(seed), (32, 48, 40), (16, 16), (32,))
        C = case.expected.copy()
        C[5:9, 7:20] += case.product.A[5:9, :13]
        told, values = said_of(case, C).split(": ")
        assert values.startswith("[5, 7] holds ")
        said.add(told)
    assert len(said) == 1
