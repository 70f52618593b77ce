"""Which texts tell an answer."""

import pytest

from book import telling
from book.cells import questions


@pytest.mark.parametrize(
    ("name", "tells", "hides"),
    [
        ("uncoalesced-a", ("32 sectors", "Thirty-two of them", "a 32x ratio"), ("132", "32.5", "3,200", "sm_32")),
        ("tiles-sectors", ("16,384", "16384 sectors", "(16,384)"), ("16,385", "116,384", "16,384.5")),
        ("naive-b", ("four sectors", "4"), ("fourteen", "4.5", "1.4", "4,096")),
        ("wide-loads", ("a sixteenth", "0.0625", "6.25%"), ("0.06250001", "one load")),
        ("tiles-speedup", ("1.30 times", "1.3 times", "30% is not it, 1.305 is"), ("1.2 times", "13")),
        ("everything-barriers", ("{1: 5.0}", "5"), ("5.5", "15", "0.5")),
        ("tpipe-share", ("64% of it", "64.4%", "0.64"), ("164%", "46%")),
        ("fence-zeros", ("pass: 100%", "all of them"), ("1,000", "100.5%")),
        ("warp-shape", ("takes the same", "The same"), ("something",)),
    ],
)  # fmt: skip
def test_an_answer_is_found_in_digits_and_in_words_and_only_as_a_whole(name, tells, hides):
    asked = {name: questions.find(name).answer}
    assert [text for text in tells if not telling.told(text, asked)] == []
    assert [text for text in hides if telling.told(text, asked)] == []


def test_what_is_folded_or_only_for_a_script_is_not_seen_and_what_is_read_aloud_is():
    markup = "<p>A <details>32</details><script>32</script></p>"
    assert telling.told(telling.seen(markup), {"a": 32}) == []
    assert telling.told(telling.seen('<svg aria-label="32 sectors">'), {"a": 32})


def test_every_prediction_can_be_told():
    silent = [
        name
        for name, question in questions.everything().items()
        if not telling.told(question.answer_text, {name: question.answer})
    ]
    assert silent == []
