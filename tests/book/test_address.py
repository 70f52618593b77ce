"""The address of the repository and of the pages comes from the environment, and from nowhere else."""

import re

import pytest

from book import address
from book.address import Address


def known(**environment) -> Address | None:
    return address.known(environment)


def test_without_a_word_there_is_no_address():
    assert known() is None
    assert known(GEMM_REPOSITORY=" ", GITHUB_REPOSITORY="") is None


@pytest.mark.parametrize(
    "said", ["jane/ladder", "https://github.com/jane/ladder", "https://github.com/jane/ladder.git"]
)
def test_a_repository_of_github_has_all_links(said):
    where = known(GEMM_REPOSITORY=said)
    assert where == Address("https://github.com/jane/ladder", "https://jane.github.io/ladder/")
    assert where.colab("book/x.ipynb").endswith("/github/jane/ladder/blob/colab/book/x.ipynb")
    assert where.binder("book/x.ipynb").endswith(
        "/gh/jane/ladder/main?urlpath=lab/tree/book/x.ipynb"
    )


def test_github_names_the_repository_in_its_workflows():
    assert known(GITHUB_REPOSITORY="Jane/ladder").site == "https://jane.github.io/ladder/"
    assert known(GITHUB_REPOSITORY="Jane/jane.github.io").site == "https://jane.github.io/"
    where = known(GITHUB_REPOSITORY="a/b", GITHUB_SERVER_URL="https://git.example.org")
    assert where == Address("https://git.example.org/a/b")
    assert not where.on_github


def test_what_the_reader_says_goes_first():
    where = known(GITHUB_REPOSITORY="a/b", GEMM_REPOSITORY="c/d", GEMM_SITE="https://book.example")
    assert where == Address("https://github.com/c/d", "https://book.example/")


@pytest.mark.parametrize("said", ["ladder", "https://x.org/a b", 'https://x.org/"; import os #'])
def test_what_is_no_address_is_refused(said):
    with pytest.raises(ValueError, match=re.escape(repr(said))):
        known(GEMM_REPOSITORY=said)


def test_a_site_that_is_no_address_is_refused():
    with pytest.raises(ValueError, match="GEMM_SITE"):
        known(GEMM_REPOSITORY="a/b", GEMM_SITE="book.example")
