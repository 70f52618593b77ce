"""A number in prose is what its row of `results/` says, and a measured number is bound to one."""

import nbformat
import pytest

from book import bound_numbers, chapters, facts
from book.bound_numbers import Passage, agrees, evaluate, unbound_in, updated, wrong_in

# Pages that are not yet rewritten with bound numbers. Take a page out when it is; add none.
UNBOUND_YET: set[str] = set()


def words(text: str, output: str = "") -> list[str]:
    return [finding.words for finding in wrong_in(Passage("page", "cell 1", text, output))]


def loose(text: str) -> list[str]:
    moved = bound_numbers._between(text)
    return [finding.words for finding in unbound_in(Passage("page", "cell 1", moved))]


@pytest.fixture
def speeds(monkeypatch):
    """Two rungs of 51.54 and 25.0 TFLOP/s, 2,345.6 ms and a fraction."""
    names = {
        "tflops": lambda rung: {"fast": 51.54, "slow": 25.0}[rung],
        "ms": lambda: 2345.6,
        "share": lambda: 0.854,
    }
    monkeypatch.setattr(bound_numbers, "NAMES", {**bound_numbers.NAMES, **names})


@pytest.mark.parametrize(
    "text",
    [
        'It reaches 51.5<!--= tflops("fast") --> TFLOP/s.',
        'It reaches 51.5 TFLOP/s<!--= tflops("fast") -->.',
        'It reaches **52**<!--= tflops("fast") -->.',
        "85%<!--= share() --> of cuBLAS, 85.4% of cuBLAS<!--= share() -->",
        "It takes 2,346<!--= ms() --> ms, about 2,300<!--= round(ms(), -2) -->.",
        'twice<!--? 1.9 < tflops("fast") / tflops("slow") < 2.1 --> as fast',
        "-26.5<!--= tflops('slow') - tflops('fast') -->",
    ],
)
def test_what_is_right_passes(text, speeds):
    assert words(text) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('51.4<!--= tflops("fast") -->', "51.4 stands there, 51.5 is right"),
        ("86%<!--= share() -->", "86 stands there, 85 is right"),
        ("2,300<!--= ms() --> ms", "2,300 stands there, 2,346 is right"),
        ("26<!--= tflops('slow') - tflops('fast') --> faster", "the sentence has to change"),
        ('x<!--? tflops("fast") < 2 -->', "does not hold"),
        ('x<!--? tflops("fast") -->', "does not hold"),
        ('quick<!--= tflops("fast") -->', "no number stands before"),
        ('FP32<!--= tflops("fast") -->', "no number stands before"),
        ('51.5<!--= tflops("lost") -->', "lost"),
        ("51.5<!--= speed() -->", "no accessor 'speed'"),
        ("51.5<!--= ms( -->", "is not an expression"),
        ('so\n<!--? 1 < tflops("fast") --> it is', "may not begin a line"),
    ],
)
def test_what_is_wrong_is_told(text, says, speeds):
    (found,) = words(text)
    assert says in found


@pytest.mark.parametrize(
    "text", ["().__class__", "ms.__globals__", "[x for x in (1,)]", "lambda: 1"]
)
def test_only_arithmetic_is_evaluated(text):
    with pytest.raises(ValueError, match=r"may not stand|no accessor"):
        evaluate(text)


def test_a_number_agrees_at_the_precision_it_is_printed_with():
    assert agrees("53.3", 53.34) and agrees("53.3", 53.26) and not agrees("53.3", 53.36)
    assert agrees("1,024", 1024) and not agrees("1,024", 1025)


def test_update_writes_what_the_rows_say(speeds):
    text = 'Now 12.3<!--= tflops("fast") --> and 900 ms<!--= ms() -->, 7%<!--= share() -->, 9<!--= lost() -->.'
    new = updated(text)
    assert new.startswith("Now 51.5<!--=") and "2,346 ms<!--=" in new and "85%<!--=" in new
    assert new.endswith("9<!--= lost() -->.")
    assert updated(new) == new and len(words(new)) == 1


def test_update_leaves_a_number_whose_sign_changed(speeds):
    text = "26<!--= tflops('slow') - tflops('fast') --> faster"
    assert updated(text) == text


def test_update_changes_the_page(tmp_path, speeds):
    path = tmp_path / "page.ipynb"
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_markdown_cell('# It\n\n1.0<!--= tflops("slow") -->')]
    chapters.write(notebook, path)
    assert [f.place for f in bound_numbers.check([path])] == ["cell 0"]
    assert bound_numbers.update([path]) == []
    assert chapters.read(path).cells[0].source.startswith("# It\n\n25.0<!--=")


def test_a_quoted_number_stands_in_the_output_above():
    text = "Of these, 4,096<!--by cell--> are loads, 2.5 ms<!--by cell--> in all."
    assert words(text, "loads 4,096\ntime 2.5") == []
    assert words(text, "loads 14,096\ntime 2.55") == [
        "4,096 is not in the output of the cell above",
        "2.5 is not in the output of the cell above",
    ]


def test_measured_numbers_that_nothing_explains_are_found():
    assert loose("It reaches 53.3 TFLOP/s at 1.74 GHz, 62% of cuBLAS.") == [
        "'53.3 TFLOP/s' is bound to nothing",
        "'1.74 GHz' is bound to nothing",
        "'62% of cuBLAS' is bound to nothing",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "53.3<!--= tflops() --> TFLOP/s and 53.3 TFLOP/s<!--= tflops() -->",
        "The data sheet says 989.4 TFLOP/s {cite:p}`hopper-whitepaper`.",
        "12 ms<!--by cell-->, and say 600<!--given--> clocks",
        "`sleep(5 ms)` or $5 ms$, 16 bytes, 3 warps",
        "```\n53.3 TFLOP/s\n```",
        "62%<!--= ratio('x') --> of cuBLAS",
        "932 TFLOP/s<!--= stored('machine', 'rows', {'name': 'wgmma, 2 ms'}, 'value') -->",
    ],
)
def test_explained_numbers_are_not(text):
    assert loose(text) == []


def test_a_citation_speaks_for_its_own_sentence_only():
    text = "The sheet says 989 TFLOP/s {cite:p}`h`. We reach 483 TFLOP/s."
    assert loose(text) == ["'483 TFLOP/s' is bound to nothing"]


def test_the_accessors_read_what_was_recorded():
    (row,) = facts._recording().select("warp_tiled", 2048)
    assert evaluate('tflops("warp_tiled", 2048)') == row["tflops"]
    assert evaluate('ratio("warp_tiled", size=2048)') == row["ratio_to_cublas"]
    assert evaluate('config("warp_tiled", "BM", 2048)') == row["config"]["BM"]
    assert 0 < evaluate('limits("mma_padded", "L2")') < 1
    assert 0.5 < evaluate('clock("mma_padded")') < 3
    assert evaluate('tuned("async_pipeline")') >= evaluate('tuned("async_pipeline", STAGES=2)')
    assert evaluate('ratio("tiled", "naive") * tflops("naive") / tflops("tiled")') == pytest.approx(
        1
    )
    assert evaluate('compared("naive", "global sectors, loads")') > 0
    assert evaluate('sustained("warp_tiled", "watts") <= sustained("warp_tiled", "limit")')
    assert evaluate('stored("limits", "rows", {"rung": "warp_tiled"}, "cycles")') > 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('tflops("lost")', "lost at 4096: no rows"),
        ('limits("naive", "L3")', "there are 'rung'"),
        ('stored("weather", "rows")', "there is no results/weather"),
        ('compared("naive", "sheep")', "global sectors, loads"),
        ('stored("limits", "rows", {"size": [4096, 4096, 4096]}, "cycles")', "rows, say which"),
    ],
)
def test_what_was_not_recorded_is_told(text, says):
    with pytest.raises(LookupError, match=says):
        evaluate(text)


def test_every_bound_number_of_the_pages_is_right():
    assert [str(finding) for finding in bound_numbers.check(bound_numbers.pages())] == []


def test_measured_numbers_of_the_pages_are_bound():
    found = {}
    for finding in bound_numbers.unbound(bound_numbers.pages()):
        found.setdefault(finding.page, []).append(str(finding))
    assert {page: what for page, what in found.items() if page not in UNBOUND_YET} == {}
    done = UNBOUND_YET - set(found)
    assert not done, f"take out of UNBOUND_YET, they are done: {done}"
